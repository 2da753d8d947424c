"""Negative log-likelihoods of a batch over a tree, and their gradients.

The formulas and their order are those of `hstree.layers.hierarchical`: log P of each decision, log
P of a path as the sum over its decisions, log P of a label over its paths, and backwards the error
of each logit. Logits are replaced by errors in place. Pairs of an item and a weight row are
computed for a few items at a time, so that they stay in the first-level cache. Wide nodes are
matrix products on one BLAS thread each. Threads share pieces of fixed sizes, so that results do not
depend on the number of threads.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  the BLAS that compiled products call

from hstree._arrays import Array, Float32, Float64
from hstree._parallel import STEP, in_parts, one_blas_thread
from hstree.kernels.arithmetic import (
    ONE,
    ZERO,
    add_rows,
    check_shape,
    clear,
    dot_rows,
    exp,
    flipped,
    log1p,
)
from hstree.kernels.jit import inline, jit
from hstree.kernels.layout import NO_WIDE, PARTS, Layout

#: Number of items that are computed together, so that their weight rows stay in first-level cache.
BLOCK = 8
#: Minimum number of items in a batch that several threads share.
MANY_ITEMS = 2048


class ItemResults(NamedTuple):
    """Results of a forward pass for items, and for their pairs with weight rows."""

    nll: Float64  # (B,)
    error: Float32  # (P,) logits of pairs, then their errors
    log_prob: Float32  # (P,) log P of a decision at its first pair, 0 at the other pairs
    #: (C,) log P of each code's decisions at wide nodes, then P(code) / P(label)
    code_fraction: Float64
    grad_hidden: Float32  # (B, d); no rows if no gradients are needed


class VisitResults(NamedTuple):
    """Results of a forward pass for visits of wide nodes."""

    hidden: Array  # (v, d) hidden vectors
    log_prob: Float64  # (D,) log P of decisions
    probability: Float32  # softmax over the children at each visit, at `WideNodes.logit_start`
    grad_hidden: Float32  # (n, d) gradients of hidden vectors from each piece of a node's rows


# Pairs: decisions at nodes with up to NARROW children.


@jit
def _decide_pairs(first, stop, weight, bias, hidden, pairs, features, results):
    """Write the losses of items, the errors of their pairs, and the gradients from these."""
    # Unpack once, since numba counts references to arrays in fields
    item_start, code_start, row, sign, width, branch = pairs
    feature_start, feature_pair, feature, feature_weight = features
    nll, error, log_prob, code_fraction, grad_hidden = results
    for begin in range(first, stop, BLOCK):
        end = min(begin + BLOCK, stop)

        # (P,) logits q.h + b, including the weights of n-gram features
        for b in range(begin, end):
            p = code_start[item_start[b]]
            p_end = code_start[item_start[b + 1]]
            dot_rows(weight, bias, row, p, p_end, hidden[b], error)
            if len(feature_start) > 0:
                for f in range(feature_start[b], feature_start[b + 1]):
                    error[feature_pair[f]] += feature_weight[feature[f]]

        # log P of each decision, and d(-log P) / d logit
        block = slice(code_start[item_start[begin]], code_start[item_start[end]])
        if not _decide_binary(error[block], sign[block], log_prob[block]):
            _decide_narrow(error[block], width[block], branch[block], log_prob[block])

        # log P of each label, and gradients weighted by P(code) / P(label)
        for b in range(begin, end):
            c = item_start[b]
            c_end = item_start[b + 1]
            nll[b] = _sum_codes(log_prob, code_start, c, c_end, error, code_fraction)
            if len(grad_hidden) > 0:
                clear(grad_hidden[b])
                add_rows(weight, row, error, code_start[c], code_start[c_end], grad_hidden[b])


@inline
def _decide_binary(logits, sign, log_prob):
    """Decide at nodes with two children: P(first) = sigmoid(logit).

    Replaces logits by errors, in place. Returns whether all decisions are at such nodes; other
    logits stay.
    """
    # Two loops: LLVM vectorises each of them, but not one combined loop
    for p in range(len(logits)):
        log_prob[p] = exp(-abs(logits[p]))
    is_binary = True
    for p in range(len(logits)):
        # log sigmoid(z) = min(z, 0) - log(1 + exp(-|z|)), accurate at both ends
        z = sign[p] * logits[p]
        small = log_prob[p]
        log_prob[p] = min(z, ZERO) - log1p(small)

        # d(-log P) / d logit = sigmoid(logit) - [first child taken] = -sign sigmoid(-z)
        error = -sign[p] * (small if z >= 0 else ONE) / (ONE + small)
        logits[p] = logits[p] if sign[p] == 0 else error
        is_binary &= sign[p] != 0
    return is_binary


@inline
def _decide_narrow(logits, width, branch, log_prob):
    """Decide at nodes with 3 to NARROW children: a softmax over the logits of each decision.

    Replaces logits by errors, in place.
    """
    p = 0
    while p < len(logits):
        k = width[p]
        if k == 0:  # a binary node
            p += 1
            continue
        largest = logits[p]
        for i in range(p + 1, p + k):
            largest = max(largest, logits[i])
        chosen = logits[p + branch[p]] - largest
        total = ZERO
        for i in range(p, p + k):
            logits[i] = exp(logits[i] - largest)
            total += logits[i]
            log_prob[i] = 0
        log_prob[p] = chosen - np.log(total)

        # d(-log P) / d logit = softmax - [child taken]
        for i in range(p, p + k):
            logits[i] /= total
        logits[p + branch[p]] -= 1
        p += k


@inline
def _sum_codes(log_prob, code_start, first, stop, error, code_fraction):
    """Return the nll of an item with the codes from `first` to `stop`; scale their errors.

    `code_fraction` initially holds log P of the decisions at wide nodes, and afterwards
    P(code) / P(label). The errors of a code's pairs are multiplied by this fraction.
    """
    # log P(code) = sum over its decisions
    for c in range(first, stop):
        for p in range(code_start[c], code_start[c + 1]):
            code_fraction[c] += log_prob[p]
    if stop - first == 1:
        nll = -code_fraction[first]
        code_fraction[first] = 1
        return nll

    # P(label) = sum over its codes
    largest = code_fraction[first]
    for c in range(first + 1, stop):
        largest = max(largest, code_fraction[c])
    total = 0.0
    for c in range(first, stop):
        total += np.exp(code_fraction[c] - largest)
    nll = -largest - np.log(total)

    # d nll / d log P(code) = -P(code) / P(label)
    for c in range(first, stop):
        code_fraction[c] = np.exp(code_fraction[c] + nll)
        fraction = np.float32(code_fraction[c])
        for p in range(code_start[c], code_start[c + 1]):
            error[p] *= fraction
    return nll


@inline
def pair_gradient(begin, end, hidden, item, error, grad):
    """Write the gradient (d,) of a weight row from its pairs; return the gradient of its bias."""
    clear(grad)
    add_rows(hidden, item, error, begin, end, grad)
    grad_bias = ZERO
    for p in range(begin, end):
        grad_bias += error[p]
    return grad_bias


# Wide nodes: one matrix product for each.


@jit
def _decide_wide(first, stop, weight, bias, wide, features, results):
    """Write log P of decisions at wide nodes, and softmaxes, for some parts of the visits."""
    hidden, log_prob, probability, _ = results
    ends, feature_row, feature_weight = features
    piece, part_start = wide.visits
    for p in range(part_start[first], part_start[stop]):
        i = piece[p, 0]
        first_visit = piece[p, 1]
        n = piece[p, 2] - first_visit
        k = wide.width[i]
        rows = slice(wide.row[i], wide.row[i] + k)

        # (n, k) logits, then probabilities
        at = wide.logit_start[i] + first_visit * k
        table = probability[at : at + n * k].reshape(n, k)
        first_visit += wide.visit_start[i]
        np.dot(hidden[first_visit : first_visit + n], weight[rows].T, table)
        for v in range(n if len(ends) > 0 else 0):
            for j in range(ends.shape[1]):
                for f in range(ends[first_visit + v, j, 0], ends[first_visit + v, j, 1]):
                    table[v, feature_row[f] - wide.row[i]] += feature_weight[f]

        for v in range(n):
            # Add the biases; find the largest logit by integer comparison, which is vectorised
            logits = table[v]
            node_bias = bias[rows]
            rank = np.int32(-(2**31))
            for j in range(k):
                logits[j] += node_bias[j]
                rank = max(rank, flipped(np.float32(logits[j]).view(np.int32)))
            largest = np.int32(flipped(rank)).view(np.float32)

            # log P = logit - ln Z
            visit = first_visit + v
            decisions = range(wide.decision_start[visit], wide.decision_start[visit + 1])
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


@inline
def _visit_fraction(wide, v, code_fraction):
    """Return the sum of the fractions of the codes in a visit."""
    fraction = 0.0
    for d in range(wide.decision_start[v], wide.decision_start[v + 1]):
        fraction += code_fraction[wide.code[d]]
    return fraction


@inline
def wide_gradient(p, weight, wide, code_fraction, results):
    """Compute the gradients of piece p of wide nodes' rows; write the gradients of its visits.

    Returns the first row, the gradients of the rows (r, d), and those of their biases (r,).
    """
    i, first, stop, n_before = wide.rows.piece[p]
    first_visit = wide.visit_start[i]
    n = wide.visit_start[i + 1] - first_visit
    table = results.probability[wide.logit_start[i] : wide.logit_start[i + 1]]
    table = table.reshape(n, wide.width[i])

    # (n, r) errors: P(code) / P(label) * (softmax - [child taken]), summed over a visit's decisions
    error = np.empty((n, stop - first), np.float32)
    grad_bias = np.empty(stop - first, np.float32)
    clear(grad_bias)
    for v in range(n):
        visit = first_visit + v
        fraction = np.float32(_visit_fraction(wide, visit, code_fraction))
        for j in range(stop - first):
            error[v, j] = fraction * table[v, first + j]
        for d in range(wide.decision_start[visit], wide.decision_start[visit + 1]):
            if first <= wide.branch[d] < stop:
                error[v, wide.branch[d] - first] -= np.float32(code_fraction[wide.code[d]])
        for j in range(stop - first):
            grad_bias[j] += error[v, j]

    row = wide.row[i] + first
    grad_weight = np.empty((stop - first, weight.shape[1]), np.float32)
    np.dot(error, weight[row : row + stop - first], results.grad_hidden[n_before : n_before + n])
    np.dot(error.T, results.hidden[first_visit : first_visit + n], grad_weight)
    return row, grad_weight, grad_bias


@jit
def add_visit_gradients(row_piece, visit_start, item, visit_grad, grad_hidden):
    """Add the gradients (n, d) of visits, written by `wide_gradient`, to those of their items."""
    for p in range(len(row_piece)):
        i = row_piece[p, 0]
        n_before = row_piece[p, 3]
        for v in range(visit_start[i + 1] - visit_start[i]):
            b = item[visit_start[i] + v]
            for j in range(grad_hidden.shape[1]):
                grad_hidden[b, j] += visit_grad[n_before + v, j]


# N-gram features.


@jit
def _visit_errors(ends, feature_row, wide, code_fraction, probability, errors):
    """Write the error of each feature in visits."""
    n = 0
    for node in range(len(wide.row)):
        for v in range(wide.visit_start[node], wide.visit_start[node + 1]):
            at = wide.logit_start[node] + (v - wide.visit_start[node]) * wide.width[node]
            fraction = np.float32(_visit_fraction(wide, v, code_fraction))
            for i in range(ends.shape[1]):
                for f in range(ends[v, i, 0], ends[v, i, 1]):
                    j = feature_row[f] - wide.row[node]
                    errors[n] = fraction * probability[at + j]
                    for d in range(wide.decision_start[v], wide.decision_start[v + 1]):
                        if wide.branch[d] == j:
                            errors[n] -= np.float32(code_fraction[wide.code[d]])
                    n += 1


@jit
def group_sums(values, start, position, sums):
    """Write the sum (G,) of the values at the positions of each group."""
    for g in range(len(sums)):
        total = ZERO
        for i in range(start[g], start[g + 1]):
            total += values[position[i]]
        sums[g] = total


# A complete pass.


class ForwardPass(NamedTuple):
    """Losses of a batch, and the errors from which its gradients are computed."""

    weight: Array
    bias: Array
    hidden: Array  # (B, d)
    layout: Layout
    items: ItemResults
    visits: VisitResults

    @classmethod
    def run(
        cls,
        weight: Array,
        bias: Array,
        hidden: Array,
        layout: Layout,
        *,
        with_gradients: bool = True,
    ) -> "ForwardPass":
        """Run the forward pass of a batch; also compute gradients of hidden vectors from pairs.

        Threads share the pieces of wide nodes, and the items of a large batch. Each thread writes
        to separate elements.
        """
        pairs = layout.pairs
        wide = layout.wide
        n_items, d = hidden.shape
        n_pairs = len(pairs.row)
        items = ItemResults(
            nll=np.empty(n_items),
            error=np.empty(n_pairs, np.float32),
            log_prob=np.empty(n_pairs, np.float32),
            code_fraction=np.zeros(len(pairs.code_start) - 1),
            grad_hidden=np.empty((n_items if with_gradients else 0, d), np.float32),
        )
        n_gradients = 0
        if with_gradients and len(wide.rows.piece):
            node, _, _, n_before = wide.rows.piece[-1]
            n_gradients = n_before + wide.visit_start[node + 1] - wide.visit_start[node]
        visits = VisitResults(
            hidden=hidden.take(wide.item, 0),
            log_prob=np.empty(len(wide.code)),
            probability=np.empty(wide.logit_start[-1], np.float32),
            grad_hidden=np.empty((n_gradients, d), np.float32),
        )

        # Wide nodes first, since the loss of an item includes all decisions on its codes
        if wide is not NO_WIDE:
            features = layout.visit_features
            with one_blas_thread():
                in_parts(PARTS, _decide_wide, weight, bias, wide, features, visits, step=1)
            np.add.at(items.code_fraction, wide.code, visits.log_prob)
        in_parts(
            n_items,
            _decide_pairs,
            weight,
            bias,
            hidden,
            pairs,
            layout.pair_features,
            items,
            step=STEP if n_items >= MANY_ITEMS else max(1, n_items),
        )
        return cls(weight, bias, hidden, layout, items, visits)

    def feature_gradient(self) -> Array:
        """Return the gradient with respect to the weights of `FeatureOccurrences.feature`."""
        layout = self.layout
        occurrences = layout.occurrences
        n = len(layout.pair_features.pair)
        errors = np.empty(len(occurrences.occurrence), np.float32)
        errors[:n] = self.items.error.take(layout.pair_features.pair)
        if layout.wide is not NO_WIDE:
            _visit_errors(
                layout.visit_features.ends,
                layout.visit_features.row,
                layout.wide,
                self.items.code_fraction,
                self.visits.probability,
                errors[n:],
            )
        sums = np.empty(len(occurrences.feature), np.float32)
        group_sums(errors, occurrences.start, occurrences.occurrence, sums)
        return sums


def tree_nll(weight: Array, bias: Array, hidden: Array, layout: Layout) -> Float64:
    """Return the negative log-likelihoods (B,) of the targets of a batch, in nats.

    `is_supported` must accept `weight` (R, d), `bias` (R,) and `hidden` (B, d); the layout is made
    without gradients.
    """
    n_items = len(layout.pairs.item_start) - 1
    check_shape("hidden vectors", hidden.shape, (n_items, weight.shape[1]))
    return ForwardPass.run(weight, bias, hidden, layout, with_gradients=False).items.nll
