"""Layout of a batch over a tree: the logits that its decisions need, and their order.

The layout does not depend on parameters, so that another thread can compute it in advance during
training. It divides decisions in the same way as `hstree.layers.hierarchical`. At nodes with up to
`NARROW` children, every logit is a pair of an item and a weight row. At wide nodes, the logits of
an item are one row of a matrix product, called a visit of the node.
"""

from typing import NamedTuple

import numpy as np

from hstree._arrays import NARROW, Array, Float32, Int32, Int64, Integer, offsets, ranges
from hstree.kernels.arithmetic import checked_ids, group
from hstree.kernels.jit import inline, jit
from hstree.kernels.ngrams import Features, checked_features, first_at_least

#: Maximum number of logits in a batch that compiled functions compute.
MAX_LOGITS = 1 << 26
#: Minimum number of visits in a piece of a wide node's forward pass. It is a NumPy integer, since
#: numba compiles again for each Python integer.
MIN_VISITS = np.int64(64)
#: Minimum number of weight rows in a piece of a wide node's gradient.
MIN_ROWS = np.int64(256)
#: Maximum number of pieces of a wide node.
MAX_PIECES = 8
#: Number of parts with about equal work, into which the pieces of all wide nodes are divided: the
#: maximum number of threads that share them.
PARTS = 8
#: Cost of the update of a weight row, as a number of visits whose products take as long.
ROW_COST = 32


class Paths(NamedTuple):
    """Paths of all labels: the arrays that `hstree.tree.codes.Codes.walk` returns."""

    label_start: Integer  # (V + 1,) offsets of the labels in the codes
    leaf_edge: Integer  # (C,) last edge of each code
    n_pairs: Integer  # (C,) number of pairs of each code
    n_wide: Integer  # (C,) number of decisions at wide nodes of each code
    parent_edge: Integer  # (E,) edge above each edge, -1 at the root
    edge_row: Integer  # (E,) first weight row of the edge's node
    edge_width: Integer  # (E,) number of children of the edge's node
    edge_branch: Integer  # (E,) number of the child, counted from 0


# Parts of a layout.


class Pairs(NamedTuple):
    """Pairs of an item and a weight row at binary and narrow nodes, one code after another.

    A decision is one pair at a binary node, and k pairs at a node with k > 2 children.
    """

    item_start: Int64  # (B + 1,) offsets of the items in the codes
    code_start: Int64  # (C + 1,) offsets of the codes in the pairs
    row: Int32  # (P,) weight row of each pair
    #: (P,) at a binary node, 1 for the first child and -1 for the second child; otherwise 0
    sign: Float32
    #: (P,) number of children, at the first pair of a decision at a narrow node; otherwise 0
    width: Int32
    branch: Int32  # (P,) the child taken, if `width` is not 0


class RowPairs(NamedTuple):
    """Pairs grouped by weight row; empty if no gradients are needed."""

    rows: Int64  # (r,) distinct rows
    start: Int64  # (r + 1,) offsets of the rows in `pair`
    pair: Int32  # (P,) pairs by row, and for each row in the order of the batch
    item: Int32  # (P,) items of these pairs


class WideNodes(NamedTuple):
    """Visits of wide nodes, one node after another, and the decisions at each visit.

    An item visits a node once. A visit has one decision for each code of the item that passes.
    """

    row: Int64  # (N,) first weight row of each node
    width: Int64  # (N,) number of children
    visit_start: Int64  # (N + 1,) offsets of the nodes in the visits
    logit_start: Int64  # (N + 1,) offsets of the nodes in the logits of all visits
    item: Int32  # (v,) item of each visit, ascending within a node
    decision_start: Int64  # (v + 1,) offsets of the visits in the decisions
    code: Int32  # (D,) code of each decision
    branch: Int32  # (D,) the child taken
    visits: "Pieces"  # pieces of the visits, for the forward pass
    rows: "Pieces"  # pieces of the weight rows, for the gradients


class WideDecisions(NamedTuple):
    """Decisions at wide nodes, with the fields of `hstree.tree.paths.Decisions`, arrays (D,)."""

    item: Int32
    row: Int32
    width: Int32
    branch: Int32
    code: Int32


class Pieces(NamedTuple):
    """Pieces of wide nodes, divided into parts with about equal work, which threads share."""

    #: (n, 4) node, first visit or row, end of these, and number of visits in earlier pieces
    piece: Int64
    part_start: Int64  # (PARTS + 1,) offsets of the parts in `piece`


