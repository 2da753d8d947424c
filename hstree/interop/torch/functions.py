"""Autograd function of decisions: logits of (item, row) pairs, and softmaxes of wide nodes.

Binary nodes and nodes with few children are pairs, all decisions of a batch at once. Nodes with
many children are matrix products: the decisions of a batch are sorted by node, and those of a node
are a product, on views of the weights and of the gradients. Those that take less time than to
launch them, most on a GPU and few on the CPU, are batched: nodes whose numbers of children and of
decisions are between the same powers of two are one product, padded to the largest.

Pairs and wide nodes are one function, so that each parameter has one gradient, over the touched
rows only. It is differentiable once.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch._C import _functorch
from torch.nn.functional import embedding_bag

from hstree.interop.torch.index import at_least_float32, offsets, ranges

#: Numbers in a block: its logits and what is gathered for them.
BLOCK = 1 << 25
#: Logits from which a node is a product of its own: what takes longer than to launch it.
CPU_PRODUCT, GPU_PRODUCT = 1 << 5, 1 << 22
#: Log-probabilities that are kept for the gradient; those of more are computed again.
KEPT = 1 << 24
#: Numbers gathered at a time from each of the two matrices: what stays in a core's cache, and
#: what keeps a GPU busy.
CPU_BLOCK, GPU_BLOCK = 1 << 19, 1 << 26


class Pairs(NamedTuple):
    """Products of hidden vectors and weight rows, as int64 tensors (P,)."""

    item: Tensor  # batch item of each, ascending
    row: Tensor  # weight row; rows may repeat, for one item too


class Decisions(NamedTuple):
    """Decisions at nodes with a softmax, as int64 tensors (D,)."""

    item: Tensor  # batch item of each, ascending
    row: Tensor  # first weight row of the node
    width: Tensor  # number of children of the node
    branch: Tensor  # child taken


class Inputs(NamedTuple):
    """Weights and hidden vectors from which logits are computed."""

    weight: Tensor  # (R, d)
    bias: Tensor  # (R,)
    hidden: Tensor  # (N, d)
    sparse: bool = False  # whether the gradients with respect to weight and bias are sparse


class Part(NamedTuple):
    """Decisions at one node, a matrix product."""

    first: int  # of the sorted decisions
    number: int
    row: int  # first weight row of the node
    width: int  # number of children
    place: int  # of the first row in the gradients
    goes_on: bool  # whether decisions of the same node came before


class Products:
    """Parts of consecutive decisions, each a product on views of hidden vectors and weights.

    What is of all children is flat, (sum of number * width,), part after part.
    """

    def __init__(self, parts: list[Part]) -> None:
        self.parts = parts
        self.decision = slice(parts[0].first, parts[-1].first + parts[-1].number)
        self._numbers = [part.number for part in parts]

    def _matrices(self, flat: Tensor) -> Iterator[Tensor]:
        """Yield the parts of what is of all children, (number, width)."""
        sizes = [part.number * part.width for part in self.parts]
        for part, values in zip(self.parts, torch.split(flat, sizes), strict=True):
            yield values.view(part.number, part.width)

    def log_prob(self, inputs: Inputs) -> Tensor:
        """Return the log-probabilities of the children, from sorted hidden vectors."""
        weight, bias, vectors, _ = inputs
        dtype = torch.promote_types(weight.dtype, torch.float32)
        size = sum(part.number * part.width for part in self.parts)
        flat = torch.empty(size, dtype=dtype, device=weight.device)
        some = torch.split(vectors[self.decision], self._numbers)
        for part, hidden, out in zip(self.parts, some, self._matrices(flat), strict=True):
            row, width = part.row, part.width
            of_rows = bias.narrow(0, row, width), hidden, weight.narrow(0, row, width).T
            torch.log_softmax(torch.addmm(*of_rows).to(dtype), 1, out=out)
        return flat

    def of_branches(self, log_prob: Tensor, decisions: Decisions) -> Tensor:
        """Return the log-probabilities (m,) of the branches taken."""
        return log_prob[self._taken(decisions)]

    def _taken(self, decisions: Decisions) -> Tensor:
        """Return the places (m,) of the branches taken."""
        return offsets(decisions.width[self.decision])[:-1] + decisions.branch[self.decision]

    def draw(self, log_prob: Tensor, generator: torch.Generator | None) -> Tensor:
        """Draw a branch for each decision, (m,)."""
        matrices = self._matrices(log_prob.exp())
        return torch.cat([torch.multinomial(m, 1, generator=generator)[:, 0] for m in matrices])

    def differentiate(
        self, log_prob: Tensor, share: Tensor, decisions: Decisions, inputs: Inputs, into: Inputs
    ) -> None:
        """Write the gradients of weight rows, biases and sorted hidden vectors."""
        weight, _, vectors, _ = inputs
        errors = log_prob.exp()
        errors[self._taken(decisions)] -= 1
        of_decisions = (
            torch.split(each[self.decision], self._numbers)
            for each in (-share[:, None], vectors, into.hidden)
        )
        parts = zip(self.parts, self._matrices(errors), *of_decisions, strict=True)
        for part, error, factor, hidden, by_item in parts:
            error = error.mul_(factor).to(weight.dtype)
            torch.mm(error, weight.narrow(0, part.row, part.width), out=by_item)
            by_row, by_bias = (a.narrow(0, part.place, part.width) for a in into[:2])
            by_row.addmm_(error.T, hidden, beta=int(part.goes_on))
            by_bias += error.sum(0)


class Tiles:
    """A batched product: n nodes of up to K children, with up to T decisions each.

    `first`, `number`, `row`, `width` and `place` (n,) are as of `Part`. What is of all children is
    padded to (n, T, K), by the last decision and the last row of each node.
    """

    def __init__(
        self, first: Tensor, number: Tensor, row: Tensor, width: Tensor, place: Tensor
    ) -> None:
        slot, branch = (
            torch.arange(int(size.max()), device=row.device)[None] for size in (number, width)
        )
        number, width = number[:, None], width[:, None]
        # (n, T) bool and (n, K) bool, whether it is a decision and a child
        self._is_decision, self._is_child = slot < number, branch < width
        child = torch.minimum(branch, width - 1)
        self._row, self._place = row[:, None] + child, (place[:, None] + branch)[self._is_child]
        self._padded = first[:, None] + torch.minimum(slot, number - 1)
        self.decision = self._padded[self._is_decision]

    def log_prob(self, inputs: Inputs) -> Tensor:
        """Return the log-probabilities of the children, from sorted hidden vectors."""
        weight, bias, vectors, _ = inputs
        rows = _take(weight, self._row).transpose(1, 2)
        logits = torch.baddbmm(bias[self._row][:, None], _take(vectors, self._padded), rows)
        logits.masked_fill_(~self._is_child[:, None], -torch.inf)
        return at_least_float32(logits).log_softmax(2)

    def of_branches(self, log_prob: Tensor, decisions: Decisions) -> Tensor:
        """Return the log-probabilities (m,) of the branches taken."""
        branch = decisions.branch[self._padded][..., None]
        return log_prob.gather(2, branch)[..., 0][self._is_decision]

    def draw(self, log_prob: Tensor, generator: torch.Generator | None) -> Tensor:
        """Draw a branch for each decision, (m,)."""
        drawn = torch.multinomial(log_prob.exp().flatten(0, 1), 1, generator=generator)
        return drawn.view(self._padded.shape)[self._is_decision]

    def differentiate(
        self, log_prob: Tensor, share: Tensor, decisions: Decisions, inputs: Inputs, into: Inputs
    ) -> None:
        """Write the gradients of weight rows, biases and sorted hidden vectors."""
        weight, _, vectors, _ = inputs
        # (n, T, 1) weight of each decision in the loss, (n, T, K) errors
        part = (share[self._padded] * self._is_decision)[..., None]
        errors = log_prob.exp().mul_(-part)
        errors.scatter_add_(2, decisions.branch[self._padded][..., None], part)
        errors = errors.to(weight.dtype)
        by_item = torch.bmm(errors, _take(weight, self._row))
        by_row = torch.bmm(errors.transpose(1, 2), _take(vectors, self._padded))
        into.hidden[self.decision] = by_item[self._is_decision]
        into.weight[self._place] = by_row[self._is_child]
        into.bias[self._place] = errors.sum(1)[self._is_child]


def _take(values: Tensor, index: Tensor) -> Tensor:
    """Return ``values[index]`` (n, m, d) of values (r, d), which is faster so."""
    return values.index_select(0, index.flatten()).view(*index.shape, -1)


def split(row: Tensor, width: Tensor, place: Tensor, dim: int) -> Iterator[Products | Tiles]:
    """Yield the products of sorted decisions, in blocks of about `BLOCK` numbers.

    `row` (D,) ascends: the first row of the node of each; `width` (D,) is its number of children,
    `place` (D,) where its rows begin in the gradients.
    """
    # (5, nodes): the first decision, their number, first row, width and place of each node
    count = torch.unique_consecutive(row, return_counts=True)[1]
    start = offsets(count)[:-1]
    nodes = torch.stack([start, count, row[start], width[start], place[start]])
    least = CPU_PRODUCT if row.device.type == "cpu" else GPU_PRODUCT
    is_large = nodes[1] * nodes[3] >= least
    parts, size = list[Part](), 0
    for first, n, a, k, to in nodes[:, is_large].T.tolist():
        step = max(1, BLOCK // (k + dim))
        for b in range(first, first + n, step):
            part = Part(b, min(step, first + n - b), a, k, to, b > first)
            size += part.number * k
            if parts and (size > BLOCK or parts[-1].first + parts[-1].number < b):
                yield Products(parts)
                parts, size = [], part.number * k
            parts.append(part)
    if parts:
        yield Products(parts)
    nodes = nodes[:, ~is_large]
    # (nodes,) kind of each node: the powers of two of its width and count
    powers = 1 << torch.arange(32, device=row.device)
    kind = 32 * torch.bucketize(nodes[3], powers) + torch.bucketize(nodes[1], powers)
    kind, order = torch.sort(kind, stable=True)
    per_kind = torch.unique_consecutive(kind, return_counts=True)[1].tolist()
    for of_kind in torch.split(nodes[:, order], per_kind, 1):
        height, widest = int(of_kind[1].max()), int(of_kind[3].max())
        step = max(1, BLOCK // (height * (widest + dim) + widest * dim))
        for some in torch.split(of_kind, step, 1):
            yield Tiles(*some)


def decide(inputs: Inputs, pairs: Pairs, decisions: Decisions) -> tuple[Tensor, Tensor]:
    """Return logits (P,) of pairs, and log-probabilities (D,) of the branches of wide nodes.

    Logits are ``weight[row] . hidden[item] + bias[row]``; log-probabilities are at least float32.
    Memory is bounded for nodes of any width.
    """
    *tensors, sparse = inputs
    keep = torch.is_grad_enabled() and int(decisions.width.sum()) <= KEPT
    logits, log_prob, *_ = _evaluate(sparse, keep, *tensors, *pairs, *decisions)
    return logits, log_prob


def pair_logits(inputs: Inputs, item: Tensor, row: Tensor) -> Tensor:
    """Return ``weight[row] . hidden[item] + bias[row]``, a float tensor (P,); `item` ascends."""
    none = item[:0]
    return decide(inputs, Pairs(item, row), Decisions(none, none, none, none))[0]


def without_autocast(device: torch.device) -> torch.autocast:
    """Return a context in which autocast does not lower the precision."""
    return torch.autocast(device.type, enabled=False)


def _is_batched(gradient: Tensor | None) -> bool:
    """Whether a gradient is several, in `vmap` or by ``is_grads_batched``."""
    if gradient is None:
        return False
    is_legacy = getattr(_functorch, "is_legacy_batchedtensor", lambda _: False)  # torch 2.3
    return _functorch.is_batchedtensor(gradient) or is_legacy(gradient)


class _Evaluate(torch.autograd.Function):
    """Logits of pairs and log-probabilities of branches, then those of all branches if kept."""

    @staticmethod
    def forward(sparse: bool, keep: bool, *tensors: Tensor) -> tuple[Tensor, ...]:
        inputs, pairs, decisions = _named(sparse, tensors)
        log_prob, kept = _branch_log_prob(inputs, decisions, keep)
        return _pair_logits(inputs, pairs), log_prob, *kept

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.sparse, _, *tensors = inputs
        ctx.mark_non_differentiable(*output[2:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors, *output[2:])

    @staticmethod
    def backward(
        ctx: Any, error: Tensor | None, share: Tensor | None, *_: None
    ) -> tuple[Tensor | None, ...]:
        if _is_batched(error) or _is_batched(share):
            raise RuntimeError(
                "gradients of the loss of a HierarchicalSoftmax cannot be batched; pass "
                "chunk_size=1 to jacrev, leave out vectorize and is_grads_batched, or "
                "differentiate log_prob"
            )
        gradients = _differentiate(ctx.sparse, error, share, *ctx.saved_tensors)
        return None, None, *gradients, *[None] * 6

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> Any:
        raise RuntimeError(
            "the loss of a HierarchicalSoftmax has no forward mode outside of torch.func; call "
            "torch.func.jvp, or differentiate log_prob"
        )


class _Differentiate(torch.autograd.Function):
    """The gradients of `_Evaluate`, which are not differentiated again."""

    @staticmethod
    def forward(
        sparse: bool, error: Tensor | None, share: Tensor | None, *tensors: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        named = _named(sparse, tensors[:9])
        with without_autocast(tensors[0].device):
            return _gradients(*named, error, share, tensors[9:])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        raise RuntimeError(
            "the loss of a HierarchicalSoftmax is differentiable once; "
            "differentiate log_prob, over all labels, where you need second derivatives"
        )


_evaluate: Callable[..., tuple[Tensor, ...]] = _Evaluate.apply
_differentiate: Callable[..., tuple[Tensor, Tensor, Tensor]] = _Differentiate.apply


def _named(sparse: bool, tensors: Sequence[Tensor]) -> tuple[Inputs, Pairs, Decisions]:
    """Return the nine tensors of the functions under their names."""
    weight, bias, hidden, *index = tensors
    return Inputs(weight, bias, hidden, sparse), Pairs(*index[:2]), Decisions(*index[2:])


def _bounds(item: Tensor, n_items: int) -> Tensor:
    """Return the offsets (N + 1,) of the items in ascending ones."""
    return torch.searchsorted(item, torch.arange(n_items + 1, device=item.device))


def _pair_logits(inputs: Inputs, pairs: Pairs) -> Tensor:
    """Return the logits (P,).

    A sampled product of two matrices on the CPU, a gather and a dot product in blocks elsewhere.
    """
    weight, bias, hidden, _ = inputs
    item, row = pairs
    shape = (len(hidden), len(weight))
    if weight.device.type == "cpu" and _can_sample(weight.dtype, len(row), shape):
        zero, start = weight.new_zeros(len(row)), _bounds(item, len(hidden))
        pattern = torch.sparse_csr_tensor(start, row, zero, shape, check_invariants=False)
        product: Tensor = torch.sparse.sampled_addmm(pattern, hidden, weight.T, beta=0.0)
        return bias[row] + product.values()
    block = CPU_BLOCK if weight.device.type == "cpu" else GPU_BLOCK
    step = max(1, block // max(1, weight.shape[1]))
    parts = zip(torch.split(item, step), torch.split(row, step), strict=True)
    products = [torch.linalg.vecdot(hidden[items], weight[rows]) for items, rows in parts]
    return bias[row] + torch.cat(products)


def _can_sample(dtype: torch.dtype, n_pairs: int, shape: tuple[int, int]) -> bool:
    """Whether torch computes these pairs as a sampled product.

    Codes may repeat a pair, which torch allows until there are more pairs than matrix entries.
    """
    return dtype in (torch.float32, torch.float64) and n_pairs <= math.prod(shape)


# Use up the warning that torch gives once per process: that CSR tensors are in beta.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    _zero = torch.zeros(1, dtype=torch.int64, device="cpu")
    torch.sparse_csr_tensor(_zero, _zero[:0], _zero[:0], (0, 1), check_invariants=False)


def _sorted(decisions: Decisions) -> tuple[Tensor, Decisions]:
    """Return the order (D,) of decisions by their nodes, and the decisions in it."""
    order = torch.argsort(decisions.row, stable=True)
    return order, Decisions(*(each[order] for each in decisions))


def _branch_log_prob(
    inputs: Inputs, decisions: Decisions, keep: bool
) -> tuple[Tensor, list[Tensor]]:
    """Return the log-probabilities (D,) of the branches, and those of all in each product."""
    order, decisions = _sorted(decisions)
    item, row, width, _ = decisions
    dtype, kept = torch.promote_types(inputs.weight.dtype, torch.float32), []
    log_prob = torch.empty(len(order), dtype=dtype, device=order.device)
    inputs = inputs._replace(hidden=inputs.hidden.index_select(0, item))
    for product in split(row, width, row, inputs.hidden.shape[1]):
        of_children = product.log_prob(inputs)
        log_prob[order[product.decision]] = product.of_branches(of_children, decisions)
        if keep:
            kept.append(of_children)
    return log_prob, kept


def _gradients(
    inputs: Inputs,
    pairs: Pairs,
    decisions: Decisions,
    error: Tensor | None,
    share: Tensor | None,
    kept: Sequence[Tensor],
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of weight, bias and hidden vectors.

    `error` (P,) is that of the logits of pairs, `share` (D,) that of the log-probabilities; None is
    zeros. `kept` are the log-probabilities of `_branch_log_prob`, or none of them.
    """
    weight, bias, hidden, sparse = inputs
    touched, by_weight, by_bias, grad_hidden = _pair_gradients(inputs, pairs, error)
    if sparse and not len(decisions.row):
        n_rows = len(weight)
        grad_weight, grad_bias = (row_gradient(touched, g, n_rows) for g in (by_weight, by_bias))
        return grad_weight, grad_bias, grad_hidden
    bounds = _bounds(decisions.item, len(hidden))
    order, decisions = _sorted(decisions)
    item, row, width, _ = decisions
    # (nodes,) first row of each node, and the node (D,) of each decision
    node, slot, count = torch.unique_consecutive(row, return_inverse=True, return_counts=True)
    first, length = torch.cat([touched, node]), torch.ones_like(touched)
    length = torch.cat([length, width[offsets(count)[:-1]]])
    # (r,) rows of the gradients, and the places among them of rows of pairs and of nodes
    rows, place = _places(first, length) if sparse else (None, first)
    n_rows = len(weight) if rows is None else len(rows)
    grad_weight, grad_bias = (_zeros(n_rows, each) for each in (weight, bias))
    grad_weight.index_copy_(0, place[: len(touched)], by_weight)
    grad_bias.index_copy_(0, place[: len(touched)], by_bias)
    if share is not None and len(row):
        inputs, share = inputs._replace(hidden=hidden.index_select(0, item)), share[order]
        into = Inputs(grad_weight, grad_bias, torch.empty_like(inputs.hidden))
        products = split(row, width, place[len(touched) :][slot], hidden.shape[1])
        for number, product in enumerate(products):
            log_prob = kept[number] if kept else product.log_prob(inputs)
            product.differentiate(log_prob, share, decisions, inputs, into)
        grad_hidden.add_(_weighted_sums(into.hidden, torch.argsort(order), bounds, None))
    if rows is not None:
        grads = grad_weight, grad_bias
        grad_weight, grad_bias = (row_gradient(rows, each, len(weight)) for each in grads)
    return grad_weight, grad_bias, grad_hidden


