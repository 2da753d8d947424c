"""Compiled training steps: a context model, its output layer and their optimisers at once.

What a step would write only to read it once more stays in registers and the first-level cache:
each row's gradient is summed and applied in one go. Sums are those of the steps in NumPy, in the
order of the batch, so that results do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hstree._compiled import SLOTS, jit
from hstree._typing import Array, Float64, Integer
from hstree.layers.compiled import (
    TINY32,
    ZERO,
    TreePass,
    adagrad_row,
    add_rows,
    add_window,
    tree_pass,
    wide_gradient,
)
from hstree.training.adagrad import RowAdagrad
from hstree.training.sgd import DampedSGD

Plan = tuple[Any, Any, Any, Any, Any]


@jit
def _plan_words(contexts, slot_of):
    """Return the words (w,) of contexts (B, n), the offsets of each (w + 1,), and its places."""
    n_items, n = contexts.shape
    words, start = np.empty(n_items * n, np.int64), np.zeros(n_items * n + 1, np.int64)
    slot = np.empty(n_items * n, np.int32)
    n_words = 0
    for b in range(n_items):
        for i in range(n):
            word = contexts[b, i]
            if slot_of[word] < 0:
                slot_of[word] = n_words
                words[n_words] = word
                n_words += 1
            slot[b * n + i] = slot_of[word]
            start[slot_of[word] + 1] += 1
    for w in range(n_words):
        slot_of[words[w]] = -1
        start[w + 1] += start[w]
    place, next_place = np.empty(n_items * n, np.int32), start[:n_words].copy()
    for p in range(n_items * n):
        place[next_place[slot[p]]] = p
        next_place[slot[p]] += 1
    return words[:n_words], start[: n_words + 1], place


@jit
def _hidden(embedding, position, keep, contexts):
    """Return the hidden vectors (B, d), with dropout."""
    hidden = np.zeros(keep.shape, np.float32)
    for b in range(len(hidden)):
        add_window(embedding, position, contexts[b], hidden[b])
        for j in range(hidden.shape[1]):
            hidden[b, j] *= keep[b, j]
    return hidden


@jit
def _update_nodes(parameters, sums, by_row, error, hidden, rate, decay, tokens):
    weight, bias = parameters
    squares, squares_of_bias, decayed = sums
    rows, row_start, score, item = by_row
    grad, error = np.empty(weight.shape[1], np.float32), error[score]
    for i in range(len(rows)):
        row = rows[i]
        grad[:] = 0
        add_rows(hidden, item, error, row_start[i], row_start[i + 1], grad)
        adagrad_row(weight, squares, decayed, row, grad, rate, decay, tokens)
        of_bias = ZERO
        for p in range(row_start[i], row_start[i + 1]):
            of_bias += error[p]
        squares_of_bias[row] += of_bias * of_bias
        bias[row] -= rate / np.sqrt(squares_of_bias[row] + TINY32) * of_bias


@jit
def _update_wide_nodes(
    parameters, sums, by_node, of_code, error, hidden, grad_hidden, rate, decay, tokens
):
    weight, bias = parameters
    squares, squares_of_bias, decayed = sums
    for i in range(len(by_node[0])):
        grad, grad_bias = wide_gradient(i, weight, hidden, by_node, of_code, error, grad_hidden)
        for j in range(len(grad_bias)):
            row = by_node[0][i] + j
            adagrad_row(weight, squares, decayed, row, grad[j], rate, decay, tokens)
            squares_of_bias[row] += grad_bias[j] * grad_bias[j]
            bias[row] -= rate / np.sqrt(squares_of_bias[row] + TINY32) * grad_bias[j]


@jit
def _update_words(embedding, position, sums, by_word, grad_hidden, rate, decay, tokens):
    squares, decayed, squares_of_position = sums
    words, start, place = by_word
    n, d = position.shape
    grad, grad_position = np.empty(d, np.float32), np.zeros((n, d), np.float32)
    for w in range(len(words)):
        word = np.uint64(words[w])
        grad[:] = 0
        for p in range(start[w], start[w + 1]):
            b, i = np.uint64(place[p] // n), np.uint64(place[p] % n)
            for j in range(d):
                grad[j] += grad_hidden[b, j] * position[i, j]
                grad_position[i, j] += grad_hidden[b, j] * embedding[word, j]
        adagrad_row(embedding, squares, decayed, words[w], grad, rate, decay, tokens)
    for row in range(n):
        grad = grad_position[row]
        adagrad_row(position, squares_of_position, decayed, row, grad, rate, 0.0, tokens)


@jit
def _step(parameters, sums, decays, keep, plan, rate, tokens):
    embedding, position, weight, bias = parameters
    of_words, of_nodes = sums
    contexts, by_word, by_item, by_row, by_node = plan
    hidden = _hidden(embedding, position, keep, contexts)
    grad_hidden = np.empty_like(hidden)
    losses, of_code, error, wide_error = tree_pass(
        weight, bias, hidden, by_item, by_node, grad_hidden
    )
    _update_nodes((weight, bias), of_nodes, by_row, error, hidden, rate, decays[1], tokens)
    _update_wide_nodes(
        (weight, bias),
        of_nodes,
        by_node,
        of_code,
        wide_error,
        hidden,
        grad_hidden,
        rate,
        decays[1],
        tokens,
    )
    for b in range(len(keep)):
        for j in range(keep.shape[1]):
            grad_hidden[b, j] *= keep[b, j]
    _update_words(embedding, position, of_words, by_word, grad_hidden, rate, decays[0], tokens)
    return losses.sum()


# word2vec: hidden vectors are means over windows, steps are those of damped gradient descent.


@jit
def _plan_windows(contexts, slot_of):
    """Return the words of each context, -1 left out, as a sparse matrix and its transpose.

    Every item has weights that sum to 1, over its words; no words, no weights. Both matrices are
    tuples: offsets of their rows, columns, and weights. The rows of the transpose are `words` (w,).
    """
    n_items, n = contexts.shape
    start, column = np.zeros(n_items + 1, np.int64), np.empty(n_items * n, np.int32)
    share = np.empty(n_items * n, np.float32)
    words, word_start = np.empty(n_items * n, np.int64), np.zeros(n_items * n + 1, np.int64)
    slot = np.empty(n_items * n, np.int32)
    p = n_words = 0
    for b in range(n_items):
        for i in range(n):
            word = contexts[b, i]
            if word < 0:
                continue
            if slot_of[word] < 0:
                slot_of[word] = n_words
                words[n_words] = word
                n_words += 1
            column[p], slot[p] = word, slot_of[word]
            word_start[slot[p] + 1] += 1
            p += 1
        start[b + 1] = p
        for q in range(start[b], p):
            share[q] = np.float32(1) / np.float32(p - start[b])
    for w in range(n_words):
        slot_of[words[w]] = -1
        word_start[w + 1] += word_start[w]
    item, share_of_item = np.empty(p, np.int32), np.empty(p, np.float32)
    place = word_start[:n_words].copy()
    for b in range(n_items):
        for q in range(start[b], start[b + 1]):
            item[place[slot[q]]], share_of_item[place[slot[q]]] = b, share[q]
            place[slot[q]] += 1
    by_item = start, column[:p], share[:p]
    return by_item, (words[:n_words], word_start[: n_words + 1], item, share_of_item)


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
    hidden, grad_hidden = np.zeros((n_items, d), np.float32), np.empty((n_items, d), np.float32)
    squares = 0.0
    for b in range(n_items):
        add_rows(embedding, column, share, start[b], start[b + 1], hidden[b])
        squares += _squared_length(hidden[b])
    shares = _squared_length(share)
    losses, of_code, error, wide_error = tree_pass(
        weight, bias, hidden, by_item, by_node, grad_hidden
    )
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
    for i in range(len(by_node[0])):
        grad_weight, grad_bias = wide_gradient(
            i, weight, hidden, by_node, of_code, wide_error, grad_hidden
        )
        for j in range(len(grad_bias)):
            row = by_node[0][i] + j
            _descend(weight[row], _damped(rate, rate * squares * of_nodes[row]), grad_weight[j])
            bias[row] -= _damped(rate, rate * n_items * of_biases[row]) * grad_bias[j]
    words, word_start, item, share_of_item = by_word
    for w in range(len(words)):
        word = words[w]
        grad[:] = 0
        add_rows(grad_hidden, item, share_of_item, word_start[w], word_start[w + 1], grad)
        _descend(embedding[word], _damped(rate, rate * shares * curvature * of_words[word]), grad)
    return losses


class WindowStep:
    """Training step of CBOW or skip-gram over a tree.

    Parameters
    ----------
    tree : TreePass
    embedding, weight, bias : DampedSGD
        Of the word vectors, and of the parameters of the layer.
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
        ids = np.ascontiguousarray(contexts, np.int32)
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
    model : LogBilinear
        With diagonal position matrices.
    layer : HierarchicalSoftmax
    embedding, position, weight, bias : RowAdagrad
        Of the parameters of both.
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
        self._parameters = tuple(o.parameter for o in (embedding, position, weight, bias))
        self._sums = (
            (embedding.squares, embedding.decayed, position.squares),
            (weight.squares, bias.squares, weight.decayed),
        )
        self._decays = (embedding.weight_decay, weight.weight_decay)

    def plan(self, contexts: Integer, targets: Integer) -> Plan:
        """Return what a step needs to know of a batch, which depends on no parameter."""
        embedding, _, weight, _ = self._parameters
        ids = np.ascontiguousarray(contexts, np.int32)
        by_word = _plan_words(ids, SLOTS.of(len(embedding)))
        return (ids, by_word, *self._tree.plan(targets, len(weight)))

    def __call__(self, plan: Plan, keep: Array, learning_rate: float, tokens: int) -> float:
        """Train on a batch; return its summed loss.

        `keep` (B, d) is the scale of each element of the hidden vectors.
        """
        with self._tree.one_thread():
            loss: float = _step(
                self._parameters,
                self._sums,
                self._decays,
                keep,
                plan,
                np.float32(learning_rate),
                tokens,
            )
        return loss
