"""Score of a text: total negative log-likelihood, token counts, perplexity.

Perplexity is ``exp(total nll / tokens)`` over all target tokens, ``<unk>`` and ``<eos>`` included;
totals are float64. The perplexity without OOV targets is reported beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from hstree._typing import Bool, Float64, Int64
from hstree.data.corpus import Corpus


@dataclass(frozen=True)
class LogNormaliser:
    """Log-normalisers ln Z of a text's tokens, and its perplexity without normalising.

    Attributes
    ----------
    mean, sd : float
        Mean and standard deviation of ln Z over the tokens, in nats.
    unnormalised_perplexity : float
        ``exp(mean(nll - ln Z))``: what scores that are read as log-probabilities would give.
    """

    mean: float
    sd: float
    unnormalised_perplexity: float

    @classmethod
    def of(cls, log_z: Float64, nll: float) -> Self:
        """Return the figures of the ln Z of every token (T,), with the total normalised nll."""
        if len(log_z) == 0:
            return cls(math.nan, math.nan, math.nan)
        unnormalised = perplexity(nll - float(log_z.sum()), len(log_z))
        return cls(float(log_z.mean()), float(log_z.std()), unnormalised)


@dataclass(frozen=True)
class TextScore:
    """Score of a text under a model."""

    nll: float  #: total negative log-likelihood in nats over all targets
    tokens: int  #: number of targets, ``<eos>`` included
    nll_of_oov: float  #: as `nll`, of the targets outside the vocabulary, scored as ``<unk>``
    oov: int  #: number of these
    log_normaliser: LogNormaliser | None = None  #: None if not asked for, or the layer has no ln Z
    #: (T,) nll of each token, in the order of the text; None if not asked for
    of_tokens: Float64 | None = field(default=None, repr=False, compare=False)

    @property
    def perplexity(self) -> float:
        """Perplexity over all tokens."""
        return perplexity(self.nll, self.tokens)

    @property
    def perplexity_without_oov(self) -> float:
        """Perplexity over the tokens in the vocabulary; NaN without any."""
        return perplexity(self.nll - self.nll_of_oov, self.tokens - self.oov)


def perplexity(nll: float, tokens: int) -> float:
    """Return ``exp(nll / tokens)``; infinity if that is too large for a float, NaN for no token."""
    if tokens == 0:
        return math.nan
    try:
        return math.exp(nll / tokens)
    except OverflowError:
        return math.inf


def by_line(
    batches: Iterable[tuple[Float64, Bool]], line_start: Int64
) -> Iterator[tuple[Float64, Int64]]:
    """Yield the nll and the number of OOV tokens of the lines that end in each batch.

    Batches hold the nll of consecutive tokens and whether each is OOV, in the order of the text.
    A line includes its ``<eos>``; `line_start` (L + 1,) is `Corpus.line_start`.
    """
    # Tokens summed so far, the line that they end in, and the sums of its first tokens
    done, line, nll_so_far, oov_so_far = 0, 0, 0.0, 0
    for nll, oov in batches:
        token = np.arange(done, done + len(nll))
        done += len(nll)
        last = int(np.searchsorted(line_start, done, "right")) - 1
        # (T,) line of each token, counted from the first of the batch
        token_line = np.searchsorted(line_start, token, "right") - 1 - line
        line_nll = np.bincount(token_line, nll, minlength=last - line + 1).astype(np.float64)
        line_oov = np.bincount(token_line[oov], minlength=last - line + 1).astype(np.int64)
        line_nll[0] += nll_so_far
        line_oov[0] += oov_so_far
        yield line_nll[:-1], line_oov[:-1]
        nll_so_far, oov_so_far, line = float(line_nll[-1]), int(line_oov[-1]), last


def unigram_score(corpus: Corpus, counts: Int64) -> TextScore:
    """Score a text under the unigram distribution of training counts.

    Parameters
    ----------
    corpus : Corpus
    counts : int64 array (V,)
        In the order of the corpus's vocabulary. A count below 0.5 is taken as 0.5, as in the
        biases of an untrained layer.
    """
    mass = np.maximum(counts, 0.5)
    # (V,) nll of each word
    nll = np.log(mass.sum()) - np.log(mass)
    unk = corpus.vocabulary.unk
    nll_of_unk = 0.0 if unk is None else float(nll[corpus.vocabulary.index(unk)])
    total = float(corpus.counts @ nll)
    return TextScore(total, len(corpus), corpus.n_oov * nll_of_unk, corpus.n_oov)
