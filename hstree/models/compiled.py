"""Compiled training steps: a context model, its output layer and their optimisers at once.

What a step would write only to read it once more stays in registers and the first-level cache:
each row's gradient is summed and applied in one go. Sums are those of the steps in NumPy, in the
order of the batch. Work at wide nodes is cut into pieces that write to different places, which
threads share; the pieces, and so the results, do not depend on the number of threads.
"""

from typing import Any, NamedTuple

import numpy as np

from hstree._compiled import in_parts, inlined, jit, takes
from hstree._ragged import offsets
from hstree._typing import Array, Float32, Float64, Int32, Int64, Integer
from hstree.layers.base import OutputLayer
from hstree.layers.compiled.arithmetic import (
    ONE,
    ZERO,
    add_rows,
    check_shape,
    checked_ids,
    clear,
    dot_rows,
    exp,
    group,
    log1p,
)
from hstree.layers.compiled.passes import (
    Forward,
    TreePass,
    add_wide,
    narrow_gradient,
    tree_pass,
    wide_gradient,
)
from hstree.layers.compiled.plans import NO_WIDE, PARTS, Plan
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.layers.hooks import hooks_of
from hstree.layers.ngrams import NgramSoftmax
from hstree.layers.node_groups import ONE_BLAS_THREAD
from hstree.training.adagrad import RowAdagrad
from hstree.training.compiled import TINY32, adagrad_row
from hstree.training.sgd import DampedSGD

#: Layers that have a step of the log-bilinear model; those that inherit from them may add to it.
STEPPED = (HierarchicalSoftmax, NgramSoftmax)

# Sums over windows, each vector times that of its position.


@inlined
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
        clear(hidden[b])
        add_window(embedding, position, contexts[b], hidden[b])


