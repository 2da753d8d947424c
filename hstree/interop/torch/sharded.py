"""Hierarchical softmax whose weight rows are divided among the processes of a group, by sub-trees.

All processes have the top of the tree, and each sub-tree below it belongs to one process. A process
computes the decisions at the top for its own items. It sends hidden vectors to the processes with
the sub-trees of their targets, which return log-probabilities. Gradients are sent back in the same
manner. No process has all weights, and nothing is summed over all labels.
"""

import hashlib
import os
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor, distributed
from torch.autograd.function import once_differentiable

from hstree._arrays import Float64, Int64, Integer
from hstree.errors import InputError, OptionError
from hstree.interop.torch.functions import Inputs, row_gradient
from hstree.interop.torch.index import Decisions, TreeIndex, index_tensor, not_compiled
from hstree.interop.torch.module import TreeLayer, tree_hash
from hstree.interop.torch.probabilities import code_log_prob, item_log_prob, scored_targets
from hstree.tree import Tree, as_tree
from hstree.tree.codes import Codes
from hstree.tree.order import sum_to_root
from hstree.tree.weight_rows import edge_mass

#: Sub-trees are divided while they are larger than 1 / `PIECES` of the part of a process.
PIECES = 8

#: The processes that communicate; None means all.
Group: TypeAlias = "distributed.ProcessGroup | None"


def node_owners(tree: Tree, counts: Integer | None, n_owners: int) -> Int64:
    """Return the process (N,) that holds each node, -1 for the nodes at the top that all hold.

    A node is at the top if the sub-tree below it has more than 1 / (`PIECES` `n_owners`) of all
    weight rows, or of the rows that targets with these counts compute. The remaining sub-trees go,
    largest first, to the process with the least inner product of its own two fractions and those of
    the sub-tree, so that its load complements that of the sub-tree.
    """
    if tree.n_nodes == 0:
        return np.empty(0, np.int64)
    # (N, 2) fractions of the rows and of the rows computed, of each node and of the nodes below it
    mass = np.add.reduceat(edge_mass(tree, counts), tree.child_start[:-1])
    rows = np.diff(tree.row_start).astype(float)
    fraction: Float64 = np.stack([rows / rows.sum(), rows * mass / (rows @ mass)], axis=1)
    below = np.zeros_like(fraction)
    for level in reversed(tree.levels[1:]):
        np.add.at(below, tree.parent[level.nodes], below[level.nodes] + fraction[level.nodes])

    # Sub-trees whose root is below the top, and their fractions
    is_top = below.max(1) > 1 / (PIECES * n_owners)
    root = np.flatnonzero(~is_top & ((tree.parent < 0) | is_top[tree.parent]))
    size = (below + fraction)[root]

    # Fractions of each process; (N,) owner + 1 at the roots, 0 elsewhere, summed from the top down
    load = np.zeros((n_owners, 2))
    owner = np.zeros(tree.n_nodes, np.int64)
    for piece in np.argsort(-size.max(1), kind="stable"):
        least = np.argmin(load @ size[piece])
        load[least] += size[piece]
        owner[root[piece]] = least + 1
    return sum_to_root(owner, tree.parent) - 1


class _Layout(NamedTuple):
    """A tree on the device of a process with some of its rows."""

    tree_index: TreeIndex
    row_owner: Tensor  # int64 (R,), the process that holds each weight row; -1: all
    local_row: Tensor  # int64 (R,), position of each weight row among those of this process


