"""Training and scoring of a model on three splits, and test lines that were read before."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hstree._compiled import kernels, numpy_alone
from hstree._version import __version__
from hstree.data.corpus import Corpus
from hstree.data.overlap import overlap
from hstree.data.provenance import shared
from hstree.data.text_score import TextScore, unigram_score
from hstree.errors import InputError
from hstree.experiments.results import (
    LayerFigures,
    NormaliserFigures,
    RunResult,
    Split,
    TreeFigures,
    VocabularyFigures,
    finite,
)
from hstree.layers.registry import LayerSpec
from hstree.models import Ensemble, Model, new_model
from hstree.training.trainer import History
from hstree.tree import Tree


@dataclass(frozen=True)
class Splits:
    """Training, validation and test text of an evaluation, over the same vocabulary."""

    train: Corpus
    valid: Corpus
    test: Corpus

    @classmethod
    def of(cls, text: Splits | Corpus) -> Splits:
        """Return splits as they are, and a corpus split by `corpus_splits`; else InputError."""
        if isinstance(text, Splits):
            return text
        if isinstance(text, Corpus):
            return corpus_splits(text)
        raise InputError(
            f"the text is {type(text).__name__}, not Splits or a Corpus; "
            "read a file with hstree.Corpus.read"
        )

    def as_dict(self) -> dict[Split, Corpus]:
        """Return the corpora by the names of their splits."""
        return {"train": self.train, "valid": self.valid, "test": self.test}


@dataclass(frozen=True)
class Evaluation:
    """A trained model and its scores.

    Attributes
    ----------
    model : Model
    splits : Splits
        Encoded by the model's labels.
    train, valid, test : TextScore
        Scores of the trained model, without dropout; `train` may be None.
    unigram : TextScore
        Score of the training split's unigram distribution on the test split.
    history : History
        Epochs of the training.
    seconds : float
        Wall-clock time of training and scoring, that of a training which was stopped included.
    is_warm : bool
        Whether the training began with the vectors of another model.
    """

    model: Model[Any]
    splits: Splits
    train: TextScore | None
    valid: TextScore
    test: TextScore
    unigram: TextScore
    history: History
    seconds: float
    is_warm: bool = False

    @property
    def result(self) -> RunResult:
        """All figures, as JSON files hold them; ``docs/figures.md`` describes each."""
        scores = {"valid": self.valid, "test": self.test}
        corpora = self.splits.as_dict()
        return _result(
            self.model,
            perplexity={
                "train": None if self.train is None else finite(self.train.perplexity),
                **{name: finite(score.perplexity) for name, score in scores.items()},
                "test_without_oov": finite(self.test.perplexity_without_oov),
                "unigram": finite(self.unigram.perplexity),
            },
            tokens={name: len(text) for name, text in corpora.items()},
            oov={name: text.n_oov for name, text in corpora.items()},
            epochs=self.history.epochs,
            interrupted=self.history.interrupted,
            converged=self.history.converged,
            preparation=self.history.preparation,
            out_of_time=self.history.out_of_time if "seconds" in self.model.config() else None,
            seconds=self.seconds,
            corpus={name: dict(text.source) for name, text in corpora.items()},
            # its texts are also those of the model that it began with
            seen=seen(self.splits, self.model.spec) or read_by_model(self.model, self.splits.test),
            log_normaliser=NormaliserFigures.of(self.test.log_normaliser),
            warm_start=True if self.is_warm else None,
        )


def _result(model: Model[Any], **figures: Any) -> RunResult:
    """Return these figures with those that depend on the model alone."""
    spec = model.spec
    return RunResult(
        predicts=model.predicts,
        vocabulary=VocabularyFigures.of(model.vocabulary),
        tree=None if model.tree is None else TreeFigures.of(model.tree.stats()),
        layer=LayerFigures.of(spec),
        options=model.config(),
        versions=versions() | {"kernels": model.history_.kernels or kernels()},
        **figures,
    )


def corpus_splits(
    corpus: Corpus, valid: Corpus | None = None, test: Corpus | None = None
) -> Splits:
    """Split a corpus into training, validation and test text by its lines.

    Without `valid` and `test`, the last 10% of the lines are the test split and the 10% before
    them the validation split; with both, all of `corpus` trains; with one of them, the other is
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
    output: Tree | LayerSpec,
    text: Splits | Corpus,
    *,
    trained: Callable[[Model[Any]], object] | None = None,
    score_train: bool = True,
    fast: bool = True,
    checkpoints: str | os.PathLike[str] | None = None,
    warm_start: Model[Any] | None = None,
    **options: Any,
) -> Evaluation:
    """Train a model with an output layer and score it on all three splits.

    Parameters
    ----------
    output : Tree or LayerSpec
        A tree means the hierarchical softmax over it.
    text : Splits or Corpus
        A corpus is split by `corpus_splits`.
    trained : callable, optional
        Called with the trained model before it is scored, as scoring may be interrupted.
    score_train : bool, default True
        Whether to score the training split, which may take longer than training on it.
    fast : bool, default True
        Whether to train and score by compiled kernels, where numba is installed.
    checkpoints : path, optional
        Folder for states of trainings, as `Model.fit` takes it.
    warm_start : Model, optional
        Trained model whose context model the training begins with, as `Model.fit` takes it.
    **options
        Options of `hstree.models.new_model`: `model`, default "lbl", and those of its class, such
        as dim, context, epochs, batch_size, learning_rate, random_state.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        Before anything is trained, when a split has words that are not among the labels, and
        ``<unk>`` is not either.
    """
    start = time.perf_counter()
    model = new_model(output, **options)
    splits = Splits(*(model.reencode(split) for split in Splits.of(text).as_dict().values()))
    for split in splits.as_dict().values():
        overlap(split)
    with numpy_alone(not fast):
        model.fit(splits.train, splits.valid, warm_start=warm_start, checkpoints=checkpoints)
        if trained is not None:
            trained(model)
        train = model.score(splits.train) if score_train else None
        valid, test = (model.score(split, details=True) for split in (splits.valid, splits.test))
    seconds = time.perf_counter() - start + model.history_.before
    unigram = unigram_score(splits.test, splits.train.counts)
    is_warm = warm_start is not None
    return Evaluation(model, splits, train, valid, test, unigram, model.history_, seconds, is_warm)


