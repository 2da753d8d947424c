"""Bins of equal mass, as RNNLM makes its classes of words sorted by count."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hstree._typing import Int64


def equal_mass_bins(mass: NDArray[np.generic], n_bins: int) -> Int64:
    """Cut a sequence into bins of about the same mass.

    Parameters
    ----------
    mass : array (m,)
        Zero or more, in the order in which the bins are filled; where all are zero, each counts
        as one.
    n_bins : int

    Returns
    -------
    int64 array (m,)
        The bin of each item, from 0, none of them left out before the last one. A bin is closed
        by the item with which the mass so far is above its share, and at most one bin by each
        item: what is heavier than a bin does not leave empty ones [1]_.

    References
    ----------
    .. [1] T. Mikolov et al., "Extensions of recurrent neural network language model", ICASSP
       2011, section 4; `sortVocab` and the class assignment in RNNLM.

    Examples
    --------
    >>> equal_mass_bins(np.array([6, 1, 1, 1, 1, 1, 1]), 3).tolist()
    [0, 1, 1, 1, 2, 2, 2]
    """
    weight = mass.astype(np.float64)
    if not weight.any():
        weight = np.ones(len(mass))
    so_far = np.cumsum(weight)
    due = np.ceil(so_far * n_bins / so_far[-1]).astype(np.int64) - 1
    due = np.clip(due, 0, n_bins - 1)
    # bins[i + 1] = min(bins[i] + 1, due[i]) from bins[0] = 0, as one running minimum.
    place = np.arange(len(mass))
    bins = np.zeros(len(mass), np.int64)
    bins[1:] = (np.minimum.accumulate(due - place) + place)[:-1]
    return np.minimum(bins, place)
