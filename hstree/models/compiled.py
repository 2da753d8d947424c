"""Compiled training steps: a context model, its output layer and their optimisers at once.

What a step would write only to read it once more stays in registers and the first-level cache:
each row's gradient is summed and applied in one go. Sums are those of the steps in NumPy, in the
order of the batch. Work at wide nodes is cut into pieces that write to different places, which
threads share; the pieces, and so the results, do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hstree._compiled import SLOTS, in_parts, jit
from hstree._typing import Array, Float32, Float64, Int32, Int64, Integer
from hstree.layers.compiled import (
    ONE,
    PARTS,
    TINY32,
    ZERO,
    TreePass,
    adagrad_row,
    add_places,
    add_rows,
    add_wide,
    add_window,
    checked_ids,
    dot_rows,
    exp,
    group,
    item_losses,
    log1p,
    new_pass,
    pass_in_threads,
    tree_pass,
    wide_gradient,
)
from hstree.training.adagrad import RowAdagrad
from hstree.training.sgd import DampedSGD

Plan = tuple[Any, Any, Any, Any, Any]


@jit
def _group_words(contexts, slot_of):
    """Return the words (w,) of contexts (B, n), the offsets of each (w + 1,), and its places."""
    return group(contexts.ravel(), slot_of)


@jit
def _begin(words, keep, plan):
    """Return the hidden vectors, with dropout, and room for a pass of the tree."""
    embedding, position = words
    hidden = np.zeros(keep.shape, np.float32)
    for b in range(len(hidden)):
        add_window(embedding, position, plan[0][b], hidden[b])
        for j in range(hidden.shape[1]):
            hidden[b, j] *= keep[b, j]
    return hidden, new_pass(hidden, plan[2], plan[4], True)


@jit
def _owed(decayed, row, decay, tokens):
    """Return the weight decay that a row owes for the tokens since it was last touched."""
    if decay == 0:
        return ZERO
    owed = np.float32(decay * (tokens - decayed[row]))
    decayed[row] = tokens
    return owed


@jit
def _update_node(parameters, sums, row, grad, grad_bias, rate, decay, tokens):
    """Update the weights and the bias of a row."""
    weight, bias = parameters
    squares, squares_of_bias, decayed = sums
    adagrad_row(weight, squares, row, grad, rate, _owed(decayed, row, decay, tokens))
    squares_of_bias[row] += grad_bias * grad_bias
    bias[row] -= rate / np.sqrt(squares_of_bias[row] + TINY32) * grad_bias


@jit
def _update_wide(first, stop, nodes, sums, hidden, by_node, room, moves):
    """Update weight rows of wide nodes, and write gradients through them, of some parts."""
    (rate, _, decay, tokens), parts = moves, by_node[9]
    for piece in range(parts[1, first], parts[1, stop]):
        row, of_weight, of_bias = wide_gradient(piece, nodes[0], hidden, by_node, room)
        for j in range(len(of_bias)):
            grad = of_weight[j]
            _update_node(nodes, sums, row + j, grad, of_bias[j], rate, decay, tokens)


@jit
def _update_narrow(nodes, sums, hidden, by_row, error, moves):
    """Update the weight rows of narrow nodes."""
    rate, _, decay, tokens = moves
    rows, row_start, score, item = by_row
    grad, error = np.empty(hidden.shape[1], np.float32), error[score]
    for i in range(len(rows)):
        grad[:] = 0
        add_rows(hidden, item, error, row_start[i], row_start[i + 1], grad)
        grad_bias = ZERO
        for p in range(row_start[i], row_start[i + 1]):
            grad_bias += error[p]
        _update_node(nodes, sums, rows[i], grad, grad_bias, rate, decay, tokens)


@jit
def _update_words(words, sums, by_word, grad_hidden, moves):
    (embedding, position), (squares, decayed, squares_of_position) = words, sums
    (rate, decay, _, tokens), (of_words, start, place) = moves, by_word
    grad, grad_position = np.empty(position.shape[1], np.float32), np.zeros_like(position)
    for w in range(len(of_words)):
        word, places = of_words[w], place[start[w] : start[w + 1]]
        grad[:] = 0
        add_places(embedding, position, grad_hidden, word, places, grad, grad_position)
        owed = _owed(decayed, word, decay, tokens)
        adagrad_row(embedding, squares, word, grad, rate, owed)
    for i in range(len(position)):
        adagrad_row(position, squares_of_position, i, grad_position[i], rate, ZERO)


@jit
def _finish(words, nodes, sums, keep, hidden, plan, room, moves):
    """Update all but the rows of wide nodes; return the loss of the batch."""
    losses, error, _, _, grad_hidden = room[0]
    _update_narrow(nodes, sums[1], hidden, plan[3], error, moves)
    add_wide(plan[4], room)
    for b in range(len(keep)):
        for j in range(keep.shape[1]):
            grad_hidden[b, j] *= keep[b, j]
    _update_words(words, sums[0], plan[1], grad_hidden, moves)
    return losses.sum()


@jit
def _narrow_step(words, nodes, sums, keep, plan, moves):
    """Do a whole step over a tree without wide nodes; return the loss of the batch."""
    hidden, room = _begin(words, keep, plan)
    item_losses(nodes[0], nodes[1], hidden, plan[2], plan[4], room)
    return _finish(words, nodes, sums, keep, hidden, plan, room, moves)


# word2vec: hidden vectors are means over windows, steps are those of damped gradient descent.


@jit
def _plan_windows(contexts, slot_of):
    """Return the words of each context, -1 left out, as a sparse matrix and its transpose.

    Every item has weights that sum to 1, over its words; no words, no weights. Both matrices are
    tuples: offsets of their rows, columns, and weights. The rows of the transpose are `words` (w,).
    """
    n_items, n = contexts.shape
    start, column = np.zeros(n_items + 1, np.int64), np.empty(n_items * n, np.int32)
    item, share = np.empty(n_items * n, np.int32), np.empty(n_items * n, np.float32)
    p = 0
    for b in range(n_items):
        for i in range(n):
            if contexts[b, i] >= 0:
                column[p], item[p] = contexts[b, i], b
                p += 1
        start[b + 1] = p
        for q in range(start[b], p):
            share[q] = np.float32(1) / np.float32(p - start[b])
    words, word_start, place = group(column[:p], slot_of)
    return (start, column[:p], share[:p]), (words, word_start, item[place], share[place])


@jit
def _damped(rate, s):
    """Return ``rate (1 - exp(-s)) / s``."""
    return np.float32(rate * -np.expm1(-s) / s) if s > 0 else np.float32(rate)


@jit
def _squared_length(vector):
    total = ZERO
    for j in range(len(vector)):
        total += vector[j] * vector[j]
    return np.float64(total)


@jit
def _descend(values, rate, grad):
    for j in range(len(grad)):
        values[j] -= rate * grad[j]


@jit
def _window_step(parameters, curvatures, plan, rate):
    """Train on a batch; return the losses of its predictions."""
    embedding, weight, bias = parameters
    of_words, of_nodes, of_biases = curvatures
    (start, column, share), by_word, by_item, by_row, by_node = plan
    n_items, d = len(start) - 1, embedding.shape[1]
    hidden, squares = np.zeros((n_items, d), np.float32), 0.0
    for b in range(n_items):
        add_rows(embedding, column, share, start[b], start[b + 1], hidden[b])
        squares += _squared_length(hidden[b])
    shares = _squared_length(share)
    room = new_pass(hidden, by_item, by_node, True)
    tree_pass(weight, bias, hidden, by_item, by_node, room)
    losses, error, _, _, grad_hidden = room[0]
    rows, row_start, score, item = by_row
    curvature = 0.0  # of a prediction along its hidden vector, over the touched rows
    for row in rows:
        curvature += of_nodes[row] * _squared_length(weight[row])
    for i in range(len(by_node[0])):
        for row in range(by_node[0][i], by_node[0][i] + by_node[1][i]):
            curvature += of_nodes[row] * _squared_length(weight[row])
    grad, error = np.empty(d, np.float32), error[score]
    for i in range(len(rows)):
        row = rows[i]
        grad[:] = 0
        add_rows(hidden, item, error, row_start[i], row_start[i + 1], grad)
        _descend(weight[row], _damped(rate, rate * squares * of_nodes[row]), grad)
        of_bias = ZERO
        for p in range(row_start[i], row_start[i + 1]):
            of_bias += error[p]
        bias[row] -= _damped(rate, rate * n_items * of_biases[row]) * of_bias
    for piece in range(len(by_node[8])):
        first, grad_weight, grad_bias = wide_gradient(piece, weight, hidden, by_node, room)
        for j in range(len(grad_bias)):
            row = first + j
            _descend(weight[row], _damped(rate, rate * squares * of_nodes[row]), grad_weight[j])
            bias[row] -= _damped(rate, rate * n_items * of_biases[row]) * grad_bias[j]
    add_wide(by_node, room)
    words, word_start, item, share_of_item = by_word
    for w in range(len(words)):
        word = words[w]
        grad[:] = 0
        add_rows(grad_hidden, item, share_of_item, word_start[w], word_start[w + 1], grad)
        _descend(embedding[word], _damped(rate, rate * shares * curvature * of_words[word]), grad)
    return losses


# word2vec, word by word: each moves the weights before the next one.


@jit
def _drawn(state):
    """Return the next state of a random generator of 64 bits, not 0 (Marsaglia 2003)."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state


