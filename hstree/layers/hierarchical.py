"""The hierarchical softmax: one output layer for every tree, the flat one included.

``P(label | h)`` is the sum over the label's codes of the product of the branch probabilities on
the way; in log space a log-sum-exp over codes of sums of log-probabilities. The layer holds the
parameters, and gives the loss, its gradients and all labels' log-probabilities. The best-first
top-k is in `top_k`, sampling in `sampling`; a batch's decisions are computed in `node_groups`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hstree._typing import Array, Float64, Int64, Integer
from hstree.layers.node_groups import (
    CROWDED,
    NARROW,
    BinaryNodes,
    Decisions,
    Group,
    NarrowNodes,
    RowGradient,
    Scratch,
    WideNodes,
)
from hstree.layers.sampling import sample
from hstree.layers.top_k import top_k
from hstree.layers.tree_probabilities import TreeProbabilities
from hstree.tree import Tree


@dataclass(frozen=True)
class Gradients:
    """The gradients of the summed loss of a batch.

    Attributes
    ----------
    hidden : float array (B, d)
    rows : list of RowGradient
        Touched weight rows only; no row stands in two of them.
    """

    hidden: Array
    rows: list[RowGradient]


class HierarchicalSoftmax(TreeProbabilities):
    """Output layer of one tree: loss, gradients, top-k and sampling.

    Parameters and attributes are those of `TreeProbabilities`.
    """

    def __init__(
        self,
        tree: Tree,
        dim: int,
        *,
        counts: Integer | None = None,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__(tree, dim, counts=counts, dtype=dtype)
        self._edge_group = np.digitize(tree.edge_width, (3, NARROW + 1)).astype(np.int8)
        scratch = Scratch()
        self._kinds: tuple[Callable[[], Group], ...] = (
            BinaryNodes,
            NarrowNodes,
            partial(WideNodes, scratch),
        )

    def nll(self, hidden: Array, targets: Integer) -> Float64:
        """Return the negative log-likelihoods in nats, a float64 array (B,).

        Parameters
        ----------
        hidden : float array (B, d)
        targets : int array (B,)
            Label ids.
        """
        return _Pass(self, hidden, targets).nll

    def loss(self, hidden: Array, targets: Integer) -> tuple[Float64, Gradients]:
        """Return the losses (B,) as `nll` does, and the gradients of their sum."""
        forward = _Pass(self, hidden, targets)
        return forward.nll, forward.gradients()

    def top_k(self, hidden: Array, k: int) -> tuple[Int64, Float64]:
        """Return the k most probable labels of each hidden vector, exactly.

        Returns
        -------
        labels : int64 array (B, min(k, V))
            Most probable first; ties by label id.
        log_prob : float64 array (B, min(k, V))
        """
        return top_k(self.codes, self.weight, self.bias, hidden, k, self.log_prob)

    def sample(self, hidden: Array, rng: np.random.Generator) -> Int64:
        """Draw one label for each hidden vector by descending the tree; int64 array (B,)."""
        return sample(self.tree, self.weight, self.bias, hidden, rng)


class _Pass:
    """One batch on its way through the layer: scored at once, gradients when asked for."""

    def __init__(self, layer: HierarchicalSoftmax, hidden: Array, targets: Integer) -> None:
        self.layer, self.hidden = layer, hidden
        if layer.tree.n_nodes == 0:
            self.nll = np.zeros(len(targets))
            return
        expansion = layer.codes.expand(targets)
        self.code, self.item = expansion.decision_code, expansion.code_item
        n_codes = len(self.item)
        self.groups: list[tuple[Group, Int64 | slice]] = []
        log_prob = np.zeros(n_codes)
        for kind, mine in self._parted(expansion.edge):
            group, edge, code = kind(), expansion.edge[mine], self.code[mine]
            taken = Decisions(
                self.item[code],
                layer.tree.edge_row[edge],
                layer.tree.edge_branch[edge],
                layer.tree.edge_width[edge],
            )
            of_decision = group.forward(layer.weight, layer.bias, hidden, taken)
            log_prob += np.bincount(code, weights=of_decision, minlength=n_codes)
            self.groups.append((group, mine))
        self.code_log_prob = log_prob
        if layer.tree.has_single_codes:
            self.nll = -log_prob
        else:
            self.nll = -np.logaddexp.reduceat(log_prob, expansion.code_start[:-1])

    def _parted(self, edge: Int64) -> Iterator[tuple[Callable[[], Group], Int64 | slice]]:
        """Yield the groups that have decisions here, and which these are."""
        layer = self.layer
        number = layer._edge_group[edge]
        if not number.any():
            yield layer._kinds[0], slice(None)
            return
        narrow = np.flatnonzero(number == 1)
        node = layer.tree.edge_node[edge[narrow]]
        crowded = np.bincount(node)[node] * layer.tree.edge_width[edge[narrow]] >= CROWDED
        number[narrow[crowded]] = 2
        for of_group, kind in enumerate(layer._kinds):
            mine = np.flatnonzero(number == of_group)
            if mine.size:
                yield kind, mine

    def gradients(self) -> Gradients:
        """Return the gradients of the summed loss.

        A decision counts by its code's share of the label's probability, which is 1 where the
        label has one code.
        """
        rows: list[RowGradient] = []
        if self.layer.tree.n_nodes == 0:
            return Gradients(np.zeros_like(self.hidden), rows)
        share = None if self.layer.tree.has_single_codes else self._share_of_decision()
        grad_hidden = None
        for group, mine in self.groups:
            own = None if share is None else share[mine]
            of_group, of_rows = group.backward(self.layer.weight, self.hidden, own)
            grad_hidden = of_group if grad_hidden is None else grad_hidden + of_group
            rows.append(of_rows)
        return Gradients(np.zeros_like(self.hidden) if grad_hidden is None else grad_hidden, rows)

    def _share_of_decision(self) -> Array:
        of_code = np.exp(self.code_log_prob + self.nll[self.item])
        return of_code[self.code].astype(self.hidden.dtype)
