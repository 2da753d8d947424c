"""Log-probabilities of all labels of a tree, and best-first search for the most probable labels."""

from functools import partial
from typing import NamedTuple

import numpy as np

from hstree._arrays import Array, Bool, Float64, Int64, Integer
from hstree._parallel import in_parts
from hstree.kernels.arithmetic import check_shape, dot
from hstree.kernels.jit import inline, jit
from hstree.kernels.ngrams import Features, checked_features, first_at_least, no_features

#: Costs that differ by no more than this tie (relative to their size above 1). Rounding errors in
#: sums over codes and depths are smaller.
TIE = 1e-12
#: Bound for the rounding error in the remaining probability of labels that are not yet found.
MASS_MARGIN = 1e-9
#: Fraction of the edges, beyond `MIN_PATIENCE`, after which a search ends without an answer; the
#: log-probabilities of all labels are then computed. It is twice that of the search in NumPy
#: (`hstree.layers.top_k`), whose rounds have a fixed cost. A compiled search of one context that
#: ends at 1/4 takes 1.4 times as long as all log-probabilities (10,000 labels, d = 100).
PATIENCE = 1 / 4
#: Minimum number of edges that a search scores before it ends without an answer.
MIN_PATIENCE = 96


exact_jit = partial(jit, exact=True)
exact_inline = partial(inline, exact=True)


class SearchedTree(NamedTuple):
    """Arrays of a tree, as in `hstree.tree.Tree`."""

    child_start: Int64
    child: Int64
    row_start: Int64


class SearchedCodes(NamedTuple):
    """Codes of labels that have several codes, as in `hstree.tree.codes.Codes`."""

    label_start: Integer
    leaf_edge: Integer
    parent_edge: Integer
    edge_node: Integer


# Log-probabilities of all labels.


def label_log_prob(
    logits: Array, tree: SearchedTree, n_labels: int, *, has_single_codes: bool
) -> Float64:
    """Return the log-probabilities (B, V) of all labels, given the logits (B, R) of all rows."""
    check_shape("logits", logits.shape, (len(logits), int(tree.row_start[-1])))
    out = np.empty((len(logits), n_labels))
    in_parts(
        len(logits),
        _label_log_prob,
        logits,
        tree.child_start,
        tree.child,
        tree.row_start,
        has_single_codes,
        out,
        step=1,
    )
    return out


@exact_jit
def _label_log_prob(first, stop, logits, child_start, child, row_start, has_single_codes, out):
    """Write the log-probabilities (V,) of all labels, for the items from `first` to `stop`.

    Nodes come after their parents, so that one pass suffices.
    """
    path = np.zeros(len(child_start) - 1)
    for b in range(first, stop):
        labels = out[b]
        labels[:] = -np.inf
        for node in range(len(child_start) - 1):
            begin = child_start[node]
            width = child_start[node + 1] - begin
            row = row_start[node]
            if width == 2:
                z = np.float64(logits[b, row])
                shift = path[node] - np.log1p(np.exp(-abs(z)))
                _arrive(child[begin], shift + min(z, 0.0), path, labels, has_single_codes)
                _arrive(child[begin + 1], shift + min(-z, 0.0), path, labels, has_single_codes)
                continue
            largest = logits[b, row]
            for i in range(1, width):
                largest = max(largest, logits[b, row + i])
            total = 0.0
            for i in range(width):
                total += np.exp(np.float64(logits[b, row + i]) - largest)
            shift = path[node] - np.log(total) - largest
            for i in range(width):
                log_prob = shift + np.float64(logits[b, row + i])
                _arrive(child[begin + i], log_prob, path, labels, has_single_codes)


@exact_inline
def _arrive(child, log_prob, path, labels, has_single_codes):
    """Store the log-probability of the path to a node, or add it to that of a label."""
    if child >= 0:
        path[child] = log_prob
    elif has_single_codes:
        labels[~child] = log_prob
    else:
        labels[~child] = np.logaddexp(labels[~child], log_prob)


# The most probable labels.


