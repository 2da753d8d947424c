"""Autograd functions of decisions: logits of (item, row) pairs, and softmaxes of wide nodes.

Binary nodes and nodes with few children are pairs, all decisions of a batch at once. Nodes with
many children are batched products of equal tiles: the decisions of a batch are sorted by node;
those of one node are a tile, or several where they are many. Nodes whose numbers of children and of
decisions are between the same powers of two share a batch of tiles, padded to the largest. So
Python loops over powers of two and over blocks of bounded memory, and never over nodes.

Gradients are over the touched rows only. Each function is differentiable once, and has a rule for
``torch.func.vmap``: the batch axis is folded into the others, so that B problems over R weight rows
and N items are one over B R rows and B N items, with indices shifted by R and N from one to the
next.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from hstree.interop.torch.index import at_least_float32, offsets, ranges

#: Numbers in a block: its logits and what is gathered for them.
BLOCK = 1 << 25
#: Numbers gathered at a time from each of the two matrices: what stays in a core's cache, and
#: what keeps a GPU busy.
CPU_BLOCK, GPU_BLOCK = 1 << 19, 1 << 26


class Decisions(NamedTuple):
    """Decisions at nodes with a softmax, as int64 tensors (D,)."""

    item: Tensor  # batch item of each
    row: Tensor  # first weight row of the node
    width: Tensor  # number of children of the node


class Tiles(NamedTuple):
    """A block of n tiles, each of up to T decisions at one node of up to K children."""

    decision: Tensor  # (n, T) int64; the last of the node again where a tile is not full
    is_full: Tensor  # (n, T) bool; False at these
    widest: int  # K

    def logits(self, weight: Tensor, bias: Tensor, hidden: Tensor, taken: Decisions) -> Tensor:
        """Return the logits (n, T, K), minus infinity past the last child of a node."""
        # (n,) first row of each node, (n, K, d) its rows, (n, T, d) hidden vectors
        row = taken.row[self.decision[:, 0]]
        rows = self.rows(weight, row).transpose(1, 2)
        gathered = take_rows(hidden, taken.item[self.decision])
        logits = torch.baddbmm(self.rows(bias, row)[:, None], gathered, rows)
        branch = torch.arange(self.widest, device=self.decision.device)
        past = branch >= taken.width[self.decision[:, 0]][:, None]
        return at_least_float32(logits.masked_fill_(past[:, None], -torch.inf))

    def rows(self, parameter: Tensor, row: Tensor) -> Tensor:
        """Return the rows of the tiles' nodes, (n, K, ...), which begin at `row` (n,).

        Where a node has fewer than K, the rest are rows of others.
        """
        numbers = self._row_numbers(row, len(parameter))
        if isinstance(numbers, slice):
            return parameter[numbers][None]
        return take_rows(parameter, numbers)

    def add_to_rows(self, total: Tensor, row: Tensor, values: Tensor) -> None:
        """Add values (n, K, ...) to the rows that `rows` returns; those past a node are zero."""
        numbers = self._row_numbers(row, len(total))
        if isinstance(numbers, slice):
            total[numbers].add_(values[0])
        else:
            total.index_add_(0, numbers.flatten(), values.flatten(0, 1))

    def _row_numbers(self, row: Tensor, n_rows: int) -> Tensor | slice:
        """Return the numbers (n, K) of the rows; a slice where they are one run."""
        if len(row) == 1 and int(row) + self.widest <= n_rows:
            return slice(int(row), int(row) + self.widest)
        branch = torch.arange(self.widest, device=self.decision.device)
        return (row[:, None] + branch).clamp_(max=n_rows - 1)


def take_rows(values: Tensor, rows: Tensor) -> Tensor:
    """Return ``values[rows]``, in about half the time."""
    return values.index_select(0, rows.flatten()).view(*rows.shape, *values.shape[1:])


def split(taken: Decisions, dim: int) -> Iterator[Tiles]:
    """Yield decisions as tiles, in blocks of about `BLOCK` numbers (or one tile)."""
    # (nodes,) offset into the decisions by node, number of decisions, and width of each node
    order = torch.argsort(taken.row, stable=True)
    count = torch.unique_consecutive(taken.row[order], return_counts=True)[1]
    start = offsets(count)[:-1]
    width = taken.width[order[start]]
    # (nodes,) kind of each node: the powers of two of its width and count
    powers = 1 << torch.arange(32, device=order.device)
    kind = 32 * torch.bucketize(width, powers) + torch.bucketize(count, powers)
    by_kind = torch.argsort(kind, stable=True)
    per_kind = torch.unique_consecutive(kind[by_kind], return_counts=True)[1].tolist()
    for nodes in torch.split(by_kind, per_kind):
        # All decisions at a node in one tile, or in equal ones where they are too many
        of_node, first, widest = count[nodes], start[nodes], int(width[nodes].max())
        largest, limit = int(of_node.max()), max(1, BLOCK // (widest + dim))
        height = -(-largest // -(-largest // limit))
        # (tiles,) node of each tile, and its decisions (tiles, height)
        per_node = (of_node + height - 1) // height
        node = torch.repeat_interleave(per_node)
        begin = first[node] + height * ranges(torch.zeros_like(per_node), per_node)
        end = (first + of_node)[node][:, None]
        slot = begin[:, None] + torch.arange(height, device=order.device)
        is_full = slot < end
        decision = order[torch.minimum(slot, end - 1)]
        step = max(1, BLOCK // (height * (widest + dim) + widest * dim))
        for tiles in zip(torch.split(decision, step), torch.split(is_full, step), strict=True):
            yield Tiles(*tiles, widest)


class Inputs(NamedTuple):
    """Weights and hidden vectors from which logits are computed."""

    weight: Tensor  # (R, d)
    bias: Tensor  # (R,)
    hidden: Tensor  # (N, d)
    sparse: bool = False  # whether the gradients with respect to weight and bias are sparse


def pair_logits(inputs: Inputs, item: Tensor, row: Tensor) -> Tensor:
    """Return ``weight[row] . hidden[item] + bias[row]``, a float tensor (P,).

    `item` (P,) ascends; rows (P,) may repeat, for one item too.
    """
    *tensors, sparse = inputs
    count = torch.bincount(item, minlength=len(inputs.hidden))
    logits, _ = _evaluate(_PAIRS, sparse, *tensors, item, row, count)
    return logits


def branch_log_prob(inputs: Inputs, taken: Decisions, branch: Tensor) -> Tensor:
    """Return the log-probabilities (D,) of the branches (D,) taken, at least float32.

    Memory is bounded for nodes of any width: the gradient computes logits again, block by block.
    """
    *tensors, sparse = inputs
    log_prob, _ = _evaluate(_BRANCHES, sparse, *tensors, *taken, branch)
    return log_prob


def without_autocast(device: torch.device) -> torch.autocast:
    """Return a context in which autocast does not lower the precision."""
    return torch.autocast(device.type, enabled=False)


class _Function(NamedTuple):
    """A function of weight, bias, hidden and index tensors: item and row, then any others."""

    #: From these, returns the values and what `gradients` needs besides.
    forward: Callable[..., tuple[Tensor, Tensor]]
    #: From the gradient with respect to the values, what `forward` kept, and its tensors: returns
    #: the touched rows (r,), the gradients (r, d), (r,) of weight and bias, and that of hidden.
    gradients: Callable[..., tuple[Tensor, Tensor, Tensor, Tensor]]


class _Evaluate(torch.autograd.Function):
    @staticmethod
    def forward(function: _Function, sparse: bool, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        return function.forward(*tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.function, ctx.sparse, *tensors = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1], *tensors)

    @staticmethod
    def backward(ctx: Any, error: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        kept = ctx.saved_tensors
        gradients = _differentiate(ctx.function, ctx.sparse, error, *kept)
        return None, None, *gradients, *[None] * (len(kept) - 4)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[Any, ...], function: _Function, sparse: bool, *tensors: Tensor
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        size, dims = info.batch_size, in_dims[2:]
        is_shared = dims[0] is None and dims[1] is None
        folded = _fold_inputs(size, dims, is_shared, *tensors)
        return tuple(_unfold(out, size) for out in _evaluate(function, sparse, *folded)), (0, 0)


class _Differentiate(torch.autograd.Function):
    """The gradients of a function, which are not differentiated again."""

    @staticmethod
    def forward(
        function: _Function, sparse: bool, error: Tensor, kept: Tensor, *tensors: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        n_rows = len(tensors[0])
        with without_autocast(tensors[0].device):
            touched, weight, bias, hidden = function.gradients(error, kept, *tensors)
        weight = row_gradient(touched, weight, n_rows, sparse)
        return weight, row_gradient(touched, bias, n_rows, sparse), hidden

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        raise RuntimeError(
            "the loss of a HierarchicalSoftmax is differentiable once; "
            "differentiate log_prob, over all labels, where you need second derivatives"
        )

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[Any, ...], function: _Function, _: bool, *tensors: Tensor
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        size, dims = info.batch_size, in_dims[2:]
        of_values = (_fold(*each, size) for each in zip(tensors[:2], dims, strict=False))
        folded = _fold_inputs(size, dims[2:], False, *tensors[2:])
        gradients = _differentiate(function, False, *of_values, *folded)  # vmap: none is sparse
        return tuple(_unfold(gradient, size) for gradient in gradients), (0, 0, 0)


_evaluate: Callable[..., tuple[Tensor, Tensor]] = _Evaluate.apply
_differentiate: Callable[..., tuple[Tensor, Tensor, Tensor]] = _Differentiate.apply


def row_gradient(touched: Tensor, values: Tensor, n_rows: int, sparse: bool) -> Tensor:
    """Return the gradient (R, ...) of a parameter of which a batch touched some rows.

    `touched` (r,) ascends without repeats; `values` is (r, ...). Sparse is a coalesced COO tensor,
    which does not take O(R d) to fill.
    """
    shape = (n_rows, *values.shape[1:])
    if not sparse:
        return values.new_zeros(shape).index_copy_(0, touched, values)
    return torch.sparse_coo_tensor(
        touched[None], values, shape, is_coalesced=True, check_invariants=False
    )


def _fold(values: Tensor, dim: int | None, size: int) -> Tensor:
    """Return a tensor (n, ...) with or without a batch axis of this size as (B n, ...)."""
    batched = values.expand(size, *values.shape) if dim is None else values.movedim(dim, 0)
    return batched.flatten(0, 1)


def _fold_inputs(
    size: int, dims: tuple[int | None, ...], is_shared: bool, *tensors: Tensor
) -> list[Tensor]:
    """Fold the tensors of a function; weights may be shared by all problems."""
    weight, bias, hidden, item, row, *others = tensors
    hidden = _fold(hidden, dims[2], size)
    # (B, 1) number of each problem, (B P,) its items, and its rows unless they are shared
    problem = torch.arange(size, device=item.device)[:, None]
    item = (item + len(hidden) // size * problem).flatten()
    if is_shared:
        row = row.repeat(size)
    else:
        weight, bias = _fold(weight, dims[0], size), _fold(bias, dims[1], size)
        row = (row + len(weight) // size * problem).flatten()
    return [weight, bias, hidden, item, row, *(other.repeat(size) for other in others)]


def _unfold(values: Tensor, size: int) -> Tensor:
    """Return a tensor (B n, ...) as (B, n, ...)."""
    return values.reshape(size, len(values) // size, *values.shape[1:])


def _pairs_forward(
    weight: Tensor, bias: Tensor, hidden: Tensor, item: Tensor, row: Tensor, count: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the logits (P,), and nothing; `count` (N,) is the number of pairs of each item."""
    return bias[row] + _products(weight, hidden, item, row, offsets(count)), bias.new_empty(0)


