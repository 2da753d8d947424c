"""Statistics of a comparison, from the negative log-likelihoods (nll) of tokens.

These are ratios of perplexities with intervals, mixtures with an n-gram model, and frequency bands
of words.
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

#: Minimum number of tokens per block, if a text has `FEWEST` blocks of this length.
LONG_BLOCK = 4000
#: Minimum number of tokens per block of a shorter text.
BLOCK = 1000
#: Minimum number of blocks for an interval.
FEWEST = 20
CONFIDENCE = 0.95
#: Smallest training count of each frequency band after the first, which has the count 0.
_BAND_STARTS = 10 ** np.arange(18)


# Ratios of perplexities


def paired_ratio(nlls: Sequence[Float64], others: Sequence[Float64]) -> Ratio | None:
    """Return the ratio of the perplexities of two models, with its interval; None without tokens.

    Parameters
    ----------
    nlls, others : sequence of float64 array (T,)
        Negative log-likelihood in nats of every token, in the order of the text; one array per
        random state, over which the mean is taken first. If one model has scored fewer tokens, both
        are compared on these, the first tokens of the text.

    Notes
    -----
    The models are compared block by block. Neighbouring tokens share their topic, so single tokens
    are not independent measurements, but blocks nearly are. Short blocks are correlated with their
    neighbours, which makes intervals too narrow. Therefore blocks have 4,000 tokens if the text has
    at least 20 such blocks, and 1,000 otherwise. Fewer than 20 blocks give no interval. The
    interval does not include the variation over random states.

    The T // `LONG_BLOCK` or T // `BLOCK` blocks are contiguous, and their lengths differ by at most
    one token. The interval and p come from a paired t-test over the blocks.
    """
    # (T,) difference in nll of each token
    n_tokens = min(len(nlls[0]), len(others[0]))
    difference = np.mean(nlls, axis=0)[:n_tokens] - np.mean(others, axis=0)[:n_tokens]

    # There is no interval for fewer than `FEWEST` blocks or for equal models
    n_long = len(difference) // LONG_BLOCK
    n_blocks = n_long if n_long >= FEWEST else len(difference) // BLOCK
    if not difference.size:
        return None
    if not difference.any():
        return Ratio(1.0, 1.0, 1.0, None, n_blocks)
    if n_blocks < FEWEST:
        return Ratio(math.exp(difference.mean()), None, None, None, n_blocks)

    # (blocks,) mean difference in each block
    by_block = np.array([block.mean() for block in np.array_split(difference, n_blocks)])
    mean = float(by_block.mean())
    error = float(by_block.std(ddof=1) / math.sqrt(n_blocks))
    if error == 0:
        return Ratio(math.exp(mean), math.exp(mean), math.exp(mean), None, n_blocks)

    # Student's t distribution; importing `scipy.stats` would take half a second per worker
    reach = error * float(stdtrit(n_blocks - 1, (1 + CONFIDENCE) / 2))
    p = 2 * float(stdtr(n_blocks - 1, -abs(mean) / error))
    return Ratio(math.exp(mean), math.exp(mean - reach), math.exp(mean + reach), p, n_blocks)


def spread_of_perplexities(nlls: Sequence[Float64], tokens: Any = slice(None)) -> Spread:
    """Return the mean and spread over seeds of the perplexity of selected tokens (T,)."""
    selected = [nll[tokens] for nll in nlls]
    return Spread.of([perplexity(float(nll.sum()), len(nll)) for nll in selected])


# Mixtures


def mixed_nll(weight: float, nll: Float64, other: Float64) -> Float64:
    """Return the nll (T,) of a mixture of two models, in which the first has the given weight.

    The result covers the first tokens, which both models have scored.
    """
    n_tokens = min(len(nll), len(other))
    with np.errstate(divide="ignore"):
        mixed: Float64 = -np.logaddexp(
            np.log(weight) - nll[:n_tokens], np.log1p(-weight) - other[:n_tokens]
        )
    return mixed


def best_weight(nll: Float64, other: Float64) -> float:
    """Return the weight of the first model, from 0 to 1, that minimises the nll of the mixture.

    The total nll is convex in the weight.
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

    The bands are 0, 1 to 9, 10 to 99 and so on, and one band for out-of-vocabulary test tokens.
    Bands without words and tokens are omitted. Returns the bands, and the index (T,) of the band of
    each test token.
    """
    # (V,) band of each word
    band_of_word = np.searchsorted(_BAND_STARTS, splits.train.counts, side="right")

    # (T,) band of each test token
    test = splits.test.with_vocabulary(splits.train.vocabulary)
    outside = len(_BAND_STARTS) + 1
    band_of_token = np.where(test.is_oov(), outside, band_of_word[test.ids()])

    # Minimum and maximum count of each band
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
