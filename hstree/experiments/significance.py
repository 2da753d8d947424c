"""Whether one model is better than another on texts of a kind, or only on the words of this one.

Two models that scored the same tokens are compared block by block: neighbouring tokens share
their topic, so that single tokens are no independent measurements, and blocks nearly are. What
the figures do not cover is the spread over random states, which is a matter of training.

Blocks have 1,000 tokens or more: shorter ones are correlated with their neighbours, which makes
an interval too narrow. A text of fewer than 20 such blocks is too short for an interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from hstree._typing import Float64

#: Tokens of a block, at least.
BLOCK = 1000
#: Blocks that an interval takes, at least.
FEWEST = 20
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ratio:
    """How many times the perplexity of one model is that of another.

    Attributes
    ----------
    ratio : float
        exp of the mean over blocks of the difference in nll a token.
    low, high : float or None
        Its 95% interval; None where the text is too short to tell.
    p : float or None
        Of the two-sided paired t-test that the ratio is 1; None where the text is too short to
        tell, or all blocks differ by the same amount.
    blocks : int
        Blocks of `BLOCK` tokens or more; fewer than `FEWEST` are too few to tell.
    """

    ratio: float
    low: float | None
    high: float | None
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
        None where there is no token.

    Notes
    -----
    Blocks are contiguous and of equal length, up to one token: T // `BLOCK` of them. The interval
    and p are those of a paired t-test over the blocks. With fewer than `FEWEST` of them there is
    the ratio of the perplexities alone, unless the models gave every token the same.
    """
    difference = np.mean(own, axis=0) - np.mean(other, axis=0)
    n_blocks = len(difference) // BLOCK
    if not difference.size:
        return None
    if not difference.any():
        return Ratio(1.0, 1.0, 1.0, None, n_blocks)
    if n_blocks < FEWEST:
        return Ratio(math.exp(difference.mean()), None, None, None, n_blocks)
    by_block = np.array([block.mean() for block in np.array_split(difference, n_blocks)])
    mean, error = float(by_block.mean()), float(stats.sem(by_block))
    if error == 0:
        return Ratio(math.exp(mean), math.exp(mean), math.exp(mean), None, n_blocks)
    reach = error * float(stats.t.ppf((1 + CONFIDENCE) / 2, n_blocks - 1))
    p = 2 * float(stats.t.sf(abs(mean) / error, n_blocks - 1))
    return Ratio(math.exp(mean), math.exp(mean - reach), math.exp(mean + reach), p, n_blocks)
