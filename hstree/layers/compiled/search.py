"""All labels of a tree: their log-probabilities, and the most probable."""

from typing import Any

import numpy as np

from hstree._compiled import in_parts, inlined, inlined_exact, jit, jit_exact, takes
from hstree._typing import Array
from hstree.layers.compiled.arithmetic import check_shape, dot
from hstree.layers.compiled.passes import checked_features, tree_pass
from hstree.layers.compiled.plans import first_from
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.layers.ngram_features import Features
from hstree.layers.top_k import COMPILED_PATIENCE, LEAST_PATIENCE, TIE
from hstree.tree.codes import Codes

#: Probability that rounding may hide in what the labels met so far leave over.
MASS_MARGIN = 1e-9


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


@inlined_exact
def _arrive(child, log_prob, path, of_item, single):
    """Note the log-probability of the path to a child, or add it to that of a label."""
    if child >= 0:
        path[child] = log_prob
    elif single:
        of_item[~child] = log_prob
    else:
        of_item[~child] = np.logaddexp(of_item[~child], log_prob)


def log_prob_of_items(layer: HierarchicalSoftmax, hidden: Array, some: slice) -> Any:
    """Twin of `hierarchical.log_prob_of_items`."""
    if tree_pass(layer, 0, hidden) is None:
        return NotImplemented
    logits, tree = hidden[some] @ layer.weight.T, layer.tree
    logits += layer.bias
    layer.add_to_logits(logits, some)
    out = np.empty((len(logits), tree.n_labels))
    arrays = tree.child_start, tree.child, tree.row_start
    in_parts(len(logits), _log_prob_items, logits, *arrays, tree.has_single_codes, out, step=1)
    return out


# The most probable labels.


