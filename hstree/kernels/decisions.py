"""Decisions of a batch at a tree: their negative log-likelihoods and gradients.

A batch is laid out first: which scores its decisions need at narrow nodes (up to `NARROW`
children), and which items visit which wide node. The layout depends on no parameter, so a training
makes it ahead. The forward pass then writes the losses and the errors of all scores; gradients
follow from these. Matrix products at wide nodes run on one BLAS thread each, and threads share
pieces of fixed sizes, so that results do not depend on the number of threads.
"""

from typing import NamedTuple, Protocol

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  the BLAS that compiled products call

from hstree._arrays import Array, Float32, Float64, Int32, Int64, Integer, offsets, ranges
from hstree._parallel import STEP, in_parts, one_blas_thread
from hstree.kernels import NARROW
from hstree.kernels.arithmetic import (
    ONE,
    ZERO,
    add_rows,
    check_shape,
    checked_ids,
    clear,
    dot_rows,
    exp,
    flipped,
    group,
    log1p,
)
from hstree.kernels.jit import inline, jit
from hstree.kernels.ngrams import Features, checked_features, first_at_least

#: Items computed together: the rows of their scores stay in the first-level cache.
BLOCK = 8
#: Items of a batch from which on several threads share it.
MANY_ITEMS = 2048
#: Scores of a batch up to which it is computed here.
MAX_SCORES = 1 << 26
#: Least visits of a wide node that are a piece of its scores, and rows that are one of its
#: gradients. NumPy integers, since numba compiles anew for each of Python's.
LEAST_VISITS = np.int64(64)
LEAST_ROWS = np.int64(256)
#: Most pieces of a wide node.
MOST_PIECES = 8
#: Parts of the pieces of all wide nodes, of about the same work: the most threads that share them.
PARTS = 8
#: Cost of the update of a row, in visits whose products take as long.
ROW_COST = 32


class Decisions(Protocol):
    """What `hstree.tree.paths.Decisions` has, arrays (D,)."""

    item: Integer
    row: Integer
    width: Integer
    branch: Integer
    code: Integer


# Decisions of targets.


def path_decisions(
    targets: Integer, label_start: Int64, leaf_edge: Int64, length: Int64, edge_table: Int32
) -> tuple[Int64, Int64, Int64, Int64, Int64, Int64]:
    """Return the decisions on the paths to targets, and the items of the paths.

    Parameters
    ----------
    targets : int array (B,)
        Label ids; IndexError where there is no such label.
    label_start : int array (V + 1,)
        Offsets of the labels among the codes.
    leaf_edge, length : int arrays (C,)
        Last edge and number of decisions of each code.
    edge_table : int32 array (E, 4)
        Edge above each edge (or -1), first weight row and number of children of the node that it
        leaves, and its number among these children.

    Returns
    -------
    item, row, width, branch, code : int64 arrays (D,)
        See `hstree.tree.paths.Decisions`.
    code_item : int64 array (C,)
    """
    ids = checked_ids(targets, len(label_start) - 1)
    n_codes, n_decisions = _count_decisions(ids, label_start, length)
    code_item = np.empty(n_codes, np.int64)
    columns = np.empty((5, n_decisions), np.int64)
    _fill_decisions(ids, label_start, leaf_edge, length, edge_table, columns, code_item)
    item, row, width, branch, code = columns
    return item, row, width, branch, code, code_item


@jit
def _count_decisions(targets, label_start, length):
    n_codes = n_decisions = 0
    for target in targets:
        for code in range(label_start[target], label_start[target + 1]):
            n_codes += 1
            n_decisions += length[code]
    return n_codes, n_decisions


@jit
def _fill_decisions(targets, label_start, leaf_edge, length, edge_table, columns, code_item):
    item, row, width, branch, code_of_decision = columns
    n_codes = start = 0
    for b in range(len(targets)):
        for code in range(label_start[targets[b]], label_start[targets[b] + 1]):
            # from the leaf up, so that decisions are in order from the root down
            edge = leaf_edge[code]
            for i in range(start + length[code] - 1, start - 1, -1):
                item[i] = b
                row[i] = edge_table[edge, 1]
                width[i] = edge_table[edge, 2]
                branch[i] = edge_table[edge, 3]
                code_of_decision[i] = n_codes
                edge = edge_table[edge, 0]
            start += length[code]
            code_item[n_codes] = b
            n_codes += 1


