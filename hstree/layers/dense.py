"""Output layers that are one softmax over all labels.

`SoftmaxLayer` has their exact log-probabilities and top-k labels, from logits that are computed a
chunk of labels at a time. `DenseLayer`, with a weight vector and a bias per label, is the base of
every layer that approximates this softmax in training alone: they differ in their losses.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hstree._typing import Array, Float64, Int64, Integer
from hstree.data.vocabulary import Vocabulary
from hstree.layers import kernels
from hstree.layers.base import Gradients, OutputLayer, ParameterGradient, check_k, first_columns
from hstree.layers.node_groups import Scratch

#: Elements of the (B, V) array of logits that are computed at a time.
TABLE_LIMIT = 1 << 24
#: Logits in a chunk, which stays in cache while all is computed from it; and its least columns.
CHUNK, LEAST_COLUMNS = 1 << 18, 128
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
            log_z[some], logit[some], _ = forward(
                self.chunks(hidden[some]), columns[some], self._scratch
            )
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
        derivatives of the losses with respect to ln Z, from ln Z (b,). These and Z scale the (B, d)
        sides of the matrix products, not the exponentials. O(B V d), three products.
        """
        log_z, grad_hidden = np.empty(len(hidden)), np.empty_like(hidden)
        # The first block writes all of them; an empty batch has none.
        array = np.empty_like if len(hidden) else np.zeros_like
        grad_weight, grad_bias = array(self.weight), array(self.bias)
        for some in batch_blocks(len(hidden), self.n_labels):
            h = hidden[some]
            # (b, V) logits, then their exponentials
            power = self._scratch.empty("logits", (len(h), self.n_labels), h.dtype)
            np.matmul(h, self.weight.T, out=power)
            power += self.bias
            largest = power.max(axis=1, keepdims=True)
            power -= largest
            np.exp(power, out=power)
            total = power.sum(axis=1)
            log_z[some] = np.log(total, dtype=np.float64) + largest[:, 0]
            # (b,) derivative of the loss with respect to each exponential
            scale = (slope(log_z[some]) / total).astype(h.dtype)
            grad_hidden[some] = (power @ self.weight) * scale[:, None]
            scaled = h * scale[:, None]
            if some.start == 0:
                np.matmul(power.T, scaled, out=grad_weight)
                np.matmul(scale, power, out=grad_bias)
            else:
                grad_weight += power.T @ scaled
                grad_bias += scale @ power
        return log_z, grad_hidden, grad_weight, grad_bias

    def target_logits(self, hidden: Array, targets: Integer, gradients: Sequence[Array]) -> Array:
        """Return the targets' logits (B,); add those of minus their sum to `log_z_gradients`."""
        item, target = np.arange(len(targets) + 1), targets.astype(np.int64)
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


def batch_blocks(n_items: int, n_labels: int) -> Iterator[slice]:
    """Yield slices of a batch whose (b, V) logits fit into `TABLE_LIMIT`."""
    step = max(1, TABLE_LIMIT // n_labels)
    for first in range(0, n_items, step):
        yield slice(first, min(first + step, n_items))


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


class Kept(NamedTuple):
    """Chunk of the forward pass for the backward pass: its exponentials, before division by Z."""

    chunk: Chunk
    shift: Array  # (B, 1)
    scores: Array  # (B, c) exp(logits - shift)


def forward(
    chunks: Iterable[Chunk], target: Integer, scratch: Scratch, *, keep: bool = False
) -> tuple[Float64, Float64, list[Kept]]:
    """Return ln Z and the logits of target columns, float64 arrays (B,), in one pass over chunks.

    Chunks are of B rows, in the order of their columns. `keep` also returns what `backward` takes:
    all scores, in `scratch`, valid until the next call. Exponentials are of the logits as they are,
    which saves two passes; only where a sum is too large or too small, of shifted ones.
    """
    chunks, n, item = list(chunks), len(target), np.arange(len(target))
    dtype = np.result_type(chunks[0].inputs, chunks[0].weight)
    widest = max(len(chunk.bias) for chunk in chunks)
    table = scratch.empty("scores", (n * (chunks[-1].columns.stop if keep else widest),), dtype)
    target_logit = np.zeros(n)
    for shifted in (False, True):
        # (B, 1) what is subtracted from logits: the largest so far; (B,) sum of exponentials
        shift, total = np.full((n, 1), -np.inf if shifted else 0.0), np.zeros(n)
        kept = []
        for chunk in chunks:
            c, first = len(chunk.bias), n * chunk.columns.start if keep else 0
            scores = table[first : first + n * c].reshape(n, c)
            np.matmul(chunk.inputs, chunk.weight.T, out=scores)
            scores += chunk.bias
            here = np.flatnonzero((target >= chunk.columns.start) & (target < chunk.columns.stop))
            target_logit[here] = scores[item[here], target[here] - chunk.columns.start]
            if shifted:
                before, shift = shift, np.maximum(shift, scores.max(axis=1, keepdims=True))
                scores -= shift.astype(dtype)
                total *= np.exp(before - shift)[:, 0]
            with np.errstate(over="ignore"):
                np.exp(scores, out=scores)
                total += scores @ np.ones(c, dtype)
            if keep:
                kept.append(Kept(chunk, shift.astype(dtype), scores))
        if ((total > 1 / LARGE) & (total < LARGE)).all():
            break
    if shifted:
        # The largest of all as the shift of every chunk: `backward` divides by exp(shift) / Z.
        for _, before, scores in kept:
            scores *= np.exp(before - shift).astype(dtype)
        kept = [Kept(chunk, shift.astype(dtype), scores) for chunk, _, scores in kept]
    return np.log(total) + shift[:, 0], target_logit, kept


def backward(
    kept: Iterable[Kept], log_z: Float64, target: Int64, first: int, gradients: Sequence[Array]
) -> None:
    """Add the gradients of the summed negative log-likelihoods through rows of one input.

    `kept` are all chunks of these rows, whose columns begin at `first`, from `forward`; their
    scores become errors. Targets (B,) are columns, of other rows too. The gradients are (B, w),
    (k, w), (k,). The error is ``scores * exp(shift) / Z``, minus one at the targets; the factor
    scales the (B, w) sides of the products, so that no pass over the scores is needed.
    """
    grad_inputs, grad_weight, grad_bias = gradients
    for chunk, shift, scores in kept:
        rows = slice(chunk.columns.start - first, chunk.columns.stop - first)
        factor = np.exp(shift - log_z[:, None]).astype(scores.dtype)
        here = np.flatnonzero((target >= chunk.columns.start) & (target < chunk.columns.stop))
        scores[here, target[here] - chunk.columns.start] -= 1 / factor[here, 0]
        grad_weight[rows] += scores.T @ (chunk.inputs * factor)
        grad_bias[rows] += factor[:, 0] @ scores
        grad_inputs += factor * (scores @ chunk.weight)


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
