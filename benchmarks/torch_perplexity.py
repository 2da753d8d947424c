"""Perplexity of a language model in torch after equal seconds, by its output layer.

A GRU or a small transformer predicts each token of a text. Heads are those of
`benchmarks.torch_heads`, and trees with their options, such as "gmm short_list=250". All train for
the same seconds, of CPU time on one thread or of wall time on a GPU. They count from the text: the
construction of a tree is a part of them, and so are its vectors, which take at most a sixteenth.
Kernels should be compiled before, by a first run of a few seconds. Heads train in turns of a
second in one process, so that other work on the machine affects all of them alike.

All heads have the same body, trained by Adam, and batches of some streams of 32 tokens. Adagrad,
which takes sparse gradients, trains the head and the embedding of the tokens. All learning rates
fall to 0 with the seconds. The biases of the flat softmax start at the unigram distribution.

The learning rate of a head is the one of the grid with the lowest validation perplexity for the
first seed. The other seeds train with it. Results are means over seeds with their standard
deviation. Each run is kept in the folder, so that a repeated command continues.

    python -m benchmarks.torch_perplexity [--model transformer] [--heads classes] [--seconds 20]
                                          [--corpus brown | --text FILE --words 50000]
                                          [--device cuda --streams 128] [--json FILE]
"""

from __future__ import annotations

import json
import math
import statistics
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import hstree
from benchmarks import common
from benchmarks.comparisons import write_spread
from benchmarks.texts import TEXTS, add_texts
from benchmarks.torch_heads import HEADS, by_tree, now
from hstree._files import json_hash, write_json
from hstree._options import parse_options
from hstree.builders.registry import BUILDERS
from hstree.data.corpus import Corpus
from hstree.data.splits import Splits
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.experiments.results import Spread
from hstree.models.word2vec import SAMPLE

LENGTH = 32
#: Seconds for which a head trains before the next one does.
TURN = 1.0
#: Number of streams of a split that is scored.
SCORED_STREAMS = 16
#: Learning rate of the body at the start.
BODY_RATE = 2e-3
#: Heads that are measured by default, all from `benchmarks.torch_heads`.
CHOSEN = ["Linear", "linear_cross_entropy", "adaptive", "sampled", "huffman", "gmm", "classes"]


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--heads", nargs="+", default=[h for h in CHOSEN if h in HEADS])
    options = parse(parser)
    for head in options.heads:
        if head not in HEADS and head.split()[0] not in BUILDERS.names():
            parser.error(f"there is no head {head!r}; there are {', '.join(HEADS)} and builders")
    common.report("torch_perplexity", rows(read(options), options.heads, options), options.json)


def parse(parser: ArgumentParser) -> Namespace:
    """Parse a command line with the options of a text, a model and its training."""
    parser.add_argument("--model", choices=BODIES, default="gru")
    add_texts(parser)
    parser.add_argument("--text", type=Path, help="a file in place of a corpus")
    parser.add_argument("--words", type=int, help="its most frequent; others are <unk>")
    parser.add_argument("--scored", type=int, default=40_000, help="at most, of each split")
    parser.add_argument("--streams", type=int, default=16, help="in a batch")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.1, 0.3, 1])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("runs/torch_perplexity"))
    options = parser.parse_args()
    options.tokens = options.streams * LENGTH  # which the heads ask for
    torch.set_num_threads(1)
    torch.sparse.check_sparse_tensor_invariants.disable()
    return options


def read(options: Namespace) -> Splits:
    """Read the text; all splits have the vocabulary of the training split, by frequency."""
    if options.text is None:
        parts = TEXTS[options.corpus](options.ptb)
    else:
        parts = Splits(*Corpus.read(options.text).splits())
    words = parts.train.select_vocabulary(min_count=1, max_size=options.words, unk=True)
    return Splits(*(part.with_vocabulary(words) for part in parts))


