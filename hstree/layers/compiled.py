"""Compiled twins of `hstree.layers.kernels`, and the pass of a batch through a tree.

Twins take C-contiguous arrays, of float32 where they hold floats (`hstree._compiled`). Sums run in
the order of the batch, so that results do not depend on the number of threads. Functions of
arrays alone come first; what calls them with the arguments of the twins in NumPy is below.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  what products here call: `one_blas_thread` holds it

from hstree._compiled import SLOTS, in_parts, jit, jit_exact, n_threads
from hstree._typing import Array, Bool, Float64, Int32, Int64, Integer
from hstree.layers.kernels import TINY
from hstree.layers.ngram_features import Features
from hstree.layers.node_groups import one_blas_thread
from hstree.layers.top_k import MASS_MARGIN, TIE
from hstree.tree.arrays import TreeArrays
from hstree.tree.codes import Codes
from hstree.tree.weight_rows import NARROW

ZERO, ONE, _TWO = np.float32(0), np.float32(1), np.float32(2)
TINY32 = np.float32(TINY)
#: exp below this is zero in float32
_LEAST = np.float32(-87)
_LOG2_E = np.float32(np.log2(np.e))
#: ln 2 in two parts: the first has few digits, so that its multiples are exact
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(np.log(2) - 0.693359375)
#: Items computed together: the rows of their scores stay in the first-level cache.
BLOCK = 8
#: Items of a batch from which on a pass is worth several threads.
MANY_ITEMS = 2048
#: Least work at a wide node that is a piece by itself: items of its scores, rows of its gradients.
ITEMS, ROWS = 64, 256
#: Parts of the pieces of wide nodes, of about the same work: the most threads that share them.
PARTS = 8
#: Work of a row's update, in items that its products take as long for.
PER_ROW = 32


# Functions of one number, without branches and calls, so that loops over them are vectorised.


@jit
def exp(x):
    """Return exp(x) for x of at most 88, within 1e-7 of it; 0 below -87.

    ``2**n exp(r)`` with r from ``-ln 2 / 2`` to ``ln 2 / 2``: the power by its exponent bits, the
    rest by its series.
    """
    is_zero = x < _LEAST
    x = max(x, _LEAST)
    n = np.float32(np.floor(x * _LOG2_E + np.float32(0.5)))
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = np.float32(1 / 5040)
    p = p * r + np.float32(1 / 720)
    p = p * r + np.float32(1 / 120)
    p = p * r + np.float32(1 / 24)
    p = p * r + np.float32(1 / 6)
    p = p * r + np.float32(1 / 2)
    p = p * r * r + r + ONE
    power = np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
    return ZERO if is_zero else p * power


@jit
def log1p(x):
    """Return log(1 + x) for x from 0 to 1: ``2 artanh(t)`` with ``t = x / (2 + x)``, by series."""
    t = x / (_TWO + x)
    u = t * t
    p = np.float32(2 / 15)
    p = p * u + np.float32(2 / 13)
    p = p * u + np.float32(2 / 11)
    p = p * u + np.float32(2 / 9)
    p = p * u + np.float32(2 / 7)
    p = p * u + np.float32(2 / 5)
    p = p * u + np.float32(2 / 3)
    return t * (p * u + _TWO)


@jit
def group(ids, slot_of):
    """Group the places of ids (P,) by their values, which `slot_of` has a place for (`SLOTS`).

    Returns the values (G,), each once, in the order of their first places; the offsets of each
    (G + 1,); and its places (P,), ascending. O(P), without a sort.
    """
    values, start = np.empty(len(ids), np.int64), np.zeros(len(ids) + 1, np.int64)
    slot, place = np.empty(len(ids), np.int32), np.empty(len(ids), np.int32)
    n = 0
    for p in range(len(ids)):
        value = ids[p]
        if slot_of[value] < 0:
            slot_of[value] = n
            values[n] = value
            n += 1
        slot[p] = slot_of[value]
        start[slot[p] + 1] += 1
    for g in range(n):
        slot_of[values[g]] = -1
        start[g + 1] += start[g]
    following = start[:n].copy()
    for p in range(len(ids)):
        place[following[slot[p]]] = p
        following[slot[p]] += 1
    return values[:n], start[: n + 1], place


# Sums over rows of a matrix, four at a time: each number of the vector is read once for the four.


@jit
def _dot(matrix, row, vector):
    total = ZERO
    for j in range(len(vector)):
        total += matrix[row, j] * vector[j]
    return total


@jit
def dot_rows(matrix, bias, row, first, stop, vector, out):
    """Write ``matrix[row] @ vector + bias[row]`` for the rows from `first` to `stop`."""
    of_four = stop - (stop - first) % 4
    for p in range(first, of_four, 4):
        a, b = np.uint64(row[p]), np.uint64(row[p + 1])
        c, d = np.uint64(row[p + 2]), np.uint64(row[p + 3])
        of_a = of_b = of_c = of_d = ZERO
        for j in range(len(vector)):
            x = vector[j]
            of_a += matrix[a, j] * x
            of_b += matrix[b, j] * x
            of_c += matrix[c, j] * x
            of_d += matrix[d, j] * x
        out[p], out[p + 1] = of_a + bias[a], of_b + bias[b]
        out[p + 2], out[p + 3] = of_c + bias[c], of_d + bias[d]
    for p in range(of_four, stop):
        a = np.uint64(row[p])
        out[p] = _dot(matrix, a, vector) + bias[a]


@jit
def add_rows(matrix, row, scale, first, stop, total):
    """Add ``scale @ matrix[row]`` to `total` (d,), for the rows from `first` to `stop`."""
    of_four = stop - (stop - first) % 4
    for p in range(first, of_four, 4):
        a, b = np.uint64(row[p]), np.uint64(row[p + 1])
        c, d = np.uint64(row[p + 2]), np.uint64(row[p + 3])
        of_a, of_b, of_c, of_d = scale[p], scale[p + 1], scale[p + 2], scale[p + 3]
        for j in range(len(total)):
            total[j] += (
                of_a * matrix[a, j]
                + of_b * matrix[b, j]
                + of_c * matrix[c, j]
                + of_d * matrix[d, j]
            )
    for p in range(of_four, stop):
        a, of_a = np.uint64(row[p]), scale[p]
        for j in range(len(total)):
            total[j] += of_a * matrix[a, j]


# Windows.


@jit
def add_window(embedding, position, words, total):
    """Add the vectors of words (n,), each times that of its position, to `total` (d,)."""
    n = len(words)
    for i in range(0, n - n % 4, 4):
        a, b = np.uint64(words[i]), np.uint64(words[i + 1])
        c, d = np.uint64(words[i + 2]), np.uint64(words[i + 3])
        for j in range(len(total)):
            total[j] += (
                position[i, j] * embedding[a, j]
                + position[i + 1, j] * embedding[b, j]
                + position[i + 2, j] * embedding[c, j]
                + position[i + 3, j] * embedding[d, j]
            )
    for i in range(n - n % 4, n):
        a = np.uint64(words[i])
        for j in range(len(total)):
            total[j] += position[i, j] * embedding[a, j]


@jit
def _window_sum(embedding, position, contexts, hidden):
    for b in range(len(contexts)):
        hidden[b] = 0
        add_window(embedding, position, contexts[b], hidden[b])


@jit
def add_places(embedding, position, grad_hidden, word, place, grad, grad_position):
    """Add the gradients through the places of a word, each b n + i, to those of both."""
    n, d = position.shape
    for p in place:
        b, i = np.uint64(p // n), np.uint64(p % n)
        for j in range(d):
            grad[j] += grad_hidden[b, j] * position[i, j]
            grad_position[i, j] += grad_hidden[b, j] * embedding[word, j]


@jit
def _window_sum_backward(embedding, position, contexts, grad_hidden, slot_of):
    words, start, place = group(contexts.ravel(), slot_of)
    grad_words = np.zeros((len(words), embedding.shape[1]), np.float32)
    grad_position = np.zeros(position.shape, np.float32)
    for w in range(len(words)):
        places = place[start[w] : start[w + 1]]
        add_places(embedding, position, grad_hidden, words[w], places, grad_words[w], grad_position)
    return words, grad_words, grad_position


# Trees.


@jit
def _pieces(length, start, least):
    """Cut the lengths (N,) of wide nodes into eighths, or into pieces of `least` if that is more.

    Returns
    -------
    int64 array (P, 4)
        Node, first and last of the piece, and the number of visits in the pieces before it.
    """
    size = np.empty(len(length), np.int64)
    n = before = 0
    for i in range(len(length)):
        size[i] = max(least, (length[i] + 7) // 8)
        n += (length[i] + size[i] - 1) // size[i]
    pieces = np.empty((n, 4), np.int64)
    n = 0
    for i in range(len(length)):
        for first in range(0, length[i], size[i]):
            pieces[n, 0], pieces[n, 1], pieces[n, 3] = i, first, before
            pieces[n, 2] = min(first + size[i], length[i])
            before += start[i + 1] - start[i]
            n += 1
    return pieces


@jit
def _even_parts(work, offsets):
    """Cut pieces into parts of about the same work (n,), in order: write offsets (PARTS + 1,)."""
    total, piece, so_far = work.sum(), 0, 0
    for part in range(1, PARTS):
        while piece < len(work) and (so_far + work[piece]) * PARTS <= total * part:
            so_far += work[piece]
            piece += 1
        offsets[part] = piece
    offsets[0], offsets[PARTS] = 0, len(work)


@jit
def _parts(width, start, by_visits, by_rows):
    """Return the offsets (2, PARTS + 1) of parts of pieces: those by visits, those by rows."""
    parts = np.empty((2, PARTS + 1), np.int64)
    node, length = by_visits[:, 0], by_visits[:, 2] - by_visits[:, 1]
    _even_parts(length * width[node], parts[0])
    node, length = by_rows[:, 0], by_rows[:, 2] - by_rows[:, 1]
    _even_parts(length * (start[node + 1] - start[node] + PER_ROW), parts[1])
    return parts


@jit
def _visits(of_decisions, item):
    """Group the decisions (D,) at each wide node by their items, which ascend there.

    Returns the offsets of the nodes (N + 1,) among the visits, the items of these (V,), and their
    offsets (V + 1,) among the decisions.
    """
    start = np.zeros(len(of_decisions), np.int64)
    visited, decision_start = np.empty(len(item), np.int32), np.empty(len(item) + 1, np.int64)
    n = 0
    for i in range(len(of_decisions) - 1):
        for d in range(of_decisions[i], of_decisions[i + 1]):
            if d == of_decisions[i] or item[d] != item[d - 1]:
                visited[n], decision_start[n] = item[d], d
                n += 1
        start[i + 1] = n
    decision_start[n] = len(item)
    return start, visited[:n], decision_start[: n + 1]


@jit
def _plan(targets, label_start, leaf_edge, edges, slot_of, with_rows):
    """Lay out the decisions of all codes of a batch's targets.

    Decisions at nodes of at most `NARROW` children are sets of scores, each with a weight row: one
    at a binary node, k at a node of k children. Those at wide nodes are grouped by their nodes.

    Returns
    -------
    by_item : tuple
        item_start (B + 1,), code_start (C + 1,): offsets of the codes of items, and of the scores
        of codes. row (S,): weight row of each score. sign (S,): 1 where the first child of a
        binary node is taken, -1 where the second is, 0 for scores of other nodes. width, branch
        (S,): at the first score of a decision at another node, its number of children and the one
        taken; 0 elsewhere. The features of the scores (`with_features`), none here.
    by_row : tuple
        rows (R,), row_start (R + 1,): rows of the scores, and the offsets of each in score (S,)
        and item (S,): its scores in the order of the batch, and their items. Empty unless
        `with_rows`, which only gradients need.
    by_node : tuple
        rows (N,), width (N,): first weight row of each wide node, and number of children; start
        (N + 1,), score_start (N + 1,): its offsets among the visits, and among their scores; code
        (D,) of each decision, item (V,) of each visit, branch (D,) of each decision; the work of
        nodes in pieces (`_pieces`), by visits and by rows; the parts of both (`_parts`);
        decision_start (V + 1,): offsets of visits among the decisions; the features of visits, none
        here. The codes of an item that pass through a node share a visit.
    """
    n_codes = n_scores = n_wide = 0
    for target in targets:
        n_codes += label_start[target + 1] - label_start[target]
        for code in range(label_start[target], label_start[target + 1]):
            edge = leaf_edge[code]
            while edge >= 0:
                k = edges[edge, 3]
                if k > NARROW:
                    n_wide += 1
                else:
                    n_scores += 1 if k == 2 else k
                edge = edges[edge, 0]
    item_start = np.empty(len(targets) + 1, np.int64)
    code_start = np.empty(n_codes + 1, np.int64)
    row, item = np.empty(n_scores, np.int32), np.empty(n_scores, np.int32)
    sign = np.zeros(n_scores, np.float32)
    width, branch = np.zeros(n_scores, np.int32), np.zeros(n_scores, np.int32)
    # of each decision at a wide node: its first row, number of children, code, item and branch
    wide = np.empty((5, n_wide), np.int32)
    c = s = w = 0
    for b in range(len(targets)):
        item_start[b] = c
        for code in range(label_start[targets[b]], label_start[targets[b] + 1]):
            code_start[c] = s
            edge = leaf_edge[code]
            while edge >= 0:
                first, k = edges[edge, 1], edges[edge, 3]
                if k > NARROW:
                    wide[0, w], wide[1, w], wide[2, w] = first, k, c
                    wide[3, w], wide[4, w] = b, edges[edge, 2]
                    w += 1
                    k = 0
                elif k == 2:
                    sign[s] = 1 - 2 * edges[edge, 2]
                    k = 1
                else:
                    width[s], branch[s] = k, edges[edge, 2]
                for r in range(first, first + k):
                    row[s], item[s] = r, b
                    s += 1
                edge = edges[edge, 0]
            c += 1
    item_start[len(targets)], code_start[n_codes] = n_codes, n_scores
    n_of_rows = n_scores if with_rows else 0
    rows, row_start, score = group(row[:n_of_rows], slot_of)
    nodes, of_decisions, decision = group(wide[0], slot_of)
    of_node = wide[1][decision[of_decisions[:-1]]].astype(np.int64)
    start, visited, decision_start = _visits(of_decisions, wide[3][decision])
    score_start = np.zeros(len(nodes) + 1, np.int64)
    score_start[1:] = np.cumsum(np.diff(start) * of_node)
    by_visits, by_rows = _pieces(np.diff(start), start, ITEMS), _pieces(of_node, start, ROWS)
    return (
        (item_start, code_start, row, sign, width, branch, _no_features()),
        (rows, row_start, score, item[score]),
        (
            nodes,
            of_node,
            start,
            score_start,
            wide[2][decision],
            visited,
            wide[4][decision],
            by_visits,
            by_rows,
            _parts(of_node, start, by_visits, by_rows),
            decision_start,
            _no_wide_features(),
        ),
    )


# Features of scores: weights that are added where an item's context has some (`NgramFeatures`).


@jit
def _no_features():
    return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)


@jit
def _no_wide_features():
    return np.empty((0, 0, 2), np.int64), np.empty(0, np.int32), np.empty(0, np.float32)


@jit
def _first_from(row, begin, end, wanted):
    """Return the first place from `begin` to `end` whose row is `wanted` or more, else `end`."""
    while begin < end:
        middle = (begin + end) // 2
        if row[middle] < wanted:
            begin = middle + 1
        else:
            end = middle
    return begin


@jit
def with_features(by_item, by_node, number, context_start, feature_row, feature_weight):
    """Return a plan whose scores have the features of contexts.

    `number` (B, n) are those of each item, -1 for none. Those of a context are a range of the
    features, in the order of their rows.

    Returns
    -------
    by_item : tuple
        With score_start (S + 1,), index (P,): the features of each score; and all weights (F,).
    by_node : tuple
        With ranges (V, n, 2): those of each visit; and the rows and weights of all features (F,).
    """
    item_start, code_start, row = by_item[0], by_item[1], by_item[2]
    n_lengths = number.shape[1]
    score_start = np.empty(len(row) + 1, np.int64)
    index = np.empty(len(row) * n_lengths, np.int64)
    n = 0
    for b in range(len(item_start) - 1):
        for s in range(code_start[item_start[b]], code_start[item_start[b + 1]]):
            score_start[s] = n
            for i in range(n_lengths):
                context = number[b, i]
                if context >= 0:
                    end = context_start[context + 1]
                    f = _first_from(feature_row, context_start[context], end, row[s])
                    if f < end and feature_row[f] == row[s]:
                        index[n] = f
                        n += 1
    score_start[len(row)] = n
    rows, width, start, item = by_node[0], by_node[1], by_node[2], by_node[5]
    ranges = np.zeros((len(item), n_lengths, 2), np.int64)
    for node in range(len(rows)):
        for v in range(start[node], start[node + 1]):
            for i in range(n_lengths):
                context = number[item[v], i]
                if context >= 0:
                    first, end = context_start[context], context_start[context + 1]
                    first = _first_from(feature_row, first, end, rows[node])
                    ranges[v, i, 0] = first
                    ranges[v, i, 1] = _first_from(feature_row, first, end, rows[node] + width[node])
    return (
        (*by_item[:6], (score_start, index[:n], feature_weight)),
        (*by_node[:11], (ranges, feature_row, feature_weight)),
    )


@jit
def _add_to_scores(features, begin, end, logits):
    """Add the features of the scores from `begin` to `end`."""
    score_start, index, feature_weight = features
    if len(feature_weight) > 0:
        for s in range(begin, end):
            for p in range(score_start[s], score_start[s + 1]):
                logits[s] += feature_weight[index[p]]


@jit
def _add_to_table(features, begin, end, first_row, table):
    """Add the features of the visits from `begin` to `end` to their logits (n, k)."""
    ranges, feature_row, feature_weight = features
    if len(feature_weight) > 0:
        for v in range(begin, end):
            for i in range(ranges.shape[1]):
                for f in range(ranges[v, i, 0], ranges[v, i, 1]):
                    table[v - begin, feature_row[f] - first_row] += feature_weight[f]


@jit
def _feature_gradients(by_item, by_node, room, slot_of):
    """Return the features of a batch, and the gradient with respect to the weight of each."""
    score_start, of_score, _ = by_item[6]
    ranges, feature_row, _ = by_node[11]
    rows, width, start, table_start, code = by_node[:5]
    branch, decision_start = by_node[6], by_node[10]
    (_, error, _, share_of, _), (_, tables), _ = room
    n = len(of_score)
    for v in range(len(ranges)):
        for i in range(ranges.shape[1]):
            n += ranges[v, i, 1] - ranges[v, i, 0]
    index, errors = np.empty(n, np.int64), np.empty(n, np.float32)
    n = 0
    for s in range(len(score_start) - 1):
        for p in range(score_start[s], score_start[s + 1]):
            index[n], errors[n] = of_score[p], error[s]
            n += 1
    for node in range(len(rows) if len(ranges) > 0 else 0):
        k = width[node]
        for v in range(start[node], start[node + 1]):
            place = table_start[node] + (v - start[node]) * k
            decisions = range(decision_start[v], decision_start[v + 1])
            share = 0.0
            for d in decisions:
                share += share_of[code[d]]
            of_visit = np.float32(share)
            for i in range(ranges.shape[1]):
                for f in range(ranges[v, i, 0], ranges[v, i, 1]):
                    j = feature_row[f] - rows[node]
                    index[n], errors[n] = f, of_visit * tables[place + j]
                    for d in decisions:
                        if branch[d] == j:
                            errors[n] -= np.float32(share_of[code[d]])
                    n += 1
    distinct, first, place = group(index, slot_of)
    sums = np.zeros(len(distinct), np.float32)
    for g in range(len(distinct)):
        for p in range(first[g], first[g + 1]):
            sums[g] += errors[place[p]]
    return distinct, sums


@jit
def _decide(logits, sign, width, branch, log_prob):
    """Turn logits (S,) into errors, in place, and write the log-probabilities (S,) of decisions.

    That of a decision with several scores is at the first of them, and 0 at the others.
    """
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
    """Return the loss of an item of codes `first` to `stop`; scale their errors by their shares.

    `of_code` (C,) holds the log-probability of a code's decisions at wide nodes, and gets its share
    of the target's probability.
    """
    for c in range(first, stop):
        for s in range(code_start[c], code_start[c + 1]):
            of_code[c] += log_prob[s]
    if stop - first == 1:
        loss = -of_code[first]
        of_code[first] = 1
        return loss
    largest = of_code[first:stop].max()
    loss = -largest - np.log(np.exp(of_code[first:stop] - largest).sum())
    for c in range(first, stop):
        of_code[c] = np.exp(of_code[c] + loss)
        share = np.float32(of_code[c])
        for s in range(code_start[c], code_start[c + 1]):
            error[s] *= share
    return loss


@jit
def tree_items(weight, bias, hidden, first, stop, by_item, of_items):
    """Write the losses of some items, the errors of their scores and the gradients, if wanted.

    Nothing is written to a `grad_hidden` without rows. `of_code` is as `_share_codes` has it.
    """
    item_start, code_start, row, sign, width, branch, features = by_item
    losses, error, log_prob, of_code, grad_hidden = of_items
    for b in range(first, stop):
        begin, end = code_start[item_start[b]], code_start[item_start[b + 1]]
        dot_rows(weight, bias, row, begin, end, hidden[b], error)
        _add_to_scores(features, begin, end, error)
    scores = slice(code_start[item_start[first]], code_start[item_start[stop]])
    _decide(error[scores], sign[scores], width[scores], branch[scores], log_prob[scores])
    for b in range(first, stop):
        losses[b] = _share_codes(
            log_prob, code_start, item_start[b], item_start[b + 1], error, of_code
        )
        if len(grad_hidden) > 0:
            grad_hidden[b] = 0
            begin, end = code_start[item_start[b]], code_start[item_start[b + 1]]
            add_rows(weight, row, error, begin, end, grad_hidden[b])


@jit
def some_items(first, stop, weight, bias, hidden, by_item, of_items):
    """Do `tree_items` for the items from `first` to `stop`."""
    for a in range(first, stop, BLOCK):
        tree_items(weight, bias, hidden, a, min(a + BLOCK, stop), by_item, of_items)


@jit
def wide_forward(first, stop, weight, bias, hidden, by_node, log_prob, tables):
    """Write the log-probabilities (D,) of decisions, and the probabilities of visits' branches.

    For the pieces of wide nodes from `first` to `stop`.
    """
    rows, width, start, score_start, _, item, branch, pieces, _, _, decision_start, _ = by_node
    for piece in range(first, stop):
        i, begin, end = pieces[piece, 0], start[pieces[piece, 0]], start[pieces[piece, 0]]
        begin += pieces[piece, 1]
        end += pieces[piece, 2]
        k, of_node = width[i], slice(rows[i], rows[i] + width[i])
        # (n, k) logits, then probabilities
        place = score_start[i] + pieces[piece, 1] * k
        table = tables[place : place + (end - begin) * k].reshape(end - begin, k)
        np.dot(hidden[item[begin:end]], weight[of_node].T, table)
        _add_to_table(by_node[11], begin, end, rows[i], table)
        for p in range(end - begin):
            logits, of_bias = table[p], bias[of_node]
            largest = np.float32(-np.inf)
            for j in range(k):
                logits[j] += of_bias[j]
                largest = max(largest, logits[j])
            decisions = range(decision_start[begin + p], decision_start[begin + p + 1])
            for d in decisions:
                log_prob[d] = logits[branch[d]] - largest
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
def _wide_parts(first, stop, weight, bias, hidden, by_node, of_wide):
    """Do `wide_forward` for the pieces of some parts."""
    parts, (log_prob, tables) = by_node[9], of_wide
    begin, end = parts[0, first], parts[0, stop]
    wide_forward(begin, end, weight, bias, hidden, by_node, log_prob, tables)


@jit
def item_losses(weight, bias, hidden, by_item, by_node, room):
    """Write losses, shares of codes, errors at narrow nodes, and the gradients through these."""
    of_items, (log_prob, _), _ = room
    of_code = of_items[3]
    for d in range(len(log_prob)):
        of_code[by_node[4][d]] += log_prob[d]
    some_items(0, len(hidden), weight, bias, hidden, by_item, of_items)


@jit
def _n_of_pieces(by_node):
    """Return the number of visits in the pieces of wide nodes by rows, each counted anew."""
    start, pieces = by_node[2], by_node[8]
    if len(pieces) == 0:
        return 0
    last = pieces[-1]
    return last[3] + start[last[0] + 1] - start[last[0]]


@jit
def new_pass(hidden, by_item, by_node, with_gradients):
    """Return room for what a pass writes.

    Returns
    -------
    of_items : tuple
        Losses (B,), errors and log-probabilities of scores at narrow nodes (S,), shares of codes
        (C,), gradients of hidden vectors (B, d).
    of_wide : tuple
        Log-probabilities of decisions at wide nodes (D,), and the probabilities of all branches
        of the visited nodes.
    wide_gradients : float32 array (n, d)
        Gradients of hidden vectors, of each piece by rows. Without gradients, they have no rows.
    """
    n_scores, d = len(by_item[2]), hidden.shape[1]
    n = len(hidden) if with_gradients else 0
    n_wide = _n_of_pieces(by_node) if with_gradients else 0
    error, log_prob = np.empty(n_scores, np.float32), np.empty(n_scores, np.float32)
    of_code, grad_hidden = np.zeros(len(by_item[1]) - 1), np.empty((n, d), np.float32)
    return (
        (np.empty(len(hidden)), error, log_prob, of_code, grad_hidden),
        (np.empty(len(by_node[4])), np.empty(by_node[3][-1], np.float32)),
        np.empty((n_wide, d), np.float32),
    )


@jit
def tree_pass(weight, bias, hidden, by_item, by_node, room):
    """Write losses, shares of codes, errors at narrow nodes, and the gradients through these.

    `room` is that of `new_pass`. The gradients through wide nodes are added by `wide_gradient`.
    """
    wide_forward(0, len(by_node[7]), weight, bias, hidden, by_node, *room[1])
    item_losses(weight, bias, hidden, by_item, by_node, room)


@jit
def wide_gradient(piece, weight, hidden, by_node, room):
    """Compute the gradients of some rows of a wide node, and write those of its items to `room`.

    Returns the first of the rows, their gradients (r, d), and those of their biases (r,).
    """
    rows, width, start, score_start, code, item, branch, _, pieces, _, decision_start, _ = by_node
    i, first, stop, place = pieces[piece]
    n, k, begin = start[i + 1] - start[i], width[i], start[i]
    table, share_of = room[1][1][score_start[i] : score_start[i + 1]].reshape(n, k), room[0][3]
    # (n, r) errors of the decisions of each visit, scaled by the shares of their codes: their sums
    scaled, grad_bias = np.empty((n, stop - first), np.float32), np.zeros(stop - first, np.float32)
    for p in range(n):
        decisions = range(decision_start[begin + p], decision_start[begin + p + 1])
        share = 0.0
        for d in decisions:
            share += share_of[code[d]]
        of_visit = np.float32(share)
        for j in range(stop - first):
            scaled[p, j] = of_visit * table[p, first + j]
        for d in decisions:
            if first <= branch[d] < stop:
                scaled[p, branch[d] - first] -= np.float32(share_of[code[d]])
        for j in range(stop - first):
            grad_bias[j] += scaled[p, j]
    row = rows[i] + first
    np.dot(scaled, weight[row : row + stop - first], room[2][place : place + n])
    return row, np.dot(scaled.T, hidden[item[begin : begin + n]]), grad_bias


@jit
def add_wide(by_node, room):
    """Add the gradients of items through wide nodes, which `wide_gradient` wrote."""
    start, item, pieces, grad_hidden = by_node[2], by_node[5], by_node[8], room[0][4]
    for piece in range(len(pieces)):
        i, place = pieces[piece, 0], pieces[piece, 3]
        for p in range(start[i + 1] - start[i]):
            b = item[start[i] + p]
            for j in range(grad_hidden.shape[1]):
                grad_hidden[b, j] += room[2][place + p, j]


@jit
def _tree_losses(weight, bias, hidden, targets, label_start, leaf_edge, edges, slot_of):
    by_item, _, by_node = _plan(targets, label_start, leaf_edge, edges, slot_of, False)
    of_items, _, _ = new_pass(hidden, by_item, by_node, False)
    some_items(0, len(targets), weight, bias, hidden, by_item, of_items)
    return of_items[0]


@jit
def _some_rows(first, stop, hidden, by_row, error, grad_weight, grad_bias):
    """Write the gradients of the rows from `first` to `stop`."""
    _, row_start, score, item = by_row
    for i in range(first, stop):
        grad_weight[i] = 0
        grad_bias[i] = 0
        begin, end = row_start[i], row_start[i + 1]
        of_row = error[score[begin:end]]
        for p in range(end - begin):
            grad_bias[i] += of_row[p]
        add_rows(hidden, item[begin:end], of_row, 0, end - begin, grad_weight[i])


@jit
def _tree_gradients(weight, bias, hidden, by_item, by_row, by_node, slot_of):
    rows, room = by_row[0], new_pass(hidden, by_item, by_node, True)
    tree_pass(weight, bias, hidden, by_item, by_node, room)
    features, grad_features = _feature_gradients(by_item, by_node, room, slot_of)
    n_rows = len(rows) + by_node[1].sum()
    touched = np.empty(n_rows, np.int64)
    touched[: len(rows)] = rows
    grad_weight = np.empty((n_rows, hidden.shape[1]), np.float32)
    grad_bias = np.empty(n_rows, np.float32)
    _some_rows(0, len(rows), hidden, by_row, room[0][1], grad_weight, grad_bias)
    first = len(rows)
    for piece in range(len(by_node[8])):
        row, of_weight, of_bias = wide_gradient(piece, weight, hidden, by_node, room)
        some = slice(first, first + len(of_bias))
        touched[some] = np.arange(row, row + len(of_bias))
        grad_weight[some], grad_bias[some] = of_weight, of_bias
        first += len(of_bias)
    add_wide(by_node, room)
    of_tree = room[0][0], room[0][4], touched, grad_weight, grad_bias
    return of_tree, features, grad_features


# Log-probabilities of all labels.


@jit_exact
def _log_prob_items(first, stop, logits, child_start, children, row_start, single, out):
    """Write the log-probabilities (V,) of all labels, for the items from `first` to `stop`.

    Nodes come after their parents, so that one pass over them knows the path to each.
    """
    path = np.zeros(len(child_start) - 1)
    for b in range(first, stop):
        of_item = out[b]
        of_item[:] = -np.inf
        for node in range(len(child_start) - 1):
            begin, end, row = child_start[node], child_start[node + 1], row_start[node]
            if end - begin == 2:
                z = np.float64(logits[b, row])
                tail = np.log1p(np.exp(-abs(z)))
                shift, low = path[node] - tail, min(z, 0.0)
                _arrive(children[begin], shift + low, path, of_item, single)
                _arrive(children[begin + 1], shift + min(-z, 0.0), path, of_item, single)
                continue
            largest = logits[b, row]
            for i in range(1, end - begin):
                largest = max(largest, logits[b, row + i])
            total = 0.0
            for i in range(end - begin):
                total += np.exp(np.float64(logits[b, row + i]) - largest)
            shift = path[node] - np.log(total) - largest
            for i in range(end - begin):
                log_prob = shift + np.float64(logits[b, row + i])
                _arrive(children[begin + i], log_prob, path, of_item, single)


@jit_exact
def _arrive(child, log_prob, path, of_item, single):
    """Note the log-probability of the path to a child, or add it to that of a label."""
    if child >= 0:
        path[child] = log_prob
    elif single:
        of_item[~child] = log_prob
    else:
        of_item[~child] = np.logaddexp(of_item[~child], log_prob)


def log_prob_of_logits(tree: TreeArrays, logits: Array) -> Float64:
    """Return the log-probabilities (B, V) of all labels from the logits (B, R) of all rows."""
    _check_shape("logits", logits.shape, (len(logits), int(tree.row_start[-1])))
    if tree.n_nodes == 0:
        return np.zeros((len(logits), 1))
    out = np.empty((len(logits), tree.n_labels))
    arrays = tree.child_start, tree.child, tree.row_start
    in_parts(len(logits), _log_prob_items, logits, *arrays, tree.has_single_codes, out, step=1)
    return out


# Sampling.


@jit_exact
def _drawn_branches(first, stop, weight, bias, hidden, item, node, uniform, arrays, branch):
    """Write the branches that some items take, of those from `first` to `stop`."""
    child_start, row_start = arrays
    for i in range(first, stop):
        width = child_start[node[i] + 1] - child_start[node[i]]
        row, vector, u = row_start[node[i]], hidden[item[i]], uniform[i]
        if width == 2:
            z = np.float64(_dot(weight, row, vector) + bias[row])
            branch[i] = np.log(u) >= min(z, 0.0) - np.log1p(np.exp(-abs(z)))
            continue
        logits = np.empty(width)
        for j in range(width):
            logits[j] = _dot(weight, row + j, vector) + bias[row + j]
        largest, total = logits.max(), 0.0
        for j in range(width):
            total += np.exp(logits[j] - largest)
            logits[j] = total
        j = 0
        while j < width - 1 and logits[j] <= u * total:
            j += 1
        branch[i] = j


def drawn_branches(
    tree: TreeArrays,
    weight: Array,
    bias: Array,
    hidden: Array,
    item: Int64,
    node: Int64,
    uniform: Float64,
) -> Int64:
    """Return the branches (n,) that items take at their nodes, by numbers between 0 and 1."""
    branch, arrays = np.empty(len(item), np.int64), (tree.child_start, tree.row_start)
    given = weight, bias, hidden, item, node, uniform, arrays, branch
    in_parts(len(item), _drawn_branches, *given)
    return branch


# Search of the most probable labels, as in `hstree.layers.top_k`, for trees with one code a label.


@jit
def _push(cost, child, n, new_cost, new_child):
    """Add an entry to a heap of n, whose least cost is first."""
    at = n
    while at > 0 and cost[(at - 1) // 2] > new_cost:
        above = (at - 1) // 2
        cost[at], child[at] = cost[above], child[above]
        at = above
    cost[at], child[at] = new_cost, new_child


@jit
def _pop(cost, child, n):
    """Take the first entry out of a heap of n; return it."""
    first_cost, first_child = cost[0], child[0]
    last_cost, last_child = cost[n - 1], child[n - 1]
    at = 0
    while 2 * at + 1 < n - 1:
        below = 2 * at + 1
        if below + 1 < n - 1 and cost[below + 1] < cost[below]:
            below += 1
        if cost[below] >= last_cost:
            break
        cost[at], child[at] = cost[below], child[below]
        at = below
    cost[at], child[at] = last_cost, last_child
    return first_cost, first_child


@jit
def _is_apart(cost, higher):
    return higher - cost > TIE * max(1.0, higher)


@jit
def _added_to_row(number, table, row):
    """Return the sum of the features that a row has after the contexts of an item (n,).

    `table` is what `Features` has beside the numbers of contexts.
    """
    context_start, feature_row, feature_weight = table
    total = ZERO
    for context in number:
        if context >= 0:
            end = context_start[context + 1]
            f = _first_from(feature_row, context_start[context], end, row)
            if f < end and feature_row[f] == row:
                total += feature_weight[f]
    return total


@jit
def _add_to_node(number, table, first_row, logits):
    """Add the features that a wide node's rows have after an item's contexts (n,) to its logits."""
    context_start, feature_row, feature_weight = table
    for context in number:
        if context >= 0:
            end = context_start[context + 1]
            f = _first_from(feature_row, context_start[context], end, first_row)
            while f < end and feature_row[f] < first_row + len(logits):
                logits[feature_row[f] - first_row] += feature_weight[f]
                f += 1


@jit
def _search(weight, bias, hidden, k, tree, patience, number, table, labels, values):
    """Write the k most probable labels of a hidden vector; return whether patience sufficed."""
    child_start, children, row_start = tree
    cost, child = np.empty(patience + 1), np.empty(patience + 1, np.int64)
    best, label = np.empty(patience + 1), np.empty(patience + 1, np.int64)
    cost[0], child[0] = 0.0, 0
    n, n_best, left_over, spent, last = 1, 0, 1.0, 0, k
    while n > 0:
        if n_best >= k:
            while last < n_best and not _is_apart(best[last - 1], best[last]):
                last += 1
            least = max(cost[0], -np.log(max(left_over, 0.0) + MASS_MARGIN))
            if _is_apart(best[k - 1], least) and _is_apart(best[last - 1], least):
                break
        path, node = _pop(cost, child, n)
        n -= 1
        if node < 0:
            best[n_best], label[n_best] = path, ~node
            n_best += 1
            left_over -= np.exp(-path)
            continue
        first, width = child_start[node], child_start[node + 1] - child_start[node]
        spent += width
        if spent > patience:
            return False
        row = row_start[node]
        if width == 2:
            added = _added_to_row(number, table, row)
            z = np.float64(_dot(weight, row, hidden) + bias[row] + added)
            likelier = path + np.log1p(np.exp(-abs(z)))
            _push(cost, child, n, likelier + max(-z, 0.0), children[first])
            _push(cost, child, n + 1, likelier + max(z, 0.0), children[first + 1])
            n += 2
            continue
        logits = np.empty(width)
        for i in range(width):
            logits[i] = _dot(weight, row + i, hidden) + bias[row + i]
        _add_to_node(number, table, row, logits)
        largest = logits.max()
        log_z = np.log(np.exp(logits - largest).sum()) + largest
        for i in range(width):
            _push(cost, child, n, path + log_z - logits[i], children[first + i])
            n += 1
    # labels that tie are in the order of their ids; only whole groups of ties are sorted
    first = 0
    while first < k:
        stop = first + 1
        while stop < n_best and not _is_apart(best[stop - 1], best[stop]):
            stop += 1
        order = np.argsort(label[first:stop])
        for i in range(first, min(stop, k)):
            labels[i], values[i] = label[first + order[i - first]], -best[first + order[i - first]]
        first = stop
    return True


@jit
def _search_all(weight, bias, hidden, k, tree, patience, number, table):
    labels, values = np.empty((len(hidden), k), np.int64), np.empty((len(hidden), k))
    found = np.empty(len(hidden), np.bool_)
    for b in range(len(hidden)):
        given = weight, bias, hidden[b], k, tree, patience, number[b], table
        found[b] = _search(*given, labels[b], values[b])
    return labels, values, found


def search_all(
    tree: TreeArrays,
    weight: Array,
    bias: Array,
    hidden: Array,
    k: int,
    patience: int,
    features: Features | None = None,
) -> tuple[Int64, Float64, Bool]:
    """Search the k most probable labels of hidden vectors (B, d), in trees with one code a label.

    Returns labels and log-probabilities (B, k), and whether each search ended before it had scored
    `patience` edges (B,); otherwise its row has no meaning.
    """
    _check_shape("hidden vectors", hidden.shape, (len(hidden), weight.shape[1]))
    arrays = tree.child_start, tree.child, tree.row_start
    if features is None:
        none = np.empty((len(hidden), 0), np.int64)
        features = none, np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32)
    number, *table = _checked(features, len(hidden))
    found: tuple[Int64, Float64, Bool]
    found = _search_all(weight, bias, hidden, k, arrays, patience, number, tuple(table))
    return found


# Optimisers.


@jit
def adagrad_row(parameter, squares, row, grad, learning_rate, owed):
    """Step of Adagrad for one row, which first shrinks by the weight decay that it owes."""
    values = parameter[row]
    total = ZERO
    for j in range(len(grad)):
        total += grad[j] * grad[j]
    total = squares[row] + total / np.float32(len(grad))
    squares[row] = total
    rate = learning_rate / np.sqrt(total + TINY32)
    kept = exp(-rate * owed) if owed > 0 else ONE
    for j in range(len(grad)):
        values[j] = kept * values[j] - rate * grad[j]


@jit
def _adagrad_rows(parameter, squares, rows, gradient, learning_rate, owed):
    for i in range(len(rows)):
        of_row = owed[i] if len(owed) > 0 else ZERO
        adagrad_row(parameter, squares, rows[i], gradient[i], learning_rate, of_row)


# The twins: arguments and results as in `hstree.layers.kernels`. Where NumPy raises, compiled code
# would read beside an array: arguments are checked here.


def checked_ids(ids: Integer, n: int, least: int = 0) -> Int32:
    """Return ids as int32; IndexError unless they are integers from `least` to n - 1."""
    ids = np.asarray(ids)
    if ids.dtype.kind not in "iu":
        raise IndexError(f"ids must be integers, and are {ids.dtype}")
    if ids.size and not least <= ids.min() <= ids.max() < n:
        raise IndexError(f"ids must be from {least} to {n - 1}, and are {ids.min()} to {ids.max()}")
    return np.ascontiguousarray(ids, np.int32)


def _check_shape(what: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if shape != wanted:
        raise ValueError(f"{what} must have the shape {wanted}, and have {shape}")


def window_sum(embedding: Array, position: Array, contexts: Integer) -> tuple[Array, Array]:
    """Twin of `kernels.window_sum`."""
    ids = checked_ids(contexts, len(embedding))
    _check_shape("contexts", ids.shape, (len(ids), len(position)))
    hidden = np.empty((len(ids), embedding.shape[1]), np.float32)
    _window_sum(embedding, position, ids, hidden)
    return hidden, hidden


def window_sum_backward(
    embedding: Array, position: Array, contexts: Integer, vectors: Array, grad_hidden: Array
) -> tuple[Int64, Array, Array]:
    """Twin of `kernels.window_sum_backward`."""
    ids = checked_ids(contexts, len(embedding))
    _check_shape("contexts", ids.shape, (len(ids), len(position)))
    _check_shape("gradients", grad_hidden.shape, (len(ids), embedding.shape[1]))
    found: tuple[Int64, Array, Array] = _window_sum_backward(
        embedding, position, ids, grad_hidden, SLOTS.of(len(embedding))
    )
    return found


def adagrad_rows(
    parameter: Array,
    squares: Array,
    rows: Int64 | slice,
    gradient: Array,
    learning_rate: float,
    owed: Array | None = None,
) -> None:
    """Twin of `kernels.adagrad_rows`."""
    if isinstance(rows, slice):
        rows = np.arange(*rows.indices(len(parameter)))
    elif len(rows) and not 0 <= rows.min() <= rows.max() < len(parameter):
        raise IndexError(f"rows must be from 0 to {len(parameter) - 1}")
    _check_shape("gradients", gradient.shape, (len(rows), *parameter.shape[1:]))
    _check_shape("sums of squares", squares.shape, (len(parameter),))
    if owed is not None:
        _check_shape("owed decay", owed.shape, (len(rows),))
    if not (parameter.flags.writeable and squares.flags.writeable):
        raise ValueError("the parameter or its sums of squares are read-only")
    width = math.prod(parameter.shape[1:])
    _adagrad_rows(
        parameter.reshape(-1, width),
        squares,
        rows,
        gradient.reshape(-1, width),
        np.float32(learning_rate),
        squares[:0] if owed is None else owed,
    )


class TreePass:
    """Losses and gradients of the batches of a tree.

    Matrix products of wide nodes run on one BLAS thread: results would depend on their number.

    Parameters
    ----------
    codes : Codes
    """

    def __init__(self, codes: Codes) -> None:
        tree = codes.tree
        # (E, 4) of each edge: the one above it or -1, the first weight row of its node, its
        # branch, and the node's number of children
        columns = codes.parent_edge, codes.edge_row, tree.edge_branch, tree.edge_width
        edges = np.stack(columns, axis=1).astype(np.int32)
        self._codes = codes.label_start, codes.leaf_edge, edges
        self.is_narrow = int(tree.edge_width.max()) <= NARROW
        #: limits the threads of BLAS where there is anything for it to do
        self.one_thread: Callable[[], AbstractContextManager[object]] = (
            nullcontext if self.is_narrow else one_blas_thread
        )
        scores = np.where(tree.edge_width == 2, 1, tree.edge_width).astype(np.float64)
        tree.sum_down(scores)
        #: largest number of scores of one target
        self.most_scores = float(
            np.add.reduceat(scores[codes.leaf_edge], codes.label_start[:-1]).max()
        )

    def plan(self, targets: Integer, n_rows: int) -> tuple[Any, Any, Any]:
        """Return the decisions of a batch by item, by row and by node (`_plan`)."""
        ids = checked_ids(targets, len(self._codes[0]) - 1)
        plan: tuple[Any, Any, Any] = _plan(ids, *self._codes, SLOTS.of(n_rows), True)
        return plan

    def losses(self, weight: Array, bias: Array, hidden: Array, targets: Integer) -> Float64:
        """Return the negative log-likelihoods (B,)."""
        ids = self._targets(weight, hidden, targets)
        losses: Float64
        if self.is_narrow:
            losses = _tree_losses(weight, bias, hidden, ids, *self._codes, SLOTS.of(len(weight)))
            return losses
        by_item, _, by_node = _plan(ids, *self._codes, SLOTS.of(len(weight)), False)
        room = new_pass(hidden, by_item, by_node, False)
        with self.one_thread():
            pass_in_threads(weight, bias, hidden, by_item, by_node, room)
        losses = room[0][0]
        return losses

    def gradients(
        self, weight: Array, bias: Array, hidden: Array, targets: Integer
    ) -> tuple[Float64, Array, Int64, Array, Array]:
        """Return the losses, and their sum's gradients: hidden (B, d); rows, weights and biases."""
        ids = self._targets(weight, hidden, targets)
        plan: Any = _plan(ids, *self._codes, SLOTS.of(len(weight)), True)
        if self.is_narrow and len(targets) >= MANY_ITEMS and n_threads() > 1:
            return _gradients_in_threads(weight, bias, hidden, plan)
        with self.one_thread():
            found: tuple[Float64, Array, Int64, Array, Array]
            found, _, _ = _tree_gradients(
                weight, bias, hidden, plan[0], plan[1], plan[2], SLOTS.of(1)
            )
        return found

    def losses_with(
        self, weight: Array, bias: Array, hidden: Array, targets: Integer, features: Features
    ) -> Float64:
        """Return the negative log-likelihoods (B,) under scores that have features."""
        ids = self._targets(weight, hidden, targets)
        by_item, _, by_node = _plan(ids, *self._codes, SLOTS.of(len(weight)), False)
        by_item, by_node = with_features(by_item, by_node, *_checked(features, len(ids)))
        room = new_pass(hidden, by_item, by_node, False)
        pass_of_batch = tree_pass if self.is_narrow else pass_in_threads
        with self.one_thread():
            pass_of_batch(weight, bias, hidden, by_item, by_node, room)
        losses: Float64 = room[0][0]
        return losses

    def gradients_with(
        self, weight: Array, bias: Array, hidden: Array, targets: Integer, features: Features
    ) -> tuple[tuple[Float64, Array, Int64, Array, Array], Int64, Array]:
        """Return what `gradients` does, and the features of the batch with their gradients."""
        ids = self._targets(weight, hidden, targets)
        by_item, by_row, by_node = _plan(ids, *self._codes, SLOTS.of(len(weight)), True)
        by_item, by_node = with_features(by_item, by_node, *_checked(features, len(ids)))
        slots = SLOTS.of(len(features[3]))
        with self.one_thread():
            found: tuple[tuple[Float64, Array, Int64, Array, Array], Int64, Array]
            found = _tree_gradients(weight, bias, hidden, by_item, by_row, by_node, slots)
        return found

    def _targets(self, weight: Array, hidden: Array, targets: Integer) -> Int32:
        """Return targets (B,) as int32, checked, as are hidden vectors (B, d)."""
        ids = checked_ids(targets, len(self._codes[0]) - 1)
        _check_shape("targets", ids.shape, (len(hidden),))
        _check_shape("hidden vectors", hidden.shape, (len(ids), weight.shape[1]))
        return ids


