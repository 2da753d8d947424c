"""Train a small LSTM language model in PyTorch whose output layer is a tree.

    python examples/torch_lm.py                          # on Python's documentation
    python examples/torch_lm.py corpus.txt --tree gmm.json --dim 256 --epochs 10
    python examples/torch_lm.py --linear                 # Linear and cross_entropy instead
    torchrun --nproc_per_node=2 examples/torch_lm.py     # data-parallel, over gloo

Every process trains on its part of the same streams of text, so that the losses are the same for
any number of processes. There is no dropout, learning-rate schedule or checkpoint.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Iterator
from datetime import timedelta

import numpy as np
import torch
from torch import Tensor, distributed, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import hstree
from hstree.interop.torch import HierarchicalSoftmax

State = tuple[Tensor, Tensor]


def main() -> None:
    """Train the model, and print the perplexities after each epoch."""
    options = read_options()
    rank, world = start_processes()
    torch.manual_seed(options.seed)
    text = hstree.Corpus.read(options.corpus)
    parts = text.select_lines(0, min(options.lines, text.n_lines)).splits()
    tree = load_or_build(options.tree, parts[0].select_vocabulary(min_count=options.min_count))
    labels = hstree.Vocabulary(tree.labels, np.ones(tree.n_labels, int))
    train, valid, test = (part.with_vocabulary(labels) for part in parts)
    torch.sparse.check_sparse_tensor_invariants.disable()  # otherwise Adagrad prints a warning
    # DistributedDataParallel takes sparse gradients only from torch's own Embedding.
    sparse = world == 1 and not options.dense
    model = LanguageModel(output_layer(options, tree, sparse), tree.n_labels, options.dim)
    trained = DistributedDataParallel(model) if world > 1 else model
    optimiser = torch.optim.Adagrad(model.parameters(), lr=options.learning_rate)
    say(rank, f"{tree}, {len(train):,} training tokens, {world} process(es)")
    for epoch in range(1, options.epochs + 1):
        began = time.perf_counter()
        share = streams(train, options.streams)[rank::world]
        running = train_epoch(trained, share, options.length, optimiser)
        speed = len(train) / (time.perf_counter() - began)
        perplexities = f"train {running:.4f}, valid {perplexity(model, valid):.4f}"
        say(rank, f"epoch {epoch}: perplexity {perplexities}, {speed:,.0f} tokens/s")
    say(rank, f"test perplexity {perplexity(model, test):.4f} over {len(test):,} tokens")
    if world > 1:
        # Free the model before the group. Otherwise freeing the group waits for its threads and
        # holds the GIL.
        del trained
        distributed.destroy_process_group()


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", nargs="?", default="builtin:python", help="one sentence per line")
    parser.add_argument("--tree", default="huffman", help="file of a tree, or a method")
    parser.add_argument("--linear", action="store_true", help="flat softmax (nn.Linear)")
    parser.add_argument("--dense", action="store_true", help="dense gradients, as with torchrun")
    parser.add_argument("--lines", type=int, default=4000, help="number of lines to read")
    parser.add_argument("--min-count", type=int, default=3, help="map rarer words to <unk>")
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--streams", type=int, default=16, help="number of streams of text")
    parser.add_argument("--length", type=int, default=32, help="tokens per stream in a batch")
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def start_processes() -> tuple[int, int]:
    """Return the rank of this process and the number of processes, which torchrun sets."""
    if "RANK" not in os.environ:
        return 0, 1
    # If a process is missing, fail after two minutes instead of half an hour
    distributed.init_process_group("gloo", timeout=timedelta(minutes=2))
    return distributed.get_rank(), distributed.get_world_size()


def say(rank: int, line: str) -> None:
    """Print a line, in the first process only."""
    if rank == 0:
        print(line, flush=True)


def load_or_build(name: str, vocabulary: hstree.Vocabulary) -> hstree.Tree:
    """Load a tree from a file, or build one by a method that needs only counts."""
    return hstree.load(name) if os.path.exists(name) else hstree.build(name, vocabulary)


def output_layer(options: argparse.Namespace, tree: hstree.Tree, sparse: bool) -> nn.Module:
    """Return the output layer that the options select."""
    if options.linear:
        return LinearSoftmax(options.dim, tree.n_labels)
    return HierarchicalSoftmax(tree, options.dim, sparse=sparse)


class LinearSoftmax(nn.Linear):
    """Flat softmax with the interface of `HierarchicalSoftmax`."""

    def forward(self, hidden: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the log-probabilities of the targets and the mean loss."""
        scores = super().forward(hidden).movedim(-1, 1)  # cross_entropy takes (B, V, L)
        nll = cross_entropy(scores, target, reduction="none")
        return -nll, nll.mean()


class LanguageModel(nn.Module):
    """Language model: an embedding, an LSTM and an output layer."""

    def __init__(self, layer: nn.Module, n_labels: int, dim: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_labels, dim)
        self.lstm = nn.LSTM(dim, dim, batch_first=True)
        self.layer = layer

    def forward(
        self, words: Tensor, target: Tensor, state: State | None
    ) -> tuple[Tensor, Tensor, State]:
        """Return the log-probabilities of the targets, the mean loss and the new LSTM state."""
        hidden, state = self.lstm(self.embedding(words), state)
        output, loss = self.layer(hidden, target)
        return output, loss, state


def streams(corpus: hstree.Corpus, n_streams: int) -> Tensor:
    """Divide a text into equal streams (n, steps + 1), with ``<eos>`` before the first token."""
    ids = np.append(corpus.vocabulary.ids(["<eos>"]), corpus.ids())
    if ids.min() < 0:
        raise SystemExit(f"the tree lacks words of {corpus.name}, and <eos> or <unk> for them")
    steps = len(corpus) // n_streams
    starts = steps * np.arange(n_streams)[:, None]
    return torch.from_numpy(ids[starts + np.arange(steps + 1)].astype(np.int64))


def batches(tokens: Tensor, length: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches: `length` words of every stream, and the words after them as targets."""
    for start in range(0, tokens.shape[1] - 1, length):
        chunk = tokens[:, start : start + length + 1]
        yield chunk[:, :-1], chunk[:, 1:]


def train_epoch(
    model: nn.Module, tokens: Tensor, length: int, optimiser: torch.optim.Optimizer
) -> float:
    """Train on the streams of this process; return the training perplexity of all processes."""
    total = torch.zeros(2, dtype=torch.float64)
    state = None
    for words, target in batches(tokens, length):
        optimiser.zero_grad()
        output, loss, state = model(words, target, state)
        loss.backward()
        optimiser.step()
        state = (state[0].detach(), state[1].detach())
        total += torch.tensor([-output.detach().double().sum(), target.numel()])
    if distributed.is_initialized():
        distributed.all_reduce(total)
    return math.exp(total[0] / total[1])


@torch.no_grad()
def perplexity(model: LanguageModel, corpus: hstree.Corpus) -> float:
    """Return the perplexity of a text, read as one stream."""
    total = 0.0
    state = None
    for words, target in batches(streams(corpus, 1), 1024):
        output, _, state = model(words, target, state)
        total -= output.double().sum().item()
    return math.exp(total / len(corpus))


if __name__ == "__main__":
    main()
