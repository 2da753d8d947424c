"""The complete tree: every level full but the last. Shape only; who stands where is not here."""

from __future__ import annotations

import numpy as np

from hstree._ragged import offsets
from hstree._typing import Int64
from hstree.errors import OptionError


def complete_tree(n_leaves: int, arity: int = 2) -> tuple[Int64, Int64]:
    """Lay out a complete tree whose leaves are numbered from left to right.

    Parameters
    ----------
    n_leaves : int
        V, at least 1.
    arity : int, default 2
        Children of each node, at least 2; V and more give the same tree.

    Returns
    -------
    child_start : int64 array (N + 1,)
    child : int64 array (E,)
        As in `Tree`: leaf i is ``~i``. Nodes are numbered level by level. Depths of leaves differ
        by at most one, and the shallow ones come first. Where V and the arity do not fit, the
        first node of the last level has fewer children.

    Raises
    ------
    OptionError
        When `arity` is below 2.

    Notes
    -----
    O(V). N = ceil((V - 1) / (arity - 1)).

    Examples
    --------
    >>> start, child = complete_tree(5)
    >>> start.tolist(), child.tolist()
    ([0, 2, 4, 6, 8], [1, 2, -1, -2, -3, 3, -4, -5])
    """
    if arity < 2:
        raise OptionError(f"arity must be 2 or more, not {arity}")
    if n_leaves == 1:
        return np.zeros(1, np.int64), np.empty(0, np.int64)

    arity = min(arity, n_leaves)
    # `width` places on the deepest level that is full; `above` nodes on the levels over it.
    width, above = 1, 0
    while width * arity <= n_leaves:
        above += width
        width *= arity
    # The last places of that level are nodes, so that what is left over hangs under them.
    split = -(-(n_leaves - width) // (arity - 1))
    shallow = width - split

    child = [
        np.arange(1, above),
        ~np.arange(shallow),
        np.arange(max(above, 1), above + split),  # node 0, the root, is nobody's child
        ~np.arange(shallow, n_leaves),
    ]
    fan_out = np.full(above + split, arity, np.int64)
    if split:
        fan_out[above] -= split * (arity - 1) - (n_leaves - width)
    return offsets(fan_out), np.concatenate(child)
