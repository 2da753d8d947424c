"""Where a number is too short for a loss: half precision is scored, but never summed or logged."""

from __future__ import annotations

import torch
from torch import Tensor


def at_least_float32(values: Tensor) -> Tensor:
    """Return half-precision values as float32, others as they are."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def as_given(device: torch.device) -> torch.autocast:
    """Return a context in which autocast lowers nothing."""
    return torch.autocast(device.type, enabled=False)
