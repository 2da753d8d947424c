"""Forward and backward pass of a batch through a tree: losses and gradients, with features or not.

Matrix products of wide nodes run on one BLAS thread: results would depend on their number.
"""

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  what products here call: `ONE_BLAS_THREAD` holds it

from hstree._compiled import STEP, in_parts, inlined, jit, takes
from hstree._ragged import offsets, ranges
from hstree._typing import Array, Float32, Float64, Int32, Integer
from hstree.layers.base import Gradients, ParameterGradient
from hstree.layers.compiled.arithmetic import (
    ONE,
    ZERO,
    add_rows,
    check_shape,
    checked_ids,
    clear,
    dot_rows,
    exp,
    flipped,
    log1p,
)
from hstree.layers.compiled.plans import NO_WIDE, PARTS, Plan, TreeCodes, lay_out
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


class OfItems(NamedTuple):
    """What a pass writes of items, and of their scores at narrow nodes."""

    losses: Float64  # (B,)
    error: Float32  # (S,) logits, then errors, of scores
    log_prob: Float32  # (S,) log-probability of a decision at the first of its scores, 0 elsewhere
    #: (C,) log-probability of each code's decisions at wide nodes, then the share of the code in
    #: the probability of its target
    of_code: Float64
    grad_hidden: Float32  # (B, d); without gradients, no rows


class OfVisits(NamedTuple):
    """What a pass writes of visits of wide nodes."""

    hidden: Array  # (V, d) hidden vectors
    log_prob: Float64  # (D,) of decisions
    probability: Float32  # of all branches, at `WideNodes.score_start`
    grad: Float32  # (n, d) gradients of hidden vectors by each piece of a node's rows


# Narrow nodes.


@inlined
def _decide(logits, sign, width, branch, log_prob):
    """Turn some logits into errors, in place, and write the log-probabilities of decisions."""
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


@inlined
def _share_codes(log_prob, code_start, first, stop, error, of_code):
    """Return the loss of an item of codes `first` to `stop`; scale their errors by their shares."""
    for c in range(first, stop):
        for s in range(code_start[c], code_start[c + 1]):
            of_code[c] += log_prob[s]
    if stop - first == 1:
        loss = -of_code[first]
        of_code[first] = 1
        return loss
    largest, total = of_code[first], 0.0
    for c in range(first + 1, stop):
        largest = max(largest, of_code[c])
    for c in range(first, stop):
        total += np.exp(of_code[c] - largest)
    loss = -largest - np.log(total)
    for c in range(first, stop):
        of_code[c] = np.exp(of_code[c] + loss)
        share = np.float32(of_code[c])
        for s in range(code_start[c], code_start[c + 1]):
            error[s] *= share
    return loss


@jit
def _pass_of_items(first, stop, weight, bias, hidden, scores, features, of_items):
    """Write losses, shares of codes, errors at narrow nodes, and the gradients through these."""
    # taken out of the plan once: numba counts references to the arrays that a field holds
    item_start, code_start, row, sign, width, branch = scores
    feature_start, feature_score, feature, feature_weight = features
    losses, error, log_prob, of_code, grad_hidden = of_items
    for begin in range(first, stop, BLOCK):
        end = min(begin + BLOCK, stop)
        for b in range(begin, end):
            s, t = code_start[item_start[b]], code_start[item_start[b + 1]]
            dot_rows(weight, bias, row, s, t, hidden[b], error)
            if len(feature_start) > 0:
                for p in range(feature_start[b], feature_start[b + 1]):
                    error[feature_score[p]] += feature_weight[feature[p]]
        some = slice(code_start[item_start[begin]], code_start[item_start[end]])
        _decide(error[some], sign[some], width[some], branch[some], log_prob[some])
        for b in range(begin, end):
            c, d = item_start[b], item_start[b + 1]
            losses[b] = _share_codes(log_prob, code_start, c, d, error, of_code)
            if len(grad_hidden) > 0:
                clear(grad_hidden[b])
                add_rows(weight, row, error, code_start[c], code_start[d], grad_hidden[b])


