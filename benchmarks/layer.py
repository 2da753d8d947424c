"""The output layer alone: forward, gradients and update, side by side in one process.

Every tree trains through the same layer, on the same hidden vectors and Zipf-distributed targets;
"classes" is a two-level class tree of sqrt(V) classes. They are compared with a softmax in plain
NumPy and, where torch is installed, `Linear` with `cross_entropy` and `AdaptiveLogSoftmaxWithLoss`,
which train with plain SGD and so do less work in their update.
Medians over rounds in which all contestants take turns; "least" are the milliseconds of the
fastest.

    python -m benchmarks.layer [--sizes 10000 100000 1000000] [--json FILE]
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import logsumexp

import hstree
from benchmarks import table
from hstree._arrays import Int64, offsets
from hstree.builders.word_classes.clustering import equal_mass_bins
from hstree.data.vocabulary import Vocabulary
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.training.adagrad import RowAdagrad

#: Above this many labels a flat softmax takes minutes a step and is left out.
LARGEST_FLAT = 100_000

Step = Callable[[], None]
Clock = Callable[[], float]


def main() -> None:
    parser = table.parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="+", metavar="LAYER", help="only these, by their names")
    parser.add_argument(
        "--cpu", action="store_true", help="the CPU time of all threads: for one, on a busy machine"
    )
    options = parser.parse_args()
    clock = time.process_time if options.cpu else time.perf_counter
    sizes = options.dim, options.batch_size, options.rounds
    rows = (
        row
        for size in options.sizes
        for row in compare(size, *sizes, only=options.only, clock=clock)
    )
    table.report("layer", rows, options.json)


def zipf_counts(n_labels: int) -> Int64:
    """Return counts that follow Zipf's law, the largest first."""
    share = 1 / np.arange(1, n_labels + 1)
    return np.ceil(share * 1e8 / share.sum()).astype(np.int64)


def zipf_vocabulary(n_labels: int) -> Vocabulary:
    """Return labels whose counts follow Zipf's law, the most frequent first."""
    return Vocabulary([f"w{i}" for i in range(n_labels)], zipf_counts(n_labels))


def compare(
    n_labels: int,
    dim: int,
    batch: int,
    rounds: int,
    *,
    only: Sequence[str] | None = None,
    clock: Clock = time.perf_counter,
) -> Iterator[dict[str, Any]]:
    """Measure all contestants at one size; ratios are to the flat tree, round by round."""
    rng = np.random.default_rng(0)
    vocabulary = zipf_vocabulary(n_labels)
    counts = vocabulary.counts
    hidden = rng.standard_normal((batch, dim), np.float32)
    targets = rng.choice(n_labels, batch, p=counts / counts.sum())
    steps: dict[str, Step] = {
        "huffman": tree_step(hstree.build("huffman", vocabulary), hidden, targets),
        "balanced": tree_step(hstree.build("balanced", vocabulary), hidden, targets),
        "classes": tree_step(class_tree(vocabulary), hidden, targets),
    }
    if n_labels <= LARGEST_FLAT:
        flat = hstree.build("flat", vocabulary)
        steps["flat"] = tree_step(flat, hidden, targets)
        steps["NumPy softmax"] = plain_softmax_step(counts, hidden, targets)
        steps |= torch_steps(n_labels, hidden, targets)
    steps = {name: step for name, step in steps.items() if only is None or name in only}
    seconds = take_turns(steps, rounds, clock)
    for name, taken in seconds.items():
        ratios = [flat / tree for flat, tree in zip(seconds.get("flat", []), taken, strict=False)]
        yield {
            "labels": n_labels,
            "layer": name,
            "targets/s": batch / statistics.median(taken),
            "milliseconds": 1e3 * statistics.median(taken),
            "least": 1e3 * min(taken),
            "times flat": statistics.median(ratios) if ratios else None,
        }