# Layout of a batch.


class Scores(NamedTuple):
    """Scores at narrow nodes, by the codes of the batch's items."""

    item_start: Int64  # (B + 1,) offsets of the items among the codes
    code_start: Int64  # (C + 1,) offsets of the codes among the scores
    row: Int32  # (S,) weight row of each score
    #: (S,) 1 where the first child of a binary node is taken, -1 where the second is, 0 elsewhere
    sign: Float32
    #: (S,) number of children of another node, at the first score of its decision; 0 elsewhere
    width: Int32
    branch: Int32  # (S,) the branch taken there


class RowScores(NamedTuple):
    """The same scores by their weight rows; empty where no gradients are needed."""

    rows: Int64  # (R,) the rows that occur, each once
    start: Int64  # (R + 1,) offsets of the rows among the scores
    score: Int32  # (S,) scores of one row after another, each in the order of the batch
    item: Int32  # (S,) their items


class WideNodes(NamedTuple):
    """Visits of wide nodes, and the decisions at each visit."""

    rows: Int64  # (N,) first weight row of each node
    width: Int64  # (N,) number of children
    start: Int64  # (N + 1,) offsets of the nodes among the visits
    score_start: Int64  # (N + 1,) offsets of the nodes among the scores of all visits
    item: Int32  # (V,) item of each visit, ascending at a node
    decision_start: Int64  # (V + 1,) offsets of the visits among the decisions
    code: Int32  # (D,) code of each decision
    branch: Int32  # (D,) the branch taken
    #: (P, 4) node, first and last of a piece, and number of visits in the pieces before it: pieces
    #: of visits, and pieces of weight rows
    pieces: Int64
    row_pieces: Int64
    #: (PARTS + 1,) offsets of the parts among the pieces of both kinds
    parts: Int64
    row_parts: Int64


class ScoreFeatures(NamedTuple):
    """Features that are added to scores at narrow nodes."""

    start: Int64  # (B + 1,) offsets of the items in `score`; empty where no score has any
    score: Int32  # (P,)
    feature: Int32  # (P,) features, as indices into all
    weight: Array  # (F,) weights of all features


class VisitFeatures(NamedTuple):
    """Features that are added to scores of wide nodes."""

    #: (V, n, 2) first and last of the features of each visit, by the lengths of its contexts
    ends: Int64
    row: Int32  # (F,) weight rows of all features
    weight: Array  # (F,) their weights


class FeaturePlaces(NamedTuple):
    """The features of a batch: those of scores, then those of visits."""

    feature: Int64  # (G,) the features that occur, each once
    start: Int64  # (G + 1,) offsets of the features in `place`
    place: Int32  # (P,) where each occurs, ascending


class Layout(NamedTuple):
    """What the passes of a batch need to know of its decisions."""

    scores: Scores
    row_scores: RowScores
    wide: WideNodes
    score_features: ScoreFeatures
    visit_features: VisitFeatures
    feature_places: FeaturePlaces


_EMPTY = np.empty(0, np.int64)
_EMPTY32 = np.empty(0, np.int32)
_ONE_OFFSET = np.zeros(1, np.int64)
_NO_PIECES = np.empty((0, 4), np.int64)
_NO_PARTS = np.zeros(PARTS + 1, np.int64)
#: What a layout has in place of what its tree or its layer does not have; no function is compiled
#: for it.
NO_ROWS = RowScores(_EMPTY, _ONE_OFFSET, _EMPTY32, _EMPTY32)
NO_WIDE = WideNodes(
    rows=_EMPTY,
    width=_EMPTY,
    start=_ONE_OFFSET,
    score_start=_ONE_OFFSET,
    item=_EMPTY32,
    decision_start=_ONE_OFFSET,
    code=_EMPTY32,
    branch=_EMPTY32,
    pieces=_NO_PIECES,
    row_pieces=_NO_PIECES,
    parts=_NO_PARTS,
    row_parts=_NO_PARTS,
)
NO_SCORE_FEATURES = ScoreFeatures(_EMPTY, _EMPTY32, _EMPTY32, np.empty(0, np.float32))
NO_VISIT_FEATURES = VisitFeatures(np.empty((0, 0, 2), np.int64), _EMPTY32, np.empty(0, np.float32))
NO_FEATURES = FeaturePlaces(_EMPTY, _ONE_OFFSET, _EMPTY32)