def score_saved(model: Model[Any], corpus: Corpus) -> RunResult:
    """Score a trained model on every line of a corpus, as its test split."""
    start = time.perf_counter()
    score = model.score(corpus, details=True)
    return _result(
        model,
        perplexity={
            "test": finite(score.perplexity),
            "test_without_oov": finite(score.perplexity_without_oov),
        },
        tokens={"test": score.tokens},
        oov={"test": score.oov},
        seconds=time.perf_counter() - start,
        corpus={"test": dict(corpus.source)},
        seen=read_by_model(model, corpus),
        log_normaliser=NormaliserFigures.of(score.log_normaliser),
    )


def versions() -> dict[str, str]:
    """Return the versions that a figure depends on, and what computes here (`kernels`)."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "hstree": __version__,
        "kernels": kernels(),
    }


def seen(splits: Splits, tree: Tree | LayerSpec | None = None) -> str | None:
    """Name test lines that training, validation, the tree's builder or the vocabulary has read.

    Returns one sentence, or None where no such lines are known.
    """
    sentences = [
        _in_both(splits, "train", "test"),
        _in_both(splits, "valid", "test"),
        None if tree is None else read_by_builder(tree, splits.test),
        read_by_vocabulary(splits),
    ]
    return next(filter(None, sentences), None)


def shared_lines(splits: Splits) -> list[str]:
    """Name lines that are in two splits, in one sentence per pair of splits."""
    pairs = [("train", "test"), ("valid", "test"), ("train", "valid")]
    sentences = [_in_both(splits, *pair) for pair in pairs]
    return [sentence for sentence in sentences if sentence is not None]


def read_by_builder(tree: Tree | LayerSpec, test: Corpus) -> str | None:
    """Name test lines that a tree was built from, by its meta, in one sentence."""
    if isinstance(tree, LayerSpec) and tree.tree is None:
        if (lines := shared(tree.made_from, test.source)) is None:
            return None
        return (
            f"the vocabulary of the output layer was made from {lines}, which {_ARE_FLATTERED}; "
            "make it from the training lines alone"
        )
    source = tree.made_from if isinstance(tree, LayerSpec) else tree.meta.get("input")
    if isinstance(source, dict):
        corpus = {key: source.get(key) for key in ("name", "sha256", "lines")}
        if (lines := shared(corpus, test.source)) is not None:
            return (
                f"the tree's builder read {lines}, which {_ARE_FLATTERED}; build from the "
                "training lines alone"
            )
    if (lines := shared(source, test.source)) is not None:
        return (
            f"the vocabulary or the vectors that the tree was built from were made from {lines}, "
            f"which {_ARE_FLATTERED}; make them from the training lines alone"
        )
    return None


def read_by_model(model: Model[Any] | Ensemble, test: Corpus) -> str | None:
    """Name test lines that a model was trained on, or its tree built from, in one sentence."""
    if isinstance(model, Ensemble):
        return next(filter(None, (read_by_model(one, test) for one in model.models)), None)
    if (lines := shared(model.texts, test.source)) is not None:
        return (
            f"the model was trained or validated on {lines}, which are scored here: its figure is "
            "optimistic; score another text"
        )
    return read_by_builder(model.spec, test)


def read_by_vocabulary(splits: Splits) -> str | None:
    """Name test lines that the words of the vocabulary were chosen on, in one sentence."""
    lines = shared(splits.train.record.get("vocabulary"), splits.test.source)
    if lines is None:
        return None
    return (
        f"the words of the vocabulary were chosen on {lines}, which {_ARE_FLATTERED}; choose them "
        "on the training lines alone"
    )


_ARE_FLATTERED = "are in the test split: its figure is optimistic"
_NAMES = {"train": "training split", "valid": "validation split", "test": "test split"}


def _in_both(splits: Splits, one: str, other: str) -> str | None:
    lines = shared(getattr(splits, one).source, getattr(splits, other).source)
    if lines is None:
        return None
    return (
        f"{lines} are in the {_NAMES[one]} and in the {_NAMES[other]}: the figure of the "
        f"{_NAMES[other]} is optimistic; use other lines for it"
    )
