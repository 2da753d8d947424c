"""The ten most probable labels in torch: a dense layer, and trees by search and by all labels.

Weights are drawn with a given spread: at 0.05 a hidden vector of 256 numbers says little of its
label, at 0.3 much, as in a trained model. Linear is ``nn.Linear`` and ``topk``; a tree by its name
is `HierarchicalSoftmax.top_k`, which takes the log-probabilities of all labels where its search
would be long; "all labels" is these and ``topk``. Medians of CPU seconds on one thread, of wall
time on a GPU; all take turns.

    python -m benchmarks.torch_topk [--sizes 100000] [--spread 0.3] [--device cuda] [--json FILE]
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

import hstree
from benchmarks import common
from benchmarks.common import class_tree, take_turns, zipf_vocabulary
from benchmarks.torch_heads import now
from hstree.interop.torch import HierarchicalSoftmax

Answer = Callable[[Tensor], Tensor]


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--contexts", type=int, nargs="+", default=[1, 256])
    parser.add_argument("--spread", type=float, nargs="+", default=[0.05, 0.3])
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    common.report("torch_topk", rows(options), options.json)


@torch.no_grad()
def rows(options: Any) -> Iterator[dict[str, Any]]:
    """Measure all layers at each size, spread and number of contexts."""
    for n_labels in options.sizes:
        layers = dict(make_layers(n_labels, options))
        for spread in options.spread:
            for layer in layers.values():
                layer.weight.normal_(0, spread)
            for n in options.contexts:
                hidden = torch.randn(n, options.dim, device=options.device)
                yield from measure(layers, hidden, options, spread)


def make_layers(n_labels: int, options: Any) -> Iterator[tuple[str, nn.Module]]:
    """Make the layers, each with its name."""
    vocabulary = zipf_vocabulary(n_labels)
    huffman = hstree.build("huffman", vocabulary)
    yield "Linear", nn.Linear(options.dim, n_labels).to(options.device)
    yield "huffman", HierarchicalSoftmax(huffman, options.dim).to(options.device)
    yield "classes", HierarchicalSoftmax(class_tree(vocabulary), options.dim).to(options.device)


def measure(
    layers: dict[str, Any], hidden: Tensor, options: Any, spread: float
) -> Iterator[dict[str, Any]]:
    """Time all layers on the same hidden vectors, and compare both answers of each tree."""
    answers: dict[str, Answer] = {"Linear": lambda h: layers["Linear"](h).topk(options.k).values}
    for name in ("huffman", "classes"):
        answers[name] = partial(search, layers[name], k=options.k)
        answers[f"{name}, all labels"] = partial(score_all, layers[name], k=options.k)
    steps = {name: partial(answer, hidden) for name, answer in answers.items()}
    agree = "yes"
    for name in ("huffman", "classes"):
        by_search = answers[name](hidden)
        by_scores = answers[f"{name}, all labels"](hidden)
        if not torch.allclose(by_search, by_scores, rtol=1e-4, atol=1e-4):
            agree = f"NO: {name}"
    seconds = take_turns(steps, options.rounds, partial(now, options.device != "cpu"))
    linear = statistics.median(seconds["Linear"])
    for name, taken in seconds.items():
        yield {
            "labels": len(layers["Linear"].bias),
            "spread": spread,
            "contexts": len(hidden),
            "layer": name,
            "milliseconds": 1e3 * statistics.median(taken),
            "times Linear": linear / statistics.median(taken),
            "agree": agree,
        }


def search(layer: HierarchicalSoftmax, hidden: Tensor, k: int) -> Tensor:
    """Return the log-probabilities of the most probable labels by the layer's own search."""
    return layer.top_k(hidden, k).log_prob


def score_all(layer: HierarchicalSoftmax, hidden: Tensor, k: int) -> Tensor:
    """Return the same from the log-probabilities of all labels."""
    return layer.log_prob(hidden).topk(k).values


if __name__ == "__main__":
    main()
