"""Hierarchical softmax: the output layer of every tree, including the flat softmax.

A path leads from the root to a label, and every inner node on it decides which child to take. A
node with two children is a logistic regression with one weight row. A node with k > 2 children is a
softmax with k rows. The probability of a label is the product of the decisions on its path; for a
label with several paths (codes), it is the sum over the paths.

The code follows these formulas, for one kind of node after another. Decisions at nodes with few
children are computed all at once, as pairs of a batch item and a weight row. Nodes with many
children are computed one by one, as matrix products over the items that pass through them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from hstree._arrays import Array, Float64, Int64, Integer, offsets, ranges
from hstree._options import checked_count
from hstree.kernels import NARROW, compiled
from hstree.layers import arithmetic
from hstree.layers.base import (
    Gradients,
    OutputLayer,
    ParameterGradient,
    draw_columns,
    first_columns,
    sum_rows,
)
from hstree.layers.dense import batch_blocks, log_sum_exp
from hstree.layers.ngram_features import ContextFeatures
from hstree.layers.top_k import BatchTopK, search
from hstree.tree import Tree
from hstree.tree.codes import Codes
from hstree.tree.paths import Decisions, path_decisions
from hstree.tree.weight_rows import row_curvature, unigram_bias

if TYPE_CHECKING:
    from hstree.builders.carried_rows import CarriedRows


class LayerInputs(NamedTuple):
    """Hidden vectors of a batch, and the parameters of the layer."""

    weight: Array  # (R, d)
    bias: Array  # (R,)
    hidden: Array  # (B, d)
    features: ContextFeatures | None


#: Function that returns the gradients, given P(path) / P(label) for each decision (D,). Rows of
#: "feature_weight" may repeat.
Backward = Callable[[Array], Gradients]


# The formulas.


def forward(
    inputs: LayerInputs, decisions: Decisions, code_item: Integer
) -> tuple[Float64, Callable[[], Gradients]]:
    """Return the negative log-likelihoods of the targets, and a function for the gradients.

    Parameters
    ----------
    inputs : LayerInputs
        Hidden vectors (B, d) and parameters.
    decisions : Decisions
        Decisions on all paths to the targets.
    code_item : int array (C,)
        Batch item of each path, ascending.

    Returns
    -------
    nll : float64 array (B,)
    backward : callable
        Returns the gradients of the sum of `nll`; call it at most once.
    """
    binary = decisions.width == 2
    narrow = (decisions.width > 2) & (decisions.width <= NARROW)
    wide = decisions.width > NARROW

    # log P(branch) of each decision (D,), for one kind of node after another
    log_prob = np.zeros(len(decisions.item))
    passes: list[tuple[Int64, Backward]] = []
    for condition, decide in (
        (binary, decide_binary),
        (narrow, decide_narrow),
        (wide, decide_wide),
    ):
        position, chosen = decisions.where(condition)
        if len(position):
            log_prob[position], backward_of_kind = decide(inputs, chosen)
            passes.append((position, backward_of_kind))

    # log P(path) = sum over its decisions; P(label) = sum over its paths
    code_log_prob = np.bincount(decisions.code, log_prob, minlength=len(code_item))
    code_start = offsets(np.bincount(code_item, minlength=len(inputs.hidden)))
    nll: Float64 = -np.logaddexp.reduceat(code_log_prob, code_start[:-1])

    def backward() -> Gradients:
        # d nll / d log P(path) = -P(path) / P(label)
        code_fraction = np.exp(code_log_prob + nll[code_item]).astype(inputs.hidden.dtype)
        decision_fraction = code_fraction[decisions.code]

        kinds = [backward_of_kind(decision_fraction[at]) for at, backward_of_kind in passes]
        grad_hidden = sum((kind.hidden for kind in kinds), np.zeros_like(inputs.hidden))
        parameters = [gradient for kind in kinds for gradient in kind.parameters]
        if inputs.features is not None:
            # Sum the gradients of features that occur at several nodes
            nodes = [gradient for gradient in parameters if gradient.name != "feature_weight"]
            others = [gradient for gradient in parameters if gradient.name == "feature_weight"]
            parameters = [*nodes, sum_rows(others, len(inputs.features.weight))]
        return Gradients(grad_hidden, parameters)

    return nll, backward


def decide_binary(inputs: LayerInputs, decisions: Decisions) -> tuple[Array, Backward]:
    """Compute decisions at nodes with two children: P(first) = sigmoid(q.h + b)."""
    item = decisions.item
    row = decisions.row
    logit, features = pair_logits(inputs, item, row)

    # d(-log P) / d logit = sigmoid(logit) - [first child taken]
    log_prob, error = arithmetic.binary_decision(logit, decisions.branch == 0)

    def backward(fraction: Array) -> Gradients:
        return pair_gradient(inputs, item, row, features, error * fraction)

    return log_prob, backward


def decide_narrow(inputs: LayerInputs, decisions: Decisions) -> tuple[Array, Backward]:
    """Compute decisions at nodes with 3 to `NARROW` children: softmaxes over segments of pairs."""
    # (P,) pairs, one decision after another
    start = offsets(decisions.width)
    item = np.repeat(decisions.item, decisions.width)
    row = ranges(decisions.row, start)
    logits, features = pair_logits(inputs, item, row)

    # log P = logit of the child taken - ln Z
    log_softmax = arithmetic.segment_log_softmax(logits, start)
    chosen = start[:-1] + decisions.branch

    def backward(fraction: Array) -> Gradients:
        # d(-log P) / d logit = softmax - [child taken]
        error: Array = np.exp(log_softmax)
        error[chosen] -= 1
        error *= np.repeat(fraction, decisions.width)
        return pair_gradient(inputs, item, row, features, error)

    return log_softmax[chosen], backward


def decide_wide(inputs: LayerInputs, decisions: Decisions) -> tuple[Array, Backward]:
    """Compute decisions at nodes with many children: matrix products, one node at a time."""
    weight, bias, hidden, features = inputs
    # Sort decisions by node, so that the decisions of a node are a slice
    order = np.argsort(decisions.row, kind="stable")
    item, row, width, branch, _ = (array[order] for array in decisions)
    vectors = hidden[item]
    first_row, start = np.unique(row, return_index=True)
    node_width = width[start]
    stop = np.append(start[1:], len(row))
    nodes = list(zip(first_row, node_width, map(slice, start, stop), strict=True))

    log_prob = np.empty(len(row))
    probabilities: list[Array] = []
    node_features: list[tuple[Int64, Int64, Int64]] = []
    for first, k, part in nodes:
        # (n, k) logits of the children
        children = slice(first, first + k)
        logits = vectors[part] @ weight[children].T
        logits += bias[children]
        if features is not None:
            # (F,) decisions at the node, children and features; each adds its weight to a logit
            decision, child, feature = features.at_rows(item[part], first, first + k)
            np.add.at(logits, (decision, child), features.weight[feature])
            node_features.append((decision, child, feature))

        # log P = logit of the child taken - ln Z
        chosen_logit = np.take_along_axis(logits, branch[part, None], axis=1)[:, 0]
        log_prob[part] = chosen_logit - arithmetic.softmax(logits)
        probabilities.append(logits)

    def backward(fraction: Array) -> Gradients:
        row_start = offsets(node_width)
        grad_weight = np.empty((row_start[-1], weight.shape[1]), weight.dtype)
        grad_bias = np.empty(row_start[-1], weight.dtype)
        grad_vectors = np.empty_like(vectors)
        # Sort decisions by node, as in the forward pass
        fraction = fraction[order]
        feature_errors = []
        gradient_rows = map(slice, row_start[:-1], row_start[1:])
        for i, ((first, k, part), rows) in enumerate(zip(nodes, gradient_rows, strict=True)):
            # (n, k) d loss / d logits = P(path) / P(label) * (softmax - [child taken])
            error = probabilities[i]
            error[np.arange(len(error)), branch[part]] -= 1
            error *= fraction[part, None]
            np.matmul(error.T, vectors[part], out=grad_weight[rows])
            np.sum(error, axis=0, out=grad_bias[rows])
            np.matmul(error, weight[first : first + k], out=grad_vectors[part])
            if features is not None:
                decision, child, _ = node_features[i]
                feature_errors.append(error[decision, child])

        grad_hidden = arithmetic.slot_sums(grad_vectors, item, len(hidden))
        touched = ranges(first_row, row_start)
        parameters = node_gradients(touched, grad_weight, grad_bias)
        if features is not None:
            feature = np.concatenate([feature for _, _, feature in node_features])
            error = np.concatenate(feature_errors)
            parameters.append(ParameterGradient("feature_weight", feature, error))
        return Gradients(grad_hidden, parameters)

    in_order = np.empty_like(log_prob)
    in_order[order] = log_prob
    return in_order, backward


def pair_logits(inputs: LayerInputs, item: Int64, row: Int64) -> tuple[Array, Any]:
    """Return the logits (P,) of pairs of an item and a weight row, and their features."""
    logits = arithmetic.gather_dot(inputs.weight, inputs.bias, inputs.hidden, item, row)
    if inputs.features is None:
        return logits, None
    pair, feature = inputs.features.at_pairs(item, row)
    added = np.bincount(pair, inputs.features.weight[feature], len(row))
    return logits + added.astype(logits.dtype), (pair, feature)


def pair_gradient(
    inputs: LayerInputs, item: Int64, row: Int64, features: Any, error: Array
) -> Gradients:
    """Return the gradients of `pair_logits`, given the errors (P,) of pairs."""
    grad_hidden, rows, grad_weight, grad_bias = arithmetic.gather_dot_backward(
        inputs.weight, inputs.hidden, item, row, error
    )
    parameters = node_gradients(rows, grad_weight, grad_bias)
    if features is not None:
        pair, feature = features
        parameters.append(ParameterGradient("feature_weight", feature, error[pair]))
    return Gradients(grad_hidden, parameters)


def node_gradients(rows: Int64, weight: Array, bias: Array) -> list[ParameterGradient]:
    """Return the gradients with respect to distinct weight rows (r,)."""
    return [
        ParameterGradient("node_weight", rows, weight),
        ParameterGradient("node_bias", rows, bias),
    ]


# The layer.


class HierarchicalSoftmax(OutputLayer):
    """Hierarchical softmax over a tree.

    Attributes
    ----------
    weight : float array (R, d)
        Node vectors, initially zero; rows as in `Tree.row_start`.
    bias : float array (R,)
        Biases. The untrained layer is the unigram distribution of `counts`.
    codes : Codes
    is_one_softmax : bool
        Whether the root is a softmax over all labels, each once.
    context_features : ContextFeatures or None
        N-gram features of the contexts from the last call of `in_context`.

    References
    ----------
    F. Morin & Y. Bengio, "Hierarchical probabilistic neural network language model", AISTATS
    2005; A. Mnih & G. Hinton, "A scalable hierarchical distributed language model", NIPS 2008.
    """

    context_features: ContextFeatures | None = None

    def __init__(
        self, tree: Tree, dim: int, *, counts: Array | None = None, dtype: Any = np.float32
    ) -> None:
        super().__init__(tree.n_labels, dim)
        self.tree = tree
        self.codes = Codes(tree)
        bias = unigram_bias(tree, tree.counts if counts is None else counts)
        self.weight: Array = np.zeros((len(bias), dim), dtype)
        self.bias: Array = bias.astype(dtype)
        self.is_one_softmax = tree.n_nodes == 1 and tree.has_single_codes and tree.n_labels > 2
        self._has_wide_nodes = int(tree.fan_out.max(initial=0)) > NARROW
        # Products at wide nodes use all threads already.
        is_narrow = tree.n_nodes > 0 and not self._has_wide_nodes
        self.scores_in_threads = is_narrow and self.weight.dtype == np.float32

    def parameters(self) -> dict[str, Array]:
        """Return the trained arrays, by the names that a saved model gives them."""
        return {"node_weight": self.weight, "node_bias": self.bias}

    def carry(self, old: Self, rows: CarriedRows) -> None:
        """Copy the weight rows that the trees share."""
        for name, array in HierarchicalSoftmax.parameters(self).items():
            rows.carry(old.parameters()[name], array)

    def curvature(self, counts: Array) -> dict[str, Float64]:
        """Return the mean curvature of the loss along each row of the nodes (`row_curvature`)."""
        curvature = row_curvature(self.tree, counts)
        return super().curvature(counts) | {"node_weight": curvature, "node_bias": curvature}

    # Losses of targets.

    def nll(self, hidden: Array, targets: Integer) -> Float64:
        """Return the negative log-likelihoods of targets (B,) in nats, a float64 array (B,)."""
        check_batch(hidden, targets, self.dim)
        nll = np.zeros(len(targets))
        if self.tree.n_nodes == 0:
            return nll
        for block in batch_blocks(len(targets), int(self.tree.fan_out.max())):
            layer = self._for_items(block)
            part = hidden[block]
            # Use NumPy if kernels are disabled or do not support these arrays
            layout = layer.compiled_layout(targets[block], part, with_gradients=False)
            if layout is None:
                decisions, code_item = path_decisions(self.codes, targets[block])
                nll[block], _ = forward(layer._inputs(part), decisions, code_item)
            else:
                nll[block] = compiled().tree_nll(self.weight, self.bias, part, layout)
        return nll

    def loss(
        self, hidden: Array, targets: Integer, rng: np.random.Generator | None = None
    ) -> tuple[Float64, Gradients]:
        """Return the negative log-likelihoods and the gradients of their sum; `rng` is not used."""
        check_batch(hidden, targets, self.dim)
        if self.tree.n_nodes == 0:
            return np.zeros(len(targets)), Gradients(np.zeros_like(hidden), [])
        decisions, code_item = path_decisions(self.codes, targets)
        nll, backward = forward(self._inputs(hidden), decisions, code_item)
        return nll, backward()

    def _inputs(self, hidden: Array) -> LayerInputs:
        return LayerInputs(self.weight, self.bias, hidden, self.context_features)

    def compiled_layout(self, targets: Integer, hidden: Array, *, with_gradients: bool) -> Any:
        """Return the layout of a batch for compiled functions; None if NumPy computes the batch.

        NumPy computes a single softmax over all labels, and batches that need too much memory.
        """
        fast = compiled()
        if fast is None or not fast.is_supported(self.weight, self.bias, hidden):
            return None
        if self.is_one_softmax and not self.needs_contexts:
            return None
        features = self.context_features
        layout = fast.lay_out(
            fast.Paths(*self.codes.walk),
            targets,
            len(self.weight),
            None if features is None else fast.Features(*features.arrays()),
            has_wide=self._has_wide_nodes,
            with_gradients=with_gradients,
        )
        return None if layout.n_logits > fast.MAX_LOGITS else layout

    def _for_items(self, items: Any) -> Self:
        """Return the layer for some items of the batch, with their context features."""
        if self.context_features is None:
            return self
        layer = copy.copy(self)
        layer.context_features = self.context_features.select(items)
        return layer

    # All labels.

    def log_prob(self, hidden: Array) -> Float64:
        """Return the log-probabilities of all labels, a float64 array (B, V).

        One dense product computes all logits; then there is one pass per level: O(B (R d + E)).
        """
        tree = self.tree
        result = np.empty((len(hidden), self.n_labels))
        fast = compiled()
        is_supported = fast is not None and fast.is_supported(self.weight, self.bias, hidden)
        for block in batch_blocks(len(hidden), max(1, len(tree.child))):
            layer = self._for_items(block)
            # (b, R) logits of all weight rows
            logits = hidden[block] @ self.weight.T
            logits += self.bias
            if layer.context_features is not None:
                layer.context_features.add_to_logits(logits)
            if is_supported and tree.n_nodes > 1:
                arrays = fast.SearchedTree(tree.child_start, tree.child, tree.row_start)
                result[block] = fast.label_log_prob(
                    logits, arrays, self.n_labels, has_single_codes=tree.has_single_codes
                )
            else:
                result[block] = self.log_prob_of_logits(logits.T)
        return result

    def log_prob_of_logits(self, logits: Array) -> Float64:
        """Return the log-probabilities (B, V) of all labels from the logits (R, B) of all rows."""
        tree = self.tree
        codes = self.codes
        if tree.n_nodes == 0:
            return np.zeros((logits.shape[1], 1))
        if self.is_one_softmax:
            # (B, V) logits of the root's children, in label order
            result = logits.T.take(codes.leaf_edge, axis=1).astype(np.float64)
            result -= log_sum_exp(result)[:, None]
            return result
        # (E, B) log-probability of each branch, then of the path from the root down to each edge
        logits = np.ascontiguousarray(logits)
        log_prob = arithmetic.branch_log_prob(logits, tree.row_start, tree.child_start)
        tree.sum_down(log_prob)
        # (C, B) log-probability of each code
        log_prob = log_prob[codes.leaf_edge]
        if tree.has_single_codes:
            return log_prob.T
        return np.logaddexp.reduceat(log_prob, codes.label_start[:-1], axis=0).T

    def top_k(self, hidden: Array, k: int) -> tuple[Int64, Float64]:
        """Return the k most probable labels of each hidden vector by best-first search.

        Labels tie if, sorted by log-probability, each is within 1e-12 of the next (relative to its
        size below -1), so that rounding errors of float64 sums do not determine the order.
        """
        k = min(checked_count("k", k), self.n_labels)

        if self.tree.n_nodes > 1:
            features = self.context_features
            best = search(self.codes, self.weight, self.bias, hidden, k, features)
        else:
            best = BatchTopK.empty(len(hidden), k)

        # Compute the log-probabilities of all labels for items whose search became too large
        others = np.flatnonzero(~best.certain)
        for block in batch_blocks(len(others), self.n_labels):
            items = others[block]
            log_prob = self._for_items(items).log_prob(hidden[items])
            best.labels[items], best.log_prob[items] = first_columns(log_prob, k)
        return best.labels, best.log_prob

    def sample(self, hidden: Array, rng: np.random.Generator) -> Int64:
        """Draw one label for each hidden vector, an int64 array (B,).

        All hidden vectors descend the tree, a level at a time. A label with several codes is drawn
        with the sum of their probabilities. With features, or for a single softmax, the
        log-probabilities of all labels are computed instead.
        """
        if self.is_one_softmax or self.context_features is not None:
            return super().sample(hidden, rng)
        tree = self.tree
        label = np.zeros(len(hidden), np.int64)
        # (items,) batch item and current node of items that have not reached a label
        item = np.arange(len(hidden) if tree.n_nodes else 0)
        node = np.zeros(len(item), np.int64)
        while item.size:
            uniform = rng.random(len(item))
            branch = np.zeros(len(item), np.int64)

            # Nodes with two children, all together: P(first) = sigmoid(logit)
            width = tree.fan_out[node]
            binary = np.flatnonzero(width == 2)
            row = tree.row_start[node[binary]]
            logits = arithmetic.gather_dot(self.weight, self.bias, hidden, item[binary], row)
            branch[binary] = uniform[binary] >= np.exp(arithmetic.log_sigmoid(logits))

            # Other nodes, one by one: matrix products of the items at them
            for other in np.unique(node[width > 2]).tolist():
                children = slice(tree.row_start[other], tree.row_start[other + 1])
                at_node = np.flatnonzero(node == other)
                for block in batch_blocks(len(at_node), children.stop - children.start):
                    here = at_node[block]
                    logits = hidden[item[here]] @ self.weight[children].T + self.bias[children]
                    arithmetic.softmax(logits)
                    branch[here] = draw_columns(logits, uniform[here])
            child = tree.child[tree.child_start[node] + branch]

            is_label = child < 0
            label[item[is_label]] = ~child[is_label]
            item = item[~is_label]
            node = child[~is_label]
        return label


def check_batch(hidden: Array, targets: Integer, dim: int) -> None:
    """Raise ValueError unless there is one target for each hidden vector of length `dim`."""
    if np.shape(hidden) != (len(hidden), dim):
        raise ValueError(f"hidden vectors must have the shape (B, {dim}), not {np.shape(hidden)}")
    if np.shape(targets) != (len(hidden),):
        shape = np.shape(targets)
        raise ValueError(f"targets must have the shape ({len(hidden)},), not {shape}")
