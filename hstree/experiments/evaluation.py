"""Train a model on a tree, score it, and say everything that the figure depends on.

The splits of a corpus, the training, the scores of every part with token and OOV counts, the
vocabulary, the tree's cost and the unigram figure beside it: one `Evaluation`.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hstree._version import __version__
from hstree.data.corpus import Corpus
from hstree.data.overlap import overlap
from hstree.data.provenance import shared
from hstree.data.text_score import TextScore, unigram_score
from hstree.layers.registry import LayerSpec
from hstree.models import Model, new_model
from hstree.training.trainer import History
from hstree.tree import Tree


@dataclass(frozen=True)
class Splits:
    """The three splits of an evaluation's text, all seen through the tree's labels."""

    train: Corpus
    valid: Corpus
    test: Corpus


@dataclass(frozen=True)
class Evaluation:
    """What a tree buys: a trained model and its scores.

    Attributes
    ----------
    model : Model
    splits : Splits
    train, valid, test : TextScore
        Of the trained model, without dropout.
    unigram : TextScore
        Of the training part's unigram distribution on the test part.
    history : History
    seconds : float
        Wall-clock time of training and scoring.
    """

    model: Model[Any]
    splits: Splits
    train: TextScore
    valid: TextScore
    test: TextScore
    unigram: TextScore
    history: History
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values; docs/figures.md describes the keys."""
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
            "tree": tree_figures(self.model),
            "epochs": [asdict(epoch) for epoch in self.history.epochs],
            "interrupted": self.history.interrupted,
            "converged": self.history.converged,
            "seconds": self.seconds,
            "options": self.model.config(),
            "corpus": {
                name: dict(getattr(self.splits, name).source) for name in ("train", "valid", "test")
            },
            "seen": seen(self.splits, self.model.tree),
            "versions": versions(),
        }


def corpus_splits(
    corpus: Corpus, valid: Corpus | None = None, test: Corpus | None = None
) -> Splits:
    """Divide a corpus by the rule that every command follows.

    Without `valid` and `test`, the last 10% of the lines are the test part and the 10% before
    them the validation part; with both, all of `corpus` trains; with one of them, the other is
    the last 10% of `corpus`.
    """
    if valid is not None and test is not None:
        return Splits(corpus, valid, test)
    if valid is None and test is None:
        return Splits(*corpus.splits())
    train, last = corpus.last_tenth()
    if valid is None and test is not None:
        return Splits(train, last, test)
    return Splits(train, valid or last, test or last)


def evaluate(
    tree: Tree | LayerSpec,
    splits: Splits,
    *,
    trained: Callable[[Model[Any]], object] | None = None,
    **options: Any,
) -> Evaluation:
    """Train a model on a tree and score it on all three splits.

    Parameters
    ----------
    tree : Tree or LayerSpec
    splits : Splits
    trained : callable, optional
        Called with the model after its training and before its scoring, which may be interrupted.
    **options
        Those of `hstree.models.new_model`: `model`, "lbl" by default, and for that those of
        `LanguageModel`: dim, context, full, epochs, batch_size, learning_rate, dropout,
        weight_decay, random_state.

    Raises
    ------
    InputError
        Before anything is trained, when a part holds words that the labels cannot stand for.
    """
    start = time.perf_counter()
    model = new_model(tree, **options)
    own = Splits(*(model.reencode(part) for part in (splits.train, splits.valid, splits.test)))
    for part in (own.train, own.valid, own.test):
        overlap(part)
    model.fit(own.train, own.valid)
    if trained is not None:
        trained(model)
    train, valid, test = (model.score(part) for part in (own.train, own.valid, own.test))
    seconds = time.perf_counter() - start
    unigram = unigram_score(own.test, own.train.counts)
    return Evaluation(model, own, train, valid, test, unigram, model.history_, seconds)


