"""What Kneser-Ney smoothing takes from every count: one discount, or three."""

from __future__ import annotations

import numpy as np

from hstree._typing import Float64, Int64

#: The discounts of an order whose counts of counts do not give any.
FALLBACK = (0.5, 1.0, 1.5)


def modified_discounts(counts: Int64) -> Float64:
    """Estimate the discounts of modified Kneser-Ney smoothing from an order's counts.

    With n_i the number of n-grams of count i, and ``Y = n_1 / (n_1 + 2 n_2)``, the discount of
    an n-gram of count i is ``i - (i + 1) Y n_{i+1} / n_i``; counts above 3 take that of 3.
    From Chen & Goodman (1999), section 3.

    Parameters
    ----------
    counts : int64 array (G,)
        All at least 1.

    Returns
    -------
    float64 array (3,)
        For counts 1, 2, and 3 or more. Where one of n_1 to n_4 is zero, or a discount is not
        above 0, as happens on small texts, all three are those of `FALLBACK`.

    Examples
    --------
    >>> modified_discounts(np.repeat([1, 2, 3, 4], [40, 20, 10, 6])).tolist()
    [0.5, 1.25, 1.8]
    """
    n = np.bincount(np.minimum(counts, 5), minlength=6)[1:5].astype(np.float64)
    if not n.all():
        return np.array(FALLBACK)
    i = np.arange(1, 4)
    found = i - (i + 1) * n[0] / (n[0] + 2 * n[1]) * n[1:] / n[:-1]
    return found if (found > 0).all() else np.array(FALLBACK)
