"""Decisions of a batch, laid out for a compiled pass: by items, by weight rows, by wide nodes.

Decisions at nodes of at most `NARROW` children are sets of scores, each with a weight row: one at a
binary node, k at a node of k children. Those at wide nodes are grouped by their nodes; the codes of
an item that pass through a node share a visit, which is scored once. Work at wide nodes is cut into
pieces that write to different places and depend on the batch alone, as threads share them.
"""

from typing import NamedTuple

import numpy as np

from hstree._compiled import inlined, jit
from hstree._ragged import offsets, ranges
from hstree._typing import Array, Float32, Int32, Int64
from hstree.layers.compiled.arithmetic import SLOTS, group
from hstree.layers.ngram_features import Features
from hstree.tree.weight_rows import NARROW

#: Least work at a wide node that is a piece by itself: visits of its scores, rows of its gradients.
VISITS, ROWS = np.int64(64), np.int64(256)  # not Python's, for each of which numba compiles anew
#: Parts of the pieces of wide nodes, of about the same work: the most threads that share them.
PARTS = 8
#: Work of a row's update, in visits that its products take as long for.
PER_ROW = 32


class TreeCodes(NamedTuple):
    """Codes of all labels, as the last of their edges, and what is above each edge."""

    label_start: Int64  # (V + 1,) offsets of the labels among the codes
    leaf_edge: Int64  # (C,)
    #: (E, 4) the edge above each or -1, the first weight row of its node, its branch, and the
    #: node's number of children
    edges: Int32


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


class Rows(NamedTuple):
    """The same scores by their weight rows: none where no gradients are wanted."""

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


class FeaturesOfScores(NamedTuple):
    """Features that are added to scores at narrow nodes."""

    start: Int64  # (S + 1,) offsets of the scores in `feature`; empty where no score has any
    feature: Int32  # (P,) features, as indices into all
    weight: Array  # (F,) weights of all features


class FeaturesOfVisits(NamedTuple):
    """Features that are added to scores of wide nodes."""

    #: (V, n, 2) first and last of the features of each visit, by the lengths of its contexts
    ends: Int64
    row: Int32  # (F,) weight rows of all features
    weight: Array  # (F,) their weights


class ByFeature(NamedTuple):
    """The features of a batch: those of scores, and then those of visits."""

    feature: Int64  # (G,) the features that occur, each once
    start: Int64  # (G + 1,) offsets of the features in `place`
    place: Int32  # (P,) where each occurs, ascending


class Plan(NamedTuple):
    """What a pass needs to know of a batch's targets."""

    scores: Scores
    by_row: Rows
    wide: WideNodes
    features: FeaturesOfScores
    wide_features: FeaturesOfVisits
    by_feature: ByFeature


_NONE, _OF_NONE, _NONE32 = np.empty(0, np.int64), np.zeros(1, np.int64), np.empty(0, np.int32)
_NO_PARTS, _NO_PIECES = np.zeros(PARTS + 1, np.int64), np.empty((0, 4), np.int64)
_NO_WEIGHT = np.empty(0, np.float32)
#: What a plan has in the place of what its tree or its layer has not, and nothing is compiled for.
NO_ROWS = Rows(_NONE, _OF_NONE, _NONE32, _NONE32)
NO_WIDE = WideNodes(
    *(_NONE, _NONE, _OF_NONE, _OF_NONE, _NONE32, _OF_NONE, _NONE32, _NONE32),
    *(_NO_PIECES, _NO_PIECES, _NO_PARTS, _NO_PARTS),
)
NO_FEATURES = (
    FeaturesOfScores(_NONE, _NONE32, _NO_WEIGHT),
    FeaturesOfVisits(np.empty((0, 0, 2), np.int64), _NONE32, _NO_WEIGHT),
    ByFeature(_NONE, _OF_NONE, _NONE32),
)