class PairFeatures(NamedTuple):
    """N-gram features that are added to the logits of pairs."""

    start: Int64  # (B + 1,) offsets of the items in `pair`; empty without features
    pair: Int32  # (f,)
    feature: Int32  # (f,) index of each feature in all features
    weight: Array  # (F,) weights of all features


class VisitFeatures(NamedTuple):
    """N-gram features that are added to the logits of visits."""

    #: (v, n, 2) first feature of each visit and end of its features, for each context length
    ends: Int64
    row: Int32  # (F,) weight rows of all features
    weight: Array  # (F,) weights of all features


class FeatureOccurrences(NamedTuple):
    """Occurrences of the features of a batch: in pairs, then in visits."""

    feature: Int64  # (f,) distinct features
    start: Int64  # (f + 1,) offsets of the features in `occurrence`
    occurrence: Int32  # (n,) ascending for each feature


class Layout(NamedTuple):
    """Everything about the decisions of a batch that the passes need."""

    pairs: Pairs
    row_pairs: RowPairs
    wide: WideNodes
    pair_features: PairFeatures
    visit_features: VisitFeatures
    occurrences: FeatureOccurrences

    @property
    def n_logits(self) -> int:
        """Number of logits of the batch."""
        return len(self.pairs.row) + int(self.wide.logit_start[-1])


_NONE = np.empty(0, np.int64)
_NONE32 = np.empty(0, np.int32)
_ONE_OFFSET = np.zeros(1, np.int64)
_NO_WEIGHT = np.empty(0, np.float32)
_NO_PIECES = Pieces(np.empty((0, 4), np.int64), np.zeros(PARTS + 1, np.int64))
#: Empty parts of a layout, if the tree or the layer has no such part; no function is compiled for
#: them.
NO_ROW_PAIRS = RowPairs(_NONE, _ONE_OFFSET, _NONE32, _NONE32)
NO_WIDE = WideNodes(
    row=_NONE,
    width=_NONE,
    visit_start=_ONE_OFFSET,
    logit_start=_ONE_OFFSET,
    item=_NONE32,
    decision_start=_ONE_OFFSET,
    code=_NONE32,
    branch=_NONE32,
    visits=_NO_PIECES,
    rows=_NO_PIECES,
)
NO_PAIR_FEATURES = PairFeatures(_NONE, _NONE32, _NONE32, _NO_WEIGHT)
NO_VISIT_FEATURES = VisitFeatures(np.empty((0, 0, 2), np.int64), _NONE32, _NO_WEIGHT)
NO_OCCURRENCES = FeatureOccurrences(_NONE, _ONE_OFFSET, _NONE32)


def lay_out(
    paths: Paths,
    targets: Integer,
    n_rows: int,
    features: Features | None = None,
    *,
    has_wide: bool = True,
    with_gradients: bool = True,
) -> Layout:
    """Lay out a batch for `tree_nll` or a training step.

    Parameters
    ----------
    paths : Paths
    targets : int array (B,)
        Label ids.
    n_rows : int
        Number of weight rows of the tree.
    features : Features, optional
        N-gram features of the items.
    has_wide : bool
        Whether the tree has wide nodes; their functions are then compiled for any batch.
    with_gradients : bool
        Whether gradients will be computed.
    """
    ids = checked_ids(targets, len(paths.label_start) - 1)
    n_items = len(ids)
    if features is not None:
        features = checked_features(features, n_items)

    # Binary and narrow nodes: pairs in the order of the batch, and grouped by weight row
    n_codes, n_pairs, n_wide = _count(ids, paths)
    pairs = Pairs(
        item_start=np.empty(n_items + 1, np.int64),
        code_start=np.empty(n_codes + 1, np.int64),
        row=np.empty(n_pairs, np.int32),
        sign=np.empty(n_pairs, np.float32),
        width=np.empty(n_pairs, np.int32),
        branch=np.empty(n_pairs, np.int32),
    )
    pair_item = np.empty(n_pairs, np.int32)
    decisions = WideDecisions(*np.empty((5, n_wide), np.int32))
    _fill_pairs(ids, paths, pairs, pair_item, decisions)
    row_pairs = NO_ROW_PAIRS
    if with_gradients:
        rows, start, pair = group(pairs.row, n_rows)
        row_pairs = RowPairs(rows, start, pair, pair_item.take(pair))

    # Wide nodes: visits of each node
    wide = _wide_nodes(decisions, n_rows) if has_wide else NO_WIDE

    # N-gram features of pairs and visits
    pair_features = NO_PAIR_FEATURES
    visit_features = NO_VISIT_FEATURES
    occurrences = NO_OCCURRENCES
    if features is not None:
        pair_features = _pair_features(pairs, features)
        if wide is not NO_WIDE:
            ends = _visit_feature_ends(wide, features)
            visit_features = VisitFeatures(ends, features.row, features.weight)
        if with_gradients:
            first, stop = visit_features.ends.reshape(-1, 2).T
            at_visits = ranges(first, offsets(stop - first))
            feature = np.concatenate([pair_features.feature, at_visits]).astype(np.int32)
            occurrences = FeatureOccurrences(*group(feature, len(features.weight)))
    return Layout(pairs, row_pairs, wide, pair_features, visit_features, occurrences)


