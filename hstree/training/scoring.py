"""What a model gives a text: total negative log-likelihood, token counts, perplexity.

Perplexity is ``exp(total nll / tokens)`` over all target tokens, ``<unk>`` and ``<eos>`` included;
totals are float64. The same without the targets that are not in the vocabulary stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hstree import progress
from hstree.data.corpus import Corpus
from hstree.data.windows import Windows
from hstree.layers.context_model import ContextModel
from hstree.layers.hierarchical import HierarchicalSoftmax

#: Positions scored at a time.
BATCH = 1024


@dataclass(frozen=True)
class Score:
    """The score of one text.

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


def score(model: ContextModel, layer: HierarchicalSoftmax, windows: Windows) -> Score:
    """Score every position of a text, without dropout."""
    total = total_of_oov = 0.0
    oov_tokens = 0
    for nll, oov in in_text_order(model, layer, windows):
        total += float(nll.sum())
        total_of_oov += float(nll[oov].sum())
        oov_tokens += int(oov.sum())
    return Score(total, len(windows), total_of_oov, oov_tokens)


def nlls(model: ContextModel, layer: HierarchicalSoftmax, windows: Windows) -> NDArray[np.float64]:
    """Return the negative log-likelihood in nats of every token of a text, float64 (T,).

    In the order of the text, ``<eos>`` included, without dropout. A token that is not in the
    vocabulary has the nll of ``<unk>``.
    """
    found = np.empty(len(windows))
    done = 0
    for nll, _ in in_text_order(model, layer, windows):
        found[done : done + len(nll)] = nll
        done += len(nll)
    return found


def in_text_order(
    model: ContextModel, layer: HierarchicalSoftmax, windows: Windows
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.bool_]]]:
    """Yield the nll of every token of a text and whether it is OOV, some tokens at a time."""
    with progress.task(f"scoring {windows.corpus.name}", len(windows), "tokens") as task:
        for contexts, targets, oov in windows.batches(BATCH):
            yield model.nll(layer, contexts, targets), oov
            task.advance(len(targets))


def by_line(
    parts: Iterable[tuple[NDArray[np.float64], NDArray[np.bool_]]], line_start: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]]]:
    """Sum what `in_text_order` yields over whole lines, as they end.

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


def unigram_score(corpus: Corpus, counts: NDArray[np.int64]) -> Score:
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
    return Score(nll, len(corpus), corpus.n_oov * cost_of_oov, corpus.n_oov)