def search(
    weight: Array,
    bias: Array,
    hidden: Array,
    k: int,
    tree: SearchedTree,
    codes: SearchedCodes | None = None,
    features: Features | None = None,
) -> tuple[Int64, Float64, Bool]:
    """Search the k most probable labels of hidden vectors (B, d).

    Parameters
    ----------
    weight, bias, hidden : float32 arrays (R, d), (R,) and (B, d)
    k : int
        From 1 to the number of labels.
    codes : SearchedCodes, optional
        Codes, for a tree with several codes per label.
    features : Features, optional
        N-gram features of the items.

    Returns
    -------
    labels : int64 array (B, k)
        The most probable first, ties by label id.
    log_prob : float64 array (B, k)
    is_done : bool array (B,)
        False if the search took too long: the labels then have no meaning.
    """
    check_shape("hidden vectors", hidden.shape, (len(hidden), weight.shape[1]))
    if features is None:
        features = no_features(len(hidden))
    features = checked_features(features, len(hidden))
    n_edges = len(tree.child)
    patience = int(np.clip(MIN_PATIENCE + PATIENCE * n_edges, 0, n_edges))
    max_codes = 1
    # Size of the buffer for a node's branches; only label scores need nodes wider than `patience`
    n_scores = patience
    if codes is not None:
        max_codes = int(np.diff(codes.label_start).max())
        n_scores = n_edges
    labels = np.empty((len(hidden), k), np.int64)
    log_prob = np.empty((len(hidden), k))
    is_done = np.empty(len(hidden), np.bool_)
    _search(
        (weight, bias),
        hidden,
        k,
        features,
        tree,
        codes,
        max_codes,
        patience,
        n_scores,
        (labels, log_prob, is_done),
    )
    return labels, log_prob, is_done