@jit
def _count(targets, paths):
    """Return the numbers of codes, pairs and decisions at wide nodes in a batch."""
    label_start, _, code_pairs, code_wide, _, _, _, _ = paths
    n_codes = n_pairs = n_wide = 0
    for target in targets:
        for code in range(label_start[target], label_start[target + 1]):
            n_codes += 1
            n_pairs += code_pairs[code]
            n_wide += code_wide[code]
    return n_codes, n_pairs, n_wide


@jit
def _fill_pairs(targets, paths, pairs, pair_item, decisions):
    """Write the pairs and their items, and the decisions at wide nodes."""
    label_start, leaf_edge, n_pairs, _, parent_edge, edge_row, edge_width, edge_branch = paths
    item_start, code_start, row, sign, width, branch = pairs
    c = stop = d = 0
    for b in range(len(targets)):
        item_start[b] = c
        for code in range(label_start[targets[b]], label_start[targets[b] + 1]):
            code_start[c] = stop
            stop += n_pairs[code]

            # Walk up from the label, so that the pairs of a path are written from the last
            p = stop
            edge = leaf_edge[code]
            while edge >= 0:
                k = edge_width[edge]
                if k > NARROW:
                    decisions.item[d] = b
                    decisions.row[d] = edge_row[edge]
                    decisions.width[d] = k
                    decisions.branch[d] = edge_branch[edge]
                    decisions.code[d] = c
                    d += 1
                elif k == 2:
                    p -= 1
                    pair_item[p] = b
                    row[p] = edge_row[edge]
                    sign[p] = 1 - 2 * edge_branch[edge]
                    width[p] = 0
                    branch[p] = 0
                else:
                    p -= k
                    for i in range(k):
                        pair_item[p + i] = b
                        row[p + i] = edge_row[edge] + i
                        sign[p + i] = 0
                        width[p + i] = 0
                        branch[p + i] = 0
                    width[p] = k
                    branch[p] = edge_branch[edge]
                edge = parent_edge[edge]
            c += 1
    item_start[len(targets)] = c
    code_start[c] = stop


# Wide nodes.


def _wide_nodes(decisions: WideDecisions, n_rows: int) -> WideNodes:
    """Group the decisions at wide nodes by node, and within a node by item."""
    nodes, node_start, order = group(decisions.row, n_rows)
    n_nodes = len(nodes)
    n_decisions = len(order)
    wide = WideNodes(
        row=nodes,
        width=decisions.width[order[node_start[:-1]]].astype(np.int64),
        visit_start=np.zeros(n_nodes + 1, np.int64),
        logit_start=np.zeros(n_nodes + 1, np.int64),
        item=np.empty(n_decisions, np.int32),
        decision_start=np.empty(n_decisions + 1, np.int64),
        code=decisions.code[order],
        branch=decisions.branch[order],
        visits=_room_for_pieces(n_nodes),
        rows=_room_for_pieces(n_nodes),
    )
    n_visits = _fill_visits(decisions.item[order], node_start, wide)
    return wide._replace(
        item=wide.item[:n_visits],
        decision_start=wide.decision_start[: n_visits + 1],
        visits=_written(wide.visits),
        rows=_written(wide.rows),
    )


def _room_for_pieces(n_nodes: int) -> Pieces:
    return Pieces(
        piece=np.empty((MAX_PIECES * n_nodes, 4), np.int64),
        part_start=np.zeros(PARTS + 1, np.int64),
    )