def rows(splits: Splits, heads: Sequence[str], options: Namespace) -> Iterator[dict[str, Any]]:
    """Train the heads by all rates from the first seed, then by the best rate from the others."""
    first = {}
    for rate in options.rates:
        results = run(splits, dict.fromkeys(heads, rate), 0, options)
        first |= {(head, rate): results[head] for head in heads}
    best = {head: min(options.rates, key=lambda rate: first[head, rate]["valid"]) for head in heads}
    others = [run(splits, best, seed, options) for seed in range(1, options.seeds)]
    for head, rate in best.items():
        runs = [first[head, rate], *(results[head] for results in others)]
        mean = {key: statistics.mean(each[key] for each in runs) for key in runs[0]}
        yield {
            "model": options.model,
            "head": head,
            "rate": f"{rate:g}",
            "tree s": mean["tree s"],
            "at the root": mean.get("at the root"),
            "tokens/s": mean["tokens/s"],
            "epochs": mean["epochs"],
            "valid": write_spread(Spread.of([run["valid"] for run in runs])),
            "test": write_spread(Spread.of([run["test"] for run in runs])),
        }


def run(
    splits: Splits, rates: Mapping[str, float], seed: int, options: Namespace
) -> dict[str, dict[str, float]]:
    """Return the results of heads with their rates; those without a file train in turns."""
    text = [split.sha256 for split in splits], len(splits.train.vocabulary)
    text_hash = json_hash({"text": text, "read": [options.streams, options.scored]})[:8]
    folder = options.folder / options.device / f"{splits.train.name}-{text_hash}"
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, Path] = {}
    for head, rate in rates.items():
        name = f"{options.model}-{head}-{options.dim}-{options.seconds:g}-{rate:g}-{seed}.json"
        files[head] = folder / name

    trainings = {
        head: train(splits, head, rate, seed, options)
        for head, rate in rates.items()
        if not files[head].exists()
    }
    while trainings:
        for head, training in list(trainings.items()):
            results = next(training)
            if results is not None:
                write_json(files[head], results)
                del trainings[head]
    return {head: json.loads(file.read_text()) for head, file in files.items()}


def train(
    splits: Splits, name: str, rate: float, seed: int, options: Namespace
) -> Iterator[dict[str, float] | None]:
    """Train a model for some seconds, building included; yield None every second, then results."""
    words = splits.train.vocabulary
    on_gpu = options.device != "cpu"
    train = streams(splits.train, options.streams).to(options.device)
    valid = streams(splits.valid, SCORED_STREAMS, options.scored).to(options.device)
    test = streams(splits.test, SCORED_STREAMS, options.scored).to(options.device)

    began = now(on_gpu)
    tree = build_tree(name, splits.train, seed, options.seconds / 16)
    built = now(on_gpu) - began
    if on_gpu:
        model = new_model(name, words, tree, seed, options)
        model(train[:, : LENGTH + 1], None)[0].backward()
    model = new_model(name, words, tree, seed, options)
    sparse = [*model.embedding.parameters(), *model.head.parameters()]
    # {optimiser: its initial learning rate}
    optimisers = {
        torch.optim.Adam(model.body.parameters()): BODY_RATE,
        torch.optim.Adagrad(sparse): rate,
    }

    state = None
    tokens = 0
    at = 0
    used = built
    while used < options.seconds:
        yield None
        began = now(on_gpu) - used
        end_of_turn = min(used + TURN, options.seconds)
        while used < end_of_turn:
            if at + LENGTH >= train.shape[1]:
                state = None
                at = 0
            loss, state = model(train[:, at : at + LENGTH + 1], state)
            state = None if state is None else state.detach()
            model.zero_grad()
            loss.backward()
            for optimiser, start in optimisers.items():
                optimiser.param_groups[0]["lr"] = start * (1 - used / options.seconds)
                optimiser.step()
            tokens += options.tokens
            at += LENGTH
            used = now(on_gpu) - began

    tree_results = {} if tree is None else {"at the root": tree.stats().root_fraction or 0.0}
    yield tree_results | {
        "tree s": built,
        "tokens/s": tokens / used,
        "epochs": tokens / train.numel(),
        "valid": perplexity(model, valid),
        "test": perplexity(model, test),
    }


