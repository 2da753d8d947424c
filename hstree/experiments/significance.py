"""Interval and p value of the ratio of two models' perplexities on texts of a kind.

Two models that scored the same tokens are compared block by block: neighbouring tokens share
their topic, so that single tokens are not independent measurements, and blocks nearly are.
Short blocks are correlated with their neighbours, which makes an interval too narrow: blocks have
4,000 tokens where the text has 20 of them, else 1,000; fewer than 20 are too few. The spread over
random states is not covered.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from hstree._arrays import Float64

#: Minimum number of tokens per block: where a text has `FEWEST` blocks of that length, and else.
LONG_BLOCK, BLOCK = 4000, 1000
#: Minimum number of blocks for an interval.
FEWEST = 20
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ratio:
    """Ratio of two models' perplexities.

    Attributes
    ----------
    ratio : float
        exp of the mean difference in nll per token over blocks.
    low, high : float or None
        95% interval; None if there are too few blocks.
    p : float or None
        p value of the two-sided paired t-test that the ratio is 1; None if there are too few
        blocks, or all differ by the same amount.
    blocks : int
        Number of blocks; fewer than `FEWEST` are too few.
    """

    ratio: float
    low: float | None
    high: float | None
    p: float | None
    blocks: int

    def __post_init__(self) -> None:
        """Refuse half an interval, as a damaged file may have it."""
        if (self.low is None) != (self.high is None):
            raise ValueError("an interval has one bound; it must have both, or none")


def paired_ratio(nlls: Sequence[Float64], others: Sequence[Float64]) -> Ratio | None:
    """Compare the perplexities of two models on the same tokens, None without tokens.

    Parameters
    ----------
    nlls, others : sequence of float64 array (T,)
        Negative log-likelihood in nats of every token, in the order of the text; an array per
        random state, over which they are averaged first.

    Notes
    -----
    The T // `LONG_BLOCK` or T // `BLOCK` blocks are contiguous and of equal length, up to one
    token. The interval and p are those of a paired t-test over the blocks.
    """
    # (T,) difference in nll of each token
    difference = np.mean(nlls, axis=0) - np.mean(others, axis=0)
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
    mean, error = float(by_block.mean()), float(by_block.std(ddof=1) / math.sqrt(n_blocks))
    if error == 0:
        return Ratio(math.exp(mean), math.exp(mean), math.exp(mean), None, n_blocks)
    # Student's t; `scipy.stats` would take half a second to import in every worker
    reach = error * float(stdtrit(n_blocks - 1, (1 + CONFIDENCE) / 2))
    p = 2 * float(stdtr(n_blocks - 1, -abs(mean) / error))
    return Ratio(math.exp(mean), math.exp(mean - reach), math.exp(mean + reach), p, n_blocks)
