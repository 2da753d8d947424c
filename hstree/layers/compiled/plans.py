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
from hstree._typing import Array, Float32, Int32, Int64, Integer
from hstree.layers.compiled.arithmetic import group
from hstree.layers.ngram_features import Features, NgramFeatures
from hstree.tree.weight_rows import NARROW

#: Least work at a wide node that is a piece by itself: visits of its scores, rows of its gradients.
VISITS, ROWS = np.int64(64), np.int64(256)  # not Python's, for each of which numba compiles anew
#: Pieces that a wide node is cut into at most.
MOST_PIECES = 8
#: Parts of the pieces of wide nodes, of about the same work: the most threads that share them.
PARTS = 8
#: Work of a row's update, in visits that its products take as long for.
PER_ROW = 32


class TreeCodes(NamedTuple):
    """Codes of all labels, as the last of their edges, and what is above each edge."""

    label_start: Int64  # (V + 1,) offsets of the labels among the codes
    leaf_edge: Int64  # (C,)
    sizes: Int64  # (3, V) codes of each label, their scores at narrow nodes, decisions at wide ones
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

    start: Int64  # (B + 1,) offsets of the items in `score`; empty where no score has any
    score: Int32  # (P,)
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
    FeaturesOfScores(_NONE, _NONE32, _NONE32, _NO_WEIGHT),
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
    n_codes, n_scores, n_wide = codes.sizes.take(targets, 1).sum(1)
    row, width, branch, item = np.empty((4, n_scores), np.int32)
    start = np.empty(len(targets) + 1, np.int64), np.empty(n_codes + 1, np.int64)
    scores = Scores(*start, row, np.empty(n_scores, np.float32), width, branch)
    decisions = np.empty((5, n_wide), np.int32)
    _lay_out(targets, codes.label_start, codes.leaf_edge, codes.edges, scores, item, decisions)
    by_row, wide, of_features = NO_ROWS, NO_WIDE, NO_FEATURES
    if with_rows:
        rows, of_rows, score = group(row, n_rows)
        by_row = Rows(rows, of_rows, score, item.take(score))
    if has_wide:
        wide = _by_node(decisions, *group(decisions[0], n_rows))
    if features is not None:
        of_features = _of_features(scores, wide, features, with_rows)
    return Plan(scores, by_row, wide, *of_features)


@jit
def _lay_out(targets, label_start, leaf_edge, edges, scores, item, wide):
    """Write the scores of targets, their items, and the decisions (5, D) at wide nodes.

    A decision has the first row and the number of children of its node, its code, item and branch.
    """
    item_start, code_start, row, sign, width, branch = scores
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
    item_start[len(targets)], code_start[c] = c, s


def _by_node(wide: Int32, nodes: Int64, of_decisions: Int64, decision: Int32) -> WideNodes:
    """Group decisions (5, D) by their nodes, and those of a node by their items, which ascend.

    `nodes`, `of_decisions` and `decision` are what `group` returns for their nodes' first rows.
    """
    n = len(nodes)
    start, score_start = np.zeros((2, n + 1), np.int64)
    visits = np.empty((3, len(decision)), np.int32)
    decision_start = np.empty(len(decision), np.int64)
    pieces, parts = np.empty((2, MOST_PIECES * n, 4), np.int64), np.zeros((2, PARTS + 1), np.int64)
    of_nodes = np.empty((3, n), np.int64)
    arrays = of_nodes, start, score_start, visits, decision_start, pieces, parts
    _fill_nodes(wide, of_decisions, decision, *arrays)
    item, code, branch = visits
    return WideNodes(
        nodes,
        of_nodes[0],
        start,
        score_start,
        item[: start[-1]],
        np.append(decision_start[: start[-1]], len(decision)),
        code,
        branch,
        pieces[0, : parts[0, -1]],
        pieces[1, : parts[1, -1]],
        *parts,
    )