def lay_out(
    decisions: Decisions,
    code_item: Integer,
    n_items: int,
    n_rows: int,
    features: Features | None = None,
    *,
    has_wide: bool = True,
    with_gradients: bool = True,
) -> Layout:
    """Lay out a batch of items for `tree_nll`, `tree_loss` or a training step.

    Parameters
    ----------
    decisions : Decisions
        Those of all codes, ascending in `code`.
    code_item : int array (C,)
        Item of each code, ascending.
    n_items, n_rows : int
        B items; number of weight rows of the tree.
    features : Features, optional
        N-gram features of the items.
    has_wide : bool
        Whether the tree has wide nodes, so that their functions are compiled for any batch.
    with_gradients : bool
        Whether gradients follow.
    """
    if features is not None:
        features = checked_features(features, n_items)
    n_scores, n_wide = _count_scores(decisions.width)
    scores = Scores(
        item_start=np.empty(n_items + 1, np.int64),
        code_start=np.empty(len(code_item) + 1, np.int64),
        row=np.empty(n_scores, np.int32),
        sign=np.empty(n_scores, np.float32),
        width=np.empty(n_scores, np.int32),
        branch=np.empty(n_scores, np.int32),
    )
    item = np.empty(n_scores, np.int32)
    # (D,) positions of the decisions at wide nodes
    at_wide = np.empty(n_wide, np.int32)
    _fill_scores(
        decisions.item,
        decisions.row,
        decisions.width,
        decisions.branch,
        decisions.code,
        code_item,
        scores,
        item,
        at_wide,
    )
    row_scores = NO_ROWS
    if with_gradients:
        rows, start, score = group(scores.row, n_rows)
        row_scores = RowScores(rows, start, score, item.take(score))
    wide = _wide_nodes(decisions, at_wide, n_rows) if has_wide else NO_WIDE
    score_features = NO_SCORE_FEATURES
    visit_features = NO_VISIT_FEATURES
    feature_places = NO_FEATURES
    if features is not None:
        score_features = _score_features(scores, features)
        if wide is not NO_WIDE:
            ends = _visit_feature_ends(wide, features)
            visit_features = VisitFeatures(ends, features.row, features.weight)
        if with_gradients:
            first, stop = visit_features.ends.reshape(-1, 2).T
            of_visits = ranges(first, offsets(stop - first))
            occurring = np.concatenate([score_features.feature, of_visits]).astype(np.int32)
            feature_places = FeaturePlaces(*group(occurring, len(features.weight)))
    return Layout(scores, row_scores, wide, score_features, visit_features, feature_places)


@jit
def _count_scores(width):
    """Return the number of scores at narrow nodes, and of decisions at wide ones."""
    n_scores = n_wide = 0
    for k in width:
        if k > NARROW:
            n_wide += 1
        else:
            n_scores += 1 if k == 2 else k
    return n_scores, n_wide


@jit
def _fill_scores(item, row, width, branch, code, code_item, scores, score_item, at_wide):
    item_start, code_start, score_row, sign, score_width, score_branch = scores
    s = w = d = 0
    b = -1
    for c in range(len(code_item)):
        while b < code_item[c]:
            b += 1
            item_start[b] = c
        code_start[c] = s
        while d < len(code) and code[d] == c:
            k = width[d]
            if k > NARROW:
                at_wide[w] = d
                w += 1
                d += 1
                continue
            is_binary = k == 2
            for i in range(1 if is_binary else k):
                score_row[s] = row[d] + i
                score_item[s] = item[d]
                sign[s] = 1 - 2 * branch[d] if is_binary else 0
                is_first = i == 0 and not is_binary
                score_width[s] = k if is_first else 0
                score_branch[s] = branch[d] if is_first else 0
                s += 1
            d += 1
    code_start[len(code_item)] = s
    for i in range(b + 1, len(item_start)):
        item_start[i] = len(code_item)


