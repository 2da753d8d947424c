"""Score of a text: total negative log-likelihood, token counts, perplexity.

Perplexity is ``exp(total nll / tokens)`` over all target tokens, ``<unk>`` and ``<eos>`` included;
totals are float64. The perplexity without OOV targets is reported beside it.
"""

import math
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from hstree._arrays import Bool, Float64, Int64
from hstree.data.corpus import Corpus
from hstree.data.vocabulary import UNK


@dataclass(frozen=True)
class LogNormaliser:
    """Log-normalisers ln Z of a text's tokens, and its perplexity without normalising."""

    mean: float  #: of ln Z over the tokens, in nats
    sd: float  #: standard deviation of ln Z
    #: ``exp(mean(nll - ln Z))``, as if scores were log-probabilities
    unnormalised_perplexity: float

    @classmethod
    def of(cls, log_z: Float64, nll: float) -> Self:
        """Return the statistics of ln Z (T,) over the tokens; `nll` is the normalised total."""
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
    token_nll: Float64 | None = field(default=None, repr=False, compare=False)

    @property
    def perplexity(self) -> float:
        """Perplexity over all tokens."""
        return perplexity(self.nll, self.tokens)

    @property
    def perplexity_without_oov(self) -> float:
        """Perplexity over the tokens in the vocabulary; NaN if there is none."""
        return perplexity(self.nll - self.nll_of_oov, self.tokens - self.oov)

    @classmethod
    def of(cls, nll: Float64, oov: Bool) -> Self:
        """Return the score of a text from the nll of every token (T,) and the OOV flags (T,)."""
        return cls(
            nll=float(nll.sum()),
            tokens=len(nll),
            nll_of_oov=float(nll[oov].sum()),
            oov=int(oov.sum()),
            token_nll=nll,
        )


def perplexity(nll: float, tokens: int) -> float:
    """Return ``exp(nll / tokens)``; infinity if that is too large for a float, NaN for no token."""
    if tokens == 0:
        return math.nan
    try:
        return math.exp(nll / tokens)
    except OverflowError:
        return math.inf


def unigram_score(corpus: Corpus, counts: Int64) -> TextScore:
    """Score a text under the unigram distribution of training counts.

    `counts` (V,) are in the order of the corpus's vocabulary; one below 0.5 is taken as 0.5, as in
    the biases of an untrained layer.
    """
    mass = np.maximum(counts, 0.5)
    # (V,) nll of each word
    nll = np.log(mass.sum()) - np.log(mass)
    unk = int(corpus.vocabulary.ids([UNK])[0])
    nll_of_oov = corpus.n_oov * float(nll[unk]) if unk >= 0 else 0.0
    return TextScore(float(corpus.counts @ nll), len(corpus), nll_of_oov, corpus.n_oov)
