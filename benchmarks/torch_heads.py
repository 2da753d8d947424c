"""Output layers for torch, ours and others: forward, backward, step, memory, gradient error.

Hidden vectors that need a gradient, Zipf-distributed targets, ids in the order of frequency, random
weights, plain SGD for all. Each head is measured in its own process, forked from this one, on one
thread: medians of CPU seconds (of wall time on a GPU), and its peak memory above that before the
head was made. A head whose first step takes longer than ``--long`` seconds is measured by that step
alone.

- Linear: ``nn.Linear`` and ``cross_entropy``; left out where its logits have over 2^29 numbers,
  2^31 on a GPU;
- Linear, bfloat16: the same in bfloat16, from weights in float32, on a GPU;
- linear_cross_entropy: torch's, in chunks (torch 2.13);
- adaptive: ``nn.AdaptiveLogSoftmaxWithLoss``, cut at V / 50 and V / 5, div_value 4;
- hierarchicalsoftmax: the package, on the class tree, up to 50,000 labels, where it is installed;
- cut_cross_entropy (in bfloat16, likewise), liger: on a GPU, where they are installed;
- huffman, gmm, classes: our `HierarchicalSoftmax`, sparse gradients; gmm is built from random
  vectors, up to 128,000 labels; classes has sqrt(V) classes of equal mass by the root of counts;
- sampled: our `SampledSoftmax`, 1,000 labels by their counts, sparse gradients.

The gradient error is the norm of the error of the gradient with respect to 32 hidden vectors, over
the norm of the gradient of the head's own exact loss in float64.

    python -m benchmarks.torch_heads [--sizes 32000 50000] [--heads huffman] [--json FILE]
"""

from __future__ import annotations

import copy
import resource
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import hstree
from benchmarks import common
from benchmarks.common import class_tree, in_fork, zipf_targets, zipf_vocabulary
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.interop.torch import HierarchicalSoftmax, SampledSoftmax


def main() -> None:
    parser = common.parser(__doc__)
    sizes = [32_000, 50_000, 128_000, 256_000, 1_000_000]
    parser.add_argument("--sizes", type=int, nargs="+", default=sizes)
    parser.add_argument("--heads", nargs="+", choices=HEADS, default=list(HEADS))
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=512, help="in a batch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--long", type=float, default=3.0, help="seconds")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.sparse.check_sparse_tensor_invariants.disable()
    common.report("torch_heads", rows(options), options.json)


def rows(options: Any) -> Iterator[dict[str, Any]]:
    """Measure all heads at all sizes, each in a process of its own unless it is on a GPU."""
    for n_labels in options.sizes:
        vocabulary = zipf_vocabulary(n_labels)
        for name in options.heads:
            arguments = name, vocabulary, options
            on_cpu = options.device == "cpu"
            figures = in_fork(measure, *arguments) if on_cpu else measure(*arguments)
            if figures:
                yield {"labels": n_labels, "head": name, **figures}


def measure(name: str, vocabulary: Vocabulary, options: Any) -> dict[str, Any] | None:
    """Return the row of a head, or None if it is left out."""
    on_gpu = options.device != "cpu"
    size = (options.tokens, options.dim)
    drawn = np.random.default_rng(0).standard_normal(size, np.float32)
    hidden = torch.from_numpy(drawn).to(options.device).requires_grad_()
    target = torch.from_numpy(zipf_targets(vocabulary, options.tokens, seed=1)).to(options.device)
    tree = build_tree(name, vocabulary)
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    before = peak_memory(on_gpu)
    head = HEADS[name](vocabulary, tree, options)
    if head is None:
        return None
    head.to(options.device)
    generator = torch.Generator(options.device).manual_seed(0)
    with torch.no_grad():
        for parameter in head.parameters():
            if parameter.ndim == 2:
                parameter.normal_(0, 0.05, generator=generator)
    optimiser = torch.optim.SGD(head.parameters(), lr=0.1)
    seconds: dict[str, list[float]] = defaultdict(list)
    # On a GPU the first steps compile, and try several ways
    skipped = 5 if on_gpu else 1
    for number in range(options.rounds + skipped):
        times = [now(on_gpu)]
        optimiser.zero_grad()
        hidden.grad = None
        loss = head(hidden, target)
        times.append(now(on_gpu))
        loss.backward()
        times.append(now(on_gpu))
        optimiser.step()
        times.append(now(on_gpu))
        is_long = not on_gpu and number == 0 and times[-1] - times[0] > options.long
        if number >= skipped or is_long:
            for part, a, b in zip(PARTS, times, times[1:], strict=False):
                seconds[part].append(b - a)
            seconds["step ms"].append(times[-1] - times[0])
        if is_long:
            break
    peak = peak_memory(on_gpu) - before
    medians = {part: 1e3 * statistics.median(taken) for part, taken in seconds.items()}
    return {
        **medians,
        "tokens/s": 1e3 * options.tokens / medians["step ms"],
        "peak MiB": round(peak / 2**20),
        "gradient error": f"{gradient_error(head, hidden.detach()[:32], target[:32]):.0e}",
    }