def _wide_nodes(decisions: Decisions, at_wide: Int32, n_rows: int) -> WideNodes:
    """Group decisions at wide nodes by their nodes, and those of a node by their items."""
    # (5, D) the decisions at wide nodes
    columns = np.empty((5, len(at_wide)), np.int32)
    fields = (decisions.row, decisions.width, decisions.code, decisions.item, decisions.branch)
    for column, field in zip(columns, fields, strict=True):
        column[:] = field[at_wide]
    nodes, node_start, decision = group(columns[0], n_rows)
    n = len(nodes)
    width = np.empty(n, np.int64)
    start = np.zeros(n + 1, np.int64)
    score_start = np.zeros(n + 1, np.int64)
    visits = np.empty((3, len(decision)), np.int32)
    decision_start = np.empty(len(decision), np.int64)
    pieces = np.empty((2, MOST_PIECES * n, 4), np.int64)
    parts = np.zeros((2, PARTS + 1), np.int64)
    _fill_wide(
        columns,
        node_start,
        decision,
        width,
        start,
        score_start,
        visits,
        decision_start,
        pieces,
        parts,
    )
    item, code, branch = visits
    return WideNodes(
        rows=nodes,
        width=width,
        start=start,
        score_start=score_start,
        item=item[: start[-1]],
        decision_start=np.append(decision_start[: start[-1]], len(decision)),
        code=code,
        branch=branch,
        pieces=pieces[0, : parts[0, -1]],
        row_pieces=pieces[1, : parts[1, -1]],
        parts=parts[0],
        row_parts=parts[1],
    )


@jit
def _fill_wide(
    columns,
    node_start,
    decision,
    width,
    start,
    score_start,
    visits,
    decision_start,
    pieces,
    parts,
):
    n_visits = np.empty(len(width), np.int64)
    row_cost = np.empty(len(width), np.int64)
    n = 0
    for i in range(len(width)):
        item = np.int32(-1)
        for d in range(node_start[i], node_start[i + 1]):
            place = decision[d]
            width[i] = columns[1, place]
            visits[1, d] = columns[2, place]
            visits[2, d] = columns[4, place]
            if columns[3, place] != item:
                item = columns[3, place]
                visits[0, n] = item
                decision_start[n] = d
                n += 1
        start[i + 1] = n
        n_visits[i] = n - start[i]
        row_cost[i] = n_visits[i] + ROW_COST
        score_start[i + 1] = score_start[i] + n_visits[i] * width[i]
    _cut(n_visits, LEAST_VISITS, width, n_visits, pieces[0], parts[0])
    _cut(width, LEAST_ROWS, row_cost, n_visits, pieces[1], parts[1])


