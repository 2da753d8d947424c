"""Proposals: distributions that sampled losses draw labels from, with exact log-probabilities.

A proposal without context (unigram, uniform) gives one sample that all items of a batch share. One
that depends on the item (n-grams, a tree) gives each item a sample of its own. `proposal_of` reads
the option ``proposal`` of the layers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hstree._typing import Array, Float64, Int64, Integer
from hstree.data.vocabulary import Vocabulary
from hstree.data.windows import Windows
from hstree.errors import OptionError
from hstree.layers.base import ParameterGradient

#: Values of the option ``proposal`` that are not files.
NAMES = ("unigram", "uniform")


class Samples(NamedTuple):
    """Labels drawn for a batch, and their log-probabilities under the proposal, of one shape.

    The shape is (k,) where all items of the batch share the labels, else (B, k).
    """

    labels: Int64
    log_prob: Float64


class Proposal(ABC):
    """Distribution over V labels to draw noise from; with or without context.

    Attributes
    ----------
    is_conditional : bool
        Whether it depends on the hidden vectors or contexts; then it draws for each item.
    """

    is_conditional = True

    @abstractmethod
    def sample(
        self,
        k: int,
        rng: np.random.Generator,
        hidden: Array,
        contexts: Integer | None = None,
        *,
        shared: bool = True,
    ) -> Samples:
        """Draw k labels with replacement.

        Parameters
        ----------
        k : int
        rng : numpy.random.Generator
        hidden : float array (B, d)
        contexts : int array (B, n), optional
            The words before each target, label ids, the farthest first; None under models that
            have none (`hstree.models.word2vec`).
        shared : bool, default True
            Draw k labels for the whole batch instead of k for each item. Proposals that depend on
            the item always draw for each.
        """

    @abstractmethod
    def log_prob(self, labels: Integer, hidden: Array, contexts: Integer | None = None) -> Float64:
        """Return the log-probabilities of labels (B,) or (B, m), m for each item, in their shape.

        Proposals without context take labels of any shape.
        """

    # What training asks of a proposal, through its layer.

    def check(self) -> None:  # noqa: B027
        """Refuse a file that cannot be used, before a long training; raises HstreeError."""

    def prepare(self, train: Windows) -> None:  # noqa: B027
        """Read the training text before the first batch."""

    def parameters(self) -> dict[str, Array]:
        """Return the arrays that are trained beside the layer; saved models do without them."""
        return {}

    def gradients(self, hidden: Array, targets: Integer) -> Sequence[ParameterGradient]:
        """Return the gradients of its negative log-likelihood of targets; hidden is constant."""
        return ()

    def curvature(self, counts: Array) -> dict[str, Float64]:
        """Return what `OutputLayer.curvature` does, for `parameters`."""
        return {}


class Unigram(Proposal):
    """Counts to the power alpha: ``Q(w) = c(w)^alpha / sum_v c(v)^alpha``.

    Draws by binary search in the cumulative distribution: O(log V) a sample.

    Parameters
    ----------
    counts : int array (V,)
        A count of 0 is read as 1/2.
    alpha : float, default 1
        1 for the unigram distribution, 0 for the uniform one.
    """

    is_conditional = False

    def __init__(self, counts: Integer, alpha: float = 1.0) -> None:
        mass = np.maximum(counts, 0.5) ** alpha
        self._log_prob: Float64 = np.log(mass / mass.sum())
        self._cumulative: Float64 = np.cumsum(mass) / mass.sum()

    def sample(
        self,
        k: int,
        rng: np.random.Generator,
        hidden: Array,
        contexts: Integer | None = None,
        *,
        shared: bool = True,
    ) -> Samples:
        """Draw k labels with replacement, for the batch or for each item."""
        labels = self._draw(k if shared else (len(hidden), k), rng)
        return Samples(labels, self._log_prob[labels])

    def sample_unique(self, k: int, rng: np.random.Generator) -> tuple[Samples, int]:
        """Draw until there are k different labels; all labels where there are no more.

        Returns
        -------
        samples : Samples
            min(k, V) different labels, in the order in which they were first drawn.
        tries : int
            Number of labels that were drawn for them.
        """
        if k >= len(self._log_prob):
            return Samples(np.arange(len(self._log_prob)), self._log_prob), 0
        drawn = self._draw(2 * k, rng)
        while len(first := np.unique(drawn, return_index=True)[1]) < k:
            drawn = np.concatenate([drawn, self._draw(len(drawn), rng)])
        first = np.sort(first)[:k]
        labels = drawn[first]
        return Samples(labels, self._log_prob[labels]), int(first[-1]) + 1

    def log_prob(self, labels: Integer, hidden: Array, contexts: Integer | None = None) -> Float64:
        """Return the log-probabilities of labels of any shape."""
        return self._log_prob[labels]

    def _draw(self, shape: Any, rng: np.random.Generator) -> Int64:
        drawn = np.searchsorted(self._cumulative, rng.random(shape), "right")
        labels: Int64 = np.minimum(drawn, len(self._cumulative) - 1)
        return labels


def proposal_of(
    name: str, vocabulary: Vocabulary, counts: Integer | None = None, *, alpha: float = 1.0
) -> Proposal:
    """Return the proposal that the option ``proposal`` of a layer names.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    vocabulary : Vocabulary
    counts : int array (V,), optional
        Training counts; those of the vocabulary by default.
    alpha : float, default 1
        Power of the counts, for "unigram".

    Raises
    ------
    OptionError
        When there is no such proposal.
    """
    counts = vocabulary.counts if counts is None else counts
    match name:
        case "unigram":
            return Unigram(counts, alpha)
        case "uniform":
            return Unigram(counts, 0.0)
    known = ", ".join(map(repr, NAMES))
    raise OptionError.about("proposal", f"is {name!r}; it must be one of {known}")