class ShardedHierarchicalSoftmax(TreeLayer):
    """`HierarchicalSoftmax` whose weight rows are divided among processes, by whole sub-trees.

    All processes of the group must call it at the same time, with hidden vectors and targets as for
    `HierarchicalSoftmax`. Each process passes its own batch, which can be empty.

    Parameters
    ----------
    tree : Tree, or str or os.PathLike
        The tree or the name of its file, the same on all processes. Nodes are not divided: a tree
        in which one node has most weight rows, such as the flat tree, remains on all processes.
    in_features : int
        d, the length of a hidden vector.
    group : ProcessGroup, optional
        The processes (default: all).
    sparse, counts, ignore_index, device, dtype
        As in `HierarchicalSoftmax`. `counts` also determine the division of sub-trees and must be
        the same on all processes.

    Attributes
    ----------
    weight : Parameter (r, d)
        Node vectors of the weight rows `rows`; all processes have the first `n_shared`.
    bias : Parameter (r,)
        Biases of these rows.
    rows : int64 array (r,)
        Weight rows of the tree on this process.
    n_shared : int

    Notes
    -----
    The loss is the mean over the items of this process. The gradients of weights and biases are
    means over processes, as with ``DistributedDataParallel`` around a `HierarchicalSoftmax`. Wrap
    the layers before this layer in ``DistributedDataParallel``, but not this layer.

    `state_dict` gathers the weights of all processes, which must all call it. The result is that of
    a `HierarchicalSoftmax` on the CPU. `load_state_dict` accepts it on any number of processes.
    """

    def __init__(
        self,
        tree: Tree | str | os.PathLike[str],
        in_features: int,
        group: Group = None,
        *,
        sparse: bool = False,
        counts: Integer | None = None,
        ignore_index: int = -100,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        if not (distributed.is_available() and distributed.is_initialized()):
            raise OptionError(
                "there is no process group; call torch.distributed.init_process_group first"
            )
        self.group = group
        self._rank = distributed.get_rank(group)
        if self._rank < 0:
            raise OptionError("this process is not in the group; make the layer in those that are")

        # The rows that this process holds: those at the top, which all hold, then its sub-trees
        tree = as_tree(tree)
        counts = tree.counts if counts is None else counts
        self._owner = node_owners(tree, counts, distributed.get_world_size(group))
        self.rows = _held_rows(tree, self._owner, self._rank)
        self.n_shared = int(np.diff(tree.row_start)[self._owner < 0].sum())
        super().__init__(tree, in_features, self.rows, sparse, counts, ignore_index, device, dtype)
        if not self.weight.is_meta:
            self._refuse_others(counts)

    def _refuse_others(self, counts: Integer | None) -> None:
        """Raise InputError, on all processes, when they divide different layers."""
        digest = hashlib.sha256(f"{tree_hash(self.tree)} {self.in_features}".encode())
        digest.update(self._owner.tobytes())
        digest.update(b"" if counts is None else np.asarray(counts, np.int64).tobytes())
        # All numbers are equal if the largest is the smallest; 7 bytes fit into int64
        number = int.from_bytes(digest.digest()[:7], "little")
        largest = torch.tensor([number, -number], device=self.weight.device)
        distributed.all_reduce(largest, distributed.ReduceOp.MAX, self.group)
        if largest.sum() != 0:
            raise InputError(
                "the processes divide different layers; give all the same tree, in_features and "
                "counts"
            )

    def extra_repr(self) -> str:
        """Describe the layer in ``print(model)``."""
        n_rows = self.tree.row_start[-1]
        return f"{super().extra_repr()}, {len(self.rows):,} of {n_rows:,} weight rows"

    @not_compiled
    def _lay_out(self, device: torch.device) -> _Layout:
        row_owner = np.repeat(self._owner, np.diff(self.tree.row_start))
        local_row = np.zeros(len(row_owner), np.int64)
        local_row[self.rows] = np.arange(len(self.rows))
        return _Layout(
            TreeIndex(Codes(self.tree), device),
            index_tensor(row_owner, device),
            index_tensor(local_row, device),
        )

    def _target_log_prob(self, hidden: Tensor, target: Tensor) -> Tensor:
        average: Callable[..., Tensor] = _Averaged.apply
        weight, bias = (
            average(parameter, self.n_shared, self.group) for parameter in (self.weight, self.bias)
        )
        inputs = Inputs(weight, bias, hidden, self.sparse)
        return _target_log_prob(self._layout(), inputs, target, self.ignore_index, self.group)

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name, part in (("weight", self.weight), ("bias", self.bias)):
            destination[prefix + name] = self._gather(part.detach())

    def _gather(self, part: Tensor) -> Tensor:
        """Return the rows (R, ...) of all processes, on the CPU, one process after another."""
        gathered = torch.empty(int(self.tree.row_start[-1]), *part.shape[1:], dtype=part.dtype)
        group: Any = self.group or distributed.group.WORLD
        for rank in range(distributed.get_world_size(group)):
            # Each process sends its rows in turn; all write them to their positions in the array
            rows = _held_rows(self.tree, self._owner, rank)
            sent = part if rank == self._rank else part.new_empty(len(rows), *part.shape[1:])
            distributed.broadcast(sent, distributed.get_global_rank(group, rank), group)
            gathered[torch.from_numpy(rows)] = sent.cpu()
        return gathered

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *more: Any
    ) -> None:
        """Load this process's rows of the state of a `HierarchicalSoftmax`."""
        state = dict(state_dict)
        rows = torch.from_numpy(self.rows)
        for name in (f"{prefix}weight", f"{prefix}bias"):
            values = state.get(name)
            if values is not None and len(values) != self.tree.row_start[-1]:
                more[-1].append(  # to the error messages
                    f"{name} has {len(values)} rows; {self.tree} has {self.tree.row_start[-1]}: "
                    f"{self.rows_are}"
                )
                return
            if values is not None:
                state[name] = values.detach()[rows.to(values.device)]
        super()._load_from_state_dict(state, prefix, local_metadata, *more)


def _held_rows(tree: Tree, owner: Int64, rank: int) -> Int64:
    """Return the weight rows of a process: the shared rows, then its own."""
    row_owner = np.repeat(owner, np.diff(tree.row_start))
    return np.concatenate([np.flatnonzero(row_owner < 0), np.flatnonzero(row_owner == rank)])


