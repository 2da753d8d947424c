"""Log-probabilities of targets and of all labels, and samples, on the tree's index tensors."""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from hstree._arrays import Int64
from hstree._arrays import offsets as array_offsets
from hstree.errors import InputError
from hstree.interop.torch.functions import Decisions, Inputs, Pairs, decide, pair_logits, split
from hstree.interop.torch.gpu import can_fuse, fused_log_prob
from hstree.interop.torch.index import (
    Taken,
    TreeIndex,
    at_least_float32,
    index_tensor,
    is_traced_by_onnx,
    log_sum_exp,
    not_compiled,
    offsets,
    ranges,
    refuse_large,
)
from hstree.kernels import NARROW
from hstree.tree.arrays import TreeArrays
from hstree.tree.codes import Codes


@not_compiled
def target_log_prob(index: TreeIndex, inputs: Inputs, target: Tensor, ignore_index: int) -> Tensor:
    """Return the log-probabilities (N,) of the targets, at least float32; 0 where ignored.

    Raises InputError when a target is neither a label id nor `ignore_index`, and for hidden vectors
    whose products overflow.
    """
    weight, _, hidden, _ = inputs
    kept, target = scored_targets(index, hidden, target, ignore_index)
    if not index.widest:
        return certain(inputs)
    if can_fuse(index, weight):
        code_target, code = index.codes(target)
        of_code = fused_log_prob(index, inputs, kept[code_target], code)
    else:
        taken = index.expand(target)
        code_target = taken.code_item
        of_code = code_log_prob(index, inputs, taken._replace(code_item=kept[code_target]))
    return of_items(index, of_code, code_target, kept, len(hidden))