@jit
def _predict(parameters, path, first, stop, inputs, item, rate, grad):
    """Move the nodes of a path by the prediction of row `item` of `inputs`; return its loss.

    Its own move is added to `grad` (d,).
    """
    weight, bias = parameters
    row, sign, score = path
    n, d = stop - first, weight.shape[1]
    dot_rows(weight, bias, row[first:stop], 0, n, inputs[item], score)
    loss = ZERO
    for p in range(n):
        z = sign[first + p] * score[p]
        small = exp(-abs(z))
        loss += log1p(small) - min(z, ZERO)
        # the move against the error, sign sigmoid(-z)
        score[p] = rate * sign[first + p] * (small if z >= 0 else ONE) / (ONE + small)
    of_four = n - n % 4
    for p in range(0, of_four, 4):
        a, b = np.uint64(row[first + p]), np.uint64(row[first + p + 1])
        c, e = np.uint64(row[first + p + 2]), np.uint64(row[first + p + 3])
        by_a, by_b, by_c, by_e = score[p], score[p + 1], score[p + 2], score[p + 3]
        for j in range(d):
            x = inputs[item, j]
            of_a, of_b, of_c, of_e = weight[a, j], weight[b, j], weight[c, j], weight[e, j]
            grad[j] += by_a * of_a + by_b * of_b + by_c * of_c + by_e * of_e
            weight[a, j] = of_a + by_a * x
            weight[b, j] = of_b + by_b * x
            weight[c, j] = of_c + by_c * x
            weight[e, j] = of_e + by_e * x
    for p in range(of_four, n):
        a, by_a = np.uint64(row[first + p]), score[p]
        for j in range(d):
            of_a = weight[a, j]
            grad[j] += by_a * of_a
            weight[a, j] = of_a + by_a * inputs[item, j]
    for p in range(n):
        bias[row[first + p]] += score[p]
    return loss


