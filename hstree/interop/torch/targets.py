"""The log-probabilities of a batch's targets: their codes' decisions, and the sum over codes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from hstree.errors import InputError
from hstree.interop.torch.index import TreeIndex
from hstree.interop.torch.pairs import pair_scores
from hstree.interop.torch.precision import at_least_float32
from hstree.interop.torch.segments import log_sum_exp, offsets, ranges
from hstree.interop.torch.softmax_nodes import branch_log_prob
from hstree.interop.torch.tiles import Decisions
from hstree.layers.node_groups import NARROW

Rule = Callable[[TreeIndex, Tensor, Tensor, Tensor, Tensor, Tensor, bool], Tensor]


def log_prob(
    index: TreeIndex,
    weight: Tensor,
    bias: Tensor,
    hidden: Tensor,
    target: Tensor,
    ignore_index: int,
    sparse: bool,
) -> Tensor:
    """Return the log-probabilities (N,) of the targets, at least float32; 0 where ignored.

    Parameters
    ----------
    index : TreeIndex
    weight, bias : float tensors (R, d), (R,)
    hidden : float tensor (N, d)
    target : int64 tensor (N,)
    ignore_index : int
        The target that stands for none.
    sparse : bool
        Whether the gradients by `weight` and `bias` are sparse.
    """
    kept = (target != ignore_index).nonzero()[:, 0]
    target = target[kept]
    _check(target, index.n_labels, ignore_index)
    if not index.widest:
        return certain(weight, bias, hidden)
    if not len(kept):  # no pairs, so that gradients are zero, and sparse where they always are
        scores = pair_scores(weight, bias, hidden, kept, kept, sparse)
        return at_least_float32(hidden.new_zeros(len(hidden)) + scores.sum())
    taken = index.expand(target)
    item = kept[taken.code_item]
    groups: list[tuple[Tensor | slice, Rule]] = [(slice(None), _at_few_children)]
    if index.widest > NARROW:
        many = index.edge_width[taken.edge] > NARROW
        groups = [(~many, _at_few_children), (many, _at_many_children)]
    dtype = torch.promote_types(weight.dtype, torch.float32)
    of_code = torch.zeros(len(taken.code_item), dtype=dtype, device=weight.device)
    for own, rule in groups:
        edge, code = taken.edge[own], taken.decision_code[own]
        if len(edge):
            found = rule(index, weight, bias, hidden, item[code], edge, sparse)
            of_code = of_code.index_add(0, code, found)
    of_target = of_code
    if not index.one_code:
        of_target = log_sum_exp(of_code, taken.code_item, len(target))
    return of_target.new_zeros(len(hidden)).index_copy(0, kept, of_target)


def _at_few_children(
    index: TreeIndex,
    weight: Tensor,
    bias: Tensor,
    hidden: Tensor,
    item: Tensor,
    edge: Tensor,
    sparse: bool,
) -> Tensor:
    """Score decisions flat: a pair for a binary node, a run of pairs for one with a softmax."""
    row, branch = index.edge_row[edge], index.edge_branch[edge]
    if index.widest == 2:
        score = at_least_float32(pair_scores(weight, bias, hidden, item, row, sparse))
        return logsigmoid(torch.where(branch == 0, score, -score))
    width = index.edge_width[edge]
    binary = width == 2
    n_pairs = torch.where(binary, 1, width)
    segment = torch.repeat_interleave(n_pairs)
    rows = ranges(row, n_pairs)
    score = at_least_float32(pair_scores(weight, bias, hidden, item[segment], rows, sparse))
    own = score[offsets(n_pairs)[:-1] + torch.where(binary, 0, branch)]
    of_binary = logsigmoid(torch.where(branch == 0, own, -own))
    return torch.where(binary, of_binary, own - log_sum_exp(score, segment, len(edge)))


def _at_many_children(
    index: TreeIndex,
    weight: Tensor,
    bias: Tensor,
    hidden: Tensor,
    item: Tensor,
    edge: Tensor,
    sparse: bool,
) -> Tensor:
    taken = Decisions(item, index.edge_row[edge], index.edge_width[edge])
    return branch_log_prob(weight, bias, hidden, taken, index.edge_branch[edge], sparse)


def certain(weight: Tensor, bias: Tensor, hidden: Tensor) -> Tensor:
    """Return log-probabilities (N,) of zero that backward() can start from."""
    return at_least_float32(hidden[:, :0].sum(1) + weight[:0].sum() + bias[:0].sum())


def _check(target: Tensor, n_labels: int, ignore_index: int) -> None:
    if not len(target):
        return
    least, most = torch.stack(torch.aminmax(target)).tolist()
    if not 0 <= least <= most < n_labels:
        raise InputError(
            f"target holds ids from {least} to {most}; this layer has labels 0 to {n_labels - 1}, "
            f"and ignores {ignore_index}"
        )
