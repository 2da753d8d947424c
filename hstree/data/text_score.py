"""Score of a text: total negative log-likelihood, token counts, perplexity.

Perplexity is ``exp(total nll / tokens)`` over all target tokens, including ``<unk>`` and ``<eos>``.
Totals are float64. The perplexity without OOV targets is reported as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hstree._arrays import Bool, Float64, Int64
from hstree._plugins import require
from hstree.data.corpus import Corpus
from hstree.data.vocabulary import UNK
from hstree.errors import InputError

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class LogNormaliser:
    """Statistics of the log-normaliser ln Z over a text, and its unnormalised perplexity."""

    mean: float  #: mean of ln Z over the tokens, in nats
    sd: float  #: standard deviation of ln Z
    #: ``exp(mean(nll - ln Z))``: perplexity if scores are used as log-probabilities
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
    nll_of_oov: float  #: total nll of OOV targets, which are scored as ``<unk>``
    oov: int  #: number of OOV targets
    log_normaliser: LogNormaliser | None = None  #: None if not requested, or if there is no ln Z
    #: (T,) nll of each token, in the order of the text; None if only totals are known
    token_nll: Float64 | None = field(default=None, repr=False, compare=False)
    #: the text with the vocabulary of the model; None if only totals are known
    corpus: Corpus | None = field(default=None, repr=False, compare=False)

    @property
    def perplexity(self) -> float:
        """Perplexity over all tokens."""
        return perplexity(self.nll, self.tokens)

    @property
    def perplexity_without_oov(self) -> float:
        """Perplexity over the tokens in the vocabulary; NaN if there are none."""
        return perplexity(self.nll - self.nll_of_oov, self.tokens - self.oov)

    @classmethod
    def of(
        cls, corpus: Corpus, nll: Float64, oov: Bool, log_normaliser: LogNormaliser | None = None
    ) -> Self:
        """Return the score of a text from the nll of every token (T,) and the OOV flags (T,)."""
        return cls(
            nll=float(nll.sum()),
            tokens=len(nll),
            nll_of_oov=float(nll[oov].sum()),
            oov=int(oov.sum()),
            log_normaliser=log_normaliser,
            token_nll=nll,
            corpus=corpus,
        )

    def to_frame(self) -> DataFrame:
        """Return the score of each token as a pandas DataFrame, in the order of the text.

        Returns
        -------
        DataFrame
            One row per token. Columns: `line` and `position` in the line, both from 1; `word`, as
            in the text; `nll`, the negative log-likelihood in nats; `is_oov`, whether the word is
            out of vocabulary and scored as ``<unk>``. Except for `nll`, these are the columns of
            ``hstree score --per-word``.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        InputError
            If the score contains only totals.

        Examples
        --------
        >>> import hstree
        >>> text = hstree.Corpus.from_lines(["the cat sat", "the dog"], min_count=2)
        >>> model = hstree.LanguageModel(hstree.build("huffman", text), epochs=0).fit(text)
        >>> model.score(text).to_frame()[["line", "position", "word", "is_oov"]].values.tolist()[:2]
        [[1, 1, 'the', False], [1, 2, 'cat', True]]
        """
        corpus = self.corpus
        if corpus is None:
            raise InputError("the score contains only totals; use the method `score` of a model")
        pandas: Any = require("pandas")
        # (L,) number of tokens of each line
        start = corpus.line_start
        length = np.diff(start)
        return pandas.DataFrame(
            {
                "line": np.repeat(np.arange(1, corpus.n_lines + 1), length),
                "position": np.arange(1, len(corpus) + 1) - np.repeat(start[:-1], length),
                "word": corpus.words(),
                "nll": self.token_nll,
                "is_oov": corpus.is_oov(),
            }
        )


def perplexity(nll: float, tokens: int) -> float:
    """Return ``exp(nll / tokens)``; infinity if it is too large, NaN without tokens."""
    if tokens == 0:
        return math.nan
    try:
        return math.exp(nll / tokens)
    except OverflowError:
        return math.inf


def unigram_score(corpus: Corpus, counts: Int64) -> TextScore:
    """Score a text under the unigram distribution of training counts.

    `counts` (V,) are in the order of the vocabulary of the corpus. The minimum count is 0.5, as in
    the biases of an untrained layer.
    """
    mass = np.maximum(counts, 0.5)
    # (V,) nll of each word
    nll = np.log(mass.sum()) - np.log(mass)
    unk = int(corpus.vocabulary.ids([UNK])[0])
    nll_of_oov = corpus.n_oov * float(nll[unk]) if unk >= 0 else 0.0
    return TextScore(float(corpus.counts @ nll), len(corpus), nll_of_oov, corpus.n_oov)