def train_lines(
    text: tuple[Int32, Int32],
    windows: tuple[int, bool],
    paths: tuple[Int64, Int32, Float32, Array],
    parameters: tuple[Array, Array, Array],
    rate: np.float32,
    seed: np.uint64,
) -> float:
    """Train on lines word by word; return the summed loss of their tokens.

    Parameters
    ----------
    text : tuple
        Offsets of lines (L + 1,), and label ids (T,).
    windows : tuple
        Largest reach, and whether each word of a window predicts by itself.
    paths : tuple
        Offsets (V + 1,) of each label's decisions, their weight rows and signs, and room for the
        scores of the longest path, which is not written to.
    parameters : tuple
        Word vectors, node vectors and biases, changed in place.
    rate : float32
    seed : uint64
        Not 0.
    """
    start, ids = text
    text = checked_ids(start, len(ids) + 1), checked_ids(ids, len(paths[0]) - 1)
    loss: float = _train_lines(text, windows, paths, parameters, rate, seed)
    return loss


@jit
def _train_lines(text, windows, paths, parameters, rate, seed):
    start, ids = text
    reach, each = windows
    path_start, row, sign, room = paths
    embedding, weight, bias = parameters
    nodes, path = (weight, bias), (row, sign, np.empty_like(room))
    d, state = embedding.shape[1], seed
    mean, grad = np.zeros((1, d), np.float32), np.empty(d, np.float32)
    total = 0.0
    for line in range(len(start) - 1):
        for i in range(start[line], start[line + 1]):
            state = _drawn(state)
            side = np.int64((state >> np.uint64(33)) % np.uint64(reach)) + 1
            left, right = max(start[line], i - side), min(start[line + 1], i + side + 1)
            begin, end = path_start[ids[i]], path_start[ids[i] + 1]
            n_words = right - left - 1
            if each and n_words > 0:
                loss = ZERO
                for c in range(left, right):
                    if c != i:
                        word = np.uint64(ids[c])
                        grad[:] = 0
                        loss += _predict(nodes, path, begin, end, embedding, word, rate, grad)
                        for j in range(d):
                            embedding[word, j] += grad[j]
                total += loss / n_words
                continue
            mean[:] = 0
            grad[:] = 0
            share = ONE / np.float32(max(1, n_words))
            for c in range(left, right):
                if c != i:
                    word = np.uint64(ids[c])
                    for j in range(d):
                        mean[0, j] += share * embedding[word, j]
            total += _predict(nodes, path, begin, end, mean, np.uint64(0), rate, grad)
            for j in range(d):
                grad[j] *= share
            for c in range(left, right):
                if c != i:
                    word = np.uint64(ids[c])
                    for j in range(d):
                        embedding[word, j] += grad[j]
    return total


