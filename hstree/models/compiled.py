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
from hstree._typing import Array, Float32, Int32, Int64, Integer
from hstree.layers.base import OutputLayer
from hstree.layers.compiled.arithmetic import (
    ONE,
    ZERO,
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
def _move_nodes(weight, rows, hidden, step, grad):
    """Add some rows, times `step`, to `grad` (d,), and then `step` times `hidden` to them."""
    of_four = len(rows) - len(rows) % 4
    for p in range(0, of_four, 4):
        a, b = np.uint64(rows[p]), np.uint64(rows[p + 1])
        c, e = np.uint64(rows[p + 2]), np.uint64(rows[p + 3])
        step_a, step_b, step_c, step_e = step[p], step[p + 1], step[p + 2], step[p + 3]
        for j in range(len(grad)):
            x = hidden[j]
            of_a, of_b, of_c, of_e = weight[a, j], weight[b, j], weight[c, j], weight[e, j]
            grad[j] += step_a * of_a + step_b * of_b + step_c * of_c + step_e * of_e
            weight[a, j] = of_a + step_a * x
            weight[b, j] = of_b + step_b * x
            weight[c, j] = of_c + step_c * x
            weight[e, j] = of_e + step_e * x
    for p in range(of_four, len(rows)):
        a, step_a = np.uint64(rows[p]), step[p]
        for j in range(len(grad)):
            of_a = weight[a, j]
            grad[j] += step_a * of_a
            weight[a, j] = of_a + step_a * hidden[j]


@inlined
def _predict(nodes, path, first, stop, hidden, rate, grad):
    """Move the nodes of a path by a prediction; return its loss.

    Its own move is added to `grad` (d,).
    """
    weight, bias = nodes
    row, _, step = path  # where moves are written
    loss = _decide(nodes, path, first, stop, hidden, rate)
    _move_nodes(weight, row[first:stop], hidden, step, grad)
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


def log_bilinear_step(
    layer: OutputLayer,
    n_items: int,
    embedding: RowAdagrad,
    position: RowAdagrad,
    *of_layer: RowAdagrad,
) -> Any:
    """Return the step of batches of `n_items`; None where NumPy trains."""
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
    return LogBilinearStep(tree, *arrays, layer, features[0] if features else None)
