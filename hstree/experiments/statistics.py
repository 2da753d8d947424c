"""Statistics of a comparison, from the negative log-likelihoods (nll) of tokens.

Intervals of ratios of perplexities, mixtures with an n-gram model, and frequency bands of words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit

from hstree._arrays import Float64, Int64
from hstree.data.splits import Splits
from hstree.data.text_score import perplexity
from hstree.experiments.results import Band, Ratio, Spread

#: Minimum number of tokens per block, where a text has `FEWEST` blocks of that length.
LONG_BLOCK = 4000
#: Minimum number of tokens per block of a shorter text.
BLOCK = 1000
#: Minimum number of blocks for an interval.
FEWEST = 20
CONFIDENCE = 0.95
#: Smallest training count of each frequency band; a first band has the words that never occur.
_BAND_STARTS = 10 ** np.arange(18)


# Ratios of perplexities


def paired_ratio(nlls: Sequence[Float64], others: Sequence[Float64]) -> Ratio | None:
    """Return the ratio of the perplexities of two models with its interval; None without tokens.

    Parameters
    ----------
    nlls, others : sequence of float64 array (T,)
        Negative log-likelihood in nats of every token, in the order of the text; an array per
        random state, over which they are averaged first. One model may have scored fewer tokens:
        then the first ones of the text, on which both are compared.

    Notes
    -----
    The models are compared block by block. Neighbouring tokens share their topic, so that single
    tokens are not independent measurements, and blocks nearly are. Short blocks are correlated with
    their neighbours, which makes an interval too narrow. Therefore blocks have 4,000 tokens where
    the text has 20 of them, else 1,000; fewer than 20 are too few. The spread over random states is
    not covered.

    The T // `LONG_BLOCK` or T // `BLOCK` blocks are contiguous and of equal length, up to one
    token. The interval and p are those of a paired t-test over the blocks.
    """
    # (T,) difference in nll of each token
    n_tokens = min(len(nlls[0]), len(others[0]))
    difference = np.mean(nlls, axis=0)[:n_tokens] - np.mean(others, axis=0)[:n_tokens]

    # fewer than `FEWEST` blocks, or models that do not differ, have no interval
    n_long = len(difference) // LONG_BLOCK
    n_blocks = n_long if n_long >= FEWEST else len(difference) // BLOCK
    if not difference.size:
        return None
    if not difference.any():
        return Ratio(1.0, 1.0, 1.0, None, n_blocks)
    if n_blocks < FEWEST:
        return Ratio(math.exp(difference.mean()), None, None, None, n_blocks)

    # (blocks,) mean difference of each block
    by_block = np.array([block.mean() for block in np.array_split(difference, n_blocks)])
    mean = float(by_block.mean())
    error = float(by_block.std(ddof=1) / math.sqrt(n_blocks))
    if error == 0:
        return Ratio(math.exp(mean), math.exp(mean), math.exp(mean), None, n_blocks)

    # Student's t; `scipy.stats` would take half a second to import in every worker
    reach = error * float(stdtrit(n_blocks - 1, (1 + CONFIDENCE) / 2))
    p = 2 * float(stdtr(n_blocks - 1, -abs(mean) / error))
    return Ratio(math.exp(mean), math.exp(mean - reach), math.exp(mean + reach), p, n_blocks)


def spread_of_perplexities(nlls: Sequence[Float64], tokens: Any = slice(None)) -> Spread:
    """Return the spread over seeds of the perplexity of selected tokens (T,)."""
    selected = [nll[tokens] for nll in nlls]
    return Spread.of([perplexity(float(nll.sum()), len(nll)) for nll in selected])


# Mixtures


def mixed_nll(weight: float, nll: Float64, other: Float64) -> Float64:
    """Return the nll (T,) of the mixture of two models' probabilities, the first by `weight`.

    It has the first tokens, which both models scored.
    """
    n_tokens = min(len(nll), len(other))
    with np.errstate(divide="ignore"):
        mixed: Float64 = -np.logaddexp(
            np.log(weight) - nll[:n_tokens], np.log1p(-weight) - other[:n_tokens]
        )
    return mixed


def best_weight(nll: Float64, other: Float64) -> float:
    """Return the weight of the first model whose mixture has the lowest total nll, from 0 to 1.

    The total is convex in the weight.
    """
    if not min(len(nll), len(other)):
        return 1.0
    from scipy.optimize import minimize_scalar  # takes a third of a second to import

    fitted = minimize_scalar(
        lambda weight: float(mixed_nll(weight, nll, other).sum()),
        bounds=(0, 1),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(fitted.x)


# Words by frequency


def frequency_bands(splits: Splits) -> tuple[list[Band], Int64]:
    """Group the words of the vocabulary by powers of ten of their training counts.

    Counts are 0, 1 to 9, 10 to 99 and so on; test tokens out of the vocabulary are a band of
    their own. Bands without a word and without a token are left out. Returns the bands, and the
    index of each test token's band (T,).
    """
    # (V,) band of each word
    band_of_word = np.searchsorted(_BAND_STARTS, splits.train.counts, side="right")

    # (T,) band of each test token
    test = splits.test.with_vocabulary(splits.train.vocabulary)
    outside = len(_BAND_STARTS) + 1
    band_of_token = np.where(test.is_oov(), outside, band_of_word[test.ids()])

    # least and most counts of the words of each band
    ranges: list[tuple[int, int] | tuple[None, None]] = [(0, 0)]
    ranges += [(start, 10 * start - 1) for start in _BAND_STARTS.tolist()]
    ranges.append((None, None))

    words = np.bincount(band_of_word, minlength=len(ranges))
    tokens = np.bincount(band_of_token, minlength=len(ranges))
    used = np.flatnonzero(words + tokens)
    bands = []
    for band in used.tolist():
        least, most = ranges[band]
        bands.append(Band(least=least, most=most, words=int(words[band]), tokens=int(tokens[band])))
    return bands, np.searchsorted(used, band_of_token)