@jit
def _fill_nodes(
    wide,
    of_decisions,
    decision,
    of_nodes,
    start,
    score_start,
    visits,
    decision_start,
    pieces,
    parts,
):
    width, n_visits, per_row = of_nodes
    n = 0
    for i in range(len(width)):
        item = np.int32(-1)
        for d in range(of_decisions[i], of_decisions[i + 1]):
            place = decision[d]
            width[i], visits[1, d], visits[2, d] = wide[1, place], wide[2, place], wide[4, place]
            if wide[3, place] != item:
                item = wide[3, place]
                visits[0, n], decision_start[n] = item, d
                n += 1
        start[i + 1], n_visits[i] = n, n - start[i]
        per_row[i] = n_visits[i] + PER_ROW
        score_start[i + 1] = score_start[i] + n_visits[i] * width[i]
    _cut(n_visits, VISITS, width, n_visits, pieces[0], parts[0])
    _cut(width, ROWS, per_row, n_visits, pieces[1], parts[1])


@inlined
def _cut(length, least, work, n_visits, pieces, parts):
    """Cut the lengths (N,) of wide nodes into pieces, and these into parts of about the same work.

    `work` (N,) is that of one in each length. Each is cut into `MOST_PIECES`, or into pieces of
    `least` if that is more. Writes the pieces (P, 4) of `WideNodes` and their offsets.
    """
    n = piece = total = before = so_far = 0
    for i in range(len(length)):
        total += length[i] * work[i]
        size = max(least, (length[i] + MOST_PIECES - 1) // MOST_PIECES)
        for first in range(0, length[i], size):
            pieces[n, 0], pieces[n, 1], pieces[n, 3] = i, first, before
            pieces[n, 2] = min(first + size, length[i])
            before += n_visits[i]
            n += 1
    for part in range(1, PARTS + 1):
        while piece < n:
            more = so_far + (pieces[piece, 2] - pieces[piece, 1]) * work[pieces[piece, 0]]
            if more * PARTS > total * part:
                break
            piece, so_far = piece + 1, more
        parts[part] = piece


def _of_features(
    scores: Scores, wide: WideNodes, features: Features, with_rows: bool
) -> tuple[FeaturesOfScores, FeaturesOfVisits, ByFeature]:
    """Return the features of a batch; by feature only `with_rows`."""
    weight, (_, of_visits, by_feature) = features[3], NO_FEATURES
    start = np.empty(len(scores.item_start), np.int64)
    score, feature = np.empty((2, len(scores.row) * features[0].shape[1]), np.int32)
    n = _features_of_scores(scores, features, start, score, feature)
    of_scores = FeaturesOfScores(start, score[:n], feature[:n], weight)
    if wide is not NO_WIDE:
        of_visits = FeaturesOfVisits(_features_of_visits(wide, features), features[2], weight)
    if with_rows:
        first, stop = of_visits.ends.reshape(-1, 2).T
        of_scores_and_visits = of_scores.feature, ranges(first, offsets(stop - first))
        occurring = np.concatenate(of_scores_and_visits).astype(np.int32)
        by_feature = ByFeature(*group(occurring, len(weight)))
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
def _features_of_scores(scores, features, start, score, feature):
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
                for s in range(code_start[code + 1] - 1, code_start[code] - 1, -1):
                    f = first_from(feature_row, begin, end, row[s])
                    if f < end and feature_row[f] == row[s]:
                        score[n], feature[n] = s, f
                        n += 1
                    elif sign[s] != 0:
                        break
                    if sign[s] != 0:
                        begin = f + 1
    start[len(number)] = n
    return n


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


def numbers(features: NgramFeatures, contexts: Integer) -> Int64:
    """Twin of `NgramFeatures.numbers`."""
    number = np.full((len(contexts), len(features.start) - 1), -1)
    table = features.words, features.longer_start, features.start[1]
    _numbers(np.ascontiguousarray(contexts, np.int32), *table, number)
    return number


@jit
def _numbers(contexts, words, longer_start, end, number):
    """Write the numbers (B, n) of the contexts; those of one word are the first, up to `end`."""
    n_words = contexts.shape[1]
    for b in range(len(contexts)):
        first, stop = 0, end
        for i in range(min(n_words, number.shape[1])):
            word = contexts[b, n_words - 1 - i]
            context = first_from(words, first, stop, word)
            if context == stop or words[context] != word:
                break
            number[b, i] = context
            first, stop = longer_start[context], longer_start[context + 1]