def _written(pieces: Pieces) -> Pieces:
    return Pieces(pieces.piece[: pieces.part_start[-1]], pieces.part_start)


@jit
def _fill_visits(decision_item, node_start, wide):
    """Write the visits and pieces of wide nodes; return the number of visits."""
    # Unpack once, since numba counts references to arrays in fields
    _, width, visit_start, logit_start, item, decision_start, _, _, _, _ = wide
    n_nodes = len(width)
    n_visits = np.empty(n_nodes, np.int64)  # visits of each node
    row_cost = np.empty(n_nodes, np.int64)
    v = 0
    for i in range(n_nodes):
        # A visit begins where the item changes
        before = np.int32(-1)
        for d in range(node_start[i], node_start[i + 1]):
            if decision_item[d] != before:
                before = decision_item[d]
                item[v] = before
                decision_start[v] = d
                v += 1
        visit_start[i + 1] = v
        n_visits[i] = v - visit_start[i]
        row_cost[i] = n_visits[i] + ROW_COST
        logit_start[i + 1] = logit_start[i] + n_visits[i] * width[i]
    decision_start[v] = len(decision_item)
    _cut(n_visits, MIN_VISITS, width, n_visits, wide.visits)
    _cut(width, MIN_ROWS, row_cost, n_visits, wide.rows)
    return v


@inline
def _cut(length, least, cost, n_visits, pieces):
    """Divide the lengths (N,) of wide nodes into pieces, and pieces into parts of equal work.

    `cost` (N,) is the cost of one visit or row of each node. A node is divided into at most
    `MAX_PIECES` pieces of at least `least` visits or rows.
    """
    piece, part_start = pieces
    n = 0
    total = 0
    n_before = 0
    for i in range(len(length)):
        total += length[i] * cost[i]
        size = max(least, (length[i] + MAX_PIECES - 1) // MAX_PIECES)
        for first in range(0, length[i], size):
            piece[n, 0] = i
            piece[n, 1] = first
            piece[n, 2] = min(first + size, length[i])
            piece[n, 3] = n_before
            n_before += n_visits[i]
            n += 1

    # A part ends before the piece that would exceed its fraction of the work
    p = 0
    cost_so_far = 0
    for part in range(1, PARTS + 1):
        while p < n:
            with_piece = cost_so_far + (piece[p, 2] - piece[p, 1]) * cost[piece[p, 0]]
            if with_piece * PARTS > total * part:
                break
            p += 1
            cost_so_far = with_piece
        part_start[part] = p


# N-gram features.


def _pair_features(pairs: Pairs, features: Features) -> PairFeatures:
    """Return the features of the pairs."""
    start = np.empty(len(pairs.item_start), np.int64)
    most = len(pairs.row) * features.number.shape[1]
    pair = np.empty(most, np.int32)
    feature = np.empty(most, np.int32)
    n = _fill_pair_features(pairs, features, start, pair, feature)
    return PairFeatures(start, pair[:n], feature[:n], features.weight)


@jit
def _fill_pair_features(pairs, features, start, pair, feature):
    """Write the offsets (B + 1,) of items, and their pairs and features; return their number.

    Rows ascend on the path down to a leaf. If a binary node has no feature for a context, the nodes
    below it have none either.
    """
    item_start, code_start, row, sign, _, _ = pairs
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
                for p in range(code_start[code], code_start[code + 1]):
                    f = first_at_least(feature_row, begin, end, row[p])
                    if f < end and feature_row[f] == row[p]:
                        pair[n] = p
                        feature[n] = f
                        n += 1
                    elif sign[p] != 0:
                        break
                    if sign[p] != 0:
                        begin = f + 1
    start[len(number)] = n
    return n


@jit
def _visit_feature_ends(wide, features):
    """Return the ranges (v, n, 2) of the features of visits, by context length."""
    number, context_start, feature_row, _ = features
    n_lengths = number.shape[1]
    ends = np.zeros((len(wide.item), n_lengths, 2), np.int64)
    for node in range(len(wide.row)):
        row = wide.row[node]
        for v in range(wide.visit_start[node], wide.visit_start[node + 1]):
            for i in range(n_lengths):
                context = number[wide.item[v], i]
                if context >= 0:
                    end = context_start[context + 1]
                    first = first_at_least(feature_row, context_start[context], end, row)
                    stop = first_at_least(feature_row, first, end, row + wide.width[node])
                    ends[v, i, 0] = first
                    ends[v, i, 1] = stop
    return ends
