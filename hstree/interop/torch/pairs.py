"""Scores of (batch item, weight row) pairs, and the gradients through them.

Binary nodes and nodes with few children come here, all decisions of a batch at once. On the CPU
the scores are one sampled product of two matrices; elsewhere a gather and a dot product, in
blocks. On the way back both gradients are weighted sums of rows, over the touched rows only.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from hstree.interop.torch.precision import as_given
from hstree.interop.torch.rows import row_gradient
from hstree.interop.torch.segments import offsets
from hstree.interop.torch.transforms import Gradients, fold, fold_scored, shifted, unfold

#: Numbers gathered at a time from each of the two matrices: what stays in a core's cache, and
#: what keeps a GPU busy.
CPU_BLOCK, GPU_BLOCK = 1 << 19, 1 << 26


def pair_scores(
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
        Whether the gradients by `weight` and `bias` are sparse.
    """
    start = offsets(torch.bincount(item, minlength=len(hidden)))
    return _score(weight, bias, hidden, item, row, start, sparse)


class _PairScores(torch.autograd.Function):
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
        return (*_gradients(error, *ctx.saved_tensors, ctx.sparse), *[None] * 4)

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        weight: Tensor,
        bias: Tensor,
        hidden: Tensor,
        item: Tensor,
        row: Tensor,
        start: Tensor,
        sparse: bool,
    ) -> tuple[Tensor, int]:
        size = info.batch_size
        folded = fold_scored(size, in_dims, weight, bias, hidden, item, row)
        return unfold(pair_scores(*folded, sparse), size), 0


class _PairGradients(Gradients):
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
        with as_given(weight.device):
            grad_hidden = _weighted_sums(weight, row, start, error)
            row, order = torch.sort(row, stable=True)
            touched, which, count = torch.unique_consecutive(
                row, return_inverse=True, return_counts=True
            )
            error = error[order]
            by_weight = _weighted_sums(hidden, item[order], offsets(count), error)
            by_bias = error.new_zeros(len(touched)).index_add_(0, which, error)
        return (
            row_gradient(touched, by_weight, len(weight), sparse),
            row_gradient(touched, by_bias, len(weight), sparse),
            grad_hidden,
        )

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        error: Tensor,
        weight: Tensor,
        hidden: Tensor,
        item: Tensor,
        row: Tensor,
        start: Tensor,
        sparse: bool,
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        size = info.batch_size
        folded = [
            fold(values, dim, size)
            for values, dim in zip((error, weight, hidden), in_dims, strict=False)
        ]
        item = shifted(item, size, len(start) - 1)
        row = shifted(row, size, len(folded[1]) // size)
        start = offsets(start.diff().repeat(size))
        found = _gradients(*folded, item, row, start, False)  # vmap takes no sparse tensors
        return tuple(unfold(gradient, size) for gradient in found), (0, 0, 0)


_score: Callable[..., Tensor] = _PairScores.apply
_gradients: Callable[..., tuple[Tensor, Tensor, Tensor]] = _PairGradients.apply


def _products(weight: Tensor, hidden: Tensor, item: Tensor, row: Tensor, start: Tensor) -> Tensor:
    """Return ``weight[row] . hidden[item]``; item i has the pairs ``start[i]:start[i + 1]``."""
    shape = (len(hidden), len(weight))
    if weight.device.type == "cpu" and _can_sample(weight.dtype, len(row), shape):
        zero = weight.new_zeros(len(row))
        wanted = torch.sparse_csr_tensor(start, row, zero, shape, check_invariants=False)
        found: Tensor = torch.sparse.sampled_addmm(wanted, hidden, weight.T, beta=0.0)
        return found.values()
    block = CPU_BLOCK if weight.device.type == "cpu" else GPU_BLOCK
    step = max(1, block // max(1, weight.shape[1]))
    parts = [
        torch.linalg.vecdot(hidden[items], weight[rows])
        for items, rows in zip(torch.split(item, step), torch.split(row, step), strict=True)
    ]
    return torch.cat(parts)


def _can_sample(dtype: torch.dtype, n_pairs: int, shape: tuple[int, int]) -> bool:
    """Tell whether torch computes these pairs as a sampled product.

    Several codes may hold a pair more than once, which torch allows until there are more of them
    than the matrix has entries.
    """
    return dtype in (torch.float32, torch.float64) and n_pairs <= math.prod(shape)


def _weighted_sums(rows: Tensor, index: Tensor, start: Tensor, factor: Tensor) -> Tensor:
    """Sum the rows of each bag: bag i is ``factor[p] * rows[index[p]]``, start[i] <= p < ..."""
    return embedding_bag(
        index, rows, start, mode="sum", per_sample_weights=factor, include_last_offset=True
    )


def _hush() -> None:
    """Make torch say here, unheard, what it says once of CSR tensors: that they are in beta."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zero = torch.zeros(1, dtype=torch.int64, device="cpu")
        torch.sparse_csr_tensor(zero, zero[:0], zero[:0], (0, 1), check_invariants=False)


_hush()
