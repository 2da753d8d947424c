"""Log-probabilities of targets and of all labels, and samples, from a tree's index tensors."""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from hstree._arrays import Int64
from hstree._arrays import offsets as array_offsets
from hstree.errors import InputError
from hstree.interop.torch.functions import (
    Inputs,
    block_log_softmax,
    decision_log_prob,
    lay_out,
    pair_logits,
    part_matrices,
)
from hstree.interop.torch.gpu import can_fuse, fused_log_prob
from hstree.interop.torch.index import (
    Decisions,
    TreeIndex,
    at_least_float32,
    index_tensor,
    is_traced_by_onnx,
    log_sum_exp,
    not_compiled,
    refuse_large,
)
from hstree.tree.arrays import TreeArrays
from hstree.tree.codes import Codes


@not_compiled
def target_log_prob(index: TreeIndex, inputs: Inputs, target: Tensor, ignore_index: int) -> Tensor:
    """Return the log-probabilities (N,) of the targets, at least float32; 0 where ignored.

    Raises InputError if a target is neither a label id nor `ignore_index`, and for hidden vectors
    whose products overflow.
    """
    weight, _, hidden, _ = inputs
    kept, target = scored_targets(index, hidden, target, ignore_index)
    # One Triton program per code on a GPU, else the decisions of all codes
    if can_fuse(index, weight):
        code_target, codes = index.codes(target)
        log_prob = fused_log_prob(index, inputs, kept[code_target], codes)
    else:
        decisions, code_target = index.path_decisions(target)
        decisions = decisions._replace(item=kept[decisions.item])
        log_prob = code_log_prob(inputs, decisions, len(code_target))
    return item_log_prob(index, log_prob, code_target, kept, len(hidden))