PARTS = ("forward ms", "backward ms", "update ms")


def now(on_gpu: bool) -> float:
    """Return seconds: of this process's CPU time, or of wall time when the GPU is done."""
    if not on_gpu:
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def peak_memory(on_gpu: bool) -> int:
    """Return the largest number of bytes of memory that there have been."""
    if on_gpu:
        return torch.cuda.max_memory_allocated()
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def gradient_error(head: nn.Module, hidden: Tensor, target: Tensor) -> float:
    """Return the relative error of the gradient with respect to hidden vectors."""
    actual, expected = (
        torch.autograd.grad(each(vectors, target), vectors)[0]
        for each, vectors in (
            (head, hidden.clone().requires_grad_()),
            (copy.deepcopy(head).double().eval(), hidden.double().requires_grad_()),
        )
    )
    return float((actual - expected).norm() / expected.norm())


def build_tree(name: str, vocabulary: Vocabulary) -> hstree.Tree | None:
    """Return the tree of a head, None for heads without one or too large to build."""
    if name in ("classes", "hierarchicalsoftmax"):
        return class_tree(vocabulary)
    if name == "gmm" and len(vocabulary) <= 128_000:
        drawn = np.random.default_rng(0).standard_normal((len(vocabulary), 8), np.float32)
        vectors = WordVectors(vocabulary.words, drawn)
        return hstree.build("gmm", vectors)
    return hstree.build("huffman", vocabulary) if name == "huffman" else None