def lay_out(
    targets: Int32,
    codes: TreeCodes,
    features: Features | None,
    n_rows: int,
    *,
    has_wide: bool,
    with_rows: bool,
) -> Plan:
    """Return the plan of a batch's targets in a tree of `n_rows` weight rows.

    `has_wide` is whether the tree has wide nodes. What gradients need is there only `with_rows`.
    """
    scores, item, decisions = _lay_out(targets, codes)
    by_row, wide, of_features = NO_ROWS, NO_WIDE, NO_FEATURES
    if with_rows:
        rows, start, score = group(scores.row, SLOTS.of(n_rows))
        by_row = Rows(rows, start, score, item[score])
    if has_wide:
        wide = _by_node(decisions, *group(decisions[0], SLOTS.of(n_rows)))
    if features is not None:
        of_features = _of_features(scores, wide, features, with_rows)
    return Plan(scores, by_row, wide, *of_features)


@jit
def _lay_out(targets, codes):
    """Return the scores of targets, their items, and the decisions (5, D) at wide nodes.

    A decision has the first row and the number of children of its node, its code, item and branch.
    """
    label_start, leaf_edge, edges = codes
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
    sign = np.empty(n_scores, np.float32)
    width, branch = np.empty(n_scores, np.int32), np.empty(n_scores, np.int32)
    wide = np.empty((5, n_wide), np.int32)
    c = s = w = 0
    for b in range(len(targets)):
        item_start[b] = c
        for code in range(label_start[targets[b]], label_start[targets[b] + 1]):
            code_start[c] = s
            edge = leaf_edge[code]
            while edge >= 0:
                first, k, taken = edges[edge, 1], edges[edge, 3], edges[edge, 2]
                edge = edges[edge, 0]
                if k > NARROW:
                    wide[0, w], wide[1, w], wide[2, w] = first, k, c
                    wide[3, w], wide[4, w] = b, taken
                    w += 1
                    continue
                is_binary = k == 2
                for i in range(1 if is_binary else k):
                    row[s], item[s] = first + i, b
                    sign[s] = 1 - 2 * taken if is_binary else 0
                    width[s] = k if i == 0 and not is_binary else 0
                    branch[s] = taken if i == 0 and not is_binary else 0
                    s += 1
            c += 1
    item_start[len(targets)], code_start[n_codes] = n_codes, n_scores
    return Scores(item_start, code_start, row, sign, width, branch), item, wide


@jit
def _by_node(wide, nodes, of_decisions, decision):
    """Group decisions (5, D) by their nodes, and those of a node by their items, which ascend.

    `nodes`, `of_decisions` and `decision` are what `group` returns for their nodes' first rows.
    """
    n_nodes, n_decisions = len(nodes), len(decision)
    width = np.empty(n_nodes, np.int64)
    code, branch = np.empty(n_decisions, np.int32), np.empty(n_decisions, np.int32)
    start, score_start = np.zeros(n_nodes + 1, np.int64), np.zeros(n_nodes + 1, np.int64)
    n_visits = np.empty(n_nodes, np.int64)
    visited, decision_start = np.empty(n_decisions, np.int32), np.empty(n_decisions + 1, np.int64)
    n = 0
    for i in range(n_nodes):
        item = np.int32(-1)
        for d in range(of_decisions[i], of_decisions[i + 1]):
            place = decision[d]
            width[i], code[d], branch[d] = wide[1, place], wide[2, place], wide[4, place]
            if wide[3, place] != item:
                item = wide[3, place]
                visited[n], decision_start[n] = item, d
                n += 1
        start[i + 1], n_visits[i] = n, n - start[i]
        score_start[i + 1] = score_start[i] + n_visits[i] * width[i]
    decision_start[n] = n_decisions
    pieces, row_pieces = _pieces(n_visits, start, VISITS), _pieces(width, start, ROWS)
    work, row_work = np.empty(len(pieces), np.int64), np.empty(len(row_pieces), np.int64)
    for p in range(len(pieces)):
        work[p] = (pieces[p, 2] - pieces[p, 1]) * width[pieces[p, 0]]
    for p in range(len(row_pieces)):
        per_row = n_visits[row_pieces[p, 0]] + PER_ROW
        row_work[p] = (row_pieces[p, 2] - row_pieces[p, 1]) * per_row
    return WideNodes(
        nodes,
        width,
        start,
        score_start,
        visited[:n],
        decision_start[: n + 1],
        code,
        branch,
        pieces,
        row_pieces,
        _even_parts(work),
        _even_parts(row_work),
    )