@inline
def _cut(length, least, cost, n_visits, pieces, parts):
    """Cut the lengths (N,) of wide nodes into pieces, and these into parts of about the same work.

    `cost` (N,) is that of one in each length. Each is cut into `MOST_PIECES`, or into pieces of
    `least` if that is more. Writes the pieces (P, 4) of `WideNodes` and their offsets.
    """
    n = piece = total = before = so_far = 0
    for i in range(len(length)):
        total += length[i] * cost[i]
        size = max(least, (length[i] + MOST_PIECES - 1) // MOST_PIECES)
        for first in range(0, length[i], size):
            pieces[n, 0] = i
            pieces[n, 1] = first
            pieces[n, 2] = min(first + size, length[i])
            pieces[n, 3] = before
            before += n_visits[i]
            n += 1
    for part in range(1, PARTS + 1):
        while piece < n:
            more = so_far + (pieces[piece, 2] - pieces[piece, 1]) * cost[pieces[piece, 0]]
            if more * PARTS > total * part:
                break
            piece += 1
            so_far = more
        parts[part] = piece


def _score_features(scores: Scores, features: Features) -> ScoreFeatures:
    """Return the features of the scores at narrow nodes."""
    start = np.empty(len(scores.item_start), np.int64)
    most = len(scores.row) * features.number.shape[1]
    score = np.empty(most, np.int32)
    feature = np.empty(most, np.int32)
    n = _fill_score_features(scores, features, start, score, feature)
    return ScoreFeatures(start, score[:n], feature[:n], features.weight)


@jit
def _fill_score_features(scores, features, start, score, feature):
    """Write the offsets (B + 1,) of items, their scores at narrow nodes and the features of these.

    Returns how many there are. Rows ascend down to a leaf, and have no feature of a context after
    which no n-gram comes to a binary node above them.
    """
    item_start, code_start, row, sign, _, _ = scores
    number, context_start, feature_row, _ = features
    n = 0
    for b in range(len(number)):
        start[b] = n
        for context in number[b]:
            if context < 0:
                continue
            end = context_start[context + 1]
            for code in range(item_start[b], item_start[b + 1]):
                begin = context_start[context]
                for s in range(code_start[code], code_start[code + 1]):
                    f = first_at_least(feature_row, begin, end, row[s])
                    if f < end and feature_row[f] == row[s]:
                        score[n] = s
                        feature[n] = f
                        n += 1
                    elif sign[s] != 0:
                        break
                    if sign[s] != 0:
                        begin = f + 1
    start[len(number)] = n
    return n


@jit
def _visit_feature_ends(wide, features):
    """Return the ends (V, n, 2) of the features of visits of wide nodes, by the lengths."""
    number, context_start, feature_row, _ = features
    n_lengths = number.shape[1]
    ends = np.zeros((len(wide.item), n_lengths, 2), np.int64)
    for node in range(len(wide.rows)):
        row = wide.rows[node]
        for v in range(wide.start[node], wide.start[node + 1]):
            for i in range(n_lengths):
                context = number[wide.item[v], i]
                if context >= 0:
                    end = context_start[context + 1]
                    first = first_at_least(feature_row, context_start[context], end, row)
                    stop = first_at_least(feature_row, first, end, row + wide.width[node])
                    ends[v, i, 0] = first
                    ends[v, i, 1] = stop
    return ends


# Forward pass at narrow nodes.


class ItemResults(NamedTuple):
    """What a pass writes of items, and of their scores at narrow nodes."""

    nll: Float64  # (B,)
    error: Float32  # (S,) logits, then errors, of scores
    log_prob: Float32  # (S,) log-probability of a decision at the first of its scores, 0 elsewhere
    #: (C,) log-probability of each code's decisions at wide nodes, then the fraction of the
    #: target's probability that the code has
    code_share: Float64
    grad_hidden: Float32  # (B, d); no rows where no gradients are needed


class VisitResults(NamedTuple):
    """What a pass writes of visits of wide nodes."""

    hidden: Array  # (V, d) hidden vectors
    log_prob: Float64  # (D,) of decisions
    probability: Float32  # of all branches, at `WideNodes.score_start`
    grad: Float32  # (n, d) gradients of hidden vectors by each piece of a node's rows


@inline
def _decide(logits, sign, width, branch, log_prob):
    """Turn logits into errors, in place, and write the log-probabilities of decisions."""
    # two loops: LLVM vectorises each, but not both in one
    for s in range(len(logits)):
        log_prob[s] = exp(-abs(logits[s]))
    is_binary = True
    for s in range(len(logits)):
        z = sign[s] * logits[s]
        small = log_prob[s]
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


@inline
def _share_codes(log_prob, code_start, first, stop, error, code_share):
    """Return the loss of an item of codes `first` to `stop`; scale their errors by their shares."""
    for c in range(first, stop):
        for s in range(code_start[c], code_start[c + 1]):
            code_share[c] += log_prob[s]
    if stop - first == 1:
        nll = -code_share[first]
        code_share[first] = 1
        return nll
    largest = code_share[first]
    total = 0.0
    for c in range(first + 1, stop):
        largest = max(largest, code_share[c])
    for c in range(first, stop):
        total += np.exp(code_share[c] - largest)
    nll = -largest - np.log(total)
    for c in range(first, stop):
        code_share[c] = np.exp(code_share[c] + nll)
        share = np.float32(code_share[c])
        for s in range(code_start[c], code_start[c + 1]):
            error[s] *= share
    return nll


@jit
def _pass_items(first, stop, weight, bias, hidden, scores, features, results):
    """Write losses, shares of codes, errors at narrow nodes, and the gradients through these."""
    # unpacked once: numba counts references to the arrays that a field holds
    item_start, code_start, row, sign, width, branch = scores
    feature_start, feature_score, feature, feature_weight = features
    nll, error, log_prob, code_share, grad_hidden = results
    for begin in range(first, stop, BLOCK):
        end = min(begin + BLOCK, stop)
        for b in range(begin, end):
            s = code_start[item_start[b]]
            t = code_start[item_start[b + 1]]
            dot_rows(weight, bias, row, s, t, hidden[b], error)
            if len(feature_start) > 0:
                for p in range(feature_start[b], feature_start[b + 1]):
                    error[feature_score[p]] += feature_weight[feature[p]]
        block = slice(code_start[item_start[begin]], code_start[item_start[end]])
        _decide(error[block], sign[block], width[block], branch[block], log_prob[block])
        for b in range(begin, end):
            c = item_start[b]
            d = item_start[b + 1]
            nll[b] = _share_codes(log_prob, code_start, c, d, error, code_share)
            if len(grad_hidden) > 0:
                clear(grad_hidden[b])
                add_rows(weight, row, error, code_start[c], code_start[d], grad_hidden[b])


@inline
def narrow_gradient(begin, end, hidden, item, error, grad):
    """Write the gradient (d,) of a row, of items and errors from `begin`; return its bias's."""
    clear(grad)
    add_rows(hidden, item, error, begin, end, grad)
    grad_bias = ZERO
    for p in range(begin, end):
        grad_bias += error[p]
    return grad_bias


@jit
def _narrow_gradients(first, stop, hidden, start, item, error, grad_weight, grad_bias):
    """Write the gradients of the rows of narrow nodes from `first` to `stop`."""
    for i in range(first, stop):
        grad = grad_weight[i]
        grad_bias[i] = narrow_gradient(start[i], start[i + 1], hidden, item, error, grad)


# Forward pass at wide nodes.


@jit
def _pass_visits(first, stop, weight, bias, wide, features, results):
    """Write log-probabilities of decisions and probabilities of branches, for some parts."""
    hidden, log_prob, probability, _ = results
    ends, feature_row, feature_weight = features
    for piece in range(wide.parts[first], wide.parts[stop]):
        i = wide.pieces[piece, 0]
        begin = wide.pieces[piece, 1]
        n = wide.pieces[piece, 2] - begin
        k = wide.width[i]
        node_rows = slice(wide.rows[i], wide.rows[i] + k)
        # (n, k) logits, then probabilities
        place = wide.score_start[i] + begin * k
        table = probability[place : place + n * k].reshape(n, k)
        begin += wide.start[i]
        np.dot(hidden[begin : begin + n], weight[node_rows].T, table)
        for p in range(n if len(ends) > 0 else 0):
            for j in range(ends.shape[1]):
                for f in range(ends[begin + p, j, 0], ends[begin + p, j, 1]):
                    table[p, feature_row[f] - wide.rows[i]] += feature_weight[f]
        for p in range(n):
            logits = table[p]
            node_bias = bias[node_rows]
            rank = np.int32(-(2**31))
            for j in range(k):
                logits[j] += node_bias[j]
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


@inline
def _visit_share(wide, v, code_share):
    """Return the sum of the shares of the codes that a visit belongs to."""
    share = 0.0
    for d in range(wide.decision_start[v], wide.decision_start[v + 1]):
        share += code_share[wide.code[d]]
    return share


@inline
def wide_gradient(piece, weight, wide, code_share, results):
    """Compute the gradients of some rows of a wide node, and write those of its visits.

    Returns the first of the rows, their gradients (r, d), and those of their biases (r,).
    """
    i, first, stop, place = wide.row_pieces[piece]
    begin = wide.start[i]
    n = wide.start[i + 1] - wide.start[i]
    k = wide.width[i]
    table = results.probability[wide.score_start[i] : wide.score_start[i + 1]].reshape(n, k)
    # (n, r) errors of the decisions of each visit, scaled by the shares of their codes: their sums
    scaled = np.empty((n, stop - first), np.float32)
    grad_bias = np.empty(stop - first, np.float32)
    grad_weight = np.empty((stop - first, weight.shape[1]), np.float32)
    clear(grad_bias)
    for p in range(n):
        share = np.float32(_visit_share(wide, begin + p, code_share))
        for j in range(stop - first):
            scaled[p, j] = share * table[p, first + j]
        for d in range(wide.decision_start[begin + p], wide.decision_start[begin + p + 1]):
            if first <= wide.branch[d] < stop:
                scaled[p, wide.branch[d] - first] -= np.float32(code_share[wide.code[d]])
        for j in range(stop - first):
            grad_bias[j] += scaled[p, j]
    row = wide.rows[i] + first
    np.dot(scaled, weight[row : row + stop - first], results.grad[place : place + n])
    np.dot(scaled.T, results.hidden[begin : begin + n], grad_weight)
    return row, grad_weight, grad_bias


@jit
def _wide_gradients(weight, wide, code_share, results, grad_weight, grad_bias):
    """Write the gradients of the rows of wide nodes, one node's after the other's."""
    n = 0
    for piece in range(len(wide.row_pieces)):
        _, piece_weight, piece_bias = wide_gradient(piece, weight, wide, code_share, results)
        for i in range(len(piece_bias)):
            grad_bias[n] = piece_bias[i]
            for j in range(piece_weight.shape[1]):
                grad_weight[n, j] = piece_weight[i, j]
            n += 1


@jit
def add_visit_gradients(row_pieces, start, item, grad, grad_hidden):
    """Add the gradients (n, d) of items through wide nodes, which `wide_gradient` wrote."""
    for piece in range(len(row_pieces)):
        i = row_pieces[piece, 0]
        place = row_pieces[piece, 3]
        for p in range(start[i + 1] - start[i]):
            b = item[start[i] + p]
            for j in range(grad_hidden.shape[1]):
                grad_hidden[b, j] += grad[place + p, j]


# N-gram features.


@jit
def _visit_errors(ends, feature_row, wide, code_share, probability, errors):
    """Write the error of each feature of visits."""
    n = 0
    for node in range(len(wide.rows)):
        for v in range(wide.start[node], wide.start[node + 1]):
            place = wide.score_start[node] + (v - wide.start[node]) * wide.width[node]
            share = np.float32(_visit_share(wide, v, code_share))
            for i in range(ends.shape[1]):
                for f in range(ends[v, i, 0], ends[v, i, 1]):
                    j = feature_row[f] - wide.rows[node]
                    errors[n] = share * probability[place + j]
                    for d in range(wide.decision_start[v], wide.decision_start[v + 1]):
                        if wide.branch[d] == j:
                            errors[n] -= np.float32(code_share[wide.code[d]])
                    n += 1


@jit
def _group_sums(values, start, place, sums):
    for g in range(len(sums)):
        total = ZERO
        for p in range(start[g], start[g + 1]):
            total += values[place[p]]
        sums[g] = total


# A whole pass.


class ForwardPass(NamedTuple):
    """A batch whose losses are known, and what its gradients are computed from."""

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
        """Run the forward pass of a batch, and the gradients through narrow nodes.

        Threads share the pieces of wide nodes, and the items of a large batch: each writes what
        does not depend on others.
        """
        scores = layout.scores
        wide = layout.wide
        n, d = hidden.shape
        n_scores = len(scores.row)
        items = ItemResults(
            nll=np.empty(n),
            error=np.empty(n_scores, np.float32),
            log_prob=np.empty(n_scores, np.float32),
            code_share=np.zeros(len(scores.code_start) - 1),
            grad_hidden=np.empty((n if with_gradients else 0, d), np.float32),
        )
        n_gradients = 0
        if with_gradients and len(wide.row_pieces):
            node, _, _, before = wide.row_pieces[-1]
            n_gradients = before + wide.start[node + 1] - wide.start[node]
        visits = VisitResults(
            hidden=hidden.take(wide.item, 0),
            log_prob=np.empty(len(wide.code)),
            probability=np.empty(wide.score_start[-1], np.float32),
            grad=np.empty((n_gradients, d), np.float32),
        )
        if wide is not NO_WIDE:
            features = layout.visit_features
            with one_blas_thread():
                in_parts(PARTS, _pass_visits, weight, bias, wide, features, visits, step=1)
            np.add.at(items.code_share, wide.code, visits.log_prob)
        in_parts(
            n,
            _pass_items,
            weight,
            bias,
            hidden,
            scores,
            layout.score_features,
            items,
            step=STEP if n >= MANY_ITEMS else max(1, n),
        )
        return cls(weight, bias, hidden, layout, items, visits)

    def feature_gradient(self) -> Array:
        """Return the gradient with respect to the weights of `FeaturePlaces.feature`."""
        layout = self.layout
        places = layout.feature_places
        n = len(layout.score_features.score)
        errors = np.empty(len(places.place), np.float32)
        errors[:n] = self.items.error.take(layout.score_features.score)
        if layout.wide is not NO_WIDE:
            _visit_errors(
                layout.visit_features.ends,
                layout.visit_features.row,
                layout.wide,
                self.items.code_share,
                self.visits.probability,
                errors[n:],
            )
        sums = np.empty(len(places.feature), np.float32)
        _group_sums(errors, places.start, places.place, sums)
        return sums


class TreeGradients(NamedTuple):
    """Gradients of the summed loss of a batch."""

    hidden: Float32  # (B, d)
    rows: Int64  # (r,) distinct weight rows
    weight: Float32  # (r, d)
    bias: Float32  # (r,)
    features: Int64  # (G,) distinct features
    feature_weight: Float32  # (G,)


def _check_hidden(weight: Array, hidden: Array, layout: Layout) -> None:
    n_items = len(layout.scores.item_start) - 1
    check_shape("hidden vectors", hidden.shape, (n_items, weight.shape[1]))


def tree_nll(weight: Array, bias: Array, hidden: Array, layout: Layout) -> Float64:
    """Return the negative log-likelihoods (B,) of the targets of a batch, in nats.

    `weight` (R, d), `bias` (R,) and `hidden` (B, d) are as `is_supported` wants them; the layout is
    made without gradients.
    """
    _check_hidden(weight, hidden, layout)
    return ForwardPass.run(weight, bias, hidden, layout, with_gradients=False).items.nll


def tree_loss(
    weight: Array, bias: Array, hidden: Array, layout: Layout
) -> tuple[Float64, TreeGradients]:
    """Return the negative log-likelihoods (B,), and the gradients of their sum."""
    _check_hidden(weight, hidden, layout)
    forward = ForwardPass.run(weight, bias, hidden, layout)
    items = forward.items
    row_scores = layout.row_scores
    wide = layout.wide
    n = len(row_scores.rows)

    # rows of narrow nodes, then those of wide nodes, one node after the other
    wide_rows = ranges(wide.rows, offsets(wide.width))
    rows = np.concatenate([row_scores.rows, wide_rows])
    grad_weight = np.empty((len(rows), hidden.shape[1]), np.float32)
    grad_bias = np.empty(len(rows), np.float32)
    in_parts(
        n,
        _narrow_gradients,
        hidden,
        row_scores.start,
        row_scores.item,
        items.error.take(row_scores.score),
        grad_weight,
        grad_bias,
        step=STEP if len(hidden) >= MANY_ITEMS else max(1, n),
    )
    if wide is not NO_WIDE:
        visits = forward.visits
        with one_blas_thread():
            _wide_gradients(weight, wide, items.code_share, visits, grad_weight[n:], grad_bias[n:])
        add_visit_gradients(wide.row_pieces, wide.start, wide.item, visits.grad, items.grad_hidden)
    gradients = TreeGradients(
        hidden=items.grad_hidden,
        rows=rows,
        weight=grad_weight,
        bias=grad_bias,
        features=layout.feature_places.feature,
        feature_weight=forward.feature_gradient(),
    )
    return items.nll, gradients