class LinearSoftmax(nn.Linear):
    """The flat softmax as one writes it in torch."""

    def forward(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the mean loss."""
        return functional.cross_entropy(super().forward(hidden), target)


class Loss(nn.Module):
    """The loss of a layer that returns (output, loss)."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the mean loss."""
        return self.layer(hidden, target).loss


class ChunkedSoftmax(nn.Linear):
    """The flat softmax by ``linear_cross_entropy`` in chunks."""

    def forward(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the mean loss."""
        options = nn.LinearCrossEntropyOptions()
        return functional.linear_cross_entropy(
            hidden, self.weight, target, linear_bias=self.bias, options=options
        )


class FunctionalSoftmax(nn.Linear):
    """The flat softmax by another package's function of hidden vectors, weight and targets."""

    def __init__(self, dim: int, n_labels: int, loss: Callable[..., Tensor]) -> None:
        super().__init__(dim, n_labels, bias=False)
        self.loss = loss

    def forward(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the mean loss."""
        if self.weight.dtype == torch.float64:  # the reference of the gradient error
            return functional.cross_entropy(super().forward(hidden), target)
        return self.loss(hidden, self.weight, target)


class SoftmaxNodes(nn.Module):
    """The layer and loss of the package hierarchicalsoftmax on a tree."""

    def __init__(self, tree: hstree.Tree, dim: int) -> None:
        from hierarchicalsoftmax import (
            HierarchicalSoftmaxLinear,
            HierarchicalSoftmaxLoss,
            SoftmaxNode,
        )

        super().__init__()
        nodes = [SoftmaxNode("0")]
        leaf: list[Any] = [None] * tree.n_labels
        for n in range(tree.n_nodes):
            for child in tree.child[tree.child_start[n] : tree.child_start[n + 1]].tolist():
                node = SoftmaxNode(str(child), parent=nodes[n])
                if child < 0:
                    leaf[~child] = node
                else:
                    nodes.append(node)
        nodes[0].set_indexes()
        self.number = torch.tensor([nodes[0].node_to_id[each] for each in leaf])
        self.layer = HierarchicalSoftmaxLinear(root=nodes[0], in_features=dim)
        self.loss = HierarchicalSoftmaxLoss(root=nodes[0])

    def forward(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the mean loss."""
        return self.loss(self.layer(hidden), self.number[target])


#: Returns a head of vocabulary, tree and options, or None if it is left out.
Make = Callable[[Vocabulary, Any, Any], "nn.Module | None"]


def with_size(make: Callable[[int, int], nn.Module], limit: int = 1 << 62) -> Make:
    """Return the maker of a head from d and V, up to a number of logits."""

    def make_head(vocabulary: Vocabulary, _: Any, options: Any) -> nn.Module | None:
        n_labels = len(vocabulary)
        # a GPU takes up to four times as many logits
        n_logits = options.tokens * n_labels // (1 if options.device == "cpu" else 4)
        return make(options.dim, n_labels) if n_logits <= limit else None

    return make_head


def adaptive(dim: int, n_labels: int) -> nn.Module:
    """Return torch's adaptive softmax."""
    cutoffs = [n_labels // 50, n_labels // 5]
    return Loss(nn.AdaptiveLogSoftmaxWithLoss(dim, n_labels, cutoffs))


def softmax_nodes(vocabulary: Vocabulary, tree: hstree.Tree, options: Any) -> nn.Module | None:
    """Return the package's head, where it is installed."""
    try:
        return SoftmaxNodes(tree, options.dim) if len(vocabulary) <= 50_000 else None
    except ImportError:
        return None


def by_tree(_: Vocabulary, tree: hstree.Tree | None, options: Any) -> nn.Module | None:
    """Return our head of a tree."""
    return tree and Loss(HierarchicalSoftmax(tree, options.dim, sparse=True))


def sampled(vocabulary: Vocabulary, _: Any, options: Any) -> nn.Module:
    """Return our sampled softmax."""
    n_labels = len(vocabulary)
    return SampledSoftmax(
        n_labels,
        options.dim,
        samples=min(1000, n_labels),
        proposal=vocabulary.counts,
        sparse=True,
    )


def on_gpu_only(load: Callable[[], Callable[..., Tensor]]) -> Make:
    """Return the maker of another package's head, None without a GPU or the package."""

    def make_head(vocabulary: Vocabulary, _: Any, options: Any) -> nn.Module | None:
        if options.device == "cpu":
            return None
        try:
            return FunctionalSoftmax(options.dim, len(vocabulary), load())
        except ImportError:
            return None

    return make_head


def linear_bfloat16() -> Callable[..., Tensor]:
    return lambda hidden, weight, target: functional.cross_entropy(
        functional.linear(hidden.bfloat16(), weight.bfloat16()).float(), target
    )


def cut_cross_entropy() -> Callable[..., Tensor]:
    from cut_cross_entropy import linear_cross_entropy

    return lambda hidden, weight, target: linear_cross_entropy(
        hidden.bfloat16(), weight.bfloat16(), target
    )


def liger() -> Callable[..., Tensor]:
    from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss

    loss = LigerFusedLinearCrossEntropyLoss()
    return lambda hidden, weight, target: loss(weight, hidden, target)


HEADS: dict[str, Make] = {
    "Linear": with_size(LinearSoftmax, 1 << 29),
    "adaptive": with_size(adaptive),
    "hierarchicalsoftmax": softmax_nodes,
    "Linear, bfloat16": on_gpu_only(linear_bfloat16),
    "cut_cross_entropy": on_gpu_only(cut_cross_entropy),
    "liger": on_gpu_only(liger),
    "huffman": by_tree,
    "gmm": by_tree,
    "classes": by_tree,
    "sampled": sampled,
}
if hasattr(functional, "linear_cross_entropy"):
    HEADS["linear_cross_entropy"] = with_size(ChunkedSoftmax)


if __name__ == "__main__":
    main()