@inlined
def add_places(embedding, position, grad_hidden, word, place, grad, grad_position):
    """Add the gradients through the places of a word, each b n + i, to those of both."""
    n, d = position.shape
    for p in place:
        b, i = np.uint64(p // n), np.uint64(p % n)
        for j in range(d):
            grad[j] += grad_hidden[b, j] * position[i, j]
            grad_position[i, j] += grad_hidden[b, j] * embedding[word, j]


@jit
def _window_sum_backward(embedding, position, words, start, place, grad_hidden, grads):
    grad_words, grad_position = grads
    for w in range(len(words)):
        places = place[start[w] : start[w + 1]]
        add_places(embedding, position, grad_hidden, words[w], places, grad_words[w], grad_position)


def window_sum(embedding: Array, position: Array, contexts: Integer) -> Any:
    """Twin of `lbl.window_sum`."""
    if not takes(embedding, position) or position.ndim > 2:
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
    if not takes(embedding, position, grad_hidden) or position.ndim > 2:
        return NotImplemented
    ids = checked_ids(contexts, len(embedding))
    check_shape("contexts", ids.shape, (len(ids), len(position)))
    check_shape("gradients", grad_hidden.shape, (len(ids), embedding.shape[1]))
    words, start, place = group(ids.ravel(), len(embedding))
    grads = np.zeros((len(words), embedding.shape[1]), np.float32), np.zeros_like(position)
    _window_sum_backward(embedding, position, words, start, place, grad_hidden, grads)
    return words, *grads


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


@inlined
def _owed(decayed, row, decay, tokens):
    """Return the weight decay that a row owes for the tokens since it was last touched."""
    if decay == 0:
        return ZERO
    owed = np.float32(decay * (tokens - decayed[row]))
    decayed[row] = tokens
    return owed


@inlined
def _update_node(nodes, sums, row, grad, grad_bias, moves):
    """Update the weights and the bias of a row."""
    weight, bias = nodes
    owed = _owed(sums.decayed, row, moves.decay_of_nodes, moves.tokens)
    adagrad_row(weight, sums.squares, row, grad, moves.rate, owed)
    sums.squares_of_more[row] += grad_bias * grad_bias
    bias[row] -= moves.rate / np.sqrt(sums.squares_of_more[row] + TINY32) * grad_bias


@jit
def _update_wide(first, stop, nodes, sums, wide, of_code, of_visits, moves):
    """Update weight rows of wide nodes, and write gradients through them, of some parts."""
    for piece in range(wide.row_parts[first], wide.row_parts[stop]):
        row, of_weight, of_bias = wide_gradient(piece, nodes[0], wide, of_code, of_visits)
        for j in range(len(of_bias)):
            _update_node(nodes, sums, row + j, of_weight[j], of_bias[j], moves)


@jit
def _update_narrow(nodes, sums, hidden, rows, start, item, error, moves, grad):
    """Update the weight rows of narrow nodes; `grad` (d,) is room for the gradient of one."""
    for i in range(len(rows)):
        grad_bias = narrow_gradient(start[i], start[i + 1], hidden, item, error, grad)
        _update_node(nodes, sums, rows[i], grad, grad_bias, moves)


@jit
def _update_words(words, sums, by_word, grad_hidden, moves, grad, grad_position):
    """Update the vectors of words and positions; `grad` (d,) is room, `grad_position` is zero."""
    embedding, position = words
    for w in range(len(by_word.words)):
        word, places = by_word.words[w], by_word.place[by_word.start[w] : by_word.start[w + 1]]
        clear(grad)
        add_places(embedding, position, grad_hidden, word, places, grad, grad_position)
        owed = _owed(sums.decayed, word, moves.decay_of_words, moves.tokens)
        adagrad_row(embedding, sums.squares, word, grad, moves.rate, owed)
    for i in range(len(position)):
        adagrad_row(position, sums.squares_of_more, i, grad_position[i], moves.rate, ZERO)


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
def _words_of(contexts):
    """Return the words of contexts (P, n), -1 left out: offsets, words, shares and predictions."""
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
    return start, word[:p], share[:p], item[:p]


@inlined
def _damped(rate, s):
    """Return ``rate (1 - exp(-s)) / s``."""
    return np.float32(rate * -np.expm1(-s) / s) if s > 0 else np.float32(rate)


@inlined
def _squared_length(vector):
    total = ZERO
    for j in range(len(vector)):
        total += vector[j] * vector[j]
    return np.float64(total)


@inlined
def _descend(values, rate, grad):
    for j in range(len(grad)):
        values[j] -= rate * grad[j]


@jit
def _means(embedding, start, word, share, hidden):
    """Write the means of windows (P, d); return the sums of squares of these and of the shares."""
    squares = 0.0
    for b in range(len(hidden)):
        clear(hidden[b])
        add_rows(embedding, word, share, start[b], start[b + 1], hidden[b])
        squares += _squared_length(hidden[b])
    return squares, _squared_length(share)


class Scales(NamedTuple):
    """How far a batch of CBOW or skip-gram moves the output layer."""

    rate: float
    squares: float  # of all hidden vectors
    predictions: int


@inlined
def _descend_node(nodes, curvatures, row, grad, grad_bias, scales):
    """Move a weight row and its bias; return the row's curvature along itself before that."""
    weight, bias = nodes
    rate, squares, predictions = scales
    of_row = curvatures[0][row]
    curvature = of_row * _squared_length(weight[row])
    _descend(weight[row], _damped(rate, rate * squares * of_row), grad)
    bias[row] -= _damped(rate, rate * predictions * curvatures[1][row]) * grad_bias
    return curvature


@jit
def _descend_narrow(nodes, curvatures, hidden, rows, start, item, error, scales, grad):
    """Move the weight rows of narrow nodes; return the sum of their curvatures."""
    curvature = 0.0
    for i in range(len(rows)):
        # as `narrow_gradient` does, which LLVM would sum in another order here
        clear(grad)
        add_rows(hidden, item, error, start[i], start[i + 1], grad)
        of_bias = ZERO
        for p in range(start[i], start[i + 1]):
            of_bias += error[p]
        curvature += _descend_node(nodes, curvatures, rows[i], grad, of_bias, scales)
    return curvature


@jit
def _descend_wide(nodes, curvatures, wide, of_code, of_visits, scales, curvature):
    """Move the weight rows of wide nodes; return `curvature` and the sum of theirs."""
    for piece in range(len(wide.row_pieces)):
        row, of_weight, of_bias = wide_gradient(piece, nodes[0], wide, of_code, of_visits)
        for j in range(len(of_bias)):
            of_row = row + j, of_weight[j], of_bias[j]
            curvature += _descend_node(nodes, curvatures, *of_row, scales)
    return curvature


@jit
def _descend_words(embedding, curvature, windows, grad_hidden, rate, scale):
    """Move the vectors of words."""
    _, _, _, words, start, item, share = windows
    grad = np.empty(embedding.shape[1], np.float32)
    for w in range(len(words)):
        clear(grad)
        add_rows(grad_hidden, item, share, start[w], start[w + 1], grad)
        of_word = _damped(rate, scale * curvature[words[w]])
        _descend(embedding[words[w]], of_word, grad)


# Word by word: each moves the weights before the next one.

#: Bytes of a cache line. Rows are read faster where no line has numbers of two.
CACHE_LINE = 64
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


def room_at_cache_lines(matrix: Array) -> Array:
    """Return zeros (n, d') for a matrix (n, d), d' being d rounded up to whole cache lines.

    Each row begins at a cache line.
    """
    n, d = matrix.shape
    of_row = -(-4 * d // CACHE_LINE) * CACHE_LINE
    room = np.zeros(n * of_row + CACHE_LINE, np.uint8)
    start = -room.ctypes.data % CACHE_LINE
    return room[start : start + n * of_row].view(np.float32).reshape(n, of_row // 4)


@inlined
def _drawn(state):
    """Return the next state of a random generator of 64 bits, not 0 (Marsaglia 2003)."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state


@inlined
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


@inlined
def _factor(kept, p):
    """Return a factor of `_move_nodes`."""
    if kept is None:  # decided when it is compiled
        return ONE
    return kept[p]


@inlined
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


@inlined
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
                        clear(grad)
                        of_word = embedding[word]
                        loss += _predict(nodes, path, begin, end, of_word, rate, grad)
                        for j in range(d):
                            of_word[j] += grad[j]
                total += loss / n_words
                continue
            clear(mean)
            clear(grad)
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


@inlined
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
        clear(hidden)
        clear(grad)
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
        start, word, share, item = _words_of(ids)
        words, word_start, place = group(word, len(embedding))
        windows = Windows(
            start, word, share, words, word_start, item.take(place), share.take(place)
        )
        return WindowPlan(windows, self.tree.plan(targets, len(weight)))

    def __call__(self, plan: WindowPlan, learning_rate: float) -> Float64:
        """Train on a batch; return the losses of its predictions."""
        embedding, weight, bias = self.parameters
        of_words, *curvatures = self.curvatures
        windows, by_row, wide = plan.windows, plan.tree.by_row, plan.tree.wide
        rate, n_items = float(learning_rate), len(windows.start) - 1
        hidden = np.empty((n_items, embedding.shape[1]), np.float32)
        squares, shares = _means(embedding, *windows[:3], hidden)
        forward = Forward.of(weight, bias, hidden, plan.tree)
        losses, error, _, of_code, grad_hidden = forward.of_items
        nodes, scales = (weight, bias), Scales(rate, squares, n_items)
        of_nodes = nodes, tuple(curvatures)
        rows, start, score, item = by_row
        of_rows = rows, start, item, error.take(score), scales, np.empty_like(embedding[0])
        # of a prediction along its hidden vector, over the touched rows
        curvature = _descend_narrow(*of_nodes, hidden, *of_rows)
        if wide is not NO_WIDE:
            of_wide = wide, of_code, forward.of_visits
            with ONE_BLAS_THREAD:
                curvature = _descend_wide(*of_nodes, *of_wide, scales, curvature)
            add_wide(wide.row_pieces, wide.start, wide.item, forward.of_visits.grad, grad_hidden)
        _descend_words(embedding, of_words, windows, grad_hidden, rate, rate * shares * curvature)
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
    layer: HierarchicalSoftmax
    features: RowAdagrad | None  # of n-grams, where the layer has some

    def plan(self, contexts: Integer, targets: Integer) -> LogBilinearPlan:
        """Return what a step needs to know of a batch, which depends on no parameter."""
        ids = checked_ids(contexts, len(self.words[0]))
        by_word = ByWord(*group(ids.ravel(), len(self.words[0])))
        after: Any = hooks_of(self.layer).in_context(ids)
        plan = self.tree.plan(targets, len(self.nodes[0]), after.bound)
        return LogBilinearPlan(ids, by_word, plan)

    def __call__(
        self, plan: LogBilinearPlan, keep: Array, learning_rate: float, tokens: int
    ) -> float:
        """Train on a batch; return its summed loss.

        `keep` (B, d) is the scale of each element of the hidden vectors.
        """
        _, words, nodes, sums, decays, _, features = self
        moves = Moves(np.float32(learning_rate), *decays, tokens)
        hidden = np.empty(keep.shape, np.float32)
        _window_sum(*words, plan.contexts, hidden)
        hidden *= keep
        forward = Forward.of(*nodes, hidden, plan.tree)
        losses, error, _, of_code, grad_hidden = forward.of_items
        of_nodes, wide, grad = (nodes, sums[1]), plan.tree.wide, np.empty_like(words[1][0])
        if wide is not NO_WIDE:
            of_wide = wide, of_code, forward.of_visits, moves
            with ONE_BLAS_THREAD:
                in_parts(PARTS, _update_wide, *of_nodes, *of_wide, step=1)
            add_wide(wide.row_pieces, wide.start, wide.item, forward.of_visits.grad, grad_hidden)
        rows, start, score, item = plan.tree.by_row
        of_rows = rows, start, item, error.take(score)
        _update_narrow(*of_nodes, hidden, *of_rows, moves, grad)
        if features is not None:
            gradient = forward.feature_gradient()
            features.step(plan.tree.by_feature.feature, gradient, learning_rate, tokens)
        grad_hidden *= keep
        grads = grad, np.zeros_like(words[1])
        _update_words(words, sums[0], plan.by_word, grad_hidden, moves, *grads)
        return float(losses.sum())


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
    if not isinstance(layer, HierarchicalSoftmax) or type(layer) not in STEPPED:
        return None
    if position.parameter.ndim > 2:
        return None
    if (tree := tree_pass(layer, n_items, embedding.parameter)) is None:
        return None
    weight, bias, *features = of_layer
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
    return LogBilinearStep(tree, *arrays, layer, features[0] if features else None)
