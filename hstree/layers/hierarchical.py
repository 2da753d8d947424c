"""Hierarchical softmax: the output layer of every tree, the flat softmax among them.

``P(label | h)`` is the sum over the label's codes of the product of the branch probabilities along
each: a log-sum-exp over codes of sums of log-probabilities. The decisions of a batch are computed
in `node_groups`; top-k search is in `top_k`.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hstree._compiled import twin
from hstree._options import checked_count
from hstree._ragged import segment_ids
from hstree._typing import Array, Float64, Int64, Integer
from hstree.layers import kernels, node_groups
from hstree.layers.base import Gradients, OutputLayer, ParameterGradient, draw_columns
from hstree.layers.dense import BatchSoftmax, Product, batch_blocks, log_sum_exp, one_softmax
from hstree.layers.hooks import TrainingHooks
from hstree.layers.ngram_features import Features
from hstree.layers.node_groups import (
    CROWDED,
    Backward,
    Gradient,
    PairGradient,
    PairLogits,
    Passed,
    Scratch,
    WideFeatures,
)
from hstree.layers.top_k import TABLE, BatchTopK, search_all, top_k_of_all
from hstree.tree import Tree
from hstree.tree.codes import Codes
from hstree.tree.weight_rows import NARROW, row_curvature, unigram_bias

if TYPE_CHECKING:
    from hstree.builders.grow import CarriedRows


class PassFeatures(WideFeatures, Protocol):
    """What is added to the scores of a batch, and learns from their errors."""

    def of_pairs(
        self, logits: PairLogits, gradient: PairGradient[Gradient]
    ) -> tuple[PairLogits, PairGradient[Gradient]]:
        """Return the functions of pairs at narrow nodes, with what these do with features."""

    def gradients(self) -> list[ParameterGradient]:
        """Return the gradients of the summed loss with respect to the features' weights."""


class Pass:
    """Pass of one batch, whose negative log-likelihoods are `nll` (B,), and the way back."""

    features: PassFeatures | None = None

    def __init__(self, layer: HierarchicalSoftmax, hidden: Array, targets: Integer) -> None:
        tree = layer.tree
        self.backwards: list[tuple[Int64 | slice, Backward[Gradient]]] = []
        if tree.n_nodes == 0:
            self.nll = np.zeros(len(targets))
            return
        expansion = layer.codes.expand(targets)
        # (D,) code of each decision, (C,) batch item of each code
        self.code, self.item = segment_ids(expansion.decision_start), expansion.code_item
        # (C,) log-probability of each code
        self.code_log_prob = np.zeros(len(self.item))
        # (D,) group of each decision; narrow nodes with many scores are computed as wide ones
        group = layer._edge_group[expansion.edge]
        groups: list[Int64 | slice] = [slice(None)]
        if group.any():
            narrow = np.flatnonzero(group == 1)
            node, width = (a[expansion.edge[narrow]] for a in (tree.edge_node, tree.edge_width))
            group[narrow[np.bincount(node)[node] * width >= CROWDED]] = 2
            groups = [np.flatnonzero(group == number) for number in range(3)]
        arrays = layer.weight, layer.bias, hidden
        pairs: tuple[PairLogits, PairGradient[Gradient]] = (
            partial(kernels.gather_dot, *arrays),
            partial(kernels.gather_dot_backward, layer.weight, hidden),
        )
        if self.features is not None:
            pairs = self.features.of_pairs(*pairs)
        for number, decisions in enumerate(groups):
            edge, code = expansion.edge[decisions], self.code[decisions]
            if not len(edge):
                continue
            taken = node_groups.Decisions(
                self.item[code],
                tree.edge_row[edge],
                tree.edge_branch[edge],
                tree.edge_width[edge],
            )
            if number == 2:
                wide = node_groups.WideNodes(layer._scratch, *arrays, taken, self.features)
                passed: Passed[Gradient] = (wide.log_prob, wide.backward)
            else:
                decide = node_groups.narrow_nodes if number else node_groups.binary_nodes
                passed = decide(*pairs, taken)
            log_prob, backward = passed
            self.code_log_prob += np.bincount(code, weights=log_prob, minlength=len(self.item))
            self.backwards.append((decisions, backward))
        if tree.has_single_codes:
            self.nll = -self.code_log_prob
        else:
            self.nll = -np.logaddexp.reduceat(self.code_log_prob, expansion.code_start[:-1])


