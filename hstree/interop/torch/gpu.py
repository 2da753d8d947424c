"""Log-probabilities of codes and most probable labels on a GPU, each by one Triton kernel.

A program follows one code from the root to its label, or searches the tree for one hidden vector.
The operators of `functions` and `probabilities` launch tens to thousands of kernels, which takes
longer than their arithmetic. Torch's builds for CUDA include Triton. The operators are used without
Triton, and for nodes that are wide enough for matrix products.
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

#: Maximum number of children of a node; matrix products are faster for more.
WIDEST = 1 << 12
#: Number of elements of weight rows that a program reads at a time.
BLOCK = 1 << 12
#: Nodes of a level that a search of a binary tree keeps; also the maximum number of labels that a
#: search returns.
BEAM = 64
#: Maximum number of levels of a tree with wider nodes that is searched.
LEVELS = 4
#: Maximum number of nodes that its search follows.
NODES = 128
#: Logits that this search keeps at a time, in float32.
SCORES = 1 << 26


def _has_kernels(weight: Tensor) -> bool:
    """Return whether the kernels can read these weights: plain ones on a GPU, no shards."""
    return kernels is not None and weight.is_cuda and type(weight.data) is Tensor


def can_fuse(index: TreeIndex, weight: Tensor) -> bool:
    """Return whether the kernels can compute the codes of a tree.

    They cannot in the transforms of ``torch.func``, nor if sums must be in a fixed order.
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
    tensors = [tensor.contiguous() for tensor in tensors]
    edges = index.edge_row, index.edge_width, index.edge_branch
    paths = item, code, index.code_start, index.code_edge, *edges
    log_prob: Tensor = _FusedLogProb.apply(sparse, *tensors, *paths)  # type: ignore[no-untyped-call]
    return log_prob


def can_search(index: TreeIndex, weight: Tensor, k: int) -> bool:
    """Return whether the kernels can search a tree: one code per label, and binary or shallow."""
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

    The search of a binary tree follows the `BEAM` most probable nodes of each level. The search of
    a tree with wider nodes follows up to `NODES` nodes, each the most probable found so far. Labels
    are exact if no omitted node is as probable as the last of them.
    """
    weight = inputs.weight.contiguous()
    bias = inputs.bias.contiguous()
    hidden = inputs.hidden.contiguous()
    n = len(hidden)
    device = hidden.device
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
            # Logits of a block of items, in memory that all blocks use
            step = SCORES // index.widest
            logits = log_prob.new_empty(min(n, step), index.widest)
            sizes = index.widest, k, NODES, BEAM, *_shape(weight)
            for first in range(0, n, step):
                block = slice(first, first + step)
                vectors = hidden[block]
                block_results = [array[block] for array in results]
                kernels.search_wide[(len(vectors),)](
                    weight, bias, vectors, *edges, logits, *block_results, *sizes
                )
    return results


class _FusedLogProb(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, sparse: bool, *tensors: Tensor) -> Tensor:
        ctx.sparse = sparse
        ctx.save_for_backward(*tensors)
        weight = tensors[0]
        code = tensors[4]
        dtype = torch.promote_types(weight.dtype, torch.float32)
        log_prob = torch.empty(len(code), dtype=dtype, device=weight.device)
        if len(code):
            with torch.cuda.device_of(weight):  # type: ignore[no-untyped-call]
                kernels.forward[(len(code),)](*tensors, log_prob, *_shape(weight))
        return log_prob

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_log_prob: Tensor) -> tuple[Tensor | None, ...]:
        tensors = ctx.saved_tensors
        weight, bias, hidden, item, code, *paths = tensors
        n_rows, dim = weight.shape
        with torch.cuda.device_of(weight):  # type: ignore[no-untyped-call]
            # (R,) position of each weight row in the gradients, and the rows (r,) that have one
            position = torch.arange(n_rows, device=grad_log_prob.device)
            touched = position
            if ctx.sparse:
                is_touched = torch.zeros(n_rows, dtype=torch.bool, device=grad_log_prob.device)
                if len(code):
                    kernels.touch[(len(code),)](code, *paths[:4], is_touched, 32)
                position = is_touched.cumsum(0) - 1
                touched = is_touched.nonzero()[:, 0]
            grad_weight = grad_log_prob.new_zeros(len(touched), dim)
            grad_bias = grad_log_prob.new_zeros(len(touched))
            # (C, d) gradient of the hidden vector of each code
            grad_code = grad_log_prob.new_empty(len(code), dim)
            if len(code):
                gradients = position, grad_weight, grad_bias, grad_code
                kernels.backward[(len(code),)](
                    *tensors, grad_log_prob.contiguous(), *gradients, *_shape(weight)
                )
        grad_hidden = grad_log_prob.new_zeros(hidden.shape).index_add_(0, item, grad_code)
        grad_weight = grad_weight.to(weight.dtype)
        grad_bias = grad_bias.to(bias.dtype)
        if ctx.sparse:
            grad_weight = row_gradient(touched, grad_weight, n_rows)
            grad_bias = row_gradient(touched, grad_bias, n_rows)
        # The items, the codes and the tensors of paths have no gradients
        no_gradients = [None] * (2 + len(paths))
        return None, grad_weight, grad_bias, grad_hidden.to(hidden.dtype), *no_gradients


def _shape(weight: Tensor) -> tuple[int, int, int]:
    """Return d, the next power of two, and the number of rows that a program reads at a time."""
    dim = weight.shape[1]
    columns = 1 << math.ceil(math.log2(dim))
    return dim, columns, max(1, min(16, BLOCK // columns))
