"""Complete trees: every level full but the last."""

from __future__ import annotations

import numpy as np

from hstree._ragged import offsets
from hstree._typing import Int64
from hstree.errors import OptionError


def complete_tree(n_leaves: int, arity: int = 2) -> tuple[Int64, Int64]:
    """Return the children of a complete tree with leaves numbered from left to right.

    Parameters
    ----------
    n_leaves : int
        V, at least 1.
    arity : int, default 2
        Number of children of a node, at least 2; V and more give the same tree.

    Returns
    -------
    child_start : int64 array (N + 1,)
    child : int64 array (E,)
        As in `Tree`; leaf i is ``~i``. Nodes are numbered level by level. Depths of leaves differ
        by at most one, the shallow ones first. Where V does not fit the arity, the first node of
        the last level has fewer children.

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
    # `width` positions on the deepest full level, `above` nodes on the levels over it
    width, above = 1, 0
    while width * arity <= n_leaves:
        above += width
        width *= arity
    # the last positions of that level are nodes, over the leaves that are left
    split = -(-(n_leaves - width) // (arity - 1))
    shallow = width - split

    child = [
        np.arange(1, above),
        ~np.arange(shallow),
        np.arange(max(above, 1), above + split),  # node 0, the root, has no parent
        ~np.arange(shallow, n_leaves),
    ]
    fan_out = np.full(above + split, arity, np.int64)
    if split:
        fan_out[above] -= split * (arity - 1) - (n_leaves - width)
    return offsets(fan_out), np.concatenate(child)
