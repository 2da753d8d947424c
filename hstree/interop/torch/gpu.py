"""Losses of codes and most probable labels on a GPU, each by one Triton kernel.

A program follows one code from the root to its label, or searches the tree for one hidden vector.
The operators of `functions` and `probabilities` launch tens to thousands of kernels, which takes
longer than what they compute. Torch brings Triton in its builds for CUDA; without it, and at nodes
that are wide enough for matrix products, these operators do the work.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from hstree.interop.torch.functions import Inputs, row_gradient
from hstree.interop.torch.index import TreeIndex

try:
    from hstree.interop.torch import _kernels as kernels
except ImportError:  # triton
    kernels = None  # type: ignore[assignment]

#: Children of a node from which matrix products are faster.
WIDEST = 1 << 12
#: Numbers of the weight rows that a program reads at a time.
BLOCK = 1 << 12
#: Nodes of a level that a search of a binary tree keeps, and the most labels that a search returns.
BEAM = 64
#: Most levels of a tree with wider nodes that is searched, and most nodes that its search follows.
LEVELS, NODES = 4, 128
#: Logits that this search keeps at a time, in float32.
SCORES = 1 << 26


def _has_kernels(weight: Tensor) -> bool:
    """Whether the kernels can read these weights: plain ones on a GPU, no shards."""
    return kernels is not None and weight.is_cuda and type(weight.data) is Tensor


def can_fuse(index: TreeIndex, weight: Tensor) -> bool:
    """Whether the kernels compute a tree's codes.

    Not in the transforms of ``torch.func``, nor where sums have to be in a fixed order.
    """
    return (
        _has_kernels(weight)
        and 0 < index.widest <= WIDEST
        and index.has_all_codes
        and not torch.are_deterministic_algorithms_enabled()
        and not torch._C._are_functorch_transforms_active()
    )


def fused_log_prob(index: TreeIndex, inputs: Inputs, item: Tensor, code: Tensor) -> Tensor:
    """Return the log-probabilities (C,) of codes, at least float32; differentiable once.

    `code` (C,) are codes of the tree and `item` (C,) items of the batch, int64. The gradients of
    weight rows are sums in no fixed order: their last digits differ from run to run.
    """
    *tensors, sparse = inputs
    tensors = [each.contiguous() for each in tensors]
    edges = index.edge_row, index.edge_width, index.edge_branch
    paths = item, code, index.code_start, index.code_edge, *edges
    log_prob: Tensor = _FusedLogProb.apply(sparse, *tensors, *paths)  # type: ignore[no-untyped-call]
    return log_prob


def can_search(index: TreeIndex, weight: Tensor, k: int) -> bool:
    """Whether the kernels search a tree: of one code a label, binary or of few levels."""
    is_shallow = index.n_levels <= LEVELS and index.widest <= WIDEST
    return (
        _has_kernels(weight)
        and weight.dtype != torch.float64
        and index.has_single_codes
        and (index.widest == 2 or is_shallow)
        and k <= BEAM
    )


def search(index: TreeIndex, inputs: Inputs, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the k most probable labels (N, k), log-probabilities (N, k), and which are exact (N,).

    The search of a binary tree follows the `BEAM` most probable nodes of each level. That of a tree
    with wider nodes follows up to `NODES`, each the most probable found so far. Labels are exact
    where no node that was left out is as probable as the last of them.
    """
    weight, bias, hidden = (each.contiguous() for each in inputs[:3])
    n, device = len(hidden), hidden.device
    labels = torch.zeros(n, k, dtype=torch.int64, device=device)
    log_prob = torch.zeros(n, k, dtype=torch.float32, device=device)
    is_exact = torch.zeros(n, dtype=torch.bool, device=device)
    results = labels, log_prob, is_exact
    if not n:
        return results
    with torch.cuda.device_of(weight):  # type: ignore[no-untyped-call]
        if index.widest == 2:
            arrays = weight, bias, hidden, index.child, *results
            kernels.search[(n,)](*arrays, weight.shape[1], k, BEAM)
        else:
            edges = index.child_start, index.child, index.edge_row, index.edge_width
            step = SCORES // index.widest
            logits = log_prob.new_empty(min(n, step), index.widest)
            sizes = index.widest, k, NODES, BEAM, *_shape(weight)
            for first in range(0, n, step):
                some, *of_some = (a[first : first + step] for a in (hidden, *results))
                matrices = weight, bias, some, *edges, logits
                kernels.search_wide[(len(some),)](*matrices, *of_some, *sizes)
    return results


class _FusedLogProb(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, sparse: bool, *tensors: Tensor) -> Tensor:
        ctx.sparse = sparse
        ctx.save_for_backward(*tensors)
        weight, code = tensors[0], tensors[4]
        dtype = torch.promote_types(weight.dtype, torch.float32)
        log_prob = torch.empty(len(code), dtype=dtype, device=weight.device)
        if len(code):
            with torch.cuda.device_of(weight):  # type: ignore[no-untyped-call]
                kernels.forward[(len(code),)](*tensors, log_prob, *_shape(weight))
        return log_prob

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, share: Tensor) -> tuple[Tensor | None, ...]:
        weight, bias, hidden, item, code, *paths = tensors = ctx.saved_tensors
        n_rows, dim = weight.shape
        # (R,) place of each row in the gradients, and the rows (r,) that have one, None for all
        place, touched = torch.arange(n_rows, device=share.device), None
        with torch.cuda.device_of(weight):  # type: ignore[no-untyped-call]
            if ctx.sparse:
                is_touched = torch.zeros(n_rows, dtype=torch.bool, device=share.device)
                if len(code):
                    kernels.touch[(len(code),)](code, *paths[:4], is_touched, 32)
                place, touched = is_touched.cumsum(0) - 1, is_touched.nonzero()[:, 0]
            n_touched = n_rows if touched is None else len(touched)
            by_weight, by_bias = share.new_zeros(n_touched, dim), share.new_zeros(n_touched)
            by_code = share.new_empty(len(code), dim)
            if len(code):
                gradients = place, by_weight, by_bias, by_code
                kernels.backward[(len(code),)](
                    *tensors, share.contiguous(), *gradients, *_shape(weight)
                )
        by_hidden = share.new_zeros(hidden.shape).index_add_(0, item, by_code)
        of_rows = [by_weight.to(weight.dtype), by_bias.to(bias.dtype)]
        if touched is not None:
            of_rows = [row_gradient(touched, each, n_rows) for each in of_rows]
        return None, *of_rows, by_hidden.to(hidden.dtype), *[None] * 7


def _shape(weight: Tensor) -> tuple[int, int, int]:
    """Return d, the next power of two, and the number of rows that a program reads at a time."""
    dim = weight.shape[1]
    columns = 1 << math.ceil(math.log2(dim))
    return dim, columns, max(1, min(16, BLOCK // columns))
