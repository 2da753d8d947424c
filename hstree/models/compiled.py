"""Compiled training steps: a context model, its output layer and their optimisers at once.

What a step would write only to read it once more stays in registers and the first-level cache:
each row's gradient is summed and applied in one go. Sums are those of the steps in NumPy, in the
order of the batch, so that results do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hstree._compiled import SLOTS, jit
from hstree._typing import Array, Integer
from hstree.layers.compiled import (
    BLOCK,
    TINY32,
    ZERO,
    TreePass,
    adagrad_row,
    add_rows,
    add_to_items,
    add_window,
    tree_items,
    wide_errors,
    wide_forward,
)
from hstree.training.adagrad import RowAdagrad

Plan = tuple[Any, Any, Any, Any]


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
        row, scores = rows[i], slice(row_start[i], row_start[i + 1])
        grad[:] = 0
        add_rows(hidden, item[scores], error[scores], grad)
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
    rows, width, start, _, _, item, _ = by_node
    for i in range(len(rows)):
        of_node, items = slice(rows[i], rows[i] + width[i]), item[start[i] : start[i + 1]]
        table = wide_errors(i, by_node, of_code, error)
        add_to_items(np.dot(table, weight[of_node]), items, grad_hidden)
        grad = np.dot(table.T, hidden[items])
        for j in range(width[i]):
            row = rows[i] + j
            adagrad_row(weight, squares, decayed, row, grad[j], rate, decay, tokens)
        grad_bias = np.zeros(width[i], np.float32)
        for p in range(len(items)):
            for j in range(width[i]):
                grad_bias[j] += table[p, j]
        for j in range(width[i]):
            row = rows[i] + j
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
def _step(parameters, sums, decays, contexts, keep, plan, rate, tokens):
    embedding, position, weight, bias = parameters
    of_words, of_nodes = sums
    by_word, by_item, by_row, by_node = plan
    hidden = _hidden(embedding, position, keep, contexts)
    of_code = np.zeros(len(by_item[1]) - 1)
    wide_error = np.empty(by_node[3][-1], np.float32)
    wide_forward(weight, bias, hidden, by_node, of_code, wide_error)
    n_items, n_scores = len(keep), len(by_row[3])
    losses, grad_hidden = np.empty(n_items), np.empty_like(keep)
    error, log_prob = np.empty(n_scores, np.float32), np.empty(n_scores, np.float32)
    for first in range(0, n_items, BLOCK):
        stop = min(first + BLOCK, n_items)
        tree_items(
            weight,
            bias,
            hidden,
            first,
            stop,
            by_item,
            losses,
            error,
            log_prob,
            of_code,
            grad_hidden,
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
    for b in range(n_items):
        for j in range(keep.shape[1]):
            grad_hidden[b, j] *= keep[b, j]
    _update_words(embedding, position, of_words, by_word, grad_hidden, rate, decays[0], tokens)
    return losses.sum()


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
        by_word = _plan_words(contexts, SLOTS.of(len(embedding)))
        return (by_word, *self._tree.plan(targets, len(weight)))

    def __call__(
        self, contexts: Integer, keep: Array, plan: Plan, learning_rate: float, tokens: int
    ) -> float:
        """Train on a batch; return its summed loss.

        `keep` (B, d) is the scale of each element of the hidden vectors.
        """
        with self._tree.one_thread():
            loss: float = _step(
                self._parameters,
                self._sums,
                self._decays,
                contexts,
                keep,
                plan,
                np.float32(learning_rate),
                tokens,
            )
        return loss
