"""Forward and backward pass of a batch through a tree: losses and gradients, with features or not.

Matrix products of wide nodes run on one BLAS thread: results would depend on their number.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  what products here call: `ONE_BLAS_THREAD` holds it

from hstree._compiled import in_parts, jit, n_threads, takes
from hstree._typing import Array, Float32, Float64, Int32, Integer
from hstree.layers.base import Gradients, ParameterGradient
from hstree.layers.compiled.arithmetic import (
    ONE,
    SLOTS,
    ZERO,
    add_rows,
    check_shape,
    checked_ids,
    dot_rows,
    exp,
    group,
    log1p,
)
from hstree.layers.compiled.plans import PARTS, Plan, TreeCodes, lay_out
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.layers.ngram_features import Features
from hstree.layers.node_groups import ONE_BLAS_THREAD
from hstree.tree.codes import Codes
from hstree.tree.order import sum_to_root
from hstree.tree.weight_rows import NARROW

#: Items computed together: the rows of their scores stay in the first-level cache.
BLOCK = 8
#: Items of a batch from which on a pass is worth several threads.
MANY_ITEMS = 2048
#: Scores of a batch that a pass keeps at most.
MOST_SCORES = 1 << 26


class Buffers(NamedTuple):
    """What a pass writes."""

    losses: Float64  # (B,)
    error: Float32  # (S,) logits, then errors, of scores at narrow nodes
    log_prob: Float32  # (S,) log-probability of a decision at the first of its scores, 0 elsewhere
    #: (C,) log-probability of each code's decisions at wide nodes, then the share of the code in
    #: the probability of its target
    of_code: Float64
    grad_hidden: Float32  # (B, d); without gradients, no rows
    wide_log_prob: Float64  # (D,) of decisions at wide nodes
    probability: Float32  # of all branches of visited wide nodes, at `WideNodes.score_start`
    grad_visits: Float32  # (n, d) gradients of hidden vectors by each piece of a wide node's rows


@jit
def new_buffers(hidden, plan, with_gradients):
    """Return buffers for the pass of a batch."""
    n_scores, d = len(plan.scores.row), hidden.shape[1]
    pieces, start = plan.wide.row_pieces, plan.wide.start
    n = n_visits = 0
    if with_gradients:
        n = len(hidden)
    if with_gradients and len(pieces) > 0:
        node = pieces[-1, 0]
        n_visits = pieces[-1, 3] + start[node + 1] - start[node]
    return Buffers(
        np.empty(len(hidden)),
        np.empty(n_scores, np.float32),
        np.empty(n_scores, np.float32),
        np.zeros(len(plan.scores.code_start) - 1),
        np.empty((n, d), np.float32),
        np.empty(len(plan.wide.code)),
        np.empty(plan.wide.score_start[-1], np.float32),
        np.empty((n_visits, d), np.float32),
    )


# Narrow nodes.


@jit
def _decide(logits, sign, width, branch, log_prob):
    """Turn logits (S,) into errors, in place, and write the log-probabilities (S,) of decisions."""
    # two loops: LLVM vectorises each, but not both in one
    for s in range(len(logits)):
        log_prob[s] = exp(-abs(logits[s]))
    is_binary = True
    for s in range(len(logits)):
        z, small = sign[s] * logits[s], log_prob[s]
        log_prob[s] = min(z, ZERO) - log1p(small)
        # the error is sigmoid(logit) less 1 where the first child is taken: -sign sigmoid(-z)
        error = -sign[s] * (small if z >= 0 else ONE) / (ONE + small)
        logits[s] = logits[s] if sign[s] == 0 else error
        is_binary &= sign[s] != 0
    s = 0
    while not is_binary and s < len(logits):
        k = width[s]
        if k == 0:
            s += 1
            continue
        largest = logits[s]
        for i in range(s + 1, s + k):
            largest = max(largest, logits[i])
        total = ZERO
        chosen = logits[s + branch[s]] - largest
        for i in range(s, s + k):
            logits[i] = exp(logits[i] - largest)
            total += logits[i]
            log_prob[i] = 0
        log_prob[s] = chosen - np.log(total)
        for i in range(s, s + k):
            logits[i] /= total
        logits[s + branch[s]] -= 1
        s += k


@jit
def _share_codes(log_prob, code_start, first, stop, error, of_code):
    """Return the loss of an item of codes `first` to `stop`; scale their errors by their shares."""
    for c in range(first, stop):
        for s in range(code_start[c], code_start[c + 1]):
            of_code[c] += log_prob[s]
    if stop - first == 1:
        loss = -of_code[first]
        of_code[first] = 1
        return loss
    largest = of_code[first]
    for c in range(first + 1, stop):
        largest = max(largest, of_code[c])
    loss = -largest - np.log(np.exp(of_code[first:stop] - largest).sum())
    for c in range(first, stop):
        of_code[c] = np.exp(of_code[c] + loss)
        share = np.float32(of_code[c])
        for s in range(code_start[c], code_start[c + 1]):
            error[s] *= share
    return loss


@jit
def _block(weight, bias, hidden, first, stop, scores, features, of_items):
    """Write the losses of some items, errors of their scores, and the gradients if wanted."""
    item_start, code_start, row, sign, width, branch = scores
    feature_start, feature, feature_weight = features
    losses, error, log_prob, of_code, grad_hidden = of_items
    for b in range(first, stop):
        begin, end = code_start[item_start[b]], code_start[item_start[b + 1]]
        dot_rows(weight, bias, row, begin, end, hidden[b], error)
        for s in range(begin, end if len(feature_weight) > 0 else begin):
            for p in range(feature_start[s], feature_start[s + 1]):
                error[s] += feature_weight[feature[p]]
    some = slice(code_start[item_start[first]], code_start[item_start[stop]])
    _decide(error[some], sign[some], width[some], branch[some], log_prob[some])
    for b in range(first, stop):
        losses[b] = _share_codes(
            log_prob, code_start, item_start[b], item_start[b + 1], error, of_code
        )
        if len(grad_hidden) > 0:
            grad_hidden[b] = 0
            begin, end = code_start[item_start[b]], code_start[item_start[b + 1]]
            add_rows(weight, row, error, begin, end, grad_hidden[b])


@jit
def _some_items(first, stop, weight, bias, hidden, plan, buffers):
    """Do `_block` for the items from `first` to `stop`."""
    # taken out of the plan once: numba counts references to the arrays that a field holds
    scores, features = plan.scores, plan.features
    losses, error, log_prob, of_code, grad_hidden, _, _, _ = buffers
    of_items = losses, error, log_prob, of_code, grad_hidden
    for a in range(first, stop, BLOCK):
        last = min(a + BLOCK, stop)
        _block(weight, bias, hidden, a, last, scores, features, of_items)


@jit
def pass_of_items(weight, bias, hidden, plan, buffers):
    """Write losses, shares of codes, errors at narrow nodes, and the gradients through these."""
    for d in range(len(plan.wide.code)):
        buffers.of_code[plan.wide.code[d]] += buffers.wide_log_prob[d]
    _some_items(0, len(hidden), weight, bias, hidden, plan, buffers)


@jit
def _some_rows(first, stop, hidden, by_row, error, grad_weight, grad_bias):
    """Write the gradients of the rows of narrow nodes from `first` to `stop`."""
    for i in range(first, stop):
        grad_weight[i] = 0
        grad_bias[i] = 0
        begin, end = by_row.start[i], by_row.start[i + 1]
        of_row = error[by_row.score[begin:end]]
        for p in range(end - begin):
            grad_bias[i] += of_row[p]
        add_rows(hidden, by_row.item[begin:end], of_row, 0, end - begin, grad_weight[i])


# Wide nodes.


@jit
def _pass_of_visits(first, stop, weight, bias, hidden, plan, buffers):
    """Write log-probabilities of decisions and probabilities of branches, for some parts."""
    wide, features, log_prob = plan.wide, plan.wide_features, buffers.wide_log_prob
    for piece in range(wide.parts[first], wide.parts[stop]):
        i, begin = wide.pieces[piece, 0], wide.pieces[piece, 1]
        n, k = wide.pieces[piece, 2] - begin, wide.width[i]
        of_node = slice(wide.rows[i], wide.rows[i] + k)
        # (n, k) logits, then probabilities
        place = wide.score_start[i] + begin * k
        table = buffers.probability[place : place + n * k].reshape(n, k)
        begin += wide.start[i]
        np.dot(hidden[wide.item[begin : begin + n]], weight[of_node].T, table)
        if len(features.weight) > 0:
            for p in range(n):
                for j in range(features.ranges.shape[1]):
                    ends = features.ranges[begin + p, j]
                    for f in range(ends[0], ends[1]):
                        table[p, features.row[f] - wide.rows[i]] += features.weight[f]
        for p in range(n):
            logits, of_bias = table[p], bias[of_node]
            largest = np.float32(-np.inf)
            for j in range(k):
                logits[j] += of_bias[j]
                largest = max(largest, logits[j])
            decisions = range(wide.decision_start[begin + p], wide.decision_start[begin + p + 1])
            for d in decisions:
                log_prob[d] = logits[wide.branch[d]] - largest
            total = ZERO
            for j in range(k):
                logits[j] = exp(logits[j] - largest)
            for j in range(k):
                total += logits[j]
            log_total = np.log(np.float64(total))
            for d in decisions:
                log_prob[d] -= log_total
            scale = ONE / total
            for j in range(k):
                logits[j] *= scale


@jit
def pass_of_batch(weight, bias, hidden, plan, buffers):
    """Do a whole forward pass, and the gradients through narrow nodes, in this thread."""
    _pass_of_visits(0, PARTS, weight, bias, hidden, plan, buffers)
    pass_of_items(weight, bias, hidden, plan, buffers)


def pass_in_threads(weight: Array, bias: Array, hidden: Array, plan: Plan, buffers: Any) -> None:
    """Do what `pass_of_batch` does, the pieces of wide nodes in threads."""
    in_parts(PARTS, _pass_of_visits, weight, bias, hidden, plan, buffers, step=1)
    pass_of_items(weight, bias, hidden, plan, buffers)


@jit
def _share(wide, v, of_code):
    """Return the sum of the shares of the codes that a visit is of."""
    share = 0.0
    for d in range(wide.decision_start[v], wide.decision_start[v + 1]):
        share += of_code[wide.code[d]]
    return share


@jit
def wide_gradient(piece, weight, hidden, plan, buffers):
    """Compute the gradients of some rows of a wide node, and write those of its items to buffers.

    Returns the first of the rows, their gradients (r, d), and those of their biases (r,).
    """
    wide, of_code = plan.wide, buffers.of_code
    i, first, stop, place = wide.row_pieces[piece]
    begin, n, k = wide.start[i], wide.start[i + 1] - wide.start[i], wide.width[i]
    table = buffers.probability[wide.score_start[i] : wide.score_start[i + 1]].reshape(n, k)
    # (n, r) errors of the decisions of each visit, scaled by the shares of their codes: their sums
    scaled, grad_bias = np.empty((n, stop - first), np.float32), np.zeros(stop - first, np.float32)
    for p in range(n):
        of_visit = np.float32(_share(wide, begin + p, of_code))
        for j in range(stop - first):
            scaled[p, j] = of_visit * table[p, first + j]
        for d in range(wide.decision_start[begin + p], wide.decision_start[begin + p + 1]):
            if first <= wide.branch[d] < stop:
                scaled[p, wide.branch[d] - first] -= np.float32(of_code[wide.code[d]])
        for j in range(stop - first):
            grad_bias[j] += scaled[p, j]
    row = wide.rows[i] + first
    np.dot(scaled, weight[row : row + stop - first], buffers.grad_visits[place : place + n])
    return row, np.dot(scaled.T, hidden[wide.item[begin : begin + n]]), grad_bias


@jit
def add_wide(plan, buffers):
    """Add the gradients of items through wide nodes, which `wide_gradient` wrote."""
    wide, grad_hidden = plan.wide, buffers.grad_hidden
    for piece in range(len(wide.row_pieces)):
        i, place = wide.row_pieces[piece, 0], wide.row_pieces[piece, 3]
        for p in range(wide.start[i + 1] - wide.start[i]):
            b = wide.item[wide.start[i] + p]
            for j in range(grad_hidden.shape[1]):
                grad_hidden[b, j] += buffers.grad_visits[place + p, j]


@jit
def _feature_gradients(plan, buffers, slot_of):
    """Return the features of a batch, and the gradient with respect to the weight of each."""
    features, wide_features, wide = plan.features, plan.wide_features, plan.wide
    ranges, of_code = wide_features.ranges, buffers.of_code
    n = len(features.feature)
    for v in range(len(ranges)):
        for i in range(ranges.shape[1]):
            n += ranges[v, i, 1] - ranges[v, i, 0]
    index, errors = np.empty(n, np.int64), np.empty(n, np.float32)
    n = 0
    for s in range(len(features.start) - 1):
        for p in range(features.start[s], features.start[s + 1]):
            index[n], errors[n] = features.feature[p], buffers.error[s]
            n += 1
    for node in range(len(wide.rows) if len(ranges) > 0 else 0):
        for v in range(wide.start[node], wide.start[node + 1]):
            place = wide.score_start[node] + (v - wide.start[node]) * wide.width[node]
            of_visit = np.float32(_share(wide, v, of_code))
            for i in range(ranges.shape[1]):
                for f in range(ranges[v, i, 0], ranges[v, i, 1]):
                    j = wide_features.row[f] - wide.rows[node]
                    index[n], errors[n] = f, of_visit * buffers.probability[place + j]
                    for d in range(wide.decision_start[v], wide.decision_start[v + 1]):
                        if wide.branch[d] == j:
                            errors[n] -= np.float32(of_code[wide.code[d]])
                    n += 1
    distinct, first, place = group(index, slot_of)
    sums = np.zeros(len(distinct), np.float32)
    for g in range(len(distinct)):
        for p in range(first[g], first[g + 1]):
            sums[g] += errors[place[p]]
    return distinct, sums


@jit
def _gradients(weight, bias, hidden, plan, slot_of):
    """Return losses and gradients: hidden, rows, weights, biases; features, and their gradient."""
    by_row, wide, buffers = plan.by_row, plan.wide, new_buffers(hidden, plan, True)
    pass_of_batch(weight, bias, hidden, plan, buffers)
    features, grad_features = _feature_gradients(plan, buffers, slot_of)
    first = len(by_row.rows)
    n_rows = first + wide.width.sum()
    rows = np.empty(n_rows, np.int64)
    rows[:first] = by_row.rows
    grad_weight = np.empty((n_rows, hidden.shape[1]), np.float32)
    grad_bias = np.empty(n_rows, np.float32)
    _some_rows(0, first, hidden, by_row, buffers.error, grad_weight, grad_bias)
    for piece in range(len(wide.row_pieces)):
        row, of_weight, of_bias = wide_gradient(piece, weight, hidden, plan, buffers)
        some = slice(first, first + len(of_bias))
        rows[some] = np.arange(row, row + len(of_bias))
        grad_weight[some], grad_bias[some] = of_weight, of_bias
        first += len(of_bias)
    add_wide(plan, buffers)
    grad_hidden = buffers.grad_hidden
    return buffers.losses, grad_hidden, rows, grad_weight, grad_bias, features, grad_features


@jit
def _losses(weight, bias, hidden, targets, codes, features, slot_of, with_gradients):
    """Return the losses of a batch over a tree without wide nodes.

    `with_gradients` is False: for a constant, numba would compile all of this anew.
    """
    plan = lay_out(targets, codes, features, slot_of, with_gradients)
    buffers = new_buffers(hidden, plan, with_gradients)
    pass_of_items(weight, bias, hidden, plan, buffers)
    return buffers.losses


class TreePass:
    """Lays out the batches of a tree for passes."""

    def __init__(self, codes: Codes) -> None:
        tree = codes.tree
        # (E, 4) the edge before each edge; the row, the branch and the width at its node
        edges: Int32 = np.empty((len(tree.child), 4), np.int32)
        edges[:, 0] = codes.parent_edge
        edges[:, 1] = tree.row_start[tree.edge_node]
        edges[:, 2] = np.arange(len(tree.child)) - tree.child_start[tree.edge_node]
        edges[:, 3] = tree.fan_out[tree.edge_node]
        self.codes = TreeCodes(codes.label_start, codes.leaf_edge, edges)
        #: whether no node is wide
        self.is_narrow = int(tree.fan_out.max()) <= NARROW
        #: limits the threads of BLAS where there is anything for it to do
        self.one_thread: AbstractContextManager[object] = (
            nullcontext() if self.is_narrow else ONE_BLAS_THREAD
        )
        # (N,) scores of each node and those above it, then (V,) of each label
        scores = sum_to_root(np.where(tree.fan_out == 2, 1, tree.fan_out), tree.parent)
        of_codes = scores[tree.edge_node[codes.leaf_edge]]
        of_labels = np.add.reduceat(of_codes, codes.label_start[:-1])
        #: largest number of scores of one target
        self.most_scores = float(of_labels.max())
        tree.forget()

    def plan(
        self,
        targets: Integer,
        n_rows: int,
        features: Features | None = None,
        *,
        with_rows: bool = True,
    ) -> Plan:
        """Return the plan of a batch for a tree of `n_rows` weight rows."""
        ids = checked_ids(targets, len(self.codes.label_start) - 1)
        table = checked_features(features, len(ids))
        plan: Plan = lay_out(ids, self.codes, table, SLOTS.of(n_rows), with_rows)
        return plan


def checked_features(features: Features | None, n_items: int) -> Features:
    """Return features with checked numbers of contexts; None has none."""
    if features is None:
        number, context_start = np.empty((n_items, 0), np.int64), np.zeros(1, np.int64)
        return number, context_start, np.empty(0, np.int32), np.empty(0, np.float32)
    number, context_start = features[:2]
    check_shape("numbers of contexts", number.shape, (n_items, number.shape[1]))
    if number.size and not -1 <= number.min() <= number.max() < len(context_start) - 1:
        raise IndexError(f"numbers of contexts must be from -1 to {len(context_start) - 2}")
    return features


def _gradients_in_threads(weight: Array, bias: Array, hidden: Array, plan: Plan) -> Any:
    """Return what `_gradients` does for a tree without wide nodes and features, in threads.

    Items, and then rows, do not depend on each other: the result is the same.
    """
    by_row, buffers = plan.by_row, new_buffers(hidden, plan, True)
    grad_weight = np.empty((len(by_row.rows), hidden.shape[1]), np.float32)
    grad_bias = np.empty(len(by_row.rows), np.float32)
    in_parts(len(hidden), _some_items, weight, bias, hidden, plan, buffers)
    in_parts(len(by_row.rows), _some_rows, hidden, by_row, buffers.error, grad_weight, grad_bias)
    none = by_row.rows[:0], grad_bias[:0]
    return buffers.losses, buffers.grad_hidden, by_row.rows, grad_weight, grad_bias, *none


# The twins of functions of `hstree.layers.hierarchical`.

_PASSES: WeakKeyDictionary[Codes, TreePass] = WeakKeyDictionary()


def tree_pass(layer: HierarchicalSoftmax, n_items: int, *arrays: Array) -> TreePass | None:
    """Return the pass of batches of `n_items`; None where it is NumPy's to compute.

    That is one softmax over all labels, and a batch whose scores need too much memory.
    """
    is_tree = layer.tree.n_nodes > 0 and not layer.is_one_softmax
    if not (is_tree and takes(layer.weight, layer.bias, *arrays)):
        return None
    if (of_codes := _PASSES.get(layer.codes)) is None:
        of_codes = _PASSES[layer.codes] = TreePass(layer.codes)
    return of_codes if n_items * of_codes.most_scores <= MOST_SCORES else None


def batch_nll(layer: HierarchicalSoftmax, hidden: Array, targets: Integer) -> Any:
    """Twin of `hierarchical.batch_nll`."""
    if (of_tree := tree_pass(layer, len(hidden), hidden)) is None:
        return NotImplemented
    weight, bias = layer.weight, layer.bias
    check_shape("targets", np.shape(targets), (len(hidden),))
    check_shape("hidden vectors", hidden.shape, (len(hidden), weight.shape[1]))
    if of_tree.is_narrow:
        ids = checked_ids(targets, layer.n_labels)
        table, slot_of = checked_features(layer.bound, len(ids)), SLOTS.of(len(weight))
        return _losses(weight, bias, hidden, ids, of_tree.codes, table, slot_of, False)
    plan = of_tree.plan(targets, len(weight), layer.bound, with_rows=False)
    buffers: Buffers = new_buffers(hidden, plan, False)
    with of_tree.one_thread:
        pass_in_threads(weight, bias, hidden, plan, buffers)
    return buffers.losses


def batch_loss(layer: HierarchicalSoftmax, hidden: Array, targets: Integer) -> Any:
    """Twin of `hierarchical.batch_loss`."""
    if (of_tree := tree_pass(layer, len(hidden), hidden)) is None:
        return NotImplemented
    weight, bias, features = layer.weight, layer.bias, layer.bound
    check_shape("targets", np.shape(targets), (len(hidden),))
    check_shape("hidden vectors", hidden.shape, (len(hidden), weight.shape[1]))
    plan = of_tree.plan(targets, len(weight), features)
    if of_tree.is_narrow and features is None and len(hidden) >= MANY_ITEMS and n_threads() > 1:
        result = _gradients_in_threads(weight, bias, hidden, plan)
    else:
        slots = SLOTS.of(0 if features is None else len(features[3]))
        with of_tree.one_thread:
            result = _gradients(weight, bias, hidden, plan, slots)
    losses, grad_hidden, rows, grad_weight, grad_bias, index, values = result
    parameters = [
        ParameterGradient("node_weight", rows, grad_weight),
        ParameterGradient("node_bias", rows, grad_bias),
    ]
    if features is not None:
        parameters.append(ParameterGradient("feature_weight", index, values))
    return losses, Gradients(grad_hidden, parameters)
