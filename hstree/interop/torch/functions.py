"""Autograd functions of decisions: logits of (item, row) pairs, and softmaxes of wide nodes.

Binary nodes and nodes with few children are pairs, all decisions of a batch at once; nodes with
many children are batched products of tiles (`hstree.interop.torch.tiles`). Gradients are over the
touched rows only. Each function is differentiable once, and has a rule for ``torch.func.vmap``: the
batch axis is folded into the others, so that B problems over R weight rows and N items are one over
B R rows and B N items, with indices shifted by R and N from one to the next.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from hstree.interop.torch.index import offsets, ranges
from hstree.interop.torch.tiles import Decisions, split, take_rows

#: Numbers gathered at a time from each of the two matrices: what stays in a core's cache, and
#: what keeps a GPU busy.
CPU_BLOCK, GPU_BLOCK = 1 << 19, 1 << 26


def without_autocast(device: torch.device) -> torch.autocast:
    """Return a context in which autocast does not lower the precision."""
    return torch.autocast(device.type, enabled=False)


# Logits of pairs.


def pair_logits(
    weight: Tensor, bias: Tensor, hidden: Tensor, item: Tensor, row: Tensor, sparse: bool
) -> Tensor:
    """Return ``weight[row] . hidden[item] + bias[row]``, a float tensor (P,).

    Parameters
    ----------
    weight, bias : float tensors (R, d), (R,)
    hidden : float tensor (N, d)
    item : int64 tensor (P,)
        Ascending.
    row : int64 tensor (P,)
        Rows may repeat, for one item too.
    sparse : bool
        Whether the gradients with respect to `weight` and `bias` are sparse.
    """
    start = offsets(torch.bincount(item, minlength=len(hidden)))
    return _pair_logits(weight, bias, hidden, item, row, start, sparse)


class _Gradients(torch.autograd.Function):
    """Base of the functions that compute gradients, which are not differentiated again."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        raise RuntimeError(
            "the loss of a HierarchicalSoftmax is differentiable once; "
            "differentiate log_prob, over all labels, where you need second derivatives"
        )


class _PairLogits(torch.autograd.Function):
    @staticmethod
    def forward(
        weight: Tensor,
        bias: Tensor,
        hidden: Tensor,
        item: Tensor,
        row: Tensor,
        start: Tensor,
        sparse: bool,
    ) -> Tensor:
        return bias[row] + _products(weight, hidden, item, row, start)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        weight, _, hidden, item, row, start, ctx.sparse = inputs
        ctx.save_for_backward(weight, hidden, item, row, start)

    @staticmethod
    def backward(ctx: Any, error: Tensor) -> tuple[Tensor | None, ...]:
        return (*_pair_gradients(error, *ctx.saved_tensors, ctx.sparse), *[None] * 4)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Tensor, int]:
        *tensors, _, sparse = args
        folded = _fold_inputs(info.batch_size, in_dims, *tensors)
        return _unfold(pair_logits(*folded, sparse), info.batch_size), 0


