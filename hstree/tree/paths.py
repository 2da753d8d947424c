"""Paths from the root to labels, as the decisions of a batch.

The layers in NumPy, the linear model for scikit-learn and the torch module all use `Decisions`.
Compiled functions walk up the paths themselves (`hstree.kernels.layout`).
"""

from typing import NamedTuple

import numpy as np

from hstree._arrays import Array, Int64, Integer, segment_ids
from hstree.tree.codes import Codes


class Decisions(NamedTuple):
    """Decisions on the paths to the targets of a batch, as arrays (D,).

    Decisions on the same path are adjacent, from the root down.
    """

    item: Int64  #: batch item
    row: Int64  #: first weight row of the node
    width: Int64  #: number of children of the node
    branch: Int64  #: child taken, counted from 0
    code: Int64  #: number of the path, ascending

    def where(self, condition: Array) -> "tuple[Int64, Decisions]":
        """Return the positions of the decisions that a mask selects, and these decisions."""
        position = np.flatnonzero(condition)
        return position, Decisions(*(array[position] for array in self))


def path_decisions(codes: Codes, targets: Integer) -> tuple[Decisions, Int64]:
    """Return the decisions on all paths to targets (B,), and the batch item of each path (C,).

    A target is a label id, or ``V + n`` for node n if the codes include nodes; other targets raise
    IndexError. A label with several codes has one path per code. O(D) for D decisions.

    Examples
    --------
    >>> from hstree import Tree
    >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]])
    >>> decisions, code_item = path_decisions(Codes(tree), np.array([2, 0]))
    >>> decisions.item.tolist(), decisions.row.tolist(), decisions.branch.tolist()
    ([0, 0, 1], [0, 1, 0], [1, 1, 0])
    """
    last = len(codes.label_start) - 2
    if len(targets) and not 0 <= targets.min() <= targets.max() <= last:
        raise IndexError(
            f"targets must be from 0 to {last}, not from {targets.min()} to {targets.max()}"
        )

    # (D,) path and edge of each decision
    tree = codes.tree
    paths = codes.expand(targets)
    code = segment_ids(paths.decision_start)
    edge = paths.edge
    decisions = Decisions(
        item=paths.code_item[code],
        row=tree.edge_row[edge],
        width=tree.edge_width[edge],
        branch=tree.edge_branch[edge],
        code=code,
    )
    return decisions, paths.code_item
