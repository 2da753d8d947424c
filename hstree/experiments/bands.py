"""Perplexity by how often a word stands in the training text, to see which words a tree helps.

A band is all words of about the same count; every row of a comparison has the same bands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hstree._typing import Float64, Int64
from hstree.data.text_score import perplexity
from hstree.experiments.evaluation import Splits

#: The least count of each band but the first, which is of words that never stand there.
_LEAST = 10 ** np.arange(18)


@dataclass(frozen=True)
class Bands:
    """The test tokens, by the training count of the word that each is.

    Attributes
    ----------
    bands : list of dict
        ``least`` and ``most`` count, ``words`` of the vocabulary, ``tokens`` of the test part.
        The bounds of the last band are None where it is of tokens out of the vocabulary.
    of_token : int64 array (T,)
        Which band each test token is in.
    """

    bands: list[dict[str, Any]]
    of_token: Int64

    def perplexities(self, nlls: Sequence[Float64]) -> list[float | None]:
        """Return the perplexity in each band, the mean over random states.

        Parameters
        ----------
        nlls : sequence of float64 array (T,)
            The nll of every test token, one array for each random state.
        """
        found: list[float | None] = []
        for number, band in enumerate(self.bands):
            here = self.of_token == number
            own = [perplexity(float(nll[here].sum()), band["tokens"]) for nll in nlls]
            found.append(float(np.mean(own)) if band["tokens"] else None)
        return found


def frequency_bands(splits: Splits) -> Bands:
    """Band the words of the training part's vocabulary by powers of ten of their counts.

    Counts are 0, 1 to 9, 10 to 99 and so on; test tokens out of the vocabulary are a band of
    their own. Bands without a word and without a token are left out.
    """
    vocabulary = splits.train.vocabulary
    band_of_word = np.searchsorted(_LEAST, splits.train.counts, side="right")
    ids = splits.test.with_vocabulary(vocabulary).ids(slice(None))
    outside = len(_LEAST) + 1
    band_of_token = np.where(ids < 0, outside, band_of_word[ids])
    words = np.bincount(band_of_word, minlength=outside + 1)
    tokens = np.bincount(band_of_token, minlength=outside + 1)
    used = np.flatnonzero(words + tokens)
    bands = [
        {**_bounds(int(band)), "words": int(words[band]), "tokens": int(tokens[band])}
        for band in used
    ]
    return Bands(bands, np.searchsorted(used, band_of_token))


def _bounds(band: int) -> dict[str, int | None]:
    if band > len(_LEAST):
        return {"least": None, "most": None}
    return {"least": 10 ** (band - 1) if band else 0, "most": 10**band - 1}