def _checked(features: Features, n_items: int) -> Features:
    """Return the numbers of contexts, offsets, rows and weights of features, checked."""
    number, context_start, feature_row, feature_weight = features
    _check_shape("numbers of contexts", number.shape, (n_items, number.shape[1]))
    if number.size and not -1 <= number.min() <= number.max() < len(context_start) - 1:
        raise IndexError(f"numbers of contexts must be from -1 to {len(context_start) - 2}")
    return number, context_start, feature_row, feature_weight


def pass_in_threads(
    weight: Array, bias: Array, hidden: Array, by_item: Any, by_node: Any, room: Any
) -> None:
    """Do what `tree_pass` does, the pieces of wide nodes in threads."""
    in_parts(PARTS, _wide_parts, weight, bias, hidden, by_node, room[1], step=1)
    item_losses(weight, bias, hidden, by_item, by_node, room)


def _gradients_in_threads(
    weight: Array, bias: Array, hidden: Array, plan: tuple[Any, Any, Any]
) -> tuple[Float64, Array, Int64, Array, Array]:
    """Return what `_tree_gradients` does for a tree without wide nodes, computed in threads.

    Items, and then rows, do not depend on each other: the result is the same.
    """
    by_item, by_row, by_node = plan
    n_items, rows = len(hidden), by_row[0]
    of_items = new_pass(hidden, by_item, by_node, True)[0]
    losses, error, _, _, grad_hidden = of_items
    grad_weight = np.empty((len(rows), hidden.shape[1]), np.float32)
    grad_bias = np.empty(len(rows), np.float32)
    in_parts(n_items, some_items, weight, bias, hidden, by_item, of_items)
    in_parts(len(rows), _some_rows, hidden, by_row, error, grad_weight, grad_bias)
    return losses, grad_hidden, rows, grad_weight, grad_bias