@not_compiled
def _target_log_prob(
    layout: _Layout, inputs: Inputs, target: Tensor, ignore_index: int, group: Group
) -> Tensor:
    """Return the log-probabilities (N,) of the targets, 0 where ignored, as the module does.

    For any batches, all processes communicate in the same order, also in the backward pass.
    """
    index, row_owner, local_row = layout
    hidden = inputs.hidden
    rank = distributed.get_rank(group)
    n_owners = distributed.get_world_size(group)
    kept, target = scored_targets(index, hidden, target, ignore_index)
    decisions, code_target = index.path_decisions(target)
    decision_owner = row_owner[decisions.row]
    owner = _last_of_codes(decision_owner, decisions.code, len(code_target))

    # (Q,) targets and the other processes that hold their sub-trees, each once, by process
    n_targets = max(1, len(target))
    visit = torch.unique((owner * n_targets + code_target)[owner >= 0])
    visitor = visit % n_targets
    n_sent = torch.bincount(visit // n_targets, minlength=n_owners)
    n_received = torch.empty_like(n_sent)
    distributed.all_to_all_single(n_received, n_sent, group=group)
    route = _Route(n_sent.tolist(), n_received.tolist(), group)

    # Hidden vectors and decisions of targets that have codes in this process's sub-trees
    visiting = _exchange(hidden[kept[visitor]], route)
    received, received_target = index.path_decisions(_exchange(target[visitor], route))
    received_owner = row_owner[received.row]

    # Decisions at the top for the own items, and below it for the received ones
    top = decisions.take((decision_owner < 0).nonzero()[:, 0])
    below = received.take((received_owner == rank).nonzero()[:, 0])
    n_codes = len(code_target)
    computed = Decisions(
        item=torch.cat([kept[top.item], len(hidden) + below.item]),
        row=local_row[torch.cat([top.row, below.row])],
        width=torch.cat([top.width, below.width]),
        branch=torch.cat([top.branch, below.branch]),
        code=torch.cat([top.code, n_codes + below.code]),
    )
    inputs = inputs._replace(hidden=torch.cat([hidden, visiting]))
    log_prob = code_log_prob(inputs, computed, n_codes + len(received_target))

    # Log-probabilities of received codes go back to their sources, in the same order
    code_owner = _last_of_codes(received_owner, received.code, len(received_target))
    is_here = code_owner == rank
    source = torch.repeat_interleave(n_received)[received_target[is_here]]
    n_expected = torch.bincount(owner[owner >= 0], minlength=n_owners).tolist()
    n_returned = torch.bincount(source, minlength=n_owners).tolist()
    returned = _exchange(log_prob[n_codes:][is_here], _Route(n_returned, n_expected, group))
    code = torch.argsort(owner, stable=True)[n_codes - len(returned) :]
    log_prob = log_prob[:n_codes].index_add(0, code, returned)
    return item_log_prob(index, log_prob, code_target, kept, len(hidden))


def _last_of_codes(values: Tensor, code: Tensor, n_codes: int) -> Tensor:
    """Return the value (C,) of the last decision of each code; -1 if no code has a decision."""
    if not len(values):
        return values.new_full((n_codes,), -1)
    last = torch.bincount(code, minlength=n_codes).cumsum(0) - 1
    return values[last]


class _Route(NamedTuple):
    """Numbers of rows sent to and received from each process of a group."""

    sent: list[int]
    received: list[int]
    group: Group


class _Exchange(torch.autograd.Function):
    """Exchange of rows between processes; gradients return to the sources of the rows."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, route: _Route) -> Tensor:
        ctx.route = route
        received = values.new_empty(sum(route.received), *values.shape[1:])
        distributed.all_to_all_single(
            received, values.contiguous(), route.received, route.sent, group=route.group
        )
        return received

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        route = ctx.route
        return _exchange(gradient, _Route(route.received, route.sent, route.group)), None


def _exchange(values: Tensor, route: _Route) -> Tensor:
    exchanged: Tensor = _Exchange.apply(values, route)  # type: ignore[no-untyped-call]
    return exchanged


class _Averaged(torch.autograd.Function):
    """A parameter whose gradient is the mean over processes.

    Gradients of the first rows, which all processes hold, are summed over them; the others have
    been sent to the process that holds the row.
    """

    @staticmethod
    def forward(ctx: Any, parameter: Tensor, n_shared: int, group: Group) -> Tensor:
        ctx.n_shared = n_shared
        ctx.group = group
        return parameter.view_as(parameter)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        mean = gradient / distributed.get_world_size(ctx.group)
        n_shared = ctx.n_shared
        if not mean.is_sparse:
            distributed.all_reduce(mean[:n_shared], group=ctx.group)
            return mean, None, None
        # The rows that all processes hold are summed as a dense array; the others stay sparse
        mean = mean.coalesce()
        row = mean.indices()[0]
        values = mean.values()
        is_shared = row < n_shared
        shared = values.new_zeros(n_shared, *values.shape[1:])
        shared.index_copy_(0, row[is_shared], values[is_shared])
        distributed.all_reduce(shared, group=ctx.group)
        row = torch.cat([torch.arange(n_shared, device=row.device), row[~is_shared]])
        values = torch.cat([shared, values[~is_shared]])
        return row_gradient(row, values, len(mean)), None, None
