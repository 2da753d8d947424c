"""Torch's output layers and ours: forward, backward and the optimiser's step, in one process.

Hidden vectors that want a gradient, Zipf-distributed targets, label ids in the order of frequency
(which the adaptive softmax needs), the same optimiser for all. Medians over rounds in which all
contestants take turns. Each is set up as one would use it:

- Linear: ``nn.Linear`` and ``cross_entropy``;
- adaptive: ``nn.AdaptiveLogSoftmaxWithLoss``, cut at V / 50 and V / 5, div_value 4;
- huffman, balanced: ``hstree.interop.torch.HierarchicalSoftmax`` with sparse gradients;
- huffman, dense: the same without.

    python -m benchmarks.torch_layer [--sizes 10000 100000] [--device cuda] [--json FILE]
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import hstree
from benchmarks import table
from benchmarks.layer import Step, take_turns, zipf_vocabulary
from hstree.data.vocabulary import Vocabulary
from hstree.interop.torch import HierarchicalSoftmax

OPTIMISERS = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad}


def main() -> None:
    parser = table.parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--optimiser", choices=OPTIMISERS, default="sgd")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    table.report(
        "torch_layer", (row for n in options.sizes for row in compare(n, options)), options.json
    )


def compare(n_labels: int, options: Any) -> Iterator[dict[str, Any]]:
    """Measure all contestants at one size; ratios are to Linear, round by round."""
    rng = np.random.default_rng(0)
    vocabulary = zipf_vocabulary(n_labels)
    counts = vocabulary.counts
    target = torch.from_numpy(rng.choice(n_labels, options.batch_size, p=counts / counts.sum()))
    hidden = torch.from_numpy(rng.standard_normal((options.batch_size, options.dim), np.float32))
    steps = {
        name: training_step(module, hidden, target, options)
        for name, module in contestants(vocabulary, options.dim).items()
    }
    seconds = take_turns(steps, options.rounds)
    for name, taken in seconds.items():
        ratios = [linear / other for linear, other in zip(seconds["Linear"], taken, strict=True)]
        yield {
            "labels": n_labels,
            "device": options.device,
            "optimiser": options.optimiser,
            "layer": name,
            "targets/s": options.batch_size / statistics.median(taken),
            "milliseconds": 1e3 * statistics.median(taken),
            "times Linear": statistics.median(ratios),
        }


def contestants(vocabulary: Vocabulary, dim: int) -> dict[str, torch.nn.Module]:
    """Return the layers by name; each takes hidden vectors and targets and returns its loss."""
    n_labels = len(vocabulary.words)
    cutoffs = [n_labels // 50, n_labels // 5]
    huffman, balanced = (hstree.build(method, vocabulary) for method in ("huffman", "balanced"))
    return {
        "Linear": LinearSoftmax(dim, n_labels),
        "adaptive": Loss(torch.nn.AdaptiveLogSoftmaxWithLoss(dim, n_labels, cutoffs)),
        "huffman": Loss(HierarchicalSoftmax(huffman, dim, sparse=True)),
        "balanced": Loss(HierarchicalSoftmax(balanced, dim, sparse=True)),
        "huffman, dense": Loss(HierarchicalSoftmax(huffman, dim)),
    }


class LinearSoftmax(torch.nn.Linear):
    """The flat softmax, as one writes it in torch."""

    def forward(self, hidden: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the mean loss."""
        return torch.nn.functional.cross_entropy(super().forward(hidden), target)


class Loss(torch.nn.Module):
    """The loss of a layer that returns (output, loss)."""

    def __init__(self, layer: torch.nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, hidden: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the mean loss."""
        return self.layer(hidden, target).loss


def training_step(
    module: torch.nn.Module, hidden: torch.Tensor, target: torch.Tensor, options: Any
) -> Step:
    """Return one step of training, which ends when the device is done."""
    module.to(options.device)
    device_hidden = hidden.to(options.device).requires_grad_()
    device_target = target.to(options.device)
    optimiser = OPTIMISERS[options.optimiser](module.parameters(), lr=0.1)
    finish: Callable[[], None] = torch.cuda.synchronize if options.device != "cpu" else lambda: None

    def step() -> None:
        optimiser.zero_grad()
        device_hidden.grad = None
        module(device_hidden, device_target).backward()
        optimiser.step()
        finish()

    return step


if __name__ == "__main__":
    main()