def _pair_gradients(
    inputs: Inputs, pairs: Pairs, error: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the rows (t,) that pairs touch, and their gradients (t, d), (t,) and (N, d)."""
    weight, _, hidden, _ = inputs
    error = weight.new_zeros(len(pairs.row)) if error is None else error.contiguous()
    grad_hidden = _weighted_sums(weight, pairs.row, _bounds(pairs.item, len(hidden)), error)
    # (P,) pairs in the order of their rows
    row, order = torch.sort(pairs.row, stable=True)
    touched, slot, count = torch.unique_consecutive(row, return_inverse=True, return_counts=True)
    error = error[order]
    by_weight = _weighted_sums(hidden, pairs.item[order], offsets(count), error)
    by_bias = error.new_zeros(len(touched)).index_add_(0, slot, error)
    return touched, by_weight, by_bias, grad_hidden


def _weighted_sums(rows: Tensor, index: Tensor, start: Tensor, factor: Tensor | None) -> Tensor:
    """Sum the rows of each bag: bag i is ``factor[p] * rows[index[p]]``, start[i] <= p < ..."""
    return embedding_bag(
        index, rows, start, mode="sum", per_sample_weights=factor, include_last_offset=True
    )


def _places(first: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows (r,) of runs (s,) of rows, ascending, and the place of each run in them."""
    first, order = torch.sort(first)
    length = length[order]
    place = torch.empty_like(order).index_copy_(0, order, offsets(length)[:-1])
    return ranges(first, length), place


def _zeros(n_rows: int, like: Tensor) -> Tensor:
    """Return zeros (n, ...) of the kind of a parameter (R, ...).

    On the CPU in memory of NumPy, which asks for huge pages: to get 4 KiB pages takes longer than
    to fill them.
    """
    shape = (n_rows, *like.shape[1:])
    if like.device.type != "cpu" or not n_rows:
        return like.new_zeros(shape)
    array = np.zeros(math.prod(shape) * like.element_size(), np.uint8)
    return torch.from_numpy(array).view(like.dtype).view(shape)


def row_gradient(touched: Tensor, values: Tensor, n_rows: int) -> Tensor:
    """Return the sparse gradient (R, ...) of a parameter of which a batch touched some rows.

    `touched` (r,) ascends without repeats; `values` is (r, ...). A coalesced COO tensor.
    """
    shape = (n_rows, *values.shape[1:])
    return torch.sparse_coo_tensor(
        touched[None], values, shape, is_coalesced=True, check_invariants=False
    )