def scored_targets(
    index: TreeIndex, hidden: Tensor, target: Tensor, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Return the items (n,) of targets that are not ignored, and these targets; check them."""
    refuse_large(hidden)
    is_scored = target != ignore_index
    known = torch.where(is_scored, target, 0)
    # One transfer from a GPU
    figures = (*torch.aminmax(known), is_scored.sum()) if len(target) else (known.sum(),) * 3
    least, most, n_scored = torch.stack(figures).tolist()
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


def code_log_prob(index: TreeIndex, inputs: Inputs, taken: Taken) -> Tensor:
    """Return the log-probabilities (C,) of codes, each the sum over its decisions."""
    item, edge = taken.code_item[taken.decision_code], taken.edge
    row, branch, width = (a[edge] for a in (index.edge_row, index.edge_branch, index.edge_width))
    # Decisions at nodes of few children and of many; all are of few where no node has many
    few: Tensor | slice = slice(None)
    many: Tensor | slice = slice(0)
    if index.widest > NARROW:
        is_few = width <= NARROW
        few, many = is_few.nonzero()[:, 0], (~is_few).nonzero()[:, 0]
    # (P,) pairs: one for each child, but for a binary node, and the decision of each
    n_pairs = torch.where(width[few] == 2, 1, width[few])
    decision = torch.repeat_interleave(n_pairs)
    pairs = Pairs(item[few][decision], ranges(row[few], n_pairs))
    wide = Decisions(*(each[many] for each in (item, row, width, branch)))
    logits, of_many = decide(inputs, pairs, wide)
    of_few = _at_few_children(at_least_float32(logits), decision, n_pairs, branch[few])
    of_code = of_many.new_zeros(len(taken.code_item))
    for some, of_some in ((few, of_few), (many, of_many)):
        of_code = of_code.index_add(0, taken.decision_code[some], of_some)
    return of_code


def of_items(
    index: TreeIndex, of_code: Tensor, code_target: Tensor, kept: Tensor, n_items: int
) -> Tensor:
    """Sum probabilities of codes (C,) over targets: log-probabilities (N,), 0 where ignored.

    `kept` (n,) are the items of the targets.
    """
    if not index.has_single_codes:
        of_code = log_sum_exp(of_code, code_target, len(kept))
    return of_code.new_zeros(n_items).index_copy(0, kept, of_code)


def _at_few_children(logits: Tensor, decision: Tensor, n_pairs: Tensor, branch: Tensor) -> Tensor:
    """Return the log-probabilities (D,) of branches from logits (P,), one at a binary node."""
    is_binary = n_pairs == 1
    # (D,) logit of the branch taken; of the only pair at a binary node
    taken = logits[offsets(n_pairs)[:-1] + torch.where(is_binary, 0, branch)]
    of_binary = logsigmoid(torch.where(branch == 0, taken, -taken))
    if len(logits) == len(branch):
        return of_binary
    return torch.where(is_binary, of_binary, taken - log_sum_exp(logits, decision, len(branch)))


def certain(inputs: Inputs) -> Tensor:
    """Return the log-probabilities (N,) of the only label, zeros; differentiable."""
    none = torch.empty(0, dtype=torch.int64, device=inputs.hidden.device)
    zero = pair_logits(inputs, none, none).sum()
    return at_least_float32(zero + inputs.hidden.new_zeros(len(inputs.hidden)))


class AllLabels:
    """Order in which the edges, labels and nodes of a tree are computed, as index tensors."""

    def __init__(self, codes: Codes, device: torch.device) -> None:
        tree = codes.tree
        self.n_labels = tree.n_labels
        self.has_single_codes = tree.has_single_codes
        binary, groups, slots = _slots(tree)
        # (E,) edges from the root down; (E + 1,) place of each in paths, 0 of edge -1, the root
        down = np.concatenate([np.empty(0, np.int64), *(level.edges for level in tree.levels)])
        place = np.zeros(len(down) + 1, np.int64)
        place[down] = np.arange(1, len(down) + 1)
        self._level_sizes = [1, *(len(level.edges) for level in tree.levels)]
        level_start = array_offsets(np.array(self._level_sizes))
        self._binary_row = index_tensor(tree.row_start[binary], device)
        self._group_rows = [index_tensor(rows, device) for rows in groups]
        self._slot = index_tensor(np.r_[0, 1 + slots[down]], device)
        # (edges,) of each level below the root's children: the place, in the level above, of the
        # edge that leads to the node
        above = place[np.r_[-1, tree.parent_edge[down]]]
        above[1:] -= np.repeat(level_start[:-2], self._level_sizes[1:])
        self._above = torch.split(index_tensor(above, device), self._level_sizes)[2:]
        self._leaf = index_tensor(place[codes.leaf_edge if tree.n_nodes else [-1]], device)
        self._code_label = index_tensor(codes.label, device)
        self._node = index_tensor(place[tree.node_edge], device)

    def log_prob(self, weight: Tensor, bias: Tensor, hidden: Tensor) -> Tensor:
        """Return the log-probabilities (N, V), at least float32; O(N (R d + E))."""
        of_code = self._path(weight, bias, hidden).index_select(0, self._leaf)
        if self.has_single_codes:
            return of_code.T
        return log_sum_exp(of_code, self._code_label, self.n_labels).T

    def node_log_prob(self, weight: Tensor, bias: Tensor, hidden: Tensor) -> Tensor:
        """Return the log-probabilities (N, nodes) of reaching each node, 0 at the root."""
        return self._path(weight, bias, hidden).index_select(0, self._node).T

    def _path(self, weight: Tensor, bias: Tensor, hidden: Tensor) -> Tensor:
        """Return the log-probabilities (E + 1, N) of reaching the root, and what edges lead to."""
        refuse_large(hidden)
        logits = at_least_float32(torch.addmm(bias[:, None], weight, hidden.T))
        # (slots, N) of the root, the first children of all binary nodes, the second, the groups
        binary = logits.index_select(0, self._binary_row)
        parts = [logits.new_zeros(1, logits.shape[1]), _log_sigmoid(binary), _log_sigmoid(-binary)]
        if self._group_rows:  # which use row R as padding
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
    binary, row_start = np.flatnonzero(tree.fan_out == 2), tree.row_start
    first, step = np.empty(tree.n_nodes, np.int64), np.ones(tree.n_nodes, np.int64)
    first[binary], step[binary] = np.arange(len(binary)), len(binary)
    size, groups = 2 * len(binary), list[Int64]()
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
    """Draw one label for each hidden vector (N, d), int64 (N,), all a level at a time.

    A label with several codes is drawn with the sum of their probabilities.
    """
    hidden, device = inputs.hidden, inputs.hidden.device
    refuse_large(hidden)
    label = torch.zeros(len(hidden), dtype=torch.int64, device=device)
    # (items,) those that have not arrived at a label, and their nodes
    item = torch.arange(len(label) if index.widest else 0, device=device)
    node = torch.zeros_like(item)
    while len(item):
        first = index.child_start[node]
        row, width = index.edge_row[first], index.edge_width[first]
        branch = torch.empty_like(item)
        two = (width == 2).nonzero()[:, 0]
        logits = pair_logits(inputs, item[two], row[two])
        uniform = torch.rand(len(two), dtype=torch.float64, device=device, generator=generator)
        branch[two] = (uniform.log() >= logsigmoid(logits.double())).long()
        more = (width > 2).nonzero()[:, 0]
        more = more[torch.argsort(row[more], stable=True)]
        of_more, drawn = inputs._replace(hidden=hidden[item[more]]), torch.empty_like(more)
        for product in split(row[more], width[more], row[more], hidden.shape[1]):
            drawn[product.decision] = product.draw(product.log_prob(of_more), generator)
        branch[more] = drawn
        child = index.child[first + branch]
        arrived = child < 0
        label[item[arrived]] = ~child[arrived]
        item, node = item[~arrived], child[~arrived]
    return label