class _PairGradients(_Gradients):
    @staticmethod
    def forward(
        error: Tensor,
        weight: Tensor,
        hidden: Tensor,
        item: Tensor,
        row: Tensor,
        start: Tensor,
        sparse: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        error = error.contiguous()
        with without_autocast(weight.device):
            grad_hidden = _weighted_sums(weight, row, start, error)
            # (P,) pairs in the order of their rows, (r,) touched rows
            row, order = torch.sort(row, stable=True)
            touched, slot, count = torch.unique_consecutive(
                row, return_inverse=True, return_counts=True
            )
            error = error[order]
            grad_weight = _weighted_sums(hidden, item[order], offsets(count), error)
            grad_bias = error.new_zeros(len(touched)).index_add_(0, slot, error)
        return (
            row_gradient(touched, grad_weight, len(weight), sparse),
            row_gradient(touched, grad_bias, len(weight), sparse),
            grad_hidden,
        )

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *args: Any
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        size = info.batch_size
        *tensors, item, row, start, _ = args
        error, weight, hidden = (
            _fold(values, dim, size) for values, dim in zip(tensors, in_dims, strict=False)
        )
        gradients = _pair_gradients(
            error,
            weight,
            hidden,
            _shifted(item, size, len(start) - 1),
            _shifted(row, size, len(weight) // size),
            offsets(start.diff().repeat(size)),
            False,  # vmap takes no sparse tensors
        )
        return tuple(_unfold(gradient, size) for gradient in gradients), (0, 0, 0)


_pair_logits: Callable[..., Tensor] = _PairLogits.apply
_pair_gradients: Callable[..., tuple[Tensor, Tensor, Tensor]] = _PairGradients.apply


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
    parts = [
        torch.linalg.vecdot(hidden[items], weight[rows])
        for items, rows in zip(torch.split(item, step), torch.split(row, step), strict=True)
    ]
    return torch.cat(parts)


def _can_sample(dtype: torch.dtype, n_pairs: int, shape: tuple[int, int]) -> bool:
    """Tell whether torch computes these pairs as a sampled product.

    Several codes may contain a pair more than once, which torch allows until there are more pairs
    than entries of the matrix.
    """
    return dtype in (torch.float32, torch.float64) and n_pairs <= math.prod(shape)


def _weighted_sums(rows: Tensor, index: Tensor, start: Tensor, factor: Tensor) -> Tensor:
    """Sum the rows of each bag: bag i is ``factor[p] * rows[index[p]]``, start[i] <= p < ..."""
    return embedding_bag(
        index, rows, start, mode="sum", per_sample_weights=factor, include_last_offset=True
    )


def _silence_csr_warning() -> None:
    """Use up the warning that torch gives once per process: that CSR tensors are in beta."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zero = torch.zeros(1, dtype=torch.int64, device="cpu")
        torch.sparse_csr_tensor(zero, zero[:0], zero[:0], (0, 1), check_invariants=False)


_silence_csr_warning()


# Softmaxes of nodes with many children. Logits are computed again on the way back, block by block,
# so that memory is bounded whatever the width.


def branch_log_prob(
    weight: Tensor, bias: Tensor, hidden: Tensor, taken: Decisions, branch: Tensor, sparse: bool
) -> Tensor:
    """Return the log-probabilities (D,) of the branches (D,) taken, at least float32.

    Parameters
    ----------
    weight, bias : float tensors (R, d), (R,)
    hidden : float tensor (N, d)
    taken : Decisions
    branch : int64 tensor (D,)
    sparse : bool
        Whether the gradients with respect to `weight` and `bias` are sparse.
    """
    log_prob, _ = _branch_log_prob(weight, bias, hidden, *taken, branch, sparse)
    return log_prob


class _BranchLogProb(torch.autograd.Function):
    @staticmethod
    def forward(
        weight: Tensor,
        bias: Tensor,
        hidden: Tensor,
        item: Tensor,
        row: Tensor,
        width: Tensor,
        branch: Tensor,
        sparse: bool,
    ) -> tuple[Tensor, Tensor]:
        taken = Decisions(item, row, width)
        dtype = torch.promote_types(weight.dtype, torch.float32)
        log_total = torch.empty(len(row), dtype=dtype, device=row.device)
        chosen = torch.empty_like(log_total)
        for tiles in split(taken, weight.shape[1]):
            logits = tiles.logits(weight, bias, hidden, taken)
            decision = tiles.decision[tiles.is_full]
            of_branch = logits.gather(2, branch[tiles.decision][:, :, None])[:, :, 0]
            chosen[decision] = of_branch[tiles.is_full]
            log_total[decision] = torch.logsumexp(logits, 2)[tiles.is_full]
        return chosen - log_total, log_total

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        *tensors, ctx.sparse = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*tensors, output[1])

    @staticmethod
    def backward(ctx: Any, share: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        return (*_branch_gradients(share, *ctx.saved_tensors, ctx.sparse), *[None] * 5)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *args: Any
    ) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        size = info.batch_size
        *tensors, width, branch, sparse = args
        folded = _fold_inputs(size, in_dims, *tensors)
        log_prob, log_total = _branch_log_prob(
            *folded, width.repeat(size), branch.repeat(size), sparse
        )
        return (_unfold(log_prob, size), _unfold(log_total, size)), (0, 0)


class _BranchGradients(_Gradients):
    @staticmethod
    def forward(
        share: Tensor,
        weight: Tensor,
        bias: Tensor,
        hidden: Tensor,
        item: Tensor,
        row: Tensor,
        width: Tensor,
        branch: Tensor,
        log_total: Tensor,
        sparse: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        taken = Decisions(item, row, width)
        touched, first = _touched_rows(row, width)
        grad_hidden = torch.zeros_like(hidden)
        grad_weight = weight.new_zeros(len(touched), weight.shape[1])
        grad_bias = bias.new_zeros(len(touched))
        with without_autocast(weight.device):
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
        return (
            row_gradient(touched, grad_weight, len(weight), sparse),
            row_gradient(touched, grad_bias, len(weight), sparse),
            grad_hidden,
        )

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *args: Any
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        size = info.batch_size
        *tensors, item, row, width, branch, log_total, _ = args
        share, weight, bias, hidden = (
            _fold(values, dim, size) for values, dim in zip(tensors, in_dims, strict=False)
        )
        gradients = _branch_gradients(
            share,
            weight,
            bias,
            hidden,
            _shifted(item, size, len(hidden) // size),
            _shifted(row, size, len(weight) // size),
            width.repeat(size),
            branch.repeat(size),
            _fold(log_total, in_dims[8], size),
            False,  # vmap takes no sparse tensors
        )
        return tuple(_unfold(gradient, size) for gradient in gradients), (0, 0, 0)


_branch_log_prob: Callable[..., tuple[Tensor, Tensor]] = _BranchLogProb.apply
_branch_gradients: Callable[..., tuple[Tensor, Tensor, Tensor]] = _BranchGradients.apply


def _touched_rows(row: Tensor, width: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows (r,) of the nodes, ascending, and the first of each decision (D,) in them."""
    order = torch.argsort(row)
    node, slot, count = torch.unique_consecutive(
        row[order], return_inverse=True, return_counts=True
    )
    widths = width[order][offsets(count)[:-1]]
    first = torch.empty_like(row)
    first[order] = offsets(widths)[slot]
    return ranges(node, widths), first


def row_gradient(touched: Tensor, values: Tensor, n_rows: int, sparse: bool) -> Tensor:
    """Return the gradient (R, ...) of a parameter of which a batch touched some rows.

    Parameters
    ----------
    touched : int64 tensor (r,)
        Ascending, without repeats.
    values : float tensor (r, ...)
    n_rows : int
        Number of weight rows, R.
    sparse : bool
        A coalesced COO tensor instead of a dense one, which takes O(R d) to fill.
    """
    shape = (n_rows, *values.shape[1:])
    if sparse:
        return torch.sparse_coo_tensor(
            touched[None], values, shape, is_coalesced=True, check_invariants=False
        )
    return values.new_zeros(shape).index_copy_(0, touched, values)


# Folding of a batch axis, for vmap.


def _fold(values: Tensor, dim: int | None, size: int) -> Tensor:
    """Return a tensor (n, ...) with or without a batch axis of this size as (B n, ...)."""
    batched = values.expand(size, *values.shape) if dim is None else values.movedim(dim, 0)
    return batched.flatten(0, 1)


def _fold_inputs(
    size: int,
    dims: tuple[int | None, ...],
    weight: Tensor,
    bias: Tensor,
    hidden: Tensor,
    item: Tensor,
    row: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Fold the inputs of logits; weights without a batch axis are shared by all problems."""
    weight_dim, bias_dim, hidden_dim, *_ = dims
    hidden = _fold(hidden, hidden_dim, size)
    item = _shifted(item, size, len(hidden) // size)
    if weight_dim is None and bias_dim is None:
        return weight, bias, hidden, item, row.repeat(size)
    weight, bias = _fold(weight, weight_dim, size), _fold(bias, bias_dim, size)
    return weight, bias, hidden, item, _shifted(row, size, len(weight) // size)


def _unfold(values: Tensor, size: int) -> Tensor:
    """Return a tensor (B n, ...) as (B, n, ...)."""
    return values.reshape(size, len(values) // size, *values.shape[1:])


def _shifted(index: Tensor, size: int, shift: int) -> Tensor:
    """Repeat an index tensor (P,) B times, each time shifted by `shift` more: (B P,)."""
    times = torch.arange(size, device=index.device)[:, None]
    return (index + shift * times).flatten()
