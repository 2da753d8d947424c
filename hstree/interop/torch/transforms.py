"""What ``torch.func`` needs of the autograd functions: a rule for vmap, and an end after one pass.

Under vmap the batch axis is folded into the others: B problems over R weight rows and N items are
one over B R rows and B N items, whose numbers are shifted by R and N from one to the next.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Gradients(torch.autograd.Function):
    """Base of the functions that compute gradients, which are not differentiated again."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep nothing."""

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        """Refuse."""
        raise RuntimeError(
            "the loss of a HierarchicalSoftmax is differentiable once; "
            "differentiate log_prob, over all labels, where you need second derivatives"
        )


def fold(values: Tensor, dim: int | None, size: int) -> Tensor:
    """Return a tensor (n, ...) with or without a batch axis of this size as (B n, ...)."""
    batched = values.expand(size, *values.shape) if dim is None else values.movedim(dim, 0)
    return batched.flatten(0, 1)


def fold_scored(
    size: int,
    dims: tuple[int | None, ...],
    weight: Tensor,
    bias: Tensor,
    hidden: Tensor,
    item: Tensor,
    row: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Fold the arguments of scores; weights without a batch axis stay as they are, for all."""
    weight_dim, bias_dim, hidden_dim, *_ = dims
    hidden = fold(hidden, hidden_dim, size)
    item = shifted(item, size, len(hidden) // size)
    if weight_dim is None and bias_dim is None:
        return weight, bias, hidden, item, row.repeat(size)
    weight, bias = fold(weight, weight_dim, size), fold(bias, bias_dim, size)
    return weight, bias, hidden, item, shifted(row, size, len(weight) // size)


def unfold(values: Tensor, size: int) -> Tensor:
    """Return a tensor (B n, ...) as (B, n, ...)."""
    return values.reshape(size, len(values) // size, *values.shape[1:])


def shifted(index: Tensor, size: int, shift: int) -> Tensor:
    """Repeat an index tensor (P,) B times, each time shifted by as much more: (B P,)."""
    times = torch.arange(size, device=index.device)[:, None]
    return (index + shift * times).flatten()