def new_model(
    name: str, words: Vocabulary, tree: hstree.Tree | None, seed: int, options: Namespace
) -> Model:
    """Return a model with a head at the start of its training."""
    torch.manual_seed(seed)
    head = HEADS.get(name, by_tree)(words, tree, options)
    if head is None:
        raise SystemExit(f"{name} is left out at {len(words)} words; name other --heads")
    if isinstance(head, nn.Linear):
        share = np.maximum(words.counts, 0.5) / words.counts.sum()
        head.bias.data.copy_(torch.from_numpy(np.log(share)))
    body = BODIES[options.model](options.dim)
    return Model(body, head, len(words), options.dim).to(options.device)


@torch.no_grad()
def perplexity(model: nn.Module, tokens: Tensor) -> float:
    """Score all tokens of the streams but the first of each."""
    total = 0.0
    state = None
    model.eval()
    for at in range(0, tokens.shape[1] - 1, LENGTH):
        part = tokens[:, at : at + LENGTH + 1]
        loss, state = model(part, state)
        total += float(loss) * (part.numel() - len(part))
    return math.exp(total / (tokens.numel() - len(tokens)))


def streams(corpus: Corpus, number: int, most: int | None = None) -> Tensor:
    """Cut a split, or so many tokens of it, into some streams, (number, steps)."""
    ids = corpus.ids(slice(0, len(corpus)))[:most].astype(np.int64)
    ids[ids < 0] = corpus.vocabulary.ids(["<unk>"])[0]
    return torch.from_numpy(ids[: len(ids) // number * number].reshape(number, -1))


def build_tree(name: str, train: Corpus, seed: int, seconds: float) -> hstree.Tree | None:
    """Build the tree of a head from the text; None for a head without one.

    Vectors, where the builder takes them, are those of `hstree embed`: CBOW, trained word by word
    for five epochs, or for so many seconds.
    """
    method, *pairs = name.split()
    if method not in BUILDERS.names():
        return None
    builder = BUILDERS.get(method)
    options = parse_options(method, builder.options, pairs)
    if builder.takes is WordVectors:
        model = hstree.CBOW(
            hstree.build("huffman", train),
            online=True,
            sample=SAMPLE,
            seconds=seconds,
            random_state=seed,
        )
        tree = hstree.build(method, model.fit(train).vectors(train), **options)
    else:
        tree = hstree.build(method, train, **options)
    if tree.labels != train.vocabulary.words:
        raise SystemExit("the tree's labels are not in the order of the vocabulary")
    return tree


class Model(nn.Module):
    """Embedding, body and head."""

    def __init__(self, body: nn.Module, head: nn.Module, n_words: int, dim: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_words, dim, sparse=True)
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.body, self.head = body, head

    def forward(self, tokens: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Return the mean loss of all tokens (n, steps) but the first, and the state."""
        hidden, state = self.body(self.embedding(tokens[:, :-1]), state)
        return self.head(hidden.flatten(0, 1), tokens[:, 1:].flatten()), state


class GRU(nn.GRU):
    """One layer, whose state goes on from batch to batch."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim, dim, batch_first=True)


class Transformer(nn.Module):
    """Two layers with four heads, which see the tokens before, of the same batch."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            dim, 4, 4 * dim, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(
            layer, 2, norm=nn.LayerNorm(dim), enable_nested_tensor=False
        )
        self.position = nn.Parameter(0.1 * torch.randn(LENGTH, dim))
        mask = nn.Transformer.generate_square_subsequent_mask(LENGTH)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, vectors: Tensor, _: None) -> tuple[Tensor, None]:
        """Return the hidden vectors (n, steps, d)."""
        n = vectors.shape[1]
        return self.layers(vectors + self.position[:n], self.mask[:n, :n], is_causal=True), None


BODIES = {"gru": GRU, "transformer": Transformer}


if __name__ == "__main__":
    main()