class HierarchicalSoftmax(OutputLayer, TrainingHooks):
    """Hierarchical softmax over a tree.

    Attributes
    ----------
    weight : float array (R, d)
        Node vectors, zero at the start; rows as in `Tree.row_start`.
    bias : float array (R,)
        Biases, such that the untrained layer is the unigram distribution of `counts`.
    codes : Codes
    is_one_softmax : bool
        Whether all labels are under a root that is wide, each once.
    bound : Features or None
        Direct features of the contexts that the layer is bound to, where it has any.

    References
    ----------
    F. Morin & Y. Bengio, "Hierarchical probabilistic neural network language model", AISTATS
    2005; A. Mnih & G. Hinton, "A scalable hierarchical distributed language model", NIPS 2008.
    """

    bound: Features | None = None
    #: what computes a batch by NumPy
    pass_of_batch: type[Pass] = Pass

    def __init__(
        self, tree: Tree, dim: int, *, counts: Array | None = None, dtype: Any = np.float32
    ) -> None:
        super().__init__(tree.n_labels, dim)
        self.tree, self.codes = tree, Codes(tree)
        bias = unigram_bias(tree, tree.counts if counts is None else counts)
        self.weight: Array = np.zeros((len(bias), dim), dtype)
        self.bias: Array = bias.astype(dtype)
        # (E,) group of the node that each edge leaves: 0 binary, 1 narrow, 2 wide
        group = np.digitize(tree.fan_out, (3, NARROW + 1)).astype(np.int8)
        self._edge_group = group[tree.edge_node]
        self.is_one_softmax = tree.n_nodes == 1 and tree.has_single_codes and tree.n_labels > 2
        # compiled, over nodes of few children; products of wide nodes use all threads
        is_narrow = tree.n_nodes > 0 and self._edge_group.max() < 2
        self.scores_in_threads = bool(is_narrow and self.weight.dtype == np.float32)
        self._scratch = Scratch()

    def parameters(self) -> dict[str, Array]:
        """Return the trained arrays, by the names that a saved model gives them."""
        return {"node_weight": self.weight, "node_bias": self.bias}

    @classmethod
    def shapes(cls, source: Tree, dim: int) -> dict[str, tuple[int, ...]]:  # type: ignore[override]
        """Return the shapes of `parameters` of a layer."""
        rows = int(source.row_start[-1])
        return {"node_weight": (rows, dim), "node_bias": (rows,)}

    def carry(self, old: OutputLayer, rows: CarriedRows) -> None:
        """Take over the weight rows that the trees share."""
        for name, array in HierarchicalSoftmax.parameters(self).items():
            rows.carry(old.parameters()[name], array)

    def curvature(self, counts: Array) -> dict[str, Float64]:
        """Return the mean curvature of the loss along each row of the nodes (`row_curvature`)."""
        of_nodes = row_curvature(self.tree, counts)
        return super().curvature(counts) | {"node_weight": of_nodes, "node_bias": of_nodes}

    def nll(self, hidden: Array, targets: Integer) -> Float64:
        """Return the negative log-likelihoods of targets (B,) in nats, a float64 array (B,)."""
        if self.is_one_softmax and self.bound is None:
            columns, nll = self.codes.leaf_edge[targets], np.empty(len(targets))
            for some in batch_blocks(len(targets), self.n_labels):
                products = [Product(hidden[some], self.weight, self.bias)]
                softmax = BatchSoftmax(products, columns[some], self._scratch)
                nll[some] = softmax.log_z - softmax.target_logit
            return nll
        return batch_nll(self, hidden, targets)

    def loss(
        self, hidden: Array, targets: Integer, rng: np.random.Generator | None = None
    ) -> tuple[Float64, Gradients]:
        """Return what `nll` does, and the gradients of the sum; `rng` is not used."""
        if not self.is_one_softmax or self.bound is not None:
            return batch_loss(self, hidden, targets)
        arrays, columns = (hidden, self.weight, self.bias), self.codes.leaf_edge[targets]
        log_z, logit, (grad, *of_rows) = one_softmax(*arrays, columns, self._scratch)
        by_name = dict(zip(("node_weight", "node_bias"), of_rows, strict=True))
        return log_z - logit, Gradients.whole(grad, by_name)

    def log_prob(self, hidden: Array) -> Float64:
        """Return the log-probabilities of all labels, a float64 array (B, V).

        One dense product for all logits, then one pass per level: O(B (R d + E)).
        """
        result = np.empty((len(hidden), self.n_labels))
        for some in batch_blocks(len(hidden), max(1, len(self.tree.child))):
            if not self.is_one_softmax:
                result[some] = log_prob_of_items(self, hidden, some)
                continue
            # (b, V) logits of the root's children, in the order of the labels
            logits = hidden[some] @ self.weight.T
            logits += self.bias
            self.add_to_logits(logits, some)
            columns = self.codes.leaf_edge
            in_order = bool((columns == np.arange(self.n_labels)).all())
            result[some] = logits if in_order else logits[:, columns]
            result[some] -= log_sum_exp(result[some])[:, None]
        return result

    def add_to_logits(self, logits: Array, some: slice) -> None:
        """Add what a subclass adds to the logits (b, R) of some items."""

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

        Labels tie when, sorted by log-probability, each is within 1e-12 of the next (relative to it
        where it is below -1), so that the rounding of float64 sums does not order labels.
        """
        k = min(checked_count("k", k), self.n_labels)
        labels, values, is_done = BatchTopK.empty(len(hidden), k)
        if self.tree.n_nodes > 1:  # not one label, nor one softmax
            arrays = self.codes, self.weight, self.bias, hidden
            labels, values, is_done = search_all(*arrays, k, self.bound)
        # All labels of the items whose search reached a large share of the tree, so that it takes
        # at most about twice as long.
        others, step = np.flatnonzero(~is_done), max(1, TABLE // self.n_labels)
        for a in range(0, len(others), step):
            some, layer = others[a : a + step], self
            if self.bound is not None:
                layer = copy.copy(self)
                layer.bound = self.bound[0][some], *self.bound[1:]
            labels[some], values[some] = top_k_of_all(layer.log_prob(hidden[some]), k)
        return labels, values

    def sample(self, hidden: Array, rng: np.random.Generator) -> Int64:
        """Draw one label for each hidden vector; int64 array (B,).

        Descends the tree with all hidden vectors, a level at a time. A label with several codes is
        drawn with the sum of their probabilities. O(B d) a level for binary nodes; O(k d) for an
        item at a node with k children.
        """
        tree = self.tree
        label = np.zeros(len(hidden), np.int64)
        # (items,) batch item and current node of those that have not arrived at a label
        item = np.arange(len(hidden) if tree.n_nodes else 0)
        node = np.zeros(len(item), np.int64)
        while item.size:
            branch = _drawn_branches(self, hidden, item, node, rng.random(len(item)))
            child = tree.child[tree.child_start[node] + branch]
            arrived = child < 0
            label[item[arrived]] = ~child[arrived]
            item, node = item[~arrived], child[~arrived]
        return label


def _drawn_branches(
    layer: HierarchicalSoftmax, hidden: Array, item: Int64, node: Int64, uniform: Float64
) -> Int64:
    """Return the branches (n,) that items take at their nodes, by numbers between 0 and 1."""
    weight, bias, tree = layer.weight, layer.bias, layer.tree
    branch = np.zeros(len(item), np.int64)
    binary = np.flatnonzero(tree.fan_out[node] == 2)
    row = tree.row_start[node[binary]]
    z = kernels.gather_dot(weight, bias, hidden, item[binary], row).astype(np.float64)
    branch[binary] = np.log(uniform[binary]) >= kernels.log_sigmoid(z)
    for other in np.unique(node[tree.fan_out[node] > 2]).tolist():
        rows = slice(*tree.row_start[other : other + 2].tolist())
        at = np.flatnonzero(node == other)
        for some in batch_blocks(len(at), rows.stop - rows.start):
            here = at[some]
            z = hidden[item[here]] @ weight[rows].T + bias[rows]  # (b, k)
            branch[here] = draw_columns(z.astype(np.float64), uniform[here])
    return branch


# What compiled functions of the same names do in place of these, where they take the arrays.


@twin
def batch_nll(layer: HierarchicalSoftmax, hidden: Array, targets: Integer) -> Float64:
    """Return the negative log-likelihoods of targets (B,)."""
    return layer.pass_of_batch(layer, hidden, targets).nll


@twin
def batch_loss(
    layer: HierarchicalSoftmax, hidden: Array, targets: Integer
) -> tuple[Float64, Gradients]:
    """Return the negative log-likelihoods of targets (B,), and the gradients of their sum."""
    forward, share = layer.pass_of_batch(layer, hidden, targets), None
    if not layer.tree.has_single_codes:
        # (D,) weight of each decision: its code's share of the label's probability
        share_of_code = np.exp(forward.code_log_prob + forward.nll[forward.item])
        share = share_of_code[forward.code].astype(hidden.dtype)
    grad_hidden = None
    parameters: list[ParameterGradient] = []
    for decisions, backward in forward.backwards:
        grad, rows, weight, bias = backward(None if share is None else share[decisions])
        grad_hidden = grad if grad_hidden is None else grad_hidden + grad
        parameters.append(ParameterGradient("node_weight", rows, weight))
        parameters.append(ParameterGradient("node_bias", rows, bias))
    if grad_hidden is None:
        grad_hidden = np.zeros_like(hidden)
    if forward.features is not None:
        parameters += forward.features.gradients()
    return forward.nll, Gradients(grad_hidden, parameters)


@twin
def log_prob_of_items(layer: HierarchicalSoftmax, hidden: Array, some: slice) -> Float64:
    """Return the log-probabilities (b, V) of all labels for some of the hidden vectors."""
    logits = layer.weight @ hidden[some].T + layer.bias[:, None]
    layer.add_to_logits(logits.T, some)
    return layer.log_prob_of_logits(logits)