@inlined
def narrow_gradient(begin, end, hidden, item, error, grad):
    """Write the gradient (d,) of a row, of items and errors from `begin`; return its bias's."""
    clear(grad)
    add_rows(hidden, item, error, begin, end, grad)
    of_bias = ZERO
    for p in range(begin, end):
        of_bias += error[p]
    return of_bias


@jit
def _some_rows(first, stop, hidden, start, item, error, grad_weight, grad_bias):
    """Write the gradients of the rows of narrow nodes from `first` to `stop`."""
    for i in range(first, stop):
        grad = grad_weight[i]
        grad_bias[i] = narrow_gradient(start[i], start[i + 1], hidden, item, error, grad)


# Wide nodes.


@jit
def _pass_of_visits(first, stop, weight, bias, wide, features, of_visits):
    """Write log-probabilities of decisions and probabilities of branches, for some parts."""
    hidden, log_prob, probability, _ = of_visits
    ends, feature_row, feature_weight = features
    for piece in range(wide.parts[first], wide.parts[stop]):
        i, begin = wide.pieces[piece, 0], wide.pieces[piece, 1]
        n, k = wide.pieces[piece, 2] - begin, wide.width[i]
        of_node = slice(wide.rows[i], wide.rows[i] + k)
        # (n, k) logits, then probabilities
        place = wide.score_start[i] + begin * k
        table = probability[place : place + n * k].reshape(n, k)
        begin += wide.start[i]
        np.dot(hidden[begin : begin + n], weight[of_node].T, table)
        for p in range(n if len(ends) > 0 else 0):
            for j in range(ends.shape[1]):
                for f in range(ends[begin + p, j, 0], ends[begin + p, j, 1]):
                    table[p, feature_row[f] - wide.rows[i]] += feature_weight[f]
        for p in range(n):
            logits, of_bias, rank = table[p], bias[of_node], np.int32(-(2**31))
            for j in range(k):
                logits[j] += of_bias[j]
                rank = max(rank, flipped(np.float32(logits[j]).view(np.int32)))
            largest = np.int32(flipped(rank)).view(np.float32)
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


@inlined
def _share(wide, v, of_code):
    """Return the sum of the shares of the codes that a visit is of."""
    share = 0.0
    for d in range(wide.decision_start[v], wide.decision_start[v + 1]):
        share += of_code[wide.code[d]]
    return share


@inlined
def wide_gradient(piece, weight, wide, of_code, of_visits):
    """Compute the gradients of some rows of a wide node, and write those of its visits.

    Returns the first of the rows, their gradients (r, d), and those of their biases (r,).
    """
    i, first, stop, place = wide.row_pieces[piece]
    begin, n, k = wide.start[i], wide.start[i + 1] - wide.start[i], wide.width[i]
    table = of_visits.probability[wide.score_start[i] : wide.score_start[i + 1]].reshape(n, k)
    # (n, r) errors of the decisions of each visit, scaled by the shares of their codes: their sums
    scaled, grad_bias = np.empty((n, stop - first), np.float32), np.empty(stop - first, np.float32)
    grad_weight = np.empty((stop - first, weight.shape[1]), np.float32)
    clear(grad_bias)
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
    np.dot(scaled, weight[row : row + stop - first], of_visits.grad[place : place + n])
    np.dot(scaled.T, of_visits.hidden[begin : begin + n], grad_weight)
    return row, grad_weight, grad_bias


@jit
def _wide_rows(weight, wide, of_code, of_visits, grad_weight, grad_bias):
    """Write the gradients of the rows of wide nodes, one node's after the other's."""
    n = 0
    for piece in range(len(wide.row_pieces)):
        _, of_weight, of_bias = wide_gradient(piece, weight, wide, of_code, of_visits)
        for i in range(len(of_bias)):
            grad_bias[n] = of_bias[i]
            for j in range(of_weight.shape[1]):
                grad_weight[n, j] = of_weight[i, j]
            n += 1


