"""Training steps of the log-bilinear model: forward pass, gradients and Adagrad in one function.

The gradient of each row is summed and applied at once, without writing it to memory. Sums are the
same as in NumPy, in the order of the batch.
"""

from typing import NamedTuple

import numpy as np

from hstree._arrays import Array, Float32, Int32, Int64, Integer
from hstree._parallel import in_parts, one_blas_thread
from hstree.kernels.arithmetic import ONE, ZERO, checked_ids, clear, exp, group
from hstree.kernels.decisions import (
    ForwardPass,
    add_visit_gradients,
    pair_gradient,
    wide_gradient,
)
from hstree.kernels.jit import inline, jit
from hstree.kernels.layout import NO_WIDE, PARTS, Layout
from hstree.kernels.windows import add_occurrences, write_window_sums

#: Constant that keeps a division by the root of a sum of squares finite.
TINY = np.float32(1e-10)


# Adagrad.


@inline
def adagrad_row(parameter, squares, row, grad, learning_rate, decay):
    """Update a row by weight decay, then a step of Adagrad; see `hstree.training.adagrad`."""
    values = parameter[row]
    total = ZERO
    for j in range(len(grad)):
        total += grad[j] * grad[j]
    total = squares[row] + total / np.float32(len(grad))
    squares[row] = total
    rate = learning_rate / np.sqrt(total + TINY)
    kept = exp(-rate * decay) if decay > 0 else ONE
    for j in range(len(grad)):
        values[j] = kept * values[j] - rate * grad[j]


# The log-bilinear model.


class WordOccurrences(NamedTuple):
    """Occurrences of each word in the contexts (B, n) of a batch."""

    words: Int64  # (w,) distinct words
    start: Int64  # (w + 1,) offsets of the words in `occurrence`
    occurrence: Int32  # (B n,) index b n + i of each occurrence, ascending for each word


class LogBilinearLayout(NamedTuple):
    """Layout of a batch for a step of the log-bilinear model."""

    contexts: Int32  # (B, n)
    word_occurrences: WordOccurrences
    tree: Layout


def lay_out_contexts(contexts: Integer, n_words: int, tree: Layout) -> LogBilinearLayout:
    """Return the layout of a batch, given its contexts (B, n) and the layout of its decisions."""
    ids = checked_ids(contexts, n_words)
    return LogBilinearLayout(ids, WordOccurrences(*group(ids.ravel(), n_words)), tree)


class RowState(NamedTuple):
    """State of Adagrad for words and positions, or for weight rows and their biases."""

    squares: Array  # accumulated squared gradients of words, or of weight rows
    other_squares: Array  # accumulated squared gradients of positions, or of biases
    decayed: Array  # number of tokens up to which each word or weight row has decayed


class Rates(NamedTuple):
    """Learning rate and weight decay for a step."""

    learning_rate: np.float32
    word_decay: float  # weight decay of words per token
    node_decay: float  # weight decay of weight rows per token
    tokens: int  # number of tokens trained on so far


@inline
def _due_decay(decayed, row, decay, tokens):
    """Return the weight decay of a row for the tokens since it was last touched."""
    if decay == 0:
        return ZERO
    due = np.float32(decay * (tokens - decayed[row]))
    decayed[row] = tokens
    return due


@inline
def _update_node_row(weight, bias, state, row, grad, grad_bias, rates):
    """Update a weight row and its bias."""
    decay = _due_decay(state.decayed, row, rates.node_decay, rates.tokens)
    adagrad_row(weight, state.squares, row, grad, rates.learning_rate, decay)
    state.other_squares[row] += grad_bias * grad_bias
    bias[row] -= rates.learning_rate / np.sqrt(state.other_squares[row] + TINY) * grad_bias


