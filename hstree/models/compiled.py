"""Compiled training steps: a context model, its output layer and their optimisers at once.

What a step would write only to read it once more stays in registers and the first-level cache:
each row's gradient is summed and applied in one go. Sums are those of the steps in NumPy, in the
order of the batch. Work at wide nodes is cut into pieces that write to different places, which
threads share; the pieces, and so the results, do not depend on the number of threads.
"""

from typing import Any, NamedTuple

import numpy as np

from hstree._compiled import in_parts, jit, takes
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

    `text` holds offsets of lines (L + 1,) and label ids (T,). `windows` are the largest reach, and
    whether each word of a window predicts by itself. `paths` are offsets (V + 1,) of each label's
    decisions, their weight rows and signs, and room for the scores of the longest path, which is
    not written to. `parameters`, changed in place, are word vectors, node vectors and biases. The
    seed is not 0.
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


def log_bilinear_step(
    layer: OutputLayer,
    n_items: int,
    embedding: RowAdagrad,
    position: RowAdagrad,
    *of_layer: RowAdagrad,
) -> Any:
    """Return the step of batches of `n_items`; None where NumPy trains."""
    if type(layer) is not HierarchicalSoftmax or position.parameter.ndim > 2:
        return None
    if (tree := tree_pass(layer, n_items, embedding.parameter)) is None:
        return None
    weight, bias = of_layer
    return LogBilinearStep(
        tree,
        words=(embedding.parameter, position.parameter),
        nodes=(weight.parameter, bias.parameter),
        sums=(
            Sums(embedding.squares, position.squares, embedding.decayed),
            Sums(weight.squares, bias.squares, weight.decayed),
        ),
        decays=(embedding.weight_decay, weight.weight_decay),
    )
