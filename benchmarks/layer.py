"""The output layer alone: forward, gradients and update, side by side in one process.

Every tree trains through the same layer, on the same hidden vectors and Zipf-distributed targets.
"classes" is a two-level class tree of sqrt(V) classes. They are compared with a softmax in plain
NumPy and, where torch is installed, `Linear` with `cross_entropy` and `AdaptiveLogSoftmaxWithLoss`,
which train with plain SGD and so do less work in their update. Medians over rounds in which all
layers take turns; "least" are the milliseconds of the fastest round.

    python -m benchmarks.layer [--sizes 10000 100000 1000000] [--json FILE]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.special import logsumexp

import hstree
from benchmarks import common
from benchmarks.common import Step, class_tree, take_turns, tree_step

#: Above this many labels a step of a flat softmax takes minutes, and is left out.
LARGEST_FLAT = 100_000


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="+", metavar="LAYER", help="only these, by their names")
    parser.add_argument(
        "--cpu", action="store_true", help="the CPU time of all threads: for one, on a busy machine"
    )
    options = parser.parse_args()
    rows = (row for size in options.sizes for row in compare(size, options))
    common.report("layer", rows, options.json)


def compare(n_labels: int, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Measure all layers at one size; ratios are to the flat tree, round by round."""
    vocabulary = common.zipf_vocabulary(n_labels)
    size = (options.batch_size, options.dim)
    hidden = np.random.default_rng(0).standard_normal(size, np.float32)
    targets = common.zipf_targets(vocabulary, options.batch_size, seed=1)
    steps: dict[str, Step] = {
        "huffman": tree_step(hstree.build("huffman", vocabulary), hidden, targets),
        "balanced": tree_step(hstree.build("balanced", vocabulary), hidden, targets),
        "classes": tree_step(class_tree(vocabulary), hidden, targets),
    }
    if n_labels <= LARGEST_FLAT:
        flat = hstree.build("flat", vocabulary)
        steps["flat"] = tree_step(flat, hidden, targets)
        steps["NumPy softmax"] = plain_softmax_step(vocabulary.counts, hidden, targets)
        steps |= torch_steps(n_labels, hidden, targets)
    steps = {name: steps[name] for name in options.only or steps if name in steps}
    clock = time.process_time if options.cpu else time.perf_counter
    seconds = take_turns(steps, options.rounds, clock)
    for name, taken in seconds.items():
        ratios = [flat / tree for flat, tree in zip(seconds.get("flat", []), taken, strict=False)]
        yield {
            "labels": n_labels,
            "layer": name,
            "targets/s": options.batch_size / statistics.median(taken),
            "milliseconds": 1e3 * statistics.median(taken),
            "least": 1e3 * min(taken),
            "times flat": statistics.median(ratios) if ratios else None,
        }


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

    def sgd_step(module: Any, loss: Callable[[], Any]) -> Step:
        optimiser = torch.optim.SGD(module.parameters(), lr=0.1)

        def step() -> None:
            optimiser.zero_grad()
            loss().backward()
            optimiser.step()

        return step

    def cross_entropy() -> Any:
        return torch.nn.functional.cross_entropy(linear(h), y, reduction="sum")

    return {
        "torch Linear": sgd_step(linear, cross_entropy),
        "torch adaptive": sgd_step(adaptive, lambda: adaptive(h, y).loss),
    }


if __name__ == "__main__":
    main()
