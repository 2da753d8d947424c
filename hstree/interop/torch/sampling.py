"""Sampling: descend the tree from the root, all hidden vectors a level at a time."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from hstree.interop.torch.index import TreeIndex
from hstree.interop.torch.pairs import pair_scores
from hstree.interop.torch.softmax_nodes import draw_branches
from hstree.interop.torch.tiles import Decisions


def sample(
    index: TreeIndex,
    weight: Tensor,
    bias: Tensor,
    hidden: Tensor,
    generator: torch.Generator | None,
) -> Tensor:
    """Draw one label for each hidden vector (N, d), int64 (N,).

    Exact for labels with several codes too: each is drawn with the sum of its codes'
    probabilities.
    """
    label = torch.zeros(len(hidden), dtype=torch.int64, device=hidden.device)
    item = torch.arange(len(hidden) if index.widest else 0, device=hidden.device)
    node = torch.zeros_like(item)
    while len(item):
        first = index.child_start[node]
        row, width = index.edge_row[first], index.edge_width[first]
        branch = torch.empty_like(item)
        two = (width == 2).nonzero()[:, 0]
        score = pair_scores(weight, bias, hidden, item[two], row[two], sparse=False)
        branch[two] = _second_child(score, generator)
        more = (width > 2).nonzero()[:, 0]
        if len(more):
            taken = Decisions(item[more], row[more], width[more])
            branch[more] = draw_branches(weight, bias, hidden, taken, generator)
        below = index.child[first + branch]
        arrived = below < 0
        label[item[arrived]] = ~below[arrived]
        item, node = item[~arrived], below[~arrived]
    return label


def _second_child(score: Tensor, generator: torch.Generator | None) -> Tensor:
    """Draw whether the second child is taken, int64 0 or 1."""
    uniform = torch.rand(len(score), dtype=torch.float64, device=score.device, generator=generator)
    return (uniform.log() >= logsigmoid(score.double())).long()
