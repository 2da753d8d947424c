"""Output layers that are one softmax over all labels.

`SoftmaxLayer` has their exact log-probabilities and top-k labels, from logits that are computed a
chunk of labels at a time. `DenseLayer`, with a weight vector and a bias per label, is the base of
every layer that approximates this softmax in training alone: they differ in their losses.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hstree._compiled import in_parts, twin
from hstree._typing import Array, Float64, Int64, Integer
from hstree.data.vocabulary import Vocabulary
from hstree.layers import kernels
from hstree.layers.base import Gradients, OutputLayer, ParameterGradient, check_k, first_columns
from hstree.layers.node_groups import ONE_BLAS_THREAD, Scratch

#: Elements of the (B, V) array of logits that are computed at a time.
TABLE_LIMIT = 1 << 24
#: Exponentials that are kept at a time for the backward pass.
KEPT_SCORES = 1 << 25
#: Logits in a chunk, which stays in cache while all is computed from it; and its least columns.
CHUNK, LEAST_COLUMNS = 1 << 18, 128
#: Parts of the chunks whose gradients are summed apart: the most threads that share them.
PARTS = 8
#: Sums of exponentials below this, and above its inverse, need no shift in float32.
LARGE = 1e30


class Chunk(NamedTuple):
    """Consecutive columns of logits, ``inputs @ weight.T + bias`` (B, c)."""

    columns: slice
    inputs: Array  # (B, w)
    weight: Array  # (c, w)
    bias: Array  # (c,)


class SoftmaxLayer(OutputLayer):
    """Softmax of logits that a subclass defines by `chunks`.

    `column` (V,) is the column of each label's logits; None where it is the label.
    """

    column: Int64 | None = None

    def __init__(self, n_labels: int, dim: int) -> None:
        super().__init__(n_labels, dim)
        self._scratch = Scratch()

    @abstractmethod
    def chunks(self, hidden: Array) -> Iterator[Chunk]:
        """Yield the logits of all columns, as the products that give them."""

    def logits(self, hidden: Array) -> Array:
        """Return the logits of all labels, a float array (B, V)."""
        chunks = list(self.chunks(hidden))
        logits = np.empty((len(hidden), self.n_labels), np.result_type(hidden, chunks[0].weight))
        for chunk in chunks:
            logits[:, chunk.columns] = chunk.inputs @ chunk.weight.T
            logits[:, chunk.columns] += chunk.bias
        return logits if self.column is None else logits.take(self.column, axis=1)

    def log_prob(self, hidden: Array) -> Float64:
        """Return the normalised log-probabilities of all labels, a float64 array (B, V)."""
        result = np.empty((len(hidden), self.n_labels))
        for some in batch_blocks(len(hidden), self.n_labels):
            result[some] = self.logits(hidden[some])
        result -= log_sum_exp(result)[:, None]
        return result

    def nll(self, hidden: Array, targets: Integer) -> Float64:
        """Return the negative log-likelihoods of targets (B,) in nats, a float64 array (B,)."""
        columns = np.asarray(targets) if self.column is None else self.column[targets]
        log_z, target_logit = self._of_columns(hidden, columns)
        return log_z - target_logit

    def log_z(self, hidden: Array) -> Float64:
        """Return ln Z, the log of the sum of exp(s) over all labels, a float64 array (B,)."""
        return self._of_columns(hidden, np.full(len(hidden), -1))[0]

    def _of_columns(self, hidden: Array, columns: Integer) -> tuple[Float64, Float64]:
        """Return ln Z and the logits of columns (B,); of column -1 nothing that has a meaning."""
        log_z, logit = np.empty(len(hidden)), np.empty(len(hidden))
        for some in batch_blocks(len(hidden), self.n_labels):
            passed = forward(self.chunks(hidden[some]), columns[some], self._scratch)
            log_z[some], logit[some] = passed.log_z, passed.target_logit
        return log_z, logit

    def top_k(self, hidden: Array, k: int) -> tuple[Int64, Float64]:
        """Return the k most probable labels and their log-probabilities; ties by label id."""
        check_k(k)
        k = min(k, self.n_labels)
        labels = np.empty((len(hidden), k), np.int64)
        log_prob = np.empty((len(hidden), k))
        for some in batch_blocks(len(hidden), self.n_labels):
            logits = self.logits(hidden[some])
            labels[some], value = first_columns(logits, k)
            log_prob[some] = value - log_sum_exp(logits)[:, None]
        return labels, log_prob


class DenseLayer(SoftmaxLayer):
    """Softmax of ``s = W h + b``; a subclass defines `loss`.

    Attributes
    ----------
    weight : float array (V, d)
        Output vectors, zero at the start.
    bias : float array (V,)
        Log of the unigram probabilities at the start, so that Z is 1.
    centre : float or None
        Value that training keeps ln Z near, which unnormalised scores leave out; None where
        nothing does.
    """

    centre: float | None = None

    def __init__(
        self,
        vocabulary: Vocabulary,
        dim: int,
        *,
        counts: Integer | None = None,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__(len(vocabulary), dim)
        self.weight: Array = np.zeros((self.n_labels, dim), dtype)
        log_share = log_unigram(vocabulary.counts if counts is None else counts)
        self.bias: Array = log_share.astype(dtype)

    def parameters(self) -> dict[str, Array]:
        """Return the trained arrays, by the names that a saved model gives them."""
        return {"weight": self.weight, "bias": self.bias}

    def chunks(self, hidden: Array) -> Iterator[Chunk]:
        """Yield the logits of all labels."""
        return row_chunks(hidden, self.weight, self.bias)

    def logits(self, hidden: Array) -> Array:
        """Return the logits of all labels, a float array (B, V)."""
        logits = hidden @ self.weight.T
        logits += self.bias
        return logits

    def log_normaliser(self, hidden: Array) -> Float64 | None:
        """Return ln Z less `centre` of each hidden vector, a float64 array (B,), or None."""
        return None if self.centre is None else self.log_z(hidden) - self.centre

    def unnormalised_nll(self, hidden: Array, targets: Integer) -> Float64 | None:
        """Return `centre` less the logits of targets, a float64 array (B,), or None; O(B d)."""
        if self.centre is None:
            return None
        return self.centre - self._logits_of(hidden, targets).astype(np.float64)

    def log_z_gradients(
        self, hidden: Array, slope: Callable[[Float64], Float64]
    ) -> tuple[Float64, Array, Array, Array]:
        """Return ln Z (B,) and the gradients of a loss that is a function of it, in one full pass.

        They are those by hidden vectors (B, d), weights (V, d) and biases (V,). `slope` returns the
        derivatives of the losses with respect to ln Z, from ln Z (b,). O(B V d), three products.
        """
        arrays, none = (self.weight, self.bias), np.full(len(hidden), -1)
        log_z, _, gradients = one_softmax(hidden, *arrays, none, self._scratch, slope)
        return log_z, *gradients

    def target_logits(self, hidden: Array, targets: Integer, gradients: Sequence[Array]) -> Array:
        """Return the targets' logits (B,); add those of minus their sum to `log_z_gradients`."""
        item, target = np.arange(len(targets)), targets.astype(np.int64)
        minus_one = np.full(len(targets), -1, self.weight.dtype)
        by_hidden, rows, by_weight, by_bias = kernels.gather_dot_backward(
            self.weight, hidden, item, target, minus_one
        )
        grad_hidden, grad_weight, grad_bias = gradients
        grad_hidden += by_hidden
        grad_weight[rows] += by_weight
        grad_bias[rows] += by_bias
        return self._logits_of(hidden, targets)

    def _logits_of(self, hidden: Array, targets: Integer) -> Array:
        """Return the logits (B,) of targets."""
        item, target = np.arange(len(targets)), targets.astype(np.int64)
        return kernels.gather_dot(self.weight, self.bias, hidden, item, target)