@inlined
def _push(cost, child, n, new_cost, new_child):
    """Add an entry to a heap of n, whose least cost is first."""
    at = n
    while at > 0 and cost[(at - 1) // 2] > new_cost:
        above = (at - 1) // 2
        cost[at], child[at] = cost[above], child[above]
        at = above
    cost[at], child[at] = new_cost, new_child


@inlined
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


@inlined
def _is_apart(cost, higher):
    return higher - cost > TIE * max(1.0, higher)


@inlined
def _branches(model, hidden, row, width, features, scores):
    """Write the costs of a node's branches to `scores`, less what they share, which is returned.

    `features` are the numbers (n,) of an item's contexts, and what `Features` has beside them.
    """
    weight, bias = model
    number, context_start, feature_row, feature_weight = features
    n_rows = 1 if width == 2 else width
    for i in range(n_rows):
        scores[i] = dot(weight, row + i, hidden) + bias[row + i]
    for context in number:
        if context >= 0:
            end = context_start[context + 1]
            f = first_from(feature_row, context_start[context], end, row)
            while f < end and feature_row[f] < row + n_rows:
                scores[feature_row[f] - row] += feature_weight[f]
                f += 1
    if width == 2:
        z = scores[0]
        scores[0], scores[1] = max(-z, 0.0), max(z, 0.0)
        return np.log1p(np.exp(-abs(z)))
    largest, total = scores[0], 0.0
    for i in range(1, width):
        largest = max(largest, scores[i])
    for i in range(width):
        total += np.exp(scores[i] - largest)
        scores[i] = -scores[i]
    return np.log(total) + largest


@inlined
def _label_cost(model, hidden, tree, codes, features, known, label):
    """Return the cost of a label, its probability summed over its codes, and the edges scored.

    `known` are scores, the costs (N,) of the paths to the nodes that are known, -1 for others, and
    room for the edges of a code.
    """
    child_start, children, row_start = tree
    label_start, leaf_edge, parent_edge, edge_node = codes
    scores, reached, below = known
    total, spent = np.inf, 0
    for code in range(label_start[label], label_start[label + 1]):
        edge, n = leaf_edge[code], 0
        below[0] = edge  # edges from the leaf up to a node that is known
        while reached[edge_node[edge]] < 0:
            edge = parent_edge[edge]
            n += 1
            below[n] = edge
        cost = reached[edge_node[edge]]
        for i in range(n, -1, -1):
            edge = below[i]
            node = np.int64(edge_node[edge])  # of the type that nodes of the heap have
            width = child_start[node + 1] - child_start[node]
            shared = _branches(model, hidden, row_start[node], width, features, scores)
            cost += shared + scores[edge - child_start[node]]
            spent += width
            if children[edge] >= 0:
                reached[children[edge]] = cost
        total = min(total, cost) - np.log1p(np.exp(-abs(total - cost)))
    return total, spent


@jit
def _search(model, hidden, k, features, tree, codes, most_codes, patience, n_scores, out):
    """Write the k most probable labels of hidden vectors, and for which patience sufficed.

    Where labels have several codes, one is scored when its first code leaves the heap; `codes` are
    None where each label has one, and nothing is compiled for them.
    """
    number, context_start, feature_row, feature_weight = features
    child_start, children, row_start = tree
    (labels, values, is_done), scores = out, np.empty(n_scores)
    cost, child = np.empty(patience + 1), np.empty(patience + 1, np.int64)
    best, label = np.empty(patience + 1), np.empty(patience + 1, np.int64)
    if codes is not None:
        # costs of the paths to nodes, labels that were scored, and room for the edges of a code
        reached, is_met = np.empty(len(child_start) - 1), np.empty(len(codes[0]) - 1, np.bool_)
        below = np.empty(len(child_start), np.int64)
    for b in range(len(hidden)):
        table = number[b], context_start, feature_row, feature_weight
        if codes is not None:
            reached[:], is_met[:] = -1, False
        cost[0], child[0], is_done[b] = 0.0, 0, True
        n, n_best, left_over, spent = np.int64(1), 0, 1.0, 0
        while n > 0:
            if n_best >= k:
                last = k
                while last < n_best and not _is_apart(best[last - 1], best[last]):
                    last += 1
                by_mass = -np.log(max(left_over, 0.0) + MASS_MARGIN)
                least = max(cost[0] - np.log(most_codes), by_mass)
                if _is_apart(best[k - 1], least) and _is_apart(best[last - 1], least):
                    break
            path, node = _pop(cost, child, n)
            n -= 1
            if node < 0:
                if codes is not None:
                    if is_met[~node]:
                        continue
                    is_met[~node] = True
                    known = scores, reached, below
                    path, n_scored = _label_cost(model, hidden[b], tree, codes, table, known, ~node)
                    spent += n_scored
                at = n_best
                while at > 0 and best[at - 1] > path:
                    best[at], label[at] = best[at - 1], label[at - 1]
                    at -= 1
                best[at], label[at] = path, ~node
                n_best += 1
                left_over -= np.exp(-path)
                continue
            if codes is not None:
                reached[node] = path
            first, width = child_start[node], child_start[node + 1] - child_start[node]
            spent += width
            if spent > patience:
                is_done[b] = False
                break
            total = path + _branches(model, hidden[b], row_start[node], width, table, scores)
            for i in range(width):
                _push(cost, child, n, total + scores[i], children[first + i])
                n += 1
        # labels that tie are in the order of their ids; only whole groups of ties are sorted
        first = 0
        while first < k and is_done[b]:
            stop = first + 1
            while stop < n_best and not _is_apart(best[stop - 1], best[stop]):
                stop += 1
            for i in range(first, stop):
                _push(cost, child, i - first, np.float64(label[i]), i)
            for i in range(first, min(stop, k)):
                _, place = _pop(cost, child, stop - i)
                labels[b, i], values[b, i] = label[place], -best[place]
            first = stop


def search_all(
    codes: Codes, weight: Array, bias: Array, hidden: Array, k: int, features: Features | None
) -> Any:
    """Twin of `top_k.search_all`."""
    tree = codes.tree
    if not takes(weight, bias, hidden):
        return NotImplemented
    check_shape("hidden vectors", hidden.shape, (len(hidden), weight.shape[1]))
    arrays, n_edges = (tree.child_start, tree.child, tree.row_start), len(tree.child)
    patience = int(np.clip(LEAST_PATIENCE + COMPILED_PATIENCE * n_edges, 0, n_edges))
    # room for a node's branches: a node that is wider than the patience is scored for labels alone
    of_codes, most_codes, n_scores = None, 1, patience
    if not tree.has_single_codes:
        of_codes = codes.label_start, codes.leaf_edge, codes.parent_edge, tree.edge_node
        most_codes, n_scores = int(np.diff(codes.label_start).max()), n_edges
    table = checked_features(features, len(hidden))
    limits, shape = (most_codes, patience, n_scores), (len(hidden), k)
    out = np.empty(shape, np.int64), np.empty(shape), np.empty(len(hidden), np.bool_)
    _search((weight, bias), hidden, k, table, arrays, of_codes, *limits, out)
    return out