@inlined
def _pieces(length, start, least):
    """Cut the lengths (N,) of wide nodes into eighths, or into pieces of `least` if that is more.

    Returns the pieces (P, 4) of `WideNodes`; `start` are its offsets of visits.
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


@inlined
def _even_parts(work):
    """Cut pieces into parts of about the same work (n,), in order; return offsets (PARTS + 1,)."""
    offsets = np.zeros(PARTS + 1, np.int64)
    total = piece = so_far = 0
    for one in work:
        total += one
    for part in range(1, PARTS):
        while piece < len(work) and (so_far + work[piece]) * PARTS <= total * part:
            so_far += work[piece]
            piece += 1
        offsets[part] = piece
    offsets[PARTS] = len(work)
    return offsets


# Direct features: weights that are added where an item's contexts have some (`NgramFeatures`).


def _of_features(
    scores: Scores, wide: WideNodes, features: Features, with_rows: bool
) -> tuple[FeaturesOfScores, FeaturesOfVisits, ByFeature]:
    """Return the features of a batch; by feature only `with_rows`."""
    weight, (_, of_visits, by_feature) = features[3], NO_FEATURES
    start, feature = _features_of_scores(scores, features)
    of_scores = FeaturesOfScores(start, feature, weight)
    if wide is not NO_WIDE:
        of_visits = FeaturesOfVisits(_features_of_visits(wide, features), features[2], weight)
    if with_rows:
        first, stop = of_visits.ends.reshape(-1, 2).T
        of_scores_and_visits = of_scores.feature, ranges(first, offsets(stop - first))
        occurring = np.concatenate(of_scores_and_visits).astype(np.int32)
        by_feature = ByFeature(*group(occurring, SLOTS.of(len(weight))))
    return of_scores, of_visits, by_feature


@inlined
def first_from(row, begin, end, wanted):
    """Return the first place from `begin` to `end` whose row is `wanted` or more, else `end`."""
    while begin < end:
        middle = (begin + end) // 2
        if row[middle] < wanted:
            begin = middle + 1
        else:
            end = middle
    return begin


@jit
def _features_of_scores(scores, features):
    """Return the offsets (S + 1,) of scores at narrow nodes among their features, and these."""
    number, context_start, feature_row, _ = features
    n_lengths, n = number.shape[1], 0
    start = np.empty(len(scores.row) + 1, np.int64)
    index = np.empty(len(scores.row) * n_lengths, np.int32)
    for b in range(len(scores.item_start) - 1):
        first, stop = scores.item_start[b], scores.item_start[b + 1]
        for s in range(scores.code_start[first], scores.code_start[stop]):
            start[s] = n
            for i in range(n_lengths):
                context = number[b, i]
                if context >= 0:
                    end = context_start[context + 1]
                    f = first_from(feature_row, context_start[context], end, scores.row[s])
                    if f < end and feature_row[f] == scores.row[s]:
                        index[n] = f
                        n += 1
    start[len(scores.row)] = n
    return start, index[:n]


@jit
def _features_of_visits(wide, features):
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
                    first = first_from(feature_row, context_start[context], end, row)
                    ends[v, i, 0] = first
                    ends[v, i, 1] = first_from(feature_row, first, end, row + wide.width[node])
    return ends
