"""Weight rows that a tree shares with one that was grown or pruned from it."""

from typing import NamedTuple

import numpy as np

from hstree._arrays import Array, Int64
from hstree.builders.prune import remainder
from hstree.errors import InputError
from hstree.tree import Tree


class CarriedRows(NamedTuple):
    """Weight rows that two trees share: k rows of the new tree, computed from rows of the old tree.

    A node that keeps all its children keeps its rows. A wide node keeps the rows of the remaining
    children; their probabilities are then conditional on the choice of one of these children. If
    two children remain, the node has one row, the difference of their rows.
    """

    new: Int64  #: (k,) rows of the new tree, ascending
    old: Int64  #: (k,) the same rows in the old tree
    minus: Int64  #: (k,) row of the old tree to subtract, -1 for none

    def carry(self, old: Array, new: Array) -> None:
        """Copy the rows of a parameter (R, ...) from the old tree to the new tree."""
        new[self.new] = old[self.old]
        is_difference = self.minus >= 0
        new[self.new[is_difference]] -= old[self.minus[is_difference]]


def carried_rows(old: Tree, new: Tree) -> CarriedRows:
    """Return the weight rows that a tree shares with one that was grown or pruned from it.

    The new tree may also result from several steps of growing and pruning. Labels are compared by
    name. The rows of a grown tree begin with all rows of the old tree. Raises InputError when the
    trees have different structures above their common labels.

    Examples
    --------
    >>> from hstree import grow, prune
    >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]])
    >>> carried_rows(tree, grow(tree, ["d", "e"])).new.tolist()
    [0, 1]
    >>> carried_rows(tree, prune(tree, ["b", "c"])).old.tolist()
    [1]
    """
    # Pruned to their common labels, the two trees must be equal.
    id_by_label = {label: i for i, label in enumerate(new.labels)}
    new_id = np.array([id_by_label.get(label, -1) for label in old.labels])  # (V,) of old labels
    is_common = np.isin(np.arange(new.n_labels), new_id)
    if not is_common.any():
        raise InputError(
            "the two trees have no label in common; give a tree and one grown or pruned from it"
        )
    before = remainder(old, new_id >= 0)
    after = remainder(new, is_common)
    child = np.where(before.child < 0, ~new_id[~np.minimum(before.child, -1)], before.child)
    same_start = np.array_equal(before.child_start, after.child_start)
    if not (same_start and np.array_equal(child, after.child)):
        raise InputError(
            "one tree was not made from the other by growing or pruning: they differ above their "
            f"{int(is_common.sum()):,} common labels; make the new tree with hstree.grow or "
            "hstree.prune"
        )
    if new.n_nodes == 0:
        none = np.empty(0, np.int64)
        return CarriedRows(none, none, none)

    # (E,) edge of the old tree for each edge, else -1; a node is carried if it has all of them
    old_edge = np.full(len(new.child), -1)
    old_edge[after.edges] = before.edges
    is_carried = np.logical_and.reduceat(old_edge >= 0, new.child_start[:-1])  # (N,)

    # (R,) edge of each row of the new tree; the row of a binary node belongs to its first edge
    row_edge = np.flatnonzero((new.edge_width > 2) | (new.edge_branch == 0))
    rows = np.flatnonzero(is_carried[new.edge_node[row_edge]])
    edge = row_edge[rows]

    # (E,) row of each edge of the old tree; the two edges of a binary node share a row
    old_row = old.edge_row + np.where(old.edge_width > 2, old.edge_branch, 0)
    is_narrowed = (new.edge_width[edge] == 2) & (old.edge_width[old_edge[edge]] > 2)
    second_edge = old_edge[np.minimum(edge + 1, len(old_edge) - 1)]
    minus = np.where(is_narrowed, old_row[second_edge], -1)
    return CarriedRows(rows, old_row[old_edge[edge]], minus)
