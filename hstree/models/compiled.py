"""Compiled training steps: a context model, its output layer and their optimisers at once.

What a step would write only to read it once more stays in registers and the first-level cache:
each row's gradient is summed and applied in one go. Sums are those of the steps in NumPy, in the
order of the batch. Work at wide nodes is cut into pieces that write to different places, which
threads share; the pieces, and so the results, do not depend on the number of threads.
"""

from typing import Any, NamedTuple

import numpy as np

from hstree._compiled import in_parts, jit, takes
from hstree._ragged import offsets
from hstree._typing import Array, Float32, Float64, Int32, Int64, Integer
from hstree.layers.base import OutputLayer
from hstree.layers.compiled.arithmetic import (
    ONE,
    SLOTS,
    ZERO,
    add_rows,
    check_shape,
    checked_ids,
    dot_rows,
    exp,
    group,
    log1p,
)
from hstree.layers.compiled.passes import (
    TreePass,
    add_wide,
    new_buffers,
    pass_in_threads,
    pass_of_batch,
    pass_of_items,
    tree_pass,
    wide_gradient,
)
from hstree.layers.compiled.plans import PARTS, Plan
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.training.adagrad import RowAdagrad
from hstree.training.compiled import TINY32, adagrad_row
from hstree.training.sgd import DampedSGD

# Sums over windows, each vector times that of its position.


@jit
def add_window(embedding, position, words, total):
    """Add the vectors of words (n,), each times that of its position, to `total` (d,)."""
    n = len(words)
    for i in range(0, n - n % 4, 4):
        a, b = np.uint64(words[i]), np.uint64(words[i + 1])
        c, d = np.uint64(words[i + 2]), np.uint64(words[i + 3])
        for j in range(len(total)):
            total[j] += (
                position[i, j] * embedding[a, j]
                + position[i + 1, j] * embedding[b, j]
                + position[i + 2, j] * embedding[c, j]
                + position[i + 3, j] * embedding[d, j]
            )
    for i in range(n - n % 4, n):
        a = np.uint64(words[i])
        for j in range(len(total)):
            total[j] += position[i, j] * embedding[a, j]


@jit
def _window_sum(embedding, position, contexts, hidden):
    for b in range(len(contexts)):
        hidden[b] = 0
        add_window(embedding, position, contexts[b], hidden[b])


