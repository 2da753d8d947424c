"""Runs of a flat tensor: the arithmetic of `hstree._ragged`, on any device."""

from __future__ import annotations

import torch
from torch import Tensor


def offsets(length: Tensor) -> Tensor:
    """Return where runs of these lengths start, and where the last one ends; int64 (S + 1,)."""
    start = length.new_zeros(len(length) + 1)
    torch.cumsum(length, 0, out=start[1:])
    return start


def ranges(first: Tensor, length: Tensor) -> Tensor:
    """Concatenate runs of consecutive integers: run i is ``first[i], first[i] + 1, ...``."""
    start = offsets(length)
    total = int(start[-1])
    shift = torch.repeat_interleave(first - start[:-1], length, output_size=total)
    return torch.arange(total, device=first.device) + shift


def log_sum_exp(values: Tensor, segment: Tensor, n_segments: int) -> Tensor:
    """Return the log-sum-exp of every segment, along the first axis; differentiable.

    Parameters
    ----------
    values : float tensor (P, ...)
    segment : int64 tensor (P,)
        The segment of each; none of the `n_segments` is empty.
    """
    shape = (n_segments, *values.shape[1:])
    spread = segment.reshape(-1, *[1] * (values.ndim - 1)).expand_as(values)
    lowest = values.new_full(shape, -torch.inf)
    top = lowest.scatter_reduce(0, spread, values.detach(), "amax")
    shifted = torch.exp(values - top.index_select(0, segment))
    return top + values.new_zeros(shape).index_add(0, segment, shifted).log()
