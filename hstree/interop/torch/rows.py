"""The gradient by the weight rows: over touched rows only, sparse or spread out."""

from __future__ import annotations

import torch
from torch import Tensor


def row_gradient(touched: Tensor, values: Tensor, n_rows: int, sparse: bool) -> Tensor:
    """Return the gradient (R, ...) of a parameter of which a batch touched some rows.

    Parameters
    ----------
    touched : int64 tensor (r,)
        Ascending, without repeats.
    values : float tensor (r, ...)
    n_rows : int
        R.
    sparse : bool
        A coalesced COO tensor instead of a dense one, which costs O(R d) to fill.
    """
    shape = (n_rows, *values.shape[1:])
    if sparse:
        return torch.sparse_coo_tensor(
            touched[None], values, shape, is_coalesced=True, check_invariants=False
        )
    return values.new_zeros(shape).index_copy_(0, touched, values)
