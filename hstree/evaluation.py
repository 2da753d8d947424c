"""Train a model on a tree, score it, and say everything that the figure depends on.

The parts of a corpus, the training, the scores of every part with token and OOV counts, the
vocabulary, the tree's cost and the unigram figure beside it: one `Evaluation`.
"""

from __future__ import annotations

import platform
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hstree.corpus import Corpus
from hstree.modelkinds import new_model
from hstree.scoring import Score, unigram_score
from hstree.text.overlap import overlap
from hstree.training.epochs import History
from hstree.tree import Tree
from hstree.treemodel import TreeModel
from hstree.version import __version__


@dataclass(frozen=True)
class Parts:
    """The three parts of an evaluation's text, all seen through the tree's labels."""

    train: Corpus
    valid: Corpus
    test: Corpus


@dataclass(frozen=True)
class Evaluation:
    """What a tree buys: a trained model and its scores.

    Attributes
    ----------
    model : TreeModel
    parts : Parts
    train, valid, test : Score
        Of the trained model, without dropout.
    unigram : Score
        Of the training part's unigram distribution on the test part.
    history : History
    seconds : float
        Wall-clock time of training and scoring.
    """

    model: TreeModel[Any]
    parts: Parts
    train: Score
    valid: Score
    test: Score
    unigram: Score
    history: History
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values; the keys are described in the README."""
        scores = {"train": self.train, "valid": self.valid, "test": self.test}
        perplexities = {name: score.perplexity for name, score in scores.items()}
        return {
            "predicts": self.model.predicts,
            "perplexity": {
                **perplexities,
                "test_without_oov": self.test.perplexity_without_oov,
                "unigram": self.unigram.perplexity,
            },
            "tokens": {name: score.tokens for name, score in scores.items()},
            "oov": {name: score.oov for name, score in scores.items()},
            "vocabulary": {
                "size": len(self.model.vocabulary),
                "sha256": self.model.vocabulary.sha256,
            },
            "tree": self.model.tree.stats().as_dict(),
            "epochs": [asdict(epoch) for epoch in self.history.epochs],
            "interrupted": self.history.interrupted,
            "converged": self.history.converged,
            "seconds": self.seconds,
            "options": self.model.config(),
            "corpus": {
                name: dict(getattr(self.parts, name).source) for name in ("train", "valid", "test")
            },
            "versions": versions(),
        }


def corpus_parts(corpus: Corpus, valid: Corpus | None = None, test: Corpus | None = None) -> Parts:
    """Divide a corpus by the rule that every command follows.

    Without `valid` and `test`, the last 10% of the lines are the test part and the 10% before
    them the validation part; with both, all of `corpus` trains; with one of them, the other is
    the last 10% of `corpus`.
    """
    if valid is not None and test is not None:
        return Parts(corpus, valid, test)
    if valid is None and test is None:
        return Parts(*corpus.parts())
    train, last = corpus.last_tenth()
    if valid is None and test is not None:
        return Parts(train, last, test)
    return Parts(train, valid or last, test or last)


def evaluate(tree: Tree, parts: Parts, **options: Any) -> Evaluation:
    """Train a model on a tree and score it on all three parts.

    Parameters
    ----------
    tree : Tree
    parts : Parts
    **options
        Those of `hstree.modelkinds.new_model`: `model`, "lbl" by default, and for that those of
        `LanguageModel`: dim, context, full, epochs, batch_size, learning_rate, dropout,
        weight_decay, random_state.

    Raises
    ------
    InputError
        Before anything is trained, when a part holds words that the labels cannot stand for.
    """
    start = time.perf_counter()
    model = new_model(tree, **options)
    seen = Parts(*(model.seen(part) for part in (parts.train, parts.valid, parts.test)))
    for part in (seen.train, seen.valid, seen.test):
        overlap(part)
    model.fit(seen.train, seen.valid)
    train, valid, test = (model.score(part) for part in (seen.train, seen.valid, seen.test))
    seconds = time.perf_counter() - start
    unigram = unigram_score(seen.test, seen.train.counts)
    return Evaluation(model, seen, train, valid, test, unigram, model.history_, seconds)


def score_saved(model: TreeModel[Any], corpus: Corpus) -> dict[str, Any]:
    """Score a trained model on every line of a corpus; the figures as JSON values."""
    start = time.perf_counter()
    found = model.score(corpus)
    return {
        "predicts": model.predicts,
        "perplexity": {
            "test": found.perplexity,
            "test_without_oov": found.perplexity_without_oov,
        },
        "tokens": {"test": found.tokens},
        "oov": {"test": found.oov},
        "vocabulary": {"size": len(model.vocabulary), "sha256": model.vocabulary.sha256},
        "tree": model.tree.stats().as_dict(),
        "seconds": time.perf_counter() - start,
        "options": model.config(),
        "corpus": {"test": dict(corpus.source)},
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Return the versions that a figure depends on."""
    return {"python": platform.python_version(), "numpy": np.__version__, "hstree": __version__}


def read_by_builder(tree: Tree, part: Corpus) -> str | None:
    """Say whether a tree's builder read lines of a part, as far as the tree's file records it.

    Returns
    -------
    str or None
        One sentence that names the lines, or None.
    """
    start, stop = _lines_read(tree.meta.get("input"), part.sha256)
    first, last = max(start, part.lines[0]), min(stop, part.lines[1])
    if first >= last:
        return None
    return (
        f"the tree's builder read lines {first + 1} to {last} of {part.name}, which are in this "
        "part: its figure is flattered; build with --holdout"
    )


def _lines_read(source: object, sha256: str) -> tuple[int, int]:
    """Return which lines of a text a tree's input names: its own, or its vocabulary's."""
    match source:
        case {"sha256": found, "lines": [int(start), int(stop)]} if found == sha256:
            return start, stop
        case {"vocabulary": inner} | {"corpus": inner}:
            return _lines_read(inner, sha256)
    return 0, 0