class WindowStep:
    """Training step of CBOW or skip-gram over a tree.

    Parameters
    ----------
    tree : TreePass
    embedding, weight, bias : DampedSGD
        Optimisers of the word vectors, the node vectors and the biases.
    """

    def __init__(
        self, tree: TreePass, embedding: DampedSGD, weight: DampedSGD, bias: DampedSGD
    ) -> None:
        self._tree = tree
        optimisers = (embedding, weight, bias)
        self._parameters = tuple(o.parameter for o in optimisers)
        self._curvatures = tuple(o.curvature for o in optimisers)

    def plan(self, contexts: Integer, targets: Integer) -> Any:
        """Return what a step needs to know of predictions, which depends on no parameter."""
        embedding, weight, _ = self._parameters
        ids = checked_ids(contexts, len(embedding), -1)
        windows = _plan_windows(ids, SLOTS.of(len(embedding)))
        return (*windows, *self._tree.plan(targets, len(weight)))

    def __call__(self, plan: Any, learning_rate: float) -> Float64:
        """Train on a batch; return the losses of its predictions."""
        with self._tree.one_thread():
            losses: Float64 = _window_step(
                self._parameters, self._curvatures, plan, float(learning_rate)
            )
        return losses


class LogBilinearStep:
    """Training step of a log-bilinear model over a tree.

    Parameters
    ----------
    tree : TreePass
    embedding, position : RowAdagrad
        Optimisers of the word vectors and the diagonal position matrices.
    weight, bias : RowAdagrad
        Optimisers of the node vectors and biases.
    """

    def __init__(
        self,
        tree: TreePass,
        embedding: RowAdagrad,
        position: RowAdagrad,
        weight: RowAdagrad,
        bias: RowAdagrad,
    ) -> None:
        self._tree = tree
        self._words = embedding.parameter, position.parameter
        self._nodes = weight.parameter, bias.parameter
        self._sums = (
            (embedding.squares, embedding.decayed, position.squares),
            (weight.squares, bias.squares, weight.decayed),
        )
        self._decays = (embedding.weight_decay, weight.weight_decay)

    def plan(self, contexts: Integer, targets: Integer) -> Plan:
        """Return what a step needs to know of a batch, which depends on no parameter."""
        ids = checked_ids(contexts, len(self._words[0]))
        by_word = _group_words(ids, SLOTS.of(len(self._words[0])))
        by_item, by_row, by_node = self._tree.plan(targets, len(self._nodes[0]))
        return ids, by_word, by_item, by_row, by_node

    def __call__(self, plan: Plan, keep: Array, learning_rate: float, tokens: int) -> float:
        """Train on a batch; return its summed loss.

        `keep` (B, d) is the scale of each element of the hidden vectors.
        """
        words, nodes, sums = self._words, self._nodes, self._sums
        moves = np.float32(learning_rate), *self._decays, tokens
        loss: float
        if self._tree.is_narrow:
            loss = _narrow_step(words, nodes, sums, keep, plan, moves)
            return loss
        _, _, by_item, _, by_node = plan
        hidden, room = _begin(words, keep, plan)
        with self._tree.one_thread():
            pass_in_threads(*nodes, hidden, by_item, by_node, room)
            of_nodes = nodes, sums[1], hidden, by_node, room, moves
            in_parts(PARTS, _update_wide, *of_nodes, step=1)
        loss = _finish(words, nodes, sums, keep, hidden, plan, room, moves)
        return loss