def score_saved(model: Model[Any], corpus: Corpus) -> dict[str, Any]:
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
        "tree": tree_figures(model),
        "seconds": time.perf_counter() - start,
        "options": model.config(),
        "corpus": {"test": dict(corpus.source)},
        "seen": read_by_model(model, corpus),
        "versions": versions(),
    }


def tree_figures(model: Model[Any]) -> dict[str, Any] | None:
    """Return the figures of a model's tree; None for an output layer without one."""
    return None if model.tree is None else model.tree.stats().as_dict()


def versions() -> dict[str, str]:
    """Return the versions that a figure depends on."""
    return {"python": platform.python_version(), "numpy": np.__version__, "hstree": __version__}


def seen(splits: Splits, tree: Tree | None = None) -> str | None:
    """Say by what lines of the test part were read that should not have read them.

    Parameters
    ----------
    splits : Splits
        The training and the validation part must share no line with the test part, nor may their
        vocabulary's words be chosen on it.
    tree : Tree, optional
        Its meta says what it was built from.

    Returns
    -------
    str or None
        One sentence that names the lines, or None where nothing is known to have read them.
    """
    found = [
        _in_two_parts(splits, "train", "test"),
        _in_two_parts(splits, "valid", "test"),
        None if tree is None else read_by_builder(tree, splits.test),
        read_by_vocabulary(splits),
    ]
    return next(filter(None, found), None)


def shared_lines(splits: Splits) -> list[str]:
    """Say which lines are in two of the splits: one sentence for every two that share some."""
    pairs = [("train", "test"), ("valid", "test"), ("train", "valid")]
    return [said for pair in pairs if (said := _in_two_parts(splits, *pair)) is not None]


def read_by_builder(tree: Tree, test: Corpus) -> str | None:
    """Say whether a tree was made from lines of the test part, as far as its meta records it.

    Returns
    -------
    str or None
        One sentence that names the lines, or None.
    """
    source = tree.meta.get("input")
    if isinstance(source, dict):
        corpus = {key: source.get(key) for key in ("name", "sha256", "lines")}
        if (lines := shared(corpus, test.source)) is not None:
            return (
                f"the tree's builder read {lines}, which {_ARE_FLATTERED}; build from the "
                "training lines alone (--train-split-only)"
            )
    if (lines := shared(source, test.source)) is not None:
        return (
            f"the vocabulary or the vectors that the tree was built from were made from {lines}, "
            f"which {_ARE_FLATTERED}; make them from the training lines alone"
        )
    return None


def read_by_model(model: Model[Any], test: Corpus) -> str | None:
    """Say whether a model was trained on lines that it is to be scored on, or its tree built.

    Returns
    -------
    str or None
        One sentence that names the lines, or None.
    """
    if (lines := shared(model.texts, test.source)) is not None:
        return (
            f"the model was trained or validated on {lines}, which are scored here: its figure is "
            "flattered; score another text"
        )
    return None if model.tree is None else read_by_builder(model.tree, test)


def read_by_vocabulary(splits: Splits) -> str | None:
    """Say whether the vocabulary's words were chosen on lines of the test part.

    Returns
    -------
    str or None
        One sentence that names the lines, or None.
    """
    lines = shared(splits.train.record.get("vocabulary"), splits.test.source)
    if lines is None:
        return None
    return (
        f"the words of the vocabulary were chosen on {lines}, which {_ARE_FLATTERED}; choose them "
        "on the training lines alone"
    )


_ARE_FLATTERED = "are in the test part: its figure is flattered"
_PARTS = {"train": "training part", "valid": "validation part", "test": "test part"}


def _in_two_parts(splits: Splits, one: str, other: str) -> str | None:
    lines = shared(getattr(splits, one).source, getattr(splits, other).source)
    if lines is None:
        return None
    return (
        f"{lines} are in the {_PARTS[one]} and in the {_PARTS[other]}: the figure of the "
        f"{_PARTS[other]} is flattered; give it other lines"
    )