def _pair_gradients(
    error: Tensor, _: Tensor, weight: Tensor, bias: Tensor, hidden: Tensor, *index: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    item, row, count = index
    error = error.contiguous()
    grad_hidden = _weighted_sums(weight, row, offsets(count), error)
    # (P,) pairs in the order of their rows, (r,) touched rows
    row, order = torch.sort(row, stable=True)
    touched, slot, count = torch.unique_consecutive(row, return_inverse=True, return_counts=True)
    error = error[order]
    grad_weight = _weighted_sums(hidden, item[order], offsets(count), error)
    grad_bias = error.new_zeros(len(touched)).index_add_(0, slot, error)
    return touched, grad_weight, grad_bias, grad_hidden


_PAIRS = _Function(_pairs_forward, _pair_gradients)


def _products(weight: Tensor, hidden: Tensor, item: Tensor, row: Tensor, start: Tensor) -> Tensor:
    """Return ``weight[row] . hidden[item]``; item i has the pairs ``start[i]:start[i + 1]``.

    A sampled product of two matrices on the CPU, a gather and a dot product in blocks elsewhere.
    """
    shape = (len(hidden), len(weight))
    if weight.device.type == "cpu" and _can_sample(weight.dtype, len(row), shape):
        zero = weight.new_zeros(len(row))
        pattern = torch.sparse_csr_tensor(start, row, zero, shape, check_invariants=False)
        product: Tensor = torch.sparse.sampled_addmm(pattern, hidden, weight.T, beta=0.0)
        return product.values()
    block = CPU_BLOCK if weight.device.type == "cpu" else GPU_BLOCK
    step = max(1, block // max(1, weight.shape[1]))
    pairs = zip(torch.split(item, step), torch.split(row, step), strict=True)
    return torch.cat([torch.linalg.vecdot(hidden[items], weight[rows]) for items, rows in pairs])


def _can_sample(dtype: torch.dtype, n_pairs: int, shape: tuple[int, int]) -> bool:
    """Whether torch computes these pairs as a sampled product.

    Codes may repeat a pair, which torch allows until there are more pairs than matrix entries.
    """
    return dtype in (torch.float32, torch.float64) and n_pairs <= math.prod(shape)


def _weighted_sums(rows: Tensor, index: Tensor, start: Tensor, factor: Tensor) -> Tensor:
    """Sum the rows of each bag: bag i is ``factor[p] * rows[index[p]]``, start[i] <= p < ..."""
    return embedding_bag(
        index, rows, start, mode="sum", per_sample_weights=factor, include_last_offset=True
    )


# Use up the warning that torch gives once per process: that CSR tensors are in beta.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    _zero = torch.zeros(1, dtype=torch.int64, device="cpu")
    torch.sparse_csr_tensor(_zero, _zero[:0], _zero[:0], (0, 1), check_invariants=False)


def _branches_forward(
    weight: Tensor, bias: Tensor, hidden: Tensor, *index: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the log-probabilities (D,), and the log-sum-exp (D,) of each decision's logits."""
    taken, branch = Decisions(*index[:3]), index[3]
    dtype = torch.promote_types(weight.dtype, torch.float32)
    log_total = torch.empty(len(branch), dtype=dtype, device=branch.device)
    chosen = torch.empty_like(log_total)
    for tiles in split(taken, weight.shape[1]):
        logits = tiles.logits(weight, bias, hidden, taken)
        decision = tiles.decision[tiles.is_full]
        of_branch = logits.gather(2, branch[tiles.decision][:, :, None])[:, :, 0]
        chosen[decision] = of_branch[tiles.is_full]
        log_total[decision] = torch.logsumexp(logits, 2)[tiles.is_full]
    return chosen - log_total, log_total


def _branch_gradients(
    share: Tensor, log_total: Tensor, weight: Tensor, bias: Tensor, hidden: Tensor, *index: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    taken, branch = Decisions(*index[:3]), index[3]
    item, row, width = taken
    touched, first = _touched_rows(row, width)
    grad_hidden = torch.zeros_like(hidden)
    grad_weight = weight.new_zeros(len(touched), weight.shape[1])
    grad_bias = bias.new_zeros(len(touched))
    for tiles in split(taken, weight.shape[1]):
        decision = tiles.decision
        # (n, T, 1) weight of each decision in the loss, (n, T, K) errors
        weight_in_loss = share[decision].masked_fill_(~tiles.is_full, 0)[:, :, None]
        error = tiles.logits(weight, bias, hidden, taken)
        error = error.sub_(log_total[decision][:, :, None]).exp_().mul_(-weight_in_loss)
        error = error.scatter_add_(2, branch[decision][:, :, None], weight_in_loss)
        error = error.to(weight.dtype)
        # (n, T, d) hidden vectors, (n, K, d) weight rows of the nodes
        gathered = take_rows(hidden, item[decision])
        rows = tiles.rows(weight, row[decision[:, 0]])
        by_items = torch.bmm(error, rows).flatten(0, 1)
        grad_hidden.index_add_(0, item[decision].flatten(), by_items)
        at = first[decision[:, 0]]
        tiles.add_to_rows(grad_weight, at, torch.bmm(error.transpose(1, 2), gathered))
        tiles.add_to_rows(grad_bias, at, error.sum(1))
    return touched, grad_weight, grad_bias, grad_hidden


_BRANCHES = _Function(_branches_forward, _branch_gradients)


def _touched_rows(row: Tensor, width: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows (r,) of the nodes, ascending, and the first of each decision (D,) in them."""
    node, slot = torch.unique(row, return_inverse=True)
    widths = torch.empty_like(node).index_copy_(0, slot, width)
    return ranges(node, widths), offsets(widths)[slot]