@jit
def _update_wide(first, stop, weight, bias, state, wide, code_fraction, visits, rates):
    """Update some parts of the weight rows of wide nodes, and write gradients of their visits."""
    part_start = wide.rows.part_start
    for piece in range(part_start[first], part_start[stop]):
        row, grad, grad_bias = wide_gradient(piece, weight, wide, code_fraction, visits)
        for j in range(len(grad_bias)):
            _update_node_row(weight, bias, state, row + j, grad[j], grad_bias[j], rates)


@jit
def _update_pairs(weight, bias, state, hidden, rows, start, item, error, rates, grad):
    """Update the weight rows of pairs; `grad` (d,) is a buffer for the gradient of a row."""
    for i in range(len(rows)):
        grad_bias = pair_gradient(start[i], start[i + 1], hidden, item, error, grad)
        _update_node_row(weight, bias, state, rows[i], grad, grad_bias, rates)


@jit
def _update_words(embedding, position, state, occurrences, grad_hidden, rates, grad, grad_position):
    """Update word and position vectors; `grad` (d,) is a buffer, and `grad_position` is zero."""
    for w in range(len(occurrences.words)):
        word = occurrences.words[w]
        clear(grad)
        here = occurrences.occurrence[occurrences.start[w] : occurrences.start[w + 1]]
        add_occurrences(embedding, position, grad_hidden, word, here, grad, grad_position)
        decay = _due_decay(state.decayed, word, rates.word_decay, rates.tokens)
        adagrad_row(embedding, state.squares, word, grad, rates.learning_rate, decay)
    for i in range(len(position)):
        row = grad_position[i]
        adagrad_row(position, state.other_squares, i, row, rates.learning_rate, ZERO)


class LogBilinearArrays(NamedTuple):
    """Parameters of a log-bilinear model over a tree, and the state of their optimisers."""

    embedding: Array  # (V, d)
    position: Array  # (n, d)
    weight: Array  # (R, d)
    bias: Array  # (R,)
    words: RowState  # for `embedding` and `position`
    nodes: RowState  # for `weight` and `bias`


def log_bilinear_step(
    arrays: LogBilinearArrays, layout: LogBilinearLayout, keep: Float32, rates: Rates
) -> ForwardPass:
    """Train on a batch, in place; return its forward pass, which has the losses.

    `keep` (B, d) is the scale of each element of the hidden vectors, 0 for dropped elements. The
    caller updates the weights of n-gram features with `ForwardPass.feature_gradient`.
    """
    tree = layout.tree
    wide = tree.wide
    row_pairs = tree.row_pairs

    # Forward: hidden vectors, losses and errors
    hidden = np.empty(keep.shape, np.float32)
    write_window_sums(arrays.embedding, arrays.position, layout.contexts, hidden)
    hidden *= keep
    forward = ForwardPass.run(arrays.weight, arrays.bias, hidden, tree)
    items = forward.items
    visits = forward.visits

    # Backward: weight rows of wide nodes, then those of pairs
    grad = np.empty_like(arrays.position[0])
    if wide is not NO_WIDE:
        with one_blas_thread():
            in_parts(
                PARTS,
                _update_wide,
                arrays.weight,
                arrays.bias,
                arrays.nodes,
                wide,
                items.code_fraction,
                visits,
                rates,
                step=1,
            )
        add_visit_gradients(
            wide.rows.piece, wide.visit_start, wide.item, visits.grad_hidden, items.grad_hidden
        )
    _update_pairs(
        arrays.weight,
        arrays.bias,
        arrays.nodes,
        hidden,
        row_pairs.rows,
        row_pairs.start,
        row_pairs.item,
        items.error.take(row_pairs.pair),
        rates,
        grad,
    )

    # Vectors of words and positions
    grad_hidden = items.grad_hidden
    grad_hidden *= keep
    _update_words(
        arrays.embedding,
        arrays.position,
        arrays.words,
        layout.word_occurrences,
        grad_hidden,
        rates,
        grad,
        np.zeros_like(arrays.position),
    )
    return forward