def batch_blocks(n_items: int, n_labels: int, *, keep: bool = False) -> Iterator[slice]:
    """Yield slices of a batch, of about the same size, whose (b, V) logits are not too many."""
    most = KEPT_SCORES if keep else TABLE_LIMIT
    n_blocks = -(-n_items // max(1, most // n_labels))
    for number in range(n_blocks):
        yield slice(number * n_items // n_blocks, (number + 1) * n_items // n_blocks)


def row_gradients(
    rows: Int64 | slice, grad_hidden: Array, grad_weight: Array, grad_bias: Array
) -> Gradients:
    """Return the gradients of a `DenseLayer` with respect to some rows."""
    of_weight = ParameterGradient("weight", rows, grad_weight)
    return Gradients(grad_hidden, [of_weight, ParameterGradient("bias", rows, grad_bias)])


def log_unigram(counts: Integer) -> Float64:
    """Return the log-probabilities of labels by their counts (V,); a count of 0 is read as 1/2."""
    mass = np.maximum(counts, 0.5)
    log_prob: Float64 = np.log(mass / mass.sum())
    return log_prob


def row_chunks(inputs: Array, weight: Array, bias: Array, first: int = 0) -> Iterator[Chunk]:
    """Yield the logits of rows, whose columns start at `first`, in chunks of `CHUNK` logits."""
    step = max(LEAST_COLUMNS, CHUNK // max(1, len(inputs)))
    for a in range(0, len(weight), step):
        some = slice(a, min(a + step, len(weight)))
        yield Chunk(slice(first + a, first + some.stop), inputs, weight[some], bias[some])


def one_softmax(
    inputs: Array,
    weight: Array,
    bias: Array,
    target: Integer,
    scratch: Scratch,
    slope: Callable[[Float64], Float64] = np.ones_like,
) -> tuple[Float64, Float64, tuple[Array, Array, Array]]:
    """Return ln Z and the logits of targets, float64 arrays (B,), and the gradients of a loss.

    The loss is the sum of a function of ln Z, whose derivative is `slope`, minus the logits of
    targets (B,), or of -1 for none. The gradients are those by inputs (B, w), weights (k, w) and
    biases (k,).
    """
    log_z, logit = np.empty(len(target)), np.empty(len(target))
    array = np.empty_like if len(target) else np.zeros_like
    grad_inputs, grad_weight, grad_bias = array(inputs), array(weight), array(bias)
    for some in batch_blocks(len(target), len(weight), keep=True):
        chunks, of_some = row_chunks(inputs[some], weight, bias), target[some]
        passed = forward(chunks, of_some, scratch, keep=True)
        log_z[some], logit[some] = passed.log_z, passed.target_logit
        scale, of_rows = slope(passed.log_z) / passed.total, (grad_weight, grad_bias)
        is_first = some.start == 0
        grad_inputs[some] = backward(passed.kept, scale, of_some, of_rows, is_first=is_first)
    return log_z, logit, (grad_inputs, grad_weight, grad_bias)


class Passed(NamedTuple):
    """What the logits of all columns give, and what `backward` takes."""

    log_z: Float64  # (B,)
    target_logit: Float64  # (B,)
    total: Float64  # (B,) sum of the exponentials
    #: chunks and their exponentials (B, c), all shifted alike; none that are not kept
    kept: list[tuple[Chunk, Array]]


def forward(
    chunks: Iterable[Chunk], target: Integer, scratch: Scratch, *, keep: bool = False
) -> Passed:
    """Return ln Z and the logits of target columns, from one pass over chunks that threads share.

    Chunks are of B rows, in the order of their columns. Exponentials are of the logits as they are,
    which saves a pass; only where a sum is too large or too small, of logits less their largest.
    With `keep` they are in `scratch`, valid until the next call. The products of a chunk are on one
    BLAS thread, so that the number of threads changes no byte.
    """
    with ONE_BLAS_THREAD:
        chunks, n, item = list(chunks), len(target), np.arange(len(target))
        dtype = np.result_type(chunks[0].inputs, chunks[0].weight)
        # (chunks, B) sums of the exponentials of each
        sums, target_logit = np.empty((len(chunks), n), dtype), np.zeros(n)
        n_kept = n * chunks[-1].columns.stop if keep else 0
        table, kept = scratch.empty("kept", (n_kept,), dtype), list[tuple[Chunk, Array]]()
        for chunk in chunks if keep else ():
            first, size = n * chunk.columns.start, n * len(chunk.bias)
            kept.append((chunk, table[first : first + size].reshape(n, -1)))

        def some_chunks(first: int, stop: int, shift: Array) -> None:
            for number, chunk in enumerate(chunks[first:stop], first):
                c, start = len(chunk.bias), chunk.columns.start
                logits = kept[number][1] if keep else scratch.empty("logits", (n, c), dtype)
                np.matmul(chunk.inputs, chunk.weight.T, out=logits)
                here = np.flatnonzero((target >= start) & (target < start + c))
                column = target[here] - start
                target_logit[here] = logits[item[here], column] + chunk.bias[column]
                exponentials(logits, chunk.bias, shift, sums[number])

        shift = np.zeros(n, dtype)
        in_parts(len(chunks), some_chunks, shift, step=1)
        total = sums.sum(axis=0, dtype=np.float64)
        if not ((total > 1 / LARGE) & (total < LARGE)).all():
            largest = [(c.inputs @ c.weight.T + c.bias).max(axis=1) for c in chunks]
            shift = np.max(largest, axis=0)
            in_parts(len(chunks), some_chunks, shift, step=1)
            total = sums.sum(axis=0, dtype=np.float64)
    return Passed(np.log(total) + shift, target_logit, total, kept)


@twin
def exponentials(logits: Array, bias: Array, shift: Array, total: Array) -> None:
    """Turn logits (B, c) without biases (c,) into exponentials less shifts (B,); write their sums.

    Those are of the rows, (B,).
    """
    logits += bias
    if shift.any():
        logits -= shift[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        np.exp(logits, out=logits)
        np.matmul(logits, np.ones(len(bias), logits.dtype), out=total)


def backward(
    kept: Sequence[tuple[Chunk, Array]],
    scale: Float64,
    target: Integer,
    of_rows: tuple[Array, Array],
    *,
    is_first: bool,
) -> Array:
    """Gradients through all rows of one input: write or add those of rows, return the input's.

    `kept` are the chunks of these rows, from `forward`, whose exponentials are overwritten. The
    gradient with respect to a logit is its exponential times `scale` (B,), less one at the targets
    (B,), which are columns, of other rows too. ``1 / total`` is the scale of negative
    log-likelihoods. It scales the (B, w) sides of the products, not the exponentials. The gradients
    of weights and biases, (k, w) and (k,), are written if the items are the first, else added.
    """
    inputs, first_column = kept[0][0].inputs, kept[0][0].columns.start
    grad_weight, grad_bias = of_rows
    factor = scale.astype(inputs.dtype)
    scaled = inputs * factor[:, None]
    bounds = np.linspace(0, len(kept), min(PARTS, len(kept)) + 1).astype(int).tolist()
    # (parts, B, w) gradients of inputs
    sums = np.zeros((len(bounds) - 1, *inputs.shape), inputs.dtype)

    def some_parts(begin: int, end: int) -> None:
        for part in range(begin, end):
            for chunk, scores in kept[bounds[part] : bounds[part + 1]]:
                start, stop = chunk.columns.start, chunk.columns.stop
                rows = slice(start - first_column, stop - first_column)
                here = np.flatnonzero((target >= start) & (target < stop))
                scores[here, target[here] - start] -= 1 / factor[here]
                if is_first:
                    np.matmul(scores.T, scaled, out=grad_weight[rows])
                    np.matmul(factor, scores, out=grad_bias[rows])
                else:
                    grad_weight[rows] += scores.T @ scaled
                    grad_bias[rows] += factor @ scores
                sums[part] += scores @ chunk.weight

    with ONE_BLAS_THREAD:
        in_parts(len(sums), some_parts, step=1)
    grad_inputs: Array = sums.sum(axis=0)
    grad_inputs *= factor[:, None]
    return grad_inputs


def log_sum_exp(logits: Array) -> Float64:
    """Return the log of the sum of exponentials over the last axis of (B, V), a float64 (B,)."""
    result = np.empty(len(logits))
    step = max(1, CHUNK // logits.shape[1])  # rows at a time that stay in cache
    for a in range(0, len(logits), step):
        some = logits[a : a + step]
        largest = some.max(axis=1, keepdims=True)
        power = some - largest
        total = np.exp(power, out=power).sum(axis=1, dtype=np.float64)
        result[a : a + step] = np.log(total) + largest[:, 0]
    return result
