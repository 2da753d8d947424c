"""The log-probabilities of decisions at nodes with many children, and the gradients through them.

Scores are not kept for the way back but computed again, block by block, so that memory stays
bounded whatever the width: a flat tree of 100,000 labels needs no (batch, labels) matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from hstree.interop.torch.precision import as_given
from hstree.interop.torch.rows import row_gradient
from hstree.interop.torch.segments import offsets, ranges
from hstree.interop.torch.tiles import Decisions, cut, take_rows
from hstree.interop.torch.transforms import Gradients, fold, fold_scored, shifted, unfold


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
        Whether the gradients by `weight` and `bias` are sparse.
    """
    log_prob, _ = _score(weight, bias, hidden, *taken, branch, sparse)
    return log_prob


def draw_branches(
    weight: Tensor,
    bias: Tensor,
    hidden: Tensor,
    taken: Decisions,
    generator: torch.Generator | None,
) -> Tensor:
    """Draw a branch for each decision, int64 (D,)."""
    branch = torch.empty_like(taken.row)
    for tiles in cut(taken, weight.shape[1]):
        share = torch.softmax(tiles.scores(weight, bias, hidden, taken), 2)
        drawn = torch.multinomial(share.flatten(0, 1), 1, generator=generator)
        branch[tiles.place[tiles.full]] = drawn.view_as(tiles.place)[tiles.full]
    return branch


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
        for tiles in cut(taken, weight.shape[1]):
            score = tiles.scores(weight, bias, hidden, taken)
            place = tiles.place[tiles.full]
            of_branch = score.gather(2, branch[tiles.place][:, :, None])[:, :, 0]
            chosen[place] = of_branch[tiles.full]
            log_total[place] = torch.logsumexp(score, 2)[tiles.full]
        return chosen - log_total, log_total

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        *tensors, ctx.sparse = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*tensors, output[1])

    @staticmethod
    def backward(ctx: Any, share: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        return (*_gradients(share, *ctx.saved_tensors, ctx.sparse), *[None] * 5)

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        weight: Tensor,
        bias: Tensor,
        hidden: Tensor,
        item: Tensor,
        row: Tensor,
        width: Tensor,
        branch: Tensor,
        sparse: bool,
    ) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        size = info.batch_size
        folded = fold_scored(size, in_dims, weight, bias, hidden, item, row)
        log_prob, log_total = _score(*folded, width.repeat(size), branch.repeat(size), sparse)
        return (unfold(log_prob, size), unfold(log_total, size)), (0, 0)


class _BranchGradients(Gradients):
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
        by_weight = weight.new_zeros(len(touched), weight.shape[1])
        by_bias = bias.new_zeros(len(touched))
        with as_given(weight.device):
            for tiles in cut(taken, weight.shape[1]):
                place = tiles.place
                own = share[place].masked_fill_(~tiles.full, 0)[:, :, None]
                error = tiles.scores(weight, bias, hidden, taken)
                error = error.sub_(log_total[place][:, :, None]).exp_().mul_(-own)
                error = error.scatter_add_(2, branch[place][:, :, None], own).to(weight.dtype)
                gathered, own_rows = (
                    take_rows(hidden, item[place]),
                    tiles.rows(weight, row[place[:, 0]]),
                )
                by_items = torch.bmm(error, own_rows).flatten(0, 1)
                grad_hidden.index_add_(0, item[place].flatten(), by_items)
                at = first[place[:, 0]]
                tiles.add_to_rows(by_weight, at, torch.bmm(error.transpose(1, 2), gathered))
                tiles.add_to_rows(by_bias, at, error.sum(1))
        return (
            row_gradient(touched, by_weight, len(weight), sparse),
            row_gradient(touched, by_bias, len(weight), sparse),
            grad_hidden,
        )

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
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
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        size = info.batch_size
        folded = [
            fold(values, dim, size)
            for values, dim in zip((share, weight, bias, hidden), in_dims, strict=False)
        ]
        found = _gradients(
            *folded,
            shifted(item, size, len(folded[3]) // size),
            shifted(row, size, len(folded[1]) // size),
            width.repeat(size),
            branch.repeat(size),
            fold(log_total, in_dims[8], size),
            False,  # vmap takes no sparse tensors
        )
        return tuple(unfold(gradient, size) for gradient in found), (0, 0, 0)


_score: Callable[..., tuple[Tensor, Tensor]] = _BranchLogProb.apply
_gradients: Callable[..., tuple[Tensor, Tensor, Tensor]] = _BranchGradients.apply


def _touched_rows(row: Tensor, width: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows of the deciding nodes, ascending, and where each decision's begin in them."""
    order = torch.argsort(row)
    node, which, count = torch.unique_consecutive(
        row[order], return_inverse=True, return_counts=True
    )
    widths = width[order][offsets(count)[:-1]]
    first = torch.empty_like(row)
    first[order] = offsets(widths)[which]
    return ranges(node, widths), first