@jit
def add_wide(row_pieces, start, item, grad, grad_hidden):
    """Add the gradients (n, d) of items through wide nodes, which `wide_gradient` wrote."""
    for piece in range(len(row_pieces)):
        i, place = row_pieces[piece, 0], row_pieces[piece, 3]
        for p in range(start[i + 1] - start[i]):
            b = item[start[i] + p]
            for j in range(grad_hidden.shape[1]):
                grad_hidden[b, j] += grad[place + p, j]


# Features.


@jit
def _errors_of_visits(ends, feature_row, wide, of_code, probability, errors):
    """Write the error of each feature of visits."""
    n = 0
    for node in range(len(wide.rows)):
        for v in range(wide.start[node], wide.start[node + 1]):
            place = wide.score_start[node] + (v - wide.start[node]) * wide.width[node]
            of_visit = np.float32(_share(wide, v, of_code))
            for i in range(ends.shape[1]):
                for f in range(ends[v, i, 0], ends[v, i, 1]):
                    j = feature_row[f] - wide.rows[node]
                    errors[n] = of_visit * probability[place + j]
                    for d in range(wide.decision_start[v], wide.decision_start[v + 1]):
                        if wide.branch[d] == j:
                            errors[n] -= np.float32(of_code[wide.code[d]])
                    n += 1


@jit
def _sums_of_groups(values, start, place, sums):
    for g in range(len(sums)):
        total = ZERO
        for p in range(start[g], start[g + 1]):
            total += values[place[p]]
        sums[g] = total


class Forward(NamedTuple):
    """A batch whose losses are known, and what its gradients are computed from."""

    weight: Array
    bias: Array
    hidden: Array  # (B, d)
    plan: Plan
    of_items: OfItems
    of_visits: OfVisits

    @classmethod
    def of(
        cls, weight: Array, bias: Array, hidden: Array, plan: Plan, *, with_gradients: bool = True
    ) -> "Forward":
        """Do the forward pass of a batch, and the gradients through narrow nodes.

        Threads share the pieces of wide nodes, and the items of a large batch: each writes what
        does not depend on others.
        """
        scores, wide = plan.scores, plan.wide
        n, d = hidden.shape
        rows = (n, d) if with_gradients else (0, d)
        n_scores, n_codes = len(scores.row), len(scores.code_start) - 1
        of_items = OfItems(
            np.empty(n),
            np.empty(n_scores, np.float32),
            np.empty(n_scores, np.float32),
            np.zeros(n_codes),
            np.empty(rows, np.float32),
        )
        n_visits = 0
        if with_gradients and len(wide.row_pieces):
            node, _, _, before = wide.row_pieces[-1]
            n_visits = before + wide.start[node + 1] - wide.start[node]
        of_visits = OfVisits(
            hidden.take(wide.item, 0),
            np.empty(len(wide.code)),
            np.empty(wide.score_start[-1], np.float32),
            np.empty((n_visits, d), np.float32),
        )
        if wide is not NO_WIDE:
            of_wide = wide, plan.wide_features, of_visits
            with ONE_BLAS_THREAD:
                in_parts(PARTS, _pass_of_visits, weight, bias, *of_wide, step=1)
            np.add.at(of_items.of_code, wide.code, of_visits.log_prob)
        arrays = weight, bias, hidden, scores, plan.features, of_items
        in_parts(n, _pass_of_items, *arrays, step=STEP if n >= MANY_ITEMS else max(1, n))
        return cls(weight, bias, hidden, plan, of_items, of_visits)

    def feature_gradient(self) -> Array:
        """Return the gradient with respect to the weights of `ByFeature.feature`."""
        _, _, wide, of_scores, of_visits, by_feature = self.plan
        errors, n = np.empty(len(by_feature.place), np.float32), len(of_scores.score)
        errors[:n] = self.of_items.error.take(of_scores.score)
        if wide is not NO_WIDE:
            shares, probability = self.of_items.of_code, self.of_visits.probability
            _errors_of_visits(of_visits.ends, of_visits.row, wide, shares, probability, errors[n:])
        sums = np.empty(len(by_feature.feature), np.float32)
        _sums_of_groups(errors, by_feature.start, by_feature.place, sums)
        return sums


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
        #: whether no node is wide
        self.is_narrow = int(tree.fan_out.max()) <= NARROW
        scores, is_wide = np.where(tree.fan_out == 2, 1, tree.fan_out), tree.fan_out > NARROW
        # of each node and those above it, then of each label
        of_nodes = (sum_to_root(n, tree.parent) for n in (scores, scores * ~is_wide, is_wide * 1))
        last = tree.edge_node[codes.leaf_edge]
        all_scores, narrow, wide = (
            np.add.reduceat(n[last], codes.label_start[:-1]) for n in of_nodes
        )
        #: largest number of scores of one target
        self.most_scores = float(all_scores.max())
        sizes = np.array([np.diff(codes.label_start), narrow, wide], np.int64)
        self.codes = TreeCodes(codes.label_start, codes.leaf_edge, sizes, edges)
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
        if features is not None:
            features = checked_features(features, len(ids))
        has_wide = not self.is_narrow
        return lay_out(ids, self.codes, features, n_rows, has_wide=has_wide, with_rows=with_rows)


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