def scored_targets(
    index: TreeIndex, hidden: Tensor, target: Tensor, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Return the items (n,) of targets that are not ignored, and these targets; check them."""
    refuse_large(hidden)
    is_scored = target != ignore_index
    known = torch.where(is_scored, target, 0)
    numbers = (*torch.aminmax(known), is_scored.sum()) if len(target) else (known.sum(),) * 3
    least, most, n_scored = torch.stack(numbers).tolist()  # one transfer from a GPU
    if not 0 <= least <= most < index.n_targets:
        nodes = f", nodes up to {index.n_targets - 1}" if index.n_targets > index.n_labels else ""
        raise InputError(
            f"target holds ids from {least} to {most}; this layer has labels 0 to "
            f"{index.n_labels - 1}{nodes}, and ignores {ignore_index}"
        )
    if n_scored == len(target):
        return torch.arange(len(target), device=target.device), target
    kept = is_scored.nonzero()[:, 0]
    return kept, target[kept]


def code_log_prob(inputs: Inputs, decisions: Decisions, n_codes: int) -> Tensor:
    """Return the log-probabilities (C,) of paths, each the sum over its decisions."""
    log_prob = decision_log_prob(inputs, decisions)
    return log_prob.new_zeros(n_codes).index_add(0, decisions.code, log_prob)


def item_log_prob(
    index: TreeIndex, log_prob: Tensor, code_target: Tensor, kept: Tensor, n_items: int
) -> Tensor:
    """Sum the probabilities of paths (C,) to each target: log-probabilities (N,), 0 where ignored.

    `code_target` (C,) is the target of each path, `kept` (n,) the batch item of each target.
    """
    if not index.has_single_codes:
        log_prob = log_sum_exp(log_prob, code_target, len(kept))
    return log_prob.new_zeros(n_items).index_copy(0, kept, log_prob)


class AllLabels:
    """Order in which the edges, labels and nodes of a tree are computed, as index tensors."""

    def __init__(self, codes: Codes, device: torch.device) -> None:
        tree = codes.tree
        self.n_labels = tree.n_labels
        self.has_single_codes = tree.has_single_codes

        # (E,) edges from the root down, and (E + 1,) the position of each edge in paths; 0 is that
        # of edge -1, which leads to the root
        down = np.concatenate([np.empty(0, np.int64), *(level.edges for level in tree.levels)])
        position = np.zeros(len(down) + 1, np.int64)
        position[down] = np.arange(1, len(down) + 1)
        self._level_sizes = [1, *(len(level.edges) for level in tree.levels)]
        level_start = array_offsets(np.array(self._level_sizes))

        # Weight rows of binary nodes and of groups of others, then the result's position for each
        # edge
        binary, groups, slots = _slots(tree)
        self._binary_row = index_tensor(tree.row_start[binary], device)
        self._group_rows = [index_tensor(rows, device) for rows in groups]
        self._slot = index_tensor(np.r_[0, 1 + slots[down]], device)

        # (edges,) of each level below the root's children: the position, in the level above, of
        # the edge that leads to the node
        above = position[np.r_[-1, tree.parent_edge[down]]]
        above[1:] -= np.repeat(level_start[:-2], self._level_sizes[1:])
        self._above = torch.split(index_tensor(above, device), self._level_sizes)[2:]

        # Positions of the last edge of each code, with its label, and of the edge to each node
        self._leaf = index_tensor(position[codes.leaf_edge if tree.n_nodes else [-1]], device)
        self._code_label = index_tensor(codes.label, device)
        self._node = index_tensor(position[tree.node_edge], device)

    def log_prob(self, weight: Tensor, bias: Tensor, hidden: Tensor) -> Tensor:
        """Return the log-probabilities (N, V), at least float32; O(N (R d + E))."""
        code_log_prob = self._path(weight, bias, hidden).index_select(0, self._leaf)
        if self.has_single_codes:
            return code_log_prob.T
        return log_sum_exp(code_log_prob, self._code_label, self.n_labels).T

    def node_log_prob(self, weight: Tensor, bias: Tensor, hidden: Tensor) -> Tensor:
        """Return the log-probabilities (N, nodes) of reaching each node, 0 at the root."""
        return self._path(weight, bias, hidden).index_select(0, self._node).T

    def _path(self, weight: Tensor, bias: Tensor, hidden: Tensor) -> Tensor:
        """Return the log-probabilities (E + 1, N) of reaching the root and the end of each edge."""
        refuse_large(hidden)
        logits = at_least_float32(torch.addmm(bias[:, None], weight, hidden.T))
        # (slots, N): the root, first children of binary nodes, their second children, the groups
        binary = logits.index_select(0, self._binary_row)
        parts = [logits.new_zeros(1, logits.shape[1]), _log_sigmoid(binary), _log_sigmoid(-binary)]
        if self._group_rows:  # the groups use row R as padding
            logits = torch.cat([logits, logits.new_full((1, logits.shape[1]), -torch.inf)])
        parts += [torch.log_softmax(logits[rows], 1).flatten(0, 1) for rows in self._group_rows]
        # (edges, N) of each edge, then of the path to each edge, one level after another. Not in
        # place: the ONNX exporter on traces drops sums that are written into a slice.
        levels = list(torch.split(torch.cat(parts).index_select(0, self._slot), self._level_sizes))
        for number, above in enumerate(self._above, 2):
            levels[number] = levels[number] + levels[number - 1].index_select(0, above)
        return torch.cat(levels)


def _log_sigmoid(logits: Tensor) -> Tensor:
    """Return ``-log(1 + exp(-logits))``, which in ONNX is Log(Sigmoid) and underflows."""
    return -softplus(-logits) if is_traced_by_onnx() else logsigmoid(logits)


def _slots(tree: TreeArrays) -> tuple[Int64, list[Int64], Int64]:
    """Return the slot (E,) of each edge in the parts of `AllLabels.log_prob`, after the root's.

    These are the binary nodes (n,), and the weight rows (n, K) of each group of nodes with a
    softmax, whose widths are between the same powers of two; R stands for rows past a node's.
    """
    row_start = tree.row_start
    # (N,) slot of the first child of each node, and distance between the slots of its children
    first = np.empty(tree.n_nodes, np.int64)
    step = np.ones(tree.n_nodes, np.int64)

    # Binary nodes: the first children of all, then the second ones
    binary = np.flatnonzero(tree.fan_out == 2)
    first[binary] = np.arange(len(binary))
    step[binary] = len(binary)
    size = 2 * len(binary)

    # Others, in groups of similar width: one node after another, padded to the widest
    groups: list[Int64] = []
    width_class = np.ceil(np.log2(tree.fan_out)).astype(np.int64)
    for number in np.unique(width_class[tree.fan_out > 2]).tolist():
        nodes = np.flatnonzero((width_class == number) & (tree.fan_out > 2))
        branch = np.arange(tree.fan_out[nodes].max())
        past = branch >= tree.fan_out[nodes, None]
        groups.append(np.where(past, row_start[-1], row_start[nodes, None] + branch))
        first[nodes] = size + len(branch) * np.arange(len(nodes))
        size += groups[-1].size
    slots: Int64 = first[tree.edge_node] + step[tree.edge_node] * tree.edge_branch
    return binary, groups, slots


@not_compiled
def sample(index: TreeIndex, inputs: Inputs, generator: torch.Generator | None) -> Tensor:
    """Draw one label for each hidden vector (N, d), int64 (N,), level by level.

    A label with more than one code is drawn with the sum of their probabilities.
    """
    hidden = inputs.hidden
    refuse_large(hidden)
    label = torch.zeros(len(hidden), dtype=torch.int64, device=hidden.device)
    # (items,) batch item and current node of items that have not reached a label
    item = torch.arange(len(label) if index.widest else 0, device=hidden.device)
    node = torch.zeros_like(item)
    while len(item):
        edge = index.child_start[node]
        decisions = Decisions(
            item=item,
            row=index.edge_row[edge],
            width=index.edge_width[edge],
            branch=index.edge_branch[edge],
            code=item,
        )
        child = index.child[edge + draw_branches(inputs, decisions, generator)]
        arrived = child < 0
        label[item[arrived]] = ~child[arrived]
        item = item[~arrived]
        node = child[~arrived]
    return label


def draw_branches(
    inputs: Inputs, decisions: Decisions, generator: torch.Generator | None
) -> Tensor:
    """Draw the branch that each decision takes, int64 (D,)."""
    layout = lay_out(decisions)
    branch = torch.empty_like(decisions.branch)
    if len(layout.narrow_position):
        # (n, K) scores of children, padded to the widest node; the second of two has the score 0
        pairs = layout.pairs
        logits = at_least_float32(pair_logits(inputs, pairs.item, pairs.row))
        shape = (len(layout.narrow_position), int(layout.narrow.width.max()))
        scores = logits.new_full(shape, -torch.inf)
        scores[:, 1] = 0
        scores[pairs.decision, pairs.row - layout.narrow.row[pairs.decision]] = logits
        drawn = torch.multinomial(scores.softmax(1), 1, generator=generator)
        branch[layout.narrow_position] = drawn[:, 0]
    # Wide nodes, from the softmax over their children
    hidden = inputs.hidden.index_select(0, layout.wide.item)
    for block in layout.nodes.blocks:
        log_softmax = block_log_softmax(inputs._replace(hidden=hidden), block)
        for part, log_prob in zip(block, part_matrices(log_softmax, block), strict=True):
            drawn = torch.multinomial(log_prob.exp(), 1, generator=generator)
            branch[layout.wide_position.narrow(0, part.first, part.n)] = drawn[:, 0]
    return branch