@jit
def add_places(embedding, position, grad_hidden, word, place, grad, grad_position):
    """Add the gradients through the places of a word, each b n + i, to those of both."""
    n, d = position.shape
    for p in place:
        b, i = np.uint64(p // n), np.uint64(p % n)
        for j in range(d):
            grad[j] += grad_hidden[b, j] * position[i, j]
            grad_position[i, j] += grad_hidden[b, j] * embedding[word, j]


@jit
def _window_sum_backward(embedding, position, contexts, grad_hidden, slot_of):
    words, start, place = group(contexts.ravel(), slot_of)
    grad_words = np.zeros((len(words), embedding.shape[1]), np.float32)
    grad_position = np.zeros(position.shape, np.float32)
    for w in range(len(words)):
        places = place[start[w] : start[w + 1]]
        add_places(embedding, position, grad_hidden, words[w], places, grad_words[w], grad_position)
    return words, grad_words, grad_position


def window_sum(embedding: Array, position: Array, contexts: Integer) -> Any:
    """Twin of `lbl.window_sum`."""
    if not takes(embedding, position):
        return NotImplemented
    ids = checked_ids(contexts, len(embedding))
    check_shape("contexts", ids.shape, (len(ids), len(position)))
    hidden = np.empty((len(ids), embedding.shape[1]), np.float32)
    _window_sum(embedding, position, ids, hidden)
    return hidden, hidden


def window_sum_backward(
    embedding: Array, position: Array, contexts: Integer, vectors: Array, grad_hidden: Array
) -> Any:
    """Twin of `lbl.window_sum_backward`."""
    if not takes(embedding, position, grad_hidden):
        return NotImplemented
    ids = checked_ids(contexts, len(embedding))
    check_shape("contexts", ids.shape, (len(ids), len(position)))
    check_shape("gradients", grad_hidden.shape, (len(ids), embedding.shape[1]))
    return _window_sum_backward(embedding, position, ids, grad_hidden, SLOTS.of(len(embedding)))


# The log-bilinear model.


class ByWord(NamedTuple):
    """The places of a batch's contexts by their words."""

    words: Int64  # (w,) the words that occur, each once
    start: Int64  # (w + 1,) offsets of the words in `place`
    place: Int32  # places b n + i, ascending for each word


class LogBilinearPlan(NamedTuple):
    """What a step of the log-bilinear model needs to know of a batch."""

    contexts: Int32  # (B, n)
    by_word: ByWord
    tree: Plan


class Sums(NamedTuple):
    """Sums of squares of rows and of what goes with them, and tokens up to which rows decayed."""

    squares: Array  # of words, or of nodes
    squares_of_more: Array  # of positions, or of the biases of nodes
    decayed: Array


class Moves(NamedTuple):
    """How far a step moves."""

    rate: np.float32
    decay_of_words: float
    decay_of_nodes: float
    tokens: int  # trained on so far


@jit
def _begin(words, keep, plan):
    """Return the hidden vectors, with dropout, and buffers for a pass of the tree."""
    embedding, position = words
    hidden = np.zeros(keep.shape, np.float32)
    for b in range(len(hidden)):
        add_window(embedding, position, plan.contexts[b], hidden[b])
        for j in range(hidden.shape[1]):
            hidden[b, j] *= keep[b, j]
    return hidden, new_buffers(hidden, plan.tree, True)


@jit
def _owed(decayed, row, decay, tokens):
    """Return the weight decay that a row owes for the tokens since it was last touched."""
    if decay == 0:
        return ZERO
    owed = np.float32(decay * (tokens - decayed[row]))
    decayed[row] = tokens
    return owed


@jit
def _update_node(nodes, sums, row, grad, grad_bias, moves):
    """Update the weights and the bias of a row."""
    weight, bias = nodes
    owed = _owed(sums.decayed, row, moves.decay_of_nodes, moves.tokens)
    adagrad_row(weight, sums.squares, row, grad, moves.rate, owed)
    sums.squares_of_more[row] += grad_bias * grad_bias
    bias[row] -= moves.rate / np.sqrt(sums.squares_of_more[row] + TINY32) * grad_bias


@jit
def _update_wide(first, stop, nodes, sums, hidden, plan, buffers, moves):
    """Update weight rows of wide nodes, and write gradients through them, of some parts."""
    for piece in range(plan.wide.row_parts[first], plan.wide.row_parts[stop]):
        row, of_weight, of_bias = wide_gradient(piece, nodes[0], hidden, plan, buffers)
        for j in range(len(of_bias)):
            _update_node(nodes, sums, row + j, of_weight[j], of_bias[j], moves)


@jit
def _update_narrow(nodes, sums, hidden, by_row, error, moves):
    """Update the weight rows of narrow nodes."""
    grad, error = np.empty(hidden.shape[1], np.float32), error[by_row.score]
    for i in range(len(by_row.rows)):
        grad[:] = 0
        add_rows(hidden, by_row.item, error, by_row.start[i], by_row.start[i + 1], grad)
        grad_bias = ZERO
        for p in range(by_row.start[i], by_row.start[i + 1]):
            grad_bias += error[p]
        _update_node(nodes, sums, by_row.rows[i], grad, grad_bias, moves)


@jit
def _update_words(words, sums, by_word, grad_hidden, moves):
    embedding, position = words
    grad, grad_position = np.empty(position.shape[1], np.float32), np.zeros_like(position)
    for w in range(len(by_word.words)):
        word, places = by_word.words[w], by_word.place[by_word.start[w] : by_word.start[w + 1]]
        grad[:] = 0
        add_places(embedding, position, grad_hidden, word, places, grad, grad_position)
        owed = _owed(sums.decayed, word, moves.decay_of_words, moves.tokens)
        adagrad_row(embedding, sums.squares, word, grad, moves.rate, owed)
    for i in range(len(position)):
        adagrad_row(position, sums.squares_of_more, i, grad_position[i], moves.rate, ZERO)


@jit
def _finish(words, nodes, sums, keep, hidden, plan, buffers, moves):
    """Update all but the rows of wide nodes; return the loss of the batch."""
    of_words, of_nodes = sums
    _update_narrow(nodes, of_nodes, hidden, plan.tree.by_row, buffers.error, moves)
    add_wide(plan.tree, buffers)
    grad_hidden = buffers.grad_hidden
    for b in range(len(keep)):
        for j in range(keep.shape[1]):
            grad_hidden[b, j] *= keep[b, j]
    _update_words(words, of_words, plan.by_word, grad_hidden, moves)
    return buffers.losses.sum()


@jit
def _narrow_step(words, nodes, sums, keep, plan, moves):
    """Do a whole step over a tree without wide nodes; return the loss of the batch."""
    hidden, buffers = _begin(words, keep, plan)
    pass_of_items(nodes[0], nodes[1], hidden, plan.tree, buffers)
    return _finish(words, nodes, sums, keep, hidden, plan, buffers, moves)


# word2vec: hidden vectors are means over windows, steps are those of damped gradient descent.


class Windows(NamedTuple):
    """The words of each prediction's context, with weights that sum to 1, and their transpose."""

    start: Int64  # (P + 1,) offsets of the predictions
    word: Int32
    share: Float32
    words: Int64  # (w,) the words that occur, each once
    word_start: Int64  # (w + 1,) offsets of the words
    item: Int32  # predictions, ascending for each word
    share_of_item: Float32


class WindowPlan(NamedTuple):
    """What a step of CBOW or skip-gram needs to know of its predictions."""

    windows: Windows
    tree: Plan


@jit
def _plan_windows(contexts, slot_of):
    """Return the words of contexts (P, n), -1 left out; no words, no weights."""
    n_items, n = contexts.shape
    start, word = np.zeros(n_items + 1, np.int64), np.empty(n_items * n, np.int32)
    item, share = np.empty(n_items * n, np.int32), np.empty(n_items * n, np.float32)
    p = 0
    for b in range(n_items):
        for i in range(n):
            if contexts[b, i] >= 0:
                word[p], item[p] = contexts[b, i], b
                p += 1
        start[b + 1] = p
        for q in range(start[b], p):
            share[q] = np.float32(1) / np.float32(p - start[b])
    words, word_start, place = group(word[:p], slot_of)
    return Windows(start, word[:p], share[:p], words, word_start, item[place], share[place])


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
    # taken out of the plan once: numba counts references to the arrays that a field holds
    start, word, share, words, word_start, item_of_word, share_of_item = plan.windows
    rows, row_start, score, item = plan.tree.by_row
    wide = plan.tree.wide
    n_items, d = len(start) - 1, embedding.shape[1]
    hidden, squares = np.zeros((n_items, d), np.float32), 0.0
    for b in range(n_items):
        add_rows(embedding, word, share, start[b], start[b + 1], hidden[b])
        squares += _squared_length(hidden[b])
    shares = _squared_length(share)
    buffers = new_buffers(hidden, plan.tree, True)
    pass_of_batch(weight, bias, hidden, plan.tree, buffers)
    curvature = 0.0  # of a prediction along its hidden vector, over the touched rows
    for row in rows:
        curvature += of_nodes[row] * _squared_length(weight[row])
    for i in range(len(wide.rows)):
        for row in range(wide.rows[i], wide.rows[i] + wide.width[i]):
            curvature += of_nodes[row] * _squared_length(weight[row])
    grad, error = np.empty(d, np.float32), buffers.error[score]
    for i in range(len(rows)):
        row, begin, end = rows[i], row_start[i], row_start[i + 1]
        grad[:] = 0
        add_rows(hidden, item, error, begin, end, grad)
        _descend(weight[row], _damped(rate, rate * squares * of_nodes[row]), grad)
        of_bias = ZERO
        for p in range(begin, end):
            of_bias += error[p]
        bias[row] -= _damped(rate, rate * n_items * of_biases[row]) * of_bias
    for piece in range(len(wide.row_pieces)):
        first, grad_weight, grad_bias = wide_gradient(piece, weight, hidden, plan.tree, buffers)
        for j in range(len(grad_bias)):
            row = first + j
            _descend(weight[row], _damped(rate, rate * squares * of_nodes[row]), grad_weight[j])
            bias[row] -= _damped(rate, rate * n_items * of_biases[row]) * grad_bias[j]
    add_wide(plan.tree, buffers)
    grad_hidden = buffers.grad_hidden
    for w in range(len(words)):
        grad[:] = 0
        begin, end = word_start[w], word_start[w + 1]
        add_rows(grad_hidden, item_of_word, share_of_item, begin, end, grad)
        scale = rate * shares * curvature * of_words[words[w]]
        _descend(embedding[words[w]], _damped(rate, scale), grad)
    return buffers.losses


# Word by word: each moves the weights before the next one.

#: Decisions of each label: offsets (V + 1,), weight rows, and 1 where the first child is taken, -1
#: for the second; and room for those of the longest path, which is not written to.
Paths = tuple[Int64, Int32, Float32, Array]


def label_paths(layer: HierarchicalSoftmax) -> Paths:
    """Return the decisions of each label of a binary tree with one code a label."""
    length, tree = layer.codes.length, layer.tree
    edge = layer.codes.expand(np.arange(tree.n_labels)).edge
    row = tree.edge_row[edge].astype(np.int32)
    sign = (1 - 2 * tree.edge_branch[edge]).astype(np.float32)
    return offsets(length), row, sign, np.empty(int(length.max(initial=0)), np.float32)


@jit
def _drawn(state):
    """Return the next state of a random generator of 64 bits, not 0 (Marsaglia 2003)."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state


@jit
def _decide(nodes, path, first, stop, hidden, rate):
    """Write `rate` times the move against the error of each decision of a path; return its loss."""
    weight, bias = nodes
    row, sign, move = path
    dot_rows(weight, bias, row[first:stop], 0, stop - first, hidden, move)
    loss = ZERO
    for p in range(stop - first):
        z = sign[first + p] * move[p]
        small = exp(-abs(z))
        loss += log1p(small) - min(z, ZERO)
        # the move against the error, sign sigmoid(-z)
        move[p] = rate * sign[first + p] * (small if z >= 0 else ONE) / (ONE + small)
    return loss


@jit
def _factor(kept, p):
    """Return a factor of `_move_nodes`."""
    if kept is None:  # decided when it is compiled
        return ONE
    return kept[p]


@jit
def _move_nodes(weight, rows, hidden, move, kept, step, grad):
    """Add some rows, times `move`, to `grad` (d,); then scale them and add `step` times `hidden`.

    They are scaled by `kept`, or not at all if that is None.
    """
    of_four = len(rows) - len(rows) % 4
    for p in range(0, of_four, 4):
        a, b = np.uint64(rows[p]), np.uint64(rows[p + 1])
        c, e = np.uint64(rows[p + 2]), np.uint64(rows[p + 3])
        move_a, move_b, move_c, move_e = move[p], move[p + 1], move[p + 2], move[p + 3]
        kept_a, kept_b = _factor(kept, p), _factor(kept, p + 1)
        kept_c, kept_e = _factor(kept, p + 2), _factor(kept, p + 3)
        step_a, step_b, step_c, step_e = step[p], step[p + 1], step[p + 2], step[p + 3]
        for j in range(len(grad)):
            x = hidden[j]
            of_a, of_b, of_c, of_e = weight[a, j], weight[b, j], weight[c, j], weight[e, j]
            grad[j] += move_a * of_a + move_b * of_b + move_c * of_c + move_e * of_e
            weight[a, j] = kept_a * of_a + step_a * x
            weight[b, j] = kept_b * of_b + step_b * x
            weight[c, j] = kept_c * of_c + step_c * x
            weight[e, j] = kept_e * of_e + step_e * x
    for p in range(of_four, len(rows)):
        a, move_a, kept_a, step_a = np.uint64(rows[p]), move[p], _factor(kept, p), step[p]
        for j in range(len(grad)):
            of_a = weight[a, j]
            grad[j] += move_a * of_a
            weight[a, j] = kept_a * of_a + step_a * hidden[j]


@jit
def _predict(nodes, path, first, stop, hidden, rate, grad):
    """Move the nodes of a path by a prediction; return its loss.

    Its own move is added to `grad` (d,).
    """
    weight, bias = nodes
    row, _, step = path  # where moves are written
    loss = _decide(nodes, path, first, stop, hidden, rate)
    _move_nodes(weight, row[first:stop], hidden, step, None, step, grad)
    for p in range(stop - first):
        bias[row[first + p]] += step[p]
    return loss


def train_lines(
    text: tuple[Int32, Int32],
    windows: tuple[int, bool],
    paths: Paths,
    parameters: tuple[Array, Array, Array],
    rate: np.float32,
    seed: np.uint64,
) -> float:
    """Train on lines word by word; return the summed loss of their tokens.

    `text` holds offsets of lines (L + 1,) and label ids (T,). `windows` are the largest reach, and
    whether each word of a window predicts by itself. `parameters`, changed in place, are word
    vectors, node vectors and biases. The seed is not 0.
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
    mean, grad = np.empty(d, np.float32), np.empty(d, np.float32)
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
                        of_word = embedding[word]
                        loss += _predict(nodes, path, begin, end, of_word, rate, grad)
                        for j in range(d):
                            of_word[j] += grad[j]
                total += loss / n_words
                continue
            mean[:] = 0
            grad[:] = 0
            share = ONE / np.float32(max(1, n_words))
            for c in range(left, right):
                if c != i:
                    word = np.uint64(ids[c])
                    for j in range(d):
                        mean[j] += share * embedding[word, j]
            total += _predict(nodes, path, begin, end, mean, rate, grad)
            for j in range(d):
                grad[j] *= share
            for c in range(left, right):
                if c != i:
                    word = np.uint64(ids[c])
                    for j in range(d):
                        embedding[word, j] += grad[j]
    return total


@jit
def _drop_out(state, rate, keep):
    """Draw the scale of each element of a hidden vector (d,): 0 with a probability of `rate`."""
    scale, least = np.float32(1 / (1 - rate)), np.uint32(rate * 2.0**32)
    for j in range(len(keep)):
        # a hash of 32 bits of the element's number
        bits = np.uint32(np.uint32(state >> np.uint64(32)) + np.uint32(j) * np.uint32(0x9E3779B9))
        bits = np.uint32((bits ^ (bits >> np.uint32(16))) * np.uint32(0x7FEB352D))
        bits = np.uint32((bits ^ (bits >> np.uint32(15))) * np.uint32(0x846CA68B))
        keep[j] = scale if np.uint32(bits ^ (bits >> np.uint32(16))) >= least else ZERO


@jit
def _train_positions(batch, paths, words, nodes, sums, moves, dropout, state):
    """Train on positions one after the other; return their summed loss."""
    contexts, targets = batch
    start, row, sign, room = paths
    (embedding, position), (weight, bias), (of_words, of_nodes) = words, nodes, sums
    rate, n_before, d = moves.rate, moves.tokens - len(targets), embedding.shape[1]
    move, kept, step = np.empty_like(room), np.empty_like(room), np.empty_like(room)
    keep, hidden = np.empty(d, np.float32), np.empty(d, np.float32)
    grad, of_word, of_place = (
        np.empty(d, np.float32),
        np.empty(d, np.float32),
        np.empty(d, np.float32),
    )
    total = 0.0
    for b in range(len(targets)):
        tokens = n_before + b + 1
        state = _drawn(state)
        _drop_out(state, dropout, keep)
        hidden[:] = 0
        grad[:] = 0
        add_window(embedding, position, contexts[b], hidden)
        square = ZERO
        for j in range(d):
            hidden[j] *= keep[j]
            square += hidden[j] * hidden[j]
        square /= np.float32(d)
        begin, end = start[targets[b]], start[targets[b] + 1]
        total += _decide(nodes, (row, sign, move), begin, end, hidden, ONE)
        for p in range(end - begin):
            node, of_bias = np.uint64(row[begin + p]), move[p] * move[p]
            of_nodes.squares[node] += of_bias * square
            of_nodes.squares_of_more[node] += of_bias
            bias[node] += rate / np.sqrt(of_nodes.squares_of_more[node] + TINY32) * move[p]
            of_row = rate / np.sqrt(of_nodes.squares[node] + TINY32)
            owed = _owed(of_nodes.decayed, node, moves.decay_of_nodes, tokens)
            kept[p], step[p] = exp(-of_row * owed), of_row * move[p]
        _move_nodes(weight, row[begin:end], hidden, move, kept, step, grad)
        for j in range(d):
            grad[j] *= -keep[j]
        for i in range(len(position)):
            word = np.uint64(contexts[b, i])
            for j in range(d):
                of_word[j] = grad[j] * position[i, j]
                of_place[j] = grad[j] * embedding[word, j]
            owed = _owed(of_words.decayed, word, moves.decay_of_words, tokens)
            adagrad_row(embedding, of_words.squares, word, of_word, rate, owed)
            adagrad_row(position, of_words.squares_of_more, i, of_place, rate, ZERO)
    return total


class WindowStep(NamedTuple):
    """Training step of CBOW or skip-gram over a tree."""

    tree: TreePass
    parameters: tuple[Array, ...]  # word vectors, node vectors and biases
    curvatures: tuple[Float64, ...]

    def plan(self, contexts: Integer, targets: Integer) -> WindowPlan:
        """Return what a step needs to know of predictions, which depends on no parameter."""
        embedding, weight, _ = self.parameters
        ids = checked_ids(contexts, len(embedding), -1)
        windows = _plan_windows(ids, SLOTS.of(len(embedding)))
        return WindowPlan(windows, self.tree.plan(targets, len(weight)))

    def __call__(self, plan: WindowPlan, learning_rate: float) -> Float64:
        """Train on a batch; return the losses of its predictions."""
        rate = float(learning_rate)
        with self.tree.one_thread:
            losses: Float64 = _window_step(self.parameters, self.curvatures, plan, rate)
        return losses


def window_step(layer: OutputLayer, n_items: int, *optimisers: DampedSGD) -> Any:
    """Return the step of at most `n_items` predictions; None where NumPy trains.

    The optimisers are those of the word vectors and the output layer.
    """
    if type(layer) is not HierarchicalSoftmax:
        return None
    parameters = tuple(optimiser.parameter for optimiser in optimisers)
    if (tree := tree_pass(layer, n_items, parameters[0])) is None:
        return None
    return WindowStep(tree, parameters, tuple(optimiser.curvature for optimiser in optimisers))


class LogBilinearStep(NamedTuple):
    """Training step of a log-bilinear model over a tree."""

    tree: TreePass
    words: tuple[Array, Array]  # vectors of words, and of positions
    nodes: tuple[Array, Array]  # vectors of nodes, and biases
    sums: tuple[Sums, Sums]  # of words, and of nodes
    decays: tuple[float, float]  # weight decay of words, and of nodes

    def plan(self, contexts: Integer, targets: Integer) -> LogBilinearPlan:
        """Return what a step needs to know of a batch, which depends on no parameter."""
        ids = checked_ids(contexts, len(self.words[0]))
        by_word = ByWord(*group(ids.ravel(), SLOTS.of(len(self.words[0]))))
        return LogBilinearPlan(ids, by_word, self.tree.plan(targets, len(self.nodes[0])))

    def __call__(
        self, plan: LogBilinearPlan, keep: Array, learning_rate: float, tokens: int
    ) -> float:
        """Train on a batch; return its summed loss.

        `keep` (B, d) is the scale of each element of the hidden vectors.
        """
        tree, words, nodes, sums, decays = self
        moves = Moves(np.float32(learning_rate), *decays, tokens)
        loss: float
        if tree.is_narrow:
            loss = _narrow_step(words, nodes, sums, keep, plan, moves)
            return loss
        hidden, buffers = _begin(words, keep, plan)
        with tree.one_thread:
            pass_in_threads(*nodes, hidden, plan.tree, buffers)
            of_nodes = nodes, sums[1], hidden, plan.tree, buffers, moves
            in_parts(PARTS, _update_wide, *of_nodes, step=1)
        loss = _finish(words, nodes, sums, keep, hidden, plan, buffers, moves)
        return loss


class WordByWordStep(NamedTuple):
    """Training of a log-bilinear model over a binary tree, one position after the other."""

    paths: Paths
    words: tuple[Array, Array]
    nodes: tuple[Array, Array]
    sums: tuple[Sums, Sums]
    decays: tuple[float, float]
    dropout: float

    def plan(self, contexts: Integer, targets: Integer) -> tuple[Int32, Int32]:
        """Return checked contexts (B, n) and targets (B,)."""
        n, start = len(self.words[0]), self.paths[0]
        return checked_ids(contexts, n), checked_ids(targets, len(start) - 1)

    def __call__(
        self, plan: tuple[Int32, Int32], seed: np.uint64, learning_rate: float, tokens: int
    ) -> float:
        """Train on positions; return their summed loss. Dropout is drawn from the seed, not 0."""
        paths, words, nodes, sums, decays, dropout = self
        moves = Moves(np.float32(learning_rate), *decays, tokens)
        loss: float = _train_positions(plan, paths, words, nodes, sums, moves, dropout, seed)
        return loss


def log_bilinear_step(
    layer: OutputLayer,
    n_items: int,
    embedding: RowAdagrad,
    position: RowAdagrad,
    *of_layer: RowAdagrad,
    dropout: float | None = None,
) -> Any:
    """Return the step of batches of `n_items`; None where NumPy trains.

    With `dropout`, that of training word by word, for a binary tree of one code a word.
    """
    if type(layer) is not HierarchicalSoftmax or position.parameter.ndim > 2:
        return None
    if (tree := tree_pass(layer, n_items, embedding.parameter)) is None:
        return None
    weight, bias = of_layer
    arrays = (
        (embedding.parameter, position.parameter),
        (weight.parameter, bias.parameter),
        (
            Sums(embedding.squares, position.squares, embedding.decayed),
            Sums(weight.squares, bias.squares, weight.decayed),
        ),
        (embedding.weight_decay, weight.weight_decay),
    )
    if dropout is not None:
        return WordByWordStep(label_paths(layer), *arrays, dropout)
    return LogBilinearStep(tree, *arrays)