# The twins of functions of `hstree.layers.hierarchical`.

_PASSES: WeakKeyDictionary[Codes, TreePass] = WeakKeyDictionary()


def tree_pass(layer: HierarchicalSoftmax, n_items: int, *arrays: Array) -> TreePass | None:
    """Return the pass of batches of `n_items`; None where it is NumPy's to compute.

    That is one softmax over all labels, and a batch whose scores need too much memory.
    """
    is_tree = layer.tree.n_nodes > 0 and (not layer.is_one_softmax or layer.needs_contexts)
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
    plan = of_tree.plan(targets, len(weight), layer.bound, with_rows=False)
    return Forward.of(weight, bias, hidden, plan, with_gradients=False).of_items.losses


def batch_loss(layer: HierarchicalSoftmax, hidden: Array, targets: Integer) -> Any:
    """Twin of `hierarchical.batch_loss`."""
    if (of_tree := tree_pass(layer, len(hidden), hidden)) is None:
        return NotImplemented
    weight, bias, features = layer.weight, layer.bias, layer.bound
    check_shape("targets", np.shape(targets), (len(hidden),))
    check_shape("hidden vectors", hidden.shape, (len(hidden), weight.shape[1]))
    plan = of_tree.plan(targets, len(weight), features)
    forward = Forward.of(weight, bias, hidden, plan)
    losses, error, _, of_code, grad_hidden = forward.of_items
    by_row, wide, n = plan.by_row, plan.wide, len(plan.by_row.rows)
    of_wide = wide.rows, offsets(wide.width)
    rows = np.concatenate([by_row.rows, ranges(*of_wide)])
    grad_weight = np.empty((len(rows), hidden.shape[1]), np.float32)
    grad_bias = np.empty(len(rows), np.float32)
    step = STEP if len(hidden) >= MANY_ITEMS else max(1, n)
    of_rows = by_row.start, by_row.item, error.take(by_row.score)
    in_parts(n, _some_rows, hidden, *of_rows, grad_weight, grad_bias, step=step)
    if wide is not NO_WIDE:
        of_visits, gradients = forward.of_visits, (grad_weight[n:], grad_bias[n:])
        with ONE_BLAS_THREAD:
            _wide_rows(weight, wide, of_code, of_visits, *gradients)
        add_wide(wide.row_pieces, wide.start, wide.item, of_visits.grad, grad_hidden)
    parameters = [
        ParameterGradient("node_weight", rows, grad_weight),
        ParameterGradient("node_bias", rows, grad_bias),
    ]
    if features is not None:
        index, values = plan.by_feature.feature, forward.feature_gradient()
        parameters.append(ParameterGradient("feature_weight", index, values))
    return losses, Gradients(grad_hidden, parameters)
