"""Training steps of `hstree.models.torch` against a plain loop with the same network and head.

The plain loop is what a user would write: the network, the head's loss, ``backward``, gradient
clipping, and torch's Adagrad (word vectors and head) and Adam (network). Both read the same text in
streams, alternately on one thread. Medians of milliseconds per step; a ratio above 1 means that
the plain loop is slower.

    python -m benchmarks.torch_training [--model transformer] [--candidates flat] [--rounds 20]
                                        [--text FILE --vocabulary FILE] [--json FILE]
"""

from __future__ import annotations

import copy
import statistics
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from itertools import cycle
from typing import Any

import torch

import hstree
from benchmarks import common, torch_perplexity
from hstree.layers.registry import LAYERS, LayerSpec
from hstree.models import new_model
from hstree.models.torch.model import CPU_BATCH
from hstree.models.torch.training import MAX_NORM

CANDIDATES = ("sampled", "huffman", "huffman short_list=250", "adaptive", "flat")


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--candidates", nargs="+", default=CANDIDATES, metavar="CANDIDATE")
    parser.add_argument("--rounds", type=int, default=20)
    torch_perplexity.add_model(parser)
    options = parser.parse_args()
    torch.set_num_threads(1)
    common.report("torch_training", rows(options), options.json)


def rows(options: Namespace) -> Iterator[dict[str, Any]]:
    """Time the steps of each candidate."""
    text = torch_perplexity.read_splits(options).train
    for candidate in options.candidates:
        if candidate in LAYERS:
            spec = LayerSpec(text.counted_vocabulary(), candidate)
        else:
            spec = LayerSpec(hstree.build(candidate, text))
        model: Any = new_model(spec, model=options.model, device="cpu")
        plain = plain_steps(copy.deepcopy(model.module), copy.deepcopy(model.head), model, text)
        trained = model.training_steps(text)
        steps = {"hstree": partial(next, trained), "plain": partial(next, plain)}
        seconds = common.take_turns(steps, options.rounds)
        hstree_ms, plain_ms = (1e3 * statistics.median(seconds[name]) for name in steps)
        yield {
            "candidate": candidate,
            "hstree ms": hstree_ms,
            "plain loop ms": plain_ms,
            "ratio": plain_ms / hstree_ms,
        }


def plain_steps(network: Any, head: Any, model: Any, text: hstree.Corpus) -> Iterator[None]:
    """Train a network and its head on the batches of a text, again and again."""
    vectors = network.embedding.weight
    dense = [p for p in network.parameters() if p is not vectors]
    words = {"params": [vectors], "lr": model.embedding_rate}
    adagrad = torch.optim.Adagrad([words, {"params": head.parameters()}], lr=model.learning_rate)
    adam = torch.optim.Adam(dense, lr=model.network_rate)
    streams = (model.batch_size or CPU_BATCH) // model.length
    ids = torch.from_numpy(model.reencode(text).ids()).long()
    ids = ids[: len(ids) // streams * streams].view(streams, -1)
    state = None
    for start in cycle(range(0, ids.shape[1] - model.length, model.length)):
        part = ids[:, start : start + model.length + 1]
        hidden, state = network(part[:, :-1], state)
        state = None if state is None else state.detach()
        loss = head.loss(hidden.flatten(0, 1), part[:, 1:].flatten())
        adagrad.zero_grad()
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(dense, MAX_NORM)
        adagrad.step()
        adam.step()
        loss.item()
        yield


if __name__ == "__main__":
    main()
