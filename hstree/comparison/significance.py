"""Whether one model is better than another on texts of a kind, or only on the words of this one.

Two models that scored the same tokens are compared block by block: neighbouring tokens share
their topic, so that single tokens are no independent measurements, and blocks nearly are. What
the figures do not cover is the spread over random states, which is a matter of training.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Float64 = NDArray[np.float64]

#: Tokens of a block, where the text is long enough for `FEWEST` of them.
BLOCK = 1000
FEWEST = 20
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ratio:
    """How many times the perplexity of one model is that of another.

    Attributes
    ----------
    ratio : float
        exp of the mean over blocks of the difference in nll a token.
    low, high : float
        Its 95% interval.
    p : float or None
        Of the two-sided paired t-test that the ratio is 1; None where all blocks differ by the
        same amount.
    blocks : int
    """

    ratio: float
    low: float
    high: float
    p: float | None
    blocks: int


def paired_ratio(own: Sequence[Float64], other: Sequence[Float64]) -> Ratio | None:
    """Compare two models by what they gave the same tokens.

    Parameters
    ----------
    own, other : sequence of float64 array (T,)
        The nll in nats of every token in the order of the text; one array for each random
        state, over which they are averaged first. Paired state by state, the mean of the
        differences is the difference of these means.

    Returns
    -------
    Ratio or None
        None where there are fewer than two tokens.

    Notes
    -----
    Blocks are contiguous and of equal length, up to one token: T // 1000 of them, at least 20
    (or T). The interval and p are those of a paired t-test over the blocks.
    """
    difference = np.mean(own, axis=0) - np.mean(other, axis=0)
    n_blocks = min(len(difference), max(FEWEST, len(difference) // BLOCK))
    if n_blocks < 2:
        return None
    by_block = np.array([block.mean() for block in np.array_split(difference, n_blocks)])
    mean, error = float(by_block.mean()), float(stats.sem(by_block))
    if error == 0:
        return Ratio(math.exp(mean), math.exp(mean), math.exp(mean), None, n_blocks)
    reach = error * float(stats.t.ppf((1 + CONFIDENCE) / 2, n_blocks - 1))
    p = 2 * float(stats.t.sf(abs(mean) / error, n_blocks - 1))
    return Ratio(math.exp(mean), math.exp(mean - reach), math.exp(mean + reach), p, n_blocks)
