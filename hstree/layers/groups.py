"""The three ways to compute a decision; each node is in one of them, by its number of children.

- two children: one logistic decision, one weight row; pairs laid out flat (`BinaryNodes`);
- 3 to `NARROW` children: all rows of the node, laid out flat, a softmax a segment (`NarrowNodes`);
- more, or fewer at a node where a batch crowds: the batch items grouped by node and one matrix
  product a group (`wide.WideNodes`).

Each takes the decisions of a batch that fall to it, returns their log-probabilities, and keeps
what it needs to carry back the weight that each decision has in the loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hstree._ragged import offsets, ranges
from hstree._typing import Array, Int64
from hstree.layers import decision, pairs
from hstree.layers.pairs import RowGradient

#: Up to this many children a node's softmax is laid out flat; above, it is a matrix product.
NARROW = 32
#: Unless a batch wants this many scores of the node.
CROWDED = 512


@dataclass(frozen=True)
class Decisions:
    """The decisions of a batch that fall to one group of nodes, sorted by batch item.

    Attributes
    ----------
    item : int64 array (D,)
        The batch item that each decision belongs to.
    row : int64 array (D,)
        The first weight row of the deciding node.
    branch : int64 array (D,)
        The child taken, counted from 0.
    width : int64 array (D,)
        The number of children of the node.
    """

    item: Int64
    row: Int64
    branch: Int64
    width: Int64


class Group(Protocol):
    """One way to compute decisions."""

    def forward(self, weight: Array, bias: Array, hidden: Array, taken: Decisions) -> Array:
        """Return the log-probabilities (D,) of the decisions, and keep what `backward` needs."""

    def backward(
        self, weight: Array, hidden: Array, share: Array | None
    ) -> tuple[Array, list[RowGradient]]:
        """Return the gradients by the hidden vectors (B, d) and by the rows.

        `share` (D,) is the weight of each decision in the loss; None means 1 for all.
        """


class BinaryNodes:
    """Nodes with two children."""

    def forward(self, weight: Array, bias: Array, hidden: Array, taken: Decisions) -> Array:
        """Return the log-probabilities (D,) of the decisions."""
        self._taken = taken
        z = pairs.score(weight, bias, hidden, taken.item, taken.row)
        log_prob, self._error = decision.binary(z, taken.branch == 0)
        return log_prob

    def backward(
        self, weight: Array, hidden: Array, share: Array | None
    ) -> tuple[Array, list[RowGradient]]:
        """Return the gradients by the hidden vectors (B, d) and by the rows."""
        error = self._error if share is None else self._error * share
        start = offsets(np.bincount(self._taken.item, minlength=len(hidden)))
        grad_hidden, by_rows = pairs.backward(weight, hidden, start, self._taken.row, error)
        return grad_hidden, [by_rows]


class NarrowNodes:
    """Nodes with 3 to `NARROW` children: one pair a child, a softmax over each run of pairs."""

    def forward(self, weight: Array, bias: Array, hidden: Array, taken: Decisions) -> Array:
        """Return the log-probabilities (D,) of the decisions."""
        self._start = offsets(taken.width)
        self._row = ranges(taken.row, self._start)
        self._item = np.repeat(taken.item, taken.width)
        self._chosen = self._start[:-1] + taken.branch
        z = pairs.score(weight, bias, hidden, self._item, self._row)
        self._log_prob = decision.segment_log_softmax(z, self._start)
        chosen: Array = self._log_prob[self._chosen]
        return chosen

    def backward(
        self, weight: Array, hidden: Array, share: Array | None
    ) -> tuple[Array, list[RowGradient]]:
        """Return the gradients by the hidden vectors (B, d) and by the rows."""
        error = np.exp(self._log_prob)
        error[self._chosen] -= 1
        if share is not None:
            error *= np.repeat(share, np.diff(self._start))
        start = offsets(np.bincount(self._item, minlength=len(hidden)))
        grad_hidden, by_rows = pairs.backward(weight, hidden, start, self._row, error)
        return grad_hidden, [by_rows]
