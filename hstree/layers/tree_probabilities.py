"""Parameters of a hierarchical softmax, and the log-probabilities of all labels.

Top-k search and sampling work on these; the training of the parameters is in `hierarchical`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hstree._typing import Array, Float64, Integer
from hstree.layers import kernels
from hstree.tree import Tree
from hstree.tree.codes import Codes
from hstree.tree.weight_rows import unigram_bias

#: Elements of the (E, batch) table of edge log-probabilities that `log_prob` holds at a time.
TABLE_LIMIT = 1 << 24


class TreeProbabilities:
    """Node vectors and biases of a tree, and the probabilities that they give its labels.

    Parameters
    ----------
    tree : Tree
    dim : int
        d, the length of a hidden vector.
    counts : int array (V,), optional
        Training counts for the starting biases; `tree.counts` by default, all ones without any.
    dtype : float dtype, default float32

    Attributes
    ----------
    weight : float array (R, d)
        Node vectors, zero at the start; rows as `hstree.tree.weight_rows` lays them out.
    bias : float array (R,)
        Biases, such that the untrained layer is the unigram distribution of `counts`.
    """

    def __init__(
        self,
        tree: Tree,
        dim: int,
        *,
        counts: Integer | None = None,
        dtype: Any = np.float32,
    ) -> None:
        self.tree = tree
        self.codes = Codes(tree)
        bias = unigram_bias(tree, tree.counts if counts is None else counts)
        self.weight: Array = np.zeros((len(bias), dim), dtype)
        self.bias: Array = bias.astype(dtype)

    def log_prob(self, hidden: Array) -> Float64:
        """Return the log-probabilities of all labels, a float64 array (B, V).

        One dense product for all node scores, then one pass a level: O(B (R d + E)).
        """
        n_labels, edges = self.tree.n_labels, max(1, len(self.tree.child))
        result = np.empty((len(hidden), n_labels))
        step = max(1, TABLE_LIMIT // edges)
        for a in range(0, len(hidden), step):
            score = self.weight @ hidden[a : a + step].T + self.bias[:, None]
            result[a : a + step] = self.log_prob_of_scores(score)
        return result

    def edge_log_prob(self, score: Array) -> Float64:
        """Turn the scores of all rows (R, B) into the log-probabilities of all edges (E, B)."""
        return kernels.branch_log_prob(score, self.tree.row_start, self.tree.child_start)

    def log_prob_of_scores(self, score: Array) -> Float64:
        """Turn the scores of all rows (R, B) into the log-probabilities of all labels (B, V)."""
        tree, codes = self.tree, self.codes
        if tree.n_nodes == 0:
            return np.zeros((score.shape[1], 1))
        way = self.edge_log_prob(score)
        tree.sum_down(way)
        of_code = way[codes.leaf_edge]
        if tree.has_single_codes:
            return of_code.T
        return np.logaddexp.reduceat(of_code, codes.label_start[:-1], axis=0).T
