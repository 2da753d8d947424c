"""Score of a text: total negative log-likelihood, token counts, perplexity.

Perplexity is ``exp(total nll / tokens)`` over all target tokens, ``<unk>`` and ``<eos>`` included;
totals are float64. The perplexity without OOV targets is reported beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from hstree._typing import Bool, Float64, Int64
from hstree.data.corpus import Corpus


@dataclass(frozen=True)
class TextScore:
    """Score of one text.

    Attributes
    ----------
    nll : float
        Total negative log-likelihood in nats over all targets.
    tokens : int
        Targets, ``<eos>`` included.
    nll_of_oov : float
        The part of `nll` that falls on targets outside the vocabulary, scored as ``<unk>``.
    oov : int
        How many those are.
    """

    nll: float
    tokens: int
    nll_of_oov: float
    oov: int

    @property
    def perplexity(self) -> float:
        """Over all tokens."""
        return perplexity(self.nll, self.tokens)

    @property
    def perplexity_without_oov(self) -> float:
        """Over the tokens that are in the vocabulary; NaN where there is none."""
        return perplexity(self.nll - self.nll_of_oov, self.tokens - self.oov)


def perplexity(nll: float, tokens: int) -> float:
    """Return ``exp(nll / tokens)``; infinity where that is beyond a float, NaN for no token."""
    if tokens == 0:
        return math.nan
    try:
        return math.exp(nll / tokens)
    except OverflowError:
        return math.inf


def by_line(
    parts: Iterable[tuple[Float64, Bool]], line_start: Int64
) -> Iterator[tuple[Float64, Int64]]:
    """Sum the nll and the OOV tokens of a text by line, as the lines end.

    Parameters
    ----------
    parts : iterable of (float64 array, bool array)
    line_start : int64 array (L + 1,)
        As `Corpus.line_start`.

    Yields
    ------
    nll : float64 array
        Of the next lines, each with its ``<eos>``.
    oov : int64 array
        How many of their tokens are OOV.
    """
    done, line, rest, rest_oov = 0, 0, 0.0, 0
    for nll, oov in parts:
        places = np.arange(done, done + len(nll))
        done += len(nll)
        last = int(np.searchsorted(line_start, done, "right")) - 1
        of_line = np.searchsorted(line_start, places, "right") - 1 - line
        total = np.bincount(of_line, nll, minlength=last - line + 1).astype(np.float64)
        counted = np.bincount(of_line[oov], minlength=last - line + 1).astype(np.int64)
        total[0] += rest
        counted[0] += rest_oov
        yield total[:-1], counted[:-1]
        rest, rest_oov, line = float(total[-1]), int(counted[-1]), last


def unigram_score(corpus: Corpus, counts: Int64) -> TextScore:
    """Score a text with the unigram distribution of some training counts.

    Parameters
    ----------
    corpus : Corpus
        Its vocabulary's order is that of `counts`.
    counts : int64 array (V,)
        A count below 0.5 counts as 0.5, as in the biases of an untrained layer.
    """
    mass = np.maximum(counts, 0.5)
    cost = np.log(mass.sum()) - np.log(mass)
    unk = corpus.vocabulary.unk
    cost_of_oov = 0.0 if unk is None else float(cost[corpus.vocabulary.index(unk)])
    nll = float(corpus.counts @ cost)
    return TextScore(nll, len(corpus), corpus.n_oov * cost_of_oov, corpus.n_oov)
