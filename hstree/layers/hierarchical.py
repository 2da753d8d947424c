"""Hierarchical softmax: the output layer of every tree, the flat softmax among them.

``P(label | h)`` is the sum over the label's codes of the product of the branch probabilities along
each: a log-sum-exp over codes of sums of log-probabilities. The decisions of a batch are computed
in `node_groups`; top-k search is in `top_k`, sampling in `sampling`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from hstree._typing import Array, Float64, Int64, Integer
from hstree.layers import kernels
from hstree.layers.base import Gradients, OutputLayer, ParameterGradient
from hstree.layers.node_groups import (
    CROWDED,
    NARROW,
    BinaryNodes,
    Decisions,
    Group,
    NarrowNodes,
    Scratch,
    WideNodes,
)
from hstree.layers.sampling import sample
from hstree.layers.top_k import top_k
from hstree.tree import Tree
from hstree.tree.codes import Codes
from hstree.tree.weight_rows import row_curvature, unigram_bias

#: Elements of the (E, batch) table of edge log-probabilities that `log_prob` holds at a time.
TABLE_LIMIT = 1 << 24


class HierarchicalSoftmax(OutputLayer):
    """Hierarchical softmax over a tree.

    Parameters
    ----------
    tree : Tree
    dim : int
        d, the length of hidden vectors.
    counts : int array (V,), optional
        Training counts for the starting biases; `tree.counts` by default, 1 each without any.
    dtype : float dtype, default float32

    Attributes
    ----------
    weight : float array (R, d)
        Node vectors, zero at the start; rows as in `Tree.row_start`.
    bias : float array (R,)
        Biases, such that the untrained layer is the unigram distribution of `counts`.
    codes : Codes
    """

    def __init__(
        self, tree: Tree, dim: int, *, counts: Integer | None = None, dtype: Any = np.float32
    ) -> None:
        super().__init__(tree.n_labels, dim)
        self.tree, self.codes = tree, Codes(tree)
        bias = unigram_bias(tree, tree.counts if counts is None else counts)
        self.weight: Array = np.zeros((len(bias), dim), dtype)
        self.bias: Array = bias.astype(dtype)
        # (E,) group of the node that each edge leaves: an index into `_groups`
        self._edge_group = np.digitize(tree.edge_width, (3, NARROW + 1)).astype(np.int8)
        self._groups: tuple[Callable[[], Group], ...] = (
            BinaryNodes,
            NarrowNodes,
            partial(WideNodes, Scratch()),
        )

    def parameters(self) -> dict[str, Array]:
        """Return the trained arrays, by the names that a saved model gives them."""
        return {"node_weight": self.weight, "node_bias": self.bias}

    @classmethod
    def shapes(cls, source: Tree, dim: int) -> dict[str, tuple[int, ...]]:  # type: ignore[override]
        """Return the shapes of `parameters` of a layer."""
        rows = int(source.row_start[-1])
        return {"node_weight": (rows, dim), "node_bias": (rows,)}

    def curvature(self, counts: Array) -> dict[str, Float64]:
        """Return the mean curvature of the loss along each row (`row_curvature`)."""
        curvature = row_curvature(self.tree, counts)
        return {"node_weight": curvature, "node_bias": curvature}

    def nll(self, hidden: Array, targets: Integer) -> Float64:
        """Return the negative log-likelihoods of targets in nats, a float64 array (B,).

        Parameters
        ----------
        hidden : float array (B, d)
        targets : int array (B,)
            Label ids.
        """
        return _Pass(self, hidden, targets).nll

    def loss(
        self, hidden: Array, targets: Integer, rng: np.random.Generator | None = None
    ) -> tuple[Float64, Gradients]:
        """Return what `nll` does, and the gradients of the sum; `rng` is not used."""
        forward = _Pass(self, hidden, targets)
        return forward.nll, forward.gradients()

    def log_prob(self, hidden: Array) -> Float64:
        """Return the log-probabilities of all labels, a float64 array (B, V).

        One dense product for all logits, then one pass per level: O(B (R d + E)).
        """
        result = np.empty((len(hidden), self.n_labels))
        step = max(1, TABLE_LIMIT // max(1, len(self.tree.child)))
        for a in range(0, len(hidden), step):
            logits = self.weight @ hidden[a : a + step].T + self.bias[:, None]
            result[a : a + step] = self.log_prob_of_logits(logits)
        return result

    def log_prob_of_logits(self, logits: Array) -> Float64:
        """Return the log-probabilities (B, V) of all labels from the logits (R, B) of all rows."""
        tree, codes = self.tree, self.codes
        if tree.n_nodes == 0:
            return np.zeros((logits.shape[1], 1))
        # (E, B) of each branch, then of the path from the root to the end of each edge
        log_prob = kernels.branch_log_prob(logits, tree.row_start, tree.child_start)
        tree.sum_down(log_prob)
        # (C, B) of each code
        log_prob = log_prob[codes.leaf_edge]
        if tree.has_single_codes:
            return log_prob.T
        return np.logaddexp.reduceat(log_prob, codes.label_start[:-1], axis=0).T

    def top_k(self, hidden: Array, k: int) -> tuple[Int64, Float64]:
        """Return the k most probable labels of each hidden vector by best-first search.

        Returns
        -------
        labels : int64 array (B, min(k, V))
            Most probable first; ties by label id (`hstree.layers.top_k`).
        log_prob : float64 array (B, min(k, V))

        Raises
        ------
        OptionError
            When `k` is below 1.
        """
        return top_k(self.codes, self.weight, self.bias, hidden, k, self.log_prob)

    def sample(self, hidden: Array, rng: np.random.Generator) -> Int64:
        """Draw one label for each hidden vector by descending the tree; int64 array (B,)."""
        return sample(self.tree, self.weight, self.bias, hidden, rng)


class _Pass:
    """Forward and backward pass of one batch."""

    def __init__(self, layer: HierarchicalSoftmax, hidden: Array, targets: Integer) -> None:
        self.layer, self.hidden, tree = layer, hidden, layer.tree
        if tree.n_nodes == 0:
            self.nll = np.zeros(len(targets))
            return
        expansion = layer.codes.expand(targets)
        # (D,) code of each decision, (C,) batch item of each code
        self.code, self.item = expansion.decision_code, expansion.code_item
        self.groups: list[tuple[Group, Int64 | slice]] = []
        # (C,) log-probability of each code
        self.code_log_prob = np.zeros(len(self.item))
        for group, decisions in self._split(expansion.edge):
            edge, code = expansion.edge[decisions], self.code[decisions]
            taken = Decisions(
                self.item[code], tree.edge_row[edge], tree.edge_branch[edge], tree.edge_width[edge]
            )
            log_prob = group.forward(layer.weight, layer.bias, hidden, taken)
            self.code_log_prob += np.bincount(code, weights=log_prob, minlength=len(self.item))
            self.groups.append((group, decisions))
        if tree.has_single_codes:
            self.nll = -self.code_log_prob
        else:
            self.nll = -np.logaddexp.reduceat(self.code_log_prob, expansion.code_start[:-1])

    def _split(self, edge: Int64) -> Iterator[tuple[Group, Int64 | slice]]:
        """Yield the groups that have decisions, and the indices of these in `edge`."""
        layer, tree = self.layer, self.layer.tree
        group = layer._edge_group[edge]
        if not group.any():
            yield layer._groups[0](), slice(None)
            return
        # Narrow nodes with many scores in the batch are computed as wide ones.
        narrow = np.flatnonzero(group == 1)
        node = tree.edge_node[edge[narrow]]
        is_crowded = np.bincount(node)[node] * tree.edge_width[edge[narrow]] >= CROWDED
        group[narrow[is_crowded]] = 2
        for number, new_group in enumerate(layer._groups):
            decisions = np.flatnonzero(group == number)
            if decisions.size:
                yield new_group(), decisions

    def gradients(self) -> Gradients:
        """Return the gradients of the summed loss.

        A decision has the weight of its code's share of the label's probability, which is 1 where
        the label has one code.
        """
        tree, hidden = self.layer.tree, self.hidden
        parameters: list[ParameterGradient] = []
        if tree.n_nodes == 0:
            return Gradients(np.zeros_like(hidden), parameters)
        share = None if tree.has_single_codes else self._share_of_decision()
        grad_hidden = None
        for group, decisions in self.groups:
            group_share = None if share is None else share[decisions]
            grad, rows = group.backward(self.layer.weight, hidden, group_share)
            grad_hidden = grad if grad_hidden is None else grad_hidden + grad
            parameters += [
                ParameterGradient("node_weight", rows.rows, rows.weight),
                ParameterGradient("node_bias", rows.rows, rows.bias),
            ]
        return Gradients(np.zeros_like(hidden) if grad_hidden is None else grad_hidden, parameters)

    def _share_of_decision(self) -> Array:
        share = np.exp(self.code_log_prob + self.nll[self.item])
        return share[self.code].astype(self.hidden.dtype)