def take_turns(
    steps: dict[str, Step], rounds: int, clock: Clock = time.perf_counter
) -> dict[str, list[float]]:
    """Time one step of every contestant a round, after one that is not counted.

    A quick contestant is stepped several times a turn, for a tenth of a second or so.
    """
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    repeats = {name: max(1, round(0.1 / timed(step, 1, clock))) for name, step in steps.items()}
    for _ in range(rounds):
        for name, step in steps.items():
            seconds[name].append(timed(step, repeats[name], clock))
    return seconds


def timed(step: Step, repeats: int, clock: Clock = time.perf_counter) -> float:
    """Return the seconds of one of several steps."""
    began = clock()
    for _ in range(repeats):
        step()
    return (clock() - began) / repeats


def tree_step(tree: hstree.Tree, hidden: Any, targets: Any) -> Step:
    """Return one training step of hstree's layer on a tree."""
    layer = HierarchicalSoftmax(tree, hidden.shape[1])
    optimisers = {name: RowAdagrad(array) for name, array in layer.parameters().items()}

    def step() -> None:
        _, gradients = layer.loss(hidden, targets)
        for g in gradients.parameters:
            optimisers[g.name].step(g.rows, g.values, 0.1)

    return step


def class_tree(vocabulary: Vocabulary) -> hstree.Tree:
    """Return a two-level class tree: sqrt(V) classes of equal mass by the root of the counts."""
    n_labels = len(vocabulary)
    class_of = equal_mass_bins(np.sqrt(vocabulary.counts), round(n_labels**0.5))
    start = offsets(np.bincount(class_of))  # the words are in the order of their classes
    groups = [~np.arange(a, b) for a, b in pairwise(start)]
    alone = [len(group) == 1 for group in groups]
    node = np.cumsum(~np.array(alone))
    root = [g[0] if one else n for g, one, n in zip(groups, alone, node, strict=True)]
    of_classes = [group for group, one in zip(groups, alone, strict=True) if not one]
    return hstree.Tree.from_children(
        vocabulary.words, [root, *of_classes], counts=vocabulary.counts
    )


def plain_softmax_step(counts: Any, hidden: Any, targets: Any) -> Step:
    """Return the same step on a flat softmax as one writes it in plain NumPy."""
    weight = np.zeros((len(counts), hidden.shape[1]), np.float32)
    bias = np.log(counts / counts.sum()).astype(np.float32)
    squares = np.zeros(len(counts), np.float32)
    bias_squares = np.zeros(len(counts), np.float32)

    def step() -> None:
        score = hidden @ weight.T + bias
        error = np.exp(score - logsumexp(score, axis=1, keepdims=True))
        error[np.arange(len(targets)), targets] -= 1
        by_weight, by_bias = error.T @ hidden, error.sum(axis=0)
        error @ weight  # the gradient by the hidden vectors
        squares[:] += (by_weight**2).mean(axis=1)
        bias_squares[:] += by_bias**2
        weight[:] -= by_weight * (0.1 / np.sqrt(squares + 1e-10))[:, None]
        bias[:] -= 0.1 * by_bias / np.sqrt(bias_squares + 1e-10)

    return step


def torch_steps(n_labels: int, hidden: Any, targets: Any) -> dict[str, Step]:
    """Return torch's two output layers, or nothing where torch is not installed."""
    try:
        import torch
    except ImportError:
        return {}
    h, y = torch.from_numpy(hidden).requires_grad_(), torch.from_numpy(targets)
    linear = torch.nn.Linear(hidden.shape[1], n_labels)
    cutoffs = [n_labels // 50, n_labels // 5]
    adaptive = torch.nn.AdaptiveLogSoftmaxWithLoss(hidden.shape[1], n_labels, cutoffs)

    def step_of(module: Any, loss_of: Callable[[], Any]) -> Step:
        optimiser = torch.optim.SGD(module.parameters(), lr=0.1)

        def step() -> None:
            optimiser.zero_grad()
            loss_of().backward()
            optimiser.step()

        return step

    def cross_entropy() -> Any:
        return torch.nn.functional.cross_entropy(linear(h), y, reduction="sum")

    return {
        "torch Linear": step_of(linear, cross_entropy),
        "torch adaptive": step_of(adaptive, lambda: adaptive(h, y).loss),
    }


if __name__ == "__main__":
    main()