@inline
def _push(cost, child, n, new_cost, new_child):
    """Add an entry to a heap of n entries whose lowest cost is first."""
    at = n
    while at > 0 and cost[(at - 1) // 2] > new_cost:
        above = (at - 1) // 2
        cost[at] = cost[above]
        child[at] = child[above]
        at = above
    cost[at] = new_cost
    child[at] = new_child


@inline
def _pop(cost, child, n):
    """Remove the first entry from a heap of n entries; return it."""
    first_cost = cost[0]
    first_child = child[0]

    # Move the last entry to the top, then down past entries with lower costs
    last_cost = cost[n - 1]
    last_child = child[n - 1]
    at = 0
    while 2 * at + 1 < n - 1:
        below = 2 * at + 1
        if below + 1 < n - 1 and cost[below + 1] < cost[below]:
            below += 1
        if cost[below] >= last_cost:
            break
        cost[at] = cost[below]
        child[at] = child[below]
        at = below
    cost[at] = last_cost
    child[at] = last_child
    return first_cost, first_child


@inline
def _is_apart(cost, higher):
    """Return whether a cost and a higher cost do not tie."""
    return higher - cost > TIE * max(1.0, higher)


@inline
def _branches(model, hidden, row, width, features, scores):
    """Write the costs of a node's branches to `scores`, minus their common part; return that part.

    `features` are the context numbers (n,) of an item, and the other fields of `Features`.
    """
    weight, bias = model
    number, context_start, feature_row, feature_weight = features

    # Logits, including the weights of n-gram features
    n_rows = 1 if width == 2 else width
    for i in range(n_rows):
        scores[i] = dot(weight, row + i, hidden) + bias[row + i]
    for context in number:
        if context >= 0:
            end = context_start[context + 1]
            f = first_at_least(feature_row, context_start[context], end, row)
            while f < end and feature_row[f] < row + n_rows:
                scores[feature_row[f] - row] += feature_weight[f]
                f += 1

    # -log sigmoid(z) = max(-z, 0) + log(1 + exp(-|z|))
    if width == 2:
        z = scores[0]
        scores[0] = max(-z, 0.0)
        scores[1] = max(z, 0.0)
        return np.log1p(np.exp(-abs(z)))

    # -log softmax = ln Z - logit
    largest = scores[0]
    total = 0.0
    for i in range(1, width):
        largest = max(largest, scores[i])
    for i in range(width):
        total += np.exp(scores[i] - largest)
        scores[i] = -scores[i]
    return np.log(total) + largest


@inline
def _label_cost(model, hidden, tree, codes, features, known, label):
    """Return the cost of a label, from its probability over all codes, and the edges scored.

    `known` has a buffer for scores, the costs (N,) of the paths to nodes (-1 if unknown), and a
    buffer for the edges of a code.
    """
    child_start, children, row_start = tree
    label_start, leaf_edge, parent_edge, edge_node = codes
    scores, reached, below = known
    total = np.inf
    spent = 0
    for code in range(label_start[label], label_start[label + 1]):
        edge = leaf_edge[code]
        n = 0
        below[0] = edge  # edges from the leaf up to a node with known cost
        while reached[edge_node[edge]] < 0:
            edge = parent_edge[edge]
            n += 1
            below[n] = edge
        cost = reached[edge_node[edge]]
        for i in range(n, -1, -1):
            edge = below[i]
            node = np.int64(edge_node[edge])  # same type as nodes on the heap
            width = child_start[node + 1] - child_start[node]
            shared = _branches(model, hidden, row_start[node], width, features, scores)
            cost += shared + scores[edge - child_start[node]]
            spent += width
            if children[edge] >= 0:
                reached[children[edge]] = cost
        total = min(total, cost) - np.log1p(np.exp(-abs(total - cost)))
    return total, spent


@jit
def _search(model, hidden, k, features, tree, codes, max_codes, patience, n_scores, out):
    """Write the k most probable labels of hidden vectors, and whether each search was completed.

    A label with several codes is scored when its first code leaves the heap. `codes` is None if
    each label has one code; the code for several codes is then not compiled.
    """
    number, context_start, feature_row, feature_weight = features
    child_start, children, row_start = tree
    labels, values, is_done = out
    scores = np.empty(n_scores)
    # The frontier, a heap of costs and children
    cost = np.empty(patience + 1)
    child = np.empty(patience + 1, np.int64)
    # The labels found so far, in ascending order of cost
    best = np.empty(patience + 1)
    label = np.empty(patience + 1, np.int64)
    if codes is not None:
        # Costs of the paths to nodes, whether labels were scored, and a buffer for a code's edges
        reached = np.empty(len(child_start) - 1)
        is_met = np.empty(len(codes[0]) - 1, np.bool_)
        below = np.empty(len(child_start), np.int64)
    for b in range(len(hidden)):
        context = number[b], context_start, feature_row, feature_weight
        if codes is not None:
            reached[:] = -1
            is_met[:] = False
        # Start at the root, with a remaining probability of one
        cost[0] = 0.0
        child[0] = 0
        is_done[b] = True
        n = np.int64(1)
        n_best = 0
        left_over = 1.0
        n_scored = 0
        while n > 0:
            # Stop when no other label can precede the k-th or tie with it
            if n_best >= k:
                last = k
                while last < n_best and not _is_apart(best[last - 1], best[last]):
                    last += 1
                by_mass = -np.log(max(left_over, 0.0) + MASS_MARGIN)
                least = max(cost[0] - np.log(max_codes), by_mass)
                if _is_apart(best[k - 1], least) and _is_apart(best[last - 1], least):
                    break

            path, node = _pop(cost, child, n)
            n -= 1
            if node < 0:
                # A label: insert it among the best
                if codes is not None:
                    if is_met[~node]:
                        continue
                    is_met[~node] = True
                    known = scores, reached, below
                    path, n_edges = _label_cost(
                        model, hidden[b], tree, codes, context, known, ~node
                    )
                    n_scored += n_edges
                at = n_best
                while at > 0 and best[at - 1] > path:
                    best[at] = best[at - 1]
                    label[at] = label[at - 1]
                    at -= 1
                best[at] = path
                label[at] = ~node
                n_best += 1
                left_over -= np.exp(-path)
                continue

            # A node: push its children, unless the search has scored too many edges
            if codes is not None:
                reached[node] = path
            first = child_start[node]
            width = child_start[node + 1] - first
            n_scored += width
            if n_scored > patience:
                is_done[b] = False
                break
            total = path + _branches(model, hidden[b], row_start[node], width, context, scores)
            for i in range(width):
                _push(cost, child, n, total + scores[i], children[first + i])
                n += 1

        # Sort tied labels by id, one complete tie group at a time
        first = 0
        while first < k and is_done[b]:
            stop = first + 1
            while stop < n_best and not _is_apart(best[stop - 1], best[stop]):
                stop += 1
            for i in range(first, stop):
                _push(cost, child, i - first, np.float64(label[i]), i)
            for i in range(first, min(stop, k)):
                _, position = _pop(cost, child, stop - i)
                labels[b, i] = label[position]
                values[b, i] = -best[position]
            first = stop
