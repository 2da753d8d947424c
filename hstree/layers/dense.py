"""Output layers that are one softmax over all labels.

`SoftmaxLayer` has their exact log-probabilities and top-k labels, from logits that are computed a
chunk of labels at a time. `DenseLayer`, with a weight vector and a bias per label, is the base of
every layer that approximates this softmax in training alone: they differ in their losses.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from hstree._compiled import in_parts, twin
from hstree._options import checked_count
from hstree._typing import Array, Float64, Int64, Integer
from hstree.data.vocabulary import Vocabulary
from hstree.layers import kernels
from hstree.layers.base import Gradients, OutputLayer, ParameterGradient, first_columns
from hstree.layers.node_groups import ONE_BLAS_THREAD, Scratch

#: Elements of the (B, V) array of logits that are computed at a time.
TABLE_LIMIT = 1 << 24
#: Exponentials that are kept at a time for the backward pass.
KEPT_SCORES = 1 << 25
#: Logits in a chunk, which stays in cache while all is computed from it; and its least columns.
CHUNK, LEAST_COLUMNS = 1 << 18, 128
#: Parts of the chunks whose products with weights are summed apart: the most threads in training.
PARTS = 24
#: Exponentials that NumPy sums in float32; what is summed of these is in float64.
SUMMED = 1 << 10
#: Sums of exponentials below this, and above its inverse, need no shift in float32.
LARGE = 1e30


class Product(NamedTuple):
    """Logits of consecutive columns, ``inputs @ weight.T + bias`` (B, k)."""

    inputs: Array  # (B, w)
    weight: Array  # (k, w)
    bias: Array  # (k,)


class Chunk(NamedTuple):
    """Consecutive rows of a product, columns of its logits, which stay in cache for a batch."""

    rows: slice
    columns: slice  # of all products' logits
    weight: Array  # (c, w)
    bias: Array  # (c,)
    items: Int64  # (t,) batch items whose targets are among the rows
    target: Int64  # (t,) and which of the chunk's rows these are


class SoftmaxLayer(OutputLayer):
    """Softmax of logits that a subclass defines by `products`.

    `column` (V,) is the column of each label's logits; None where it is the label.
    """

    column: Int64 | None = None

    def __init__(self, n_labels: int, dim: int) -> None:
        super().__init__(n_labels, dim)
        self._scratch = Scratch()

    @abstractmethod
    def products(self, hidden: Array) -> list[Product]:
        """Return the products that give the logits of all columns, in their order."""

    def logits(self, hidden: Array) -> Array:
        """Return the logits of all labels, a float array (B, V)."""
        products, first = self.products(hidden), 0
        logits = np.empty((len(hidden), self.n_labels), np.result_type(hidden, products[0].weight))
        for inputs, weight, bias in products:
            columns = logits[:, first : first + len(bias)]
            np.matmul(inputs, weight.T, out=columns)
            columns += bias
            first += len(bias)
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
            softmax = BatchSoftmax(self.products(hidden[some]), columns[some], self._scratch)
            log_z[some], logit[some] = softmax.log_z, softmax.target_logit
        return log_z, logit

    def top_k(self, hidden: Array, k: int) -> tuple[Int64, Float64]:
        """Return the k most probable labels and their log-probabilities; ties by label id."""
        k = min(checked_count("k", k), self.n_labels)
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

    def products(self, hidden: Array) -> list[Product]:
        """Return the product that gives the logits of all labels."""
        return [Product(hidden, self.weight, self.bias)]

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


def batch_blocks(n_items: int, n_labels: int, *, keep: bool = False) -> list[slice]:
    """Return slices of a batch, of about the same size, whose (b, V) logits are not too many."""
    most = KEPT_SCORES if keep else TABLE_LIMIT
    return _equal_parts(n_items, -(-n_items // max(1, most // n_labels)))


def _equal_parts(n: int, n_parts: int) -> list[slice]:
    """Return slices of range(n) of about the same size."""
    return [slice(n * i // n_parts, n * (i + 1) // n_parts) for i in range(n_parts)]


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
        products = [Product(inputs[some], weight, bias)]
        softmax = BatchSoftmax(products, target[some], scratch, keep=True)
        log_z[some], logit[some] = softmax.log_z, softmax.target_logit
        scale, of_rows = slope(softmax.log_z) / softmax.total, (grad_weight, grad_bias)
        grad_inputs[some] = softmax.backward(0, scale, of_rows, is_first=some.start == 0)
    return log_z, logit, (grad_inputs, grad_weight, grad_bias)


class BatchSoftmax:
    """Softmax of one batch: ln Z and the logits of targets, from one pass, and then gradients.

    The pass takes a chunk of columns at a time. Exponentials are of the logits as they are; only
    where a sum is too large or too small, of logits less their largest, in another pass. Threads
    share the chunks, in parts whose number is fixed, and the products of a chunk are on one BLAS
    thread, so that the number of threads changes no byte.

    Parameters
    ----------
    products : sequence of Product
        Those that give the logits of all columns, in their order, from the same B items.
    target : int array (B,)
        Columns, or -1 for none.
    scratch : Scratch
    keep : bool
        Whether gradients follow: the exponentials are kept in `scratch`, until its next use.

    Attributes
    ----------
    log_z, target_logit : float64 arrays (B,)
        ln Z, and the logits of the targets, 0 where there is none.
    total : float64 array (B,)
        Sums of the exponentials, all shifted alike.
    """

    def __init__(
        self,
        products: Sequence[Product],
        target: Integer,
        scratch: Scratch,
        *,
        keep: bool = False,
    ) -> None:
        self._products, self._scratch, self._keep = products, scratch, keep
        n, dtype = len(target), np.result_type(products[0].inputs, products[0].weight)
        first = [0, *accumulate(len(p.bias) for p in products)]
        self._chunks = list(self._cut(np.asarray(target), first))
        # (columns, B) exponentials that the backward pass takes; no columns without `keep`
        self._kept = scratch.empty("kept", (first[-1] if keep else 0, n), dtype)
        self.total, self.target_logit = np.zeros(n), np.zeros(n)
        # (B, w) products of the exponentials and the weights of each product
        self._weighted: list[Array] = []
        with ONE_BLAS_THREAD:
            shift = np.zeros(n, dtype)
            with np.errstate(over="ignore", invalid="ignore"):
                self._pass(shift)
            if not ((self.total > 1 / LARGE) & (self.total < LARGE)).all():
                largest = [
                    (product.inputs @ chunk.weight.T + chunk.bias).max(axis=1)
                    for product, chunks in zip(products, self._chunks, strict=True)
                    for chunk in chunks
                ]
                shift = np.max(largest, axis=0)
                self._pass(shift)
        self.log_z: Float64 = np.log(self.total) + shift

    def backward(
        self, number: int, scale: Float64, of_rows: tuple[Array, Array], *, is_first: bool
    ) -> Array:
        """Gradients through a product: write or add those of its rows, return its inputs' (B, w).

        The gradient with respect to a logit is its exponential times `scale` (B,), less one at the
        targets; ``1 / total`` is the scale of negative log-likelihoods. It scales the (B, w) sides
        of the products, not the exponentials. The gradients of weights and biases, (k, w) and (k,),
        are written if the items are the first, else added. To be called once for each product, if
        exponentials were kept: it overwrites them.
        """
        inputs, (grad_weight, grad_bias) = self._products[number].inputs, of_rows
        factor = scale.astype(inputs.dtype)
        scaled = inputs * factor[:, None]
        chunks = self._chunks[number][::-1]  # the last are still in cache
        grad_inputs: Array = self._weighted[number] * factor[:, None]

        def some_chunks(begin: int, end: int) -> None:
            for chunk in chunks[begin:end]:
                rows, scores, items = chunk.rows, self._kept[chunk.columns], chunk.items
                scores[chunk.target, items] -= 1 / factor[items]
                if is_first:
                    np.matmul(scores, scaled, out=grad_weight[rows])
                    np.matmul(scores, factor, out=grad_bias[rows])
                else:
                    grad_weight[rows] += scores @ scaled
                    grad_bias[rows] += scores @ factor
                grad_inputs[items] -= chunk.weight[chunk.target]

        with ONE_BLAS_THREAD:
            in_parts(len(chunks), some_chunks, step=1)
        return grad_inputs

    def _cut(self, target: Integer, first: Sequence[int]) -> Iterator[list[Chunk]]:
        """Yield the chunks of each product, whose columns `first` tells apart."""
        step = max(LEAST_COLUMNS, CHUNK // max(1, len(target)))
        by_target = np.argsort(target, kind="stable")
        in_order = target[by_target]
        for product, (start, stop) in zip(self._products, pairwise(first), strict=True):
            cuts = [*range(start, stop, step), stop]
            places = np.searchsorted(in_order, cuts).tolist()
            chunks = list[Chunk]()
            for (a, b), (i, j) in zip(pairwise(cuts), pairwise(places), strict=True):
                rows, items = slice(a - start, b - start), by_target[i:j]
                arrays = product.weight[rows], product.bias[rows], items, target[items] - a
                chunks.append(Chunk(rows, slice(a, b), *arrays))
            yield chunks

    def _pass(self, shift: Array) -> None:
        """Set what the exponentials of logits less `shift` (B,) give."""
        self.total[:] = 0
        self._weighted.clear()
        for product, chunks in zip(self._products, self._chunks, strict=True):
            total, weighted = self._sums(product, chunks, shift)
            self.total += total
            self._weighted.append(weighted)

    def _sums(
        self, product: Product, chunks: Sequence[Chunk], shift: Array
    ) -> tuple[Float64, Array]:
        """Return the sums (B,) of a product's exponentials and, if kept, times weights (B, w)."""
        n_chunks = len(chunks)
        parts = _equal_parts(n_chunks, min(PARTS, n_chunks) if self._keep else n_chunks)
        totals = np.zeros((len(parts), len(shift)))
        shape = product.inputs.shape if self._keep else (0,)
        weighted = np.zeros((len(parts), *shape), shift.dtype)

        def some_parts(begin: int, end: int) -> None:
            for part in range(begin, end):
                for chunk in chunks[parts[part]]:
                    scores = self._exponentials(product.inputs, chunk, shift, totals[part])
                    if self._keep:
                        weighted[part] += scores.T @ chunk.weight

        in_parts(len(parts), some_parts, step=1)
        return totals.sum(axis=0), weighted.sum(axis=0)

    def _exponentials(self, inputs: Array, chunk: Chunk, shift: Array, total: Float64) -> Array:
        """Return the exponentials of a chunk's logits less `shift` (B,); add their sums (B,)."""
        items = chunk.items
        if self._keep:
            scores = self._kept[chunk.columns]
        else:
            scores = self._scratch.empty("logits", (len(chunk.bias), len(shift)), shift.dtype)
        np.matmul(chunk.weight, inputs.T, out=scores)
        self.target_logit[items] = scores[chunk.target, items] + chunk.bias[chunk.target]
        exponentials(scores, chunk.bias, shift, total)
        return scores


@twin
def exponentials(logits: Array, bias: Array, shift: Array, total: Float64) -> None:
    """Turn logits (c, B) without biases (c,) into exponentials less shifts (B,).

    The sums of their columns are added to `total` (B,).
    """
    logits += bias[:, None]
    if shift.any():
        logits -= shift
    np.exp(logits, out=logits)
    ones = np.ones(SUMMED, logits.dtype)
    for a in range(0, len(logits), SUMMED):
        total += ones[: len(logits) - a] @ logits[a : a + SUMMED]


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
