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
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding_bag

from hstree.interop.torch.precision import as_given
from hstree.interop.torch.rows import row_gradient
from hstree.interop.torch.segments import offsets

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
    return _apply(weight, bias, hidden, item, row, sparse)


class _PairScores(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        weight: Tensor,
        bias: Tensor,
        hidden: Tensor,
        item: Tensor,
        row: Tensor,
        sparse: bool,
    ) -> Tensor:
        start = offsets(torch.bincount(item, minlength=len(hidden)))
        ctx.save_for_backward(weight, hidden, item, row, start)
        ctx.sparse = sparse
        return bias[row] + _products(weight, hidden, item, row, start)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, error: Tensor) -> tuple[Tensor | None, ...]:
        weight, hidden, item, row, start = ctx.saved_tensors
        error = error.contiguous()
        with as_given(weight.device):
            by_hidden = _weighted_sums(weight, row, start, error)
            row, order = torch.sort(row, stable=True)
            touched, which, count = torch.unique_consecutive(
                row, return_inverse=True, return_counts=True
            )
            error = error[order]
            by_weight = _weighted_sums(hidden, item[order], offsets(count), error)
            by_bias = error.new_zeros(len(touched)).index_add_(0, which, error)
        return (
            row_gradient(touched, by_weight, len(weight), ctx.sparse),
            row_gradient(touched, by_bias, len(weight), ctx.sparse),
            by_hidden,
            *[None] * 3,
        )


_apply: Callable[..., Tensor] = _PairScores.apply


def _products(weight: Tensor, hidden: Tensor, item: Tensor, row: Tensor, start: Tensor) -> Tensor:
    """Return ``weight[row] . hidden[item]``; item i has the pairs ``start[i]:start[i + 1]``."""
    shape = (len(hidden), len(weight))
    if weight.device.type == "cpu" and _can_sample(weight.dtype, len(row), shape):
        zero = torch.zeros(len(row), dtype=weight.dtype)
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
        zero = torch.zeros(1, dtype=torch.int64)
        torch.sparse_csr_tensor(zero, zero[:0], zero[:0], (0, 1), check_invariants=False)


_hush()
