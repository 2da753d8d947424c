"""Layout of a batch at a tree: which logits its decisions need, and in which order.

The layout depends on no parameter, so that a training makes it ahead, in another thread. It divides
the decisions as `hstree.layers.hierarchical` does. At nodes with up to `NARROW` children, every
logit is a pair of an item and a weight row. At wide nodes, the logits of an item are one row of a
matrix product: a visit of the node.
"""

from typing import NamedTuple

import numpy as np

from hstree._arrays import NARROW, Array, Float32, Int32, Int64, Integer, offsets, ranges
from hstree.kernels.arithmetic import checked_ids, group
from hstree.kernels.jit import inline, jit
from hstree.kernels.ngrams import Features, checked_features, first_at_least

#: Logits of a batch up to which compiled functions compute it.
MAX_LOGITS = 1 << 26
#: Minimum number of visits in a piece of a wide node's forward pass. A NumPy integer, since numba
#: compiles again for each integer of Python.
MIN_VISITS = np.int64(64)
#: Minimum number of weight rows in a piece of a wide node's gradient.
MIN_ROWS = np.int64(256)
#: Maximum number of pieces of a wide node.
MAX_PIECES = 8
#: Parts of the pieces of all wide nodes, of about the same work. It is the maximum number of
#: threads that share them.
PARTS = 8
#: Cost of the update of a weight row, in visits whose products take as long.
ROW_COST = 32


class Paths(NamedTuple):
    """Paths of all labels: the arrays that `hstree.tree.codes.Codes.walk` returns."""

    label_start: Integer  # (V + 1,) offsets of the labels among the codes
    leaf_edge: Integer  # (C,) last edge of each code
    n_pairs: Integer  # (C,) number of its pairs
    n_wide: Integer  # (C,) number of its decisions at wide nodes
    parent_edge: Integer  # (E,) edge above each edge, -1 at the root
    edge_row: Integer  # (E,) first weight row of its node
    edge_width: Integer  # (E,) number of children of its node
    edge_branch: Integer  # (E,) the child that it leads to, counted from 0


# Parts of a layout.


class Pairs(NamedTuple):
    """Pairs of an item and a weight row at binary and narrow nodes, one code after another.

    A decision at a binary node is one pair, one at a node with k > 2 children is k pairs.
    """

    item_start: Int64  # (B + 1,) offsets of the items among the codes
    code_start: Int64  # (C + 1,) offsets of the codes among the pairs
    row: Int32  # (P,) weight row of each pair
    #: (P,) at a binary node 1 if the first child is taken and -1 if the second is; elsewhere 0
    sign: Float32
    #: (P,) at the first pair of a decision at a narrow node the number of children; elsewhere 0
    width: Int32
    branch: Int32  # (P,) the child taken, where `width` is not 0


class RowPairs(NamedTuple):
    """The pairs by their weight rows; empty where no gradients are needed."""

    rows: Int64  # (r,) the rows that occur, each once
    start: Int64  # (r + 1,) offsets of the rows in `pair`
    pair: Int32  # (P,) pairs of one row after another, each in the order of the batch
    item: Int32  # (P,) their items


class WideNodes(NamedTuple):
    """Visits of wide nodes, one node after another, and the decisions at each visit.

    An item visits a node once, and decides there once for each of its codes that pass the node.
    """

    row: Int64  # (N,) first weight row of each node
    width: Int64  # (N,) number of children
    visit_start: Int64  # (N + 1,) offsets of the nodes among the visits
    logit_start: Int64  # (N + 1,) offsets of the nodes among the logits of all visits
    item: Int32  # (v,) item of each visit, ascending at a node
    decision_start: Int64  # (v + 1,) offsets of the visits among the decisions
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
    """Pieces of wide nodes, divided into parts of about the same work, which threads share."""

    #: (n, 4) node, first and last visit or row of it, and number of visits in the pieces before
    piece: Int64
    part_start: Int64  # (PARTS + 1,) offsets of the parts in `piece`


class PairFeatures(NamedTuple):
    """N-gram features that are added to the logits of pairs."""

    start: Int64  # (B + 1,) offsets of the items in `pair`; empty without features
    pair: Int32  # (f,)
    feature: Int32  # (f,) index of each feature among all
    weight: Array  # (F,) weights of all features


class VisitFeatures(NamedTuple):
    """N-gram features that are added to the logits of visits."""

    #: (v, n, 2) first and last of the features of each visit, for each length of its contexts
    ends: Int64
    row: Int32  # (F,) weight rows of all features
    weight: Array  # (F,) their weights


class FeatureOccurrences(NamedTuple):
    """Where the features of a batch occur: among those of pairs, then among those of visits."""

    feature: Int64  # (f,) the features that occur, each once
    start: Int64  # (f + 1,) offsets of the features in `occurrence`
    occurrence: Int32  # (n,) ascending for each feature


class Layout(NamedTuple):
    """Everything that the passes of a batch need to know of its decisions."""

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
#: Empty arrays for parts that the tree or the layer does not have. No function is compiled for
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
        Labels.
    n_rows : int
        Number of weight rows of the tree.
    features : Features, optional
        N-gram features of the items.
    has_wide : bool
        Whether the tree has wide nodes, so that their functions are compiled for any batch.
    with_gradients : bool
        Whether gradients follow.
    """
    ids = checked_ids(targets, len(paths.label_start) - 1)
    n_items = len(ids)
    if features is not None:
        features = checked_features(features, n_items)

    # Binary and narrow nodes: the pairs, in the order of the batch and by their weight rows
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

    # Wide nodes: the visits of each
    wide = _wide_nodes(decisions, n_rows) if has_wide else NO_WIDE

    # N-gram features at both
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
    """Return the number of codes, of pairs and of decisions at wide nodes of a batch."""
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

            # Up from the label, so that the pairs of a path are written from the last one
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
    """Group the decisions at wide nodes by their nodes, and those of a node by their items."""
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
    # unpacked once: numba counts references to the arrays that a field holds
    _, width, visit_start, logit_start, item, decision_start, _, _, _, _ = wide
    n_nodes = len(width)
    n_visits = np.empty(n_nodes, np.int64)  # of each node
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
    """Cut the lengths (N,) of wide nodes into pieces, and these into parts of about the same work.

    `cost` (N,) is the cost of one visit or row of each node. A node is cut into `MAX_PIECES`, or
    into pieces of `least` if that is more.
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

    # A part ends before the piece that would take it above its fraction of the work
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
    """Write the offsets (B + 1,) of items, their pairs and the features of these.

    Returns how many there are. Rows ascend down to a leaf, and have no feature of a context after
    which no n-gram comes to a binary node above them.
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
    """Return the ends (v, n, 2) of the features of visits, by the lengths of contexts."""
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
