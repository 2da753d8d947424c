"""Hierarchical softmax whose nodes below some levels have weights of another kind.

The tree is cut in two: the nodes near the root, and the sub-trees below them. Each part is a
hierarchical softmax over a tree of its own.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from hstree._options import RandomState, Range
from hstree._ragged import offsets
from hstree._typing import Array, Bool, Float64, Int64, Integer
from hstree.data.windows import Windows
from hstree.errors import InputError, OptionError
from hstree.layers.base import (
    Gradients,
    OutputLayer,
    ParameterGradient,
    check_words_before,
)
from hstree.layers.dense import batch_blocks, orthogonal_rows
from hstree.layers.hierarchical import HierarchicalSoftmax, check_single_codes, renamed
from hstree.layers.top_k import top_k_of_all
from hstree.tree import Tree
from hstree.tree.codes import Codes
from hstree.tree.weight_rows import label_mass


class LevelSoftmax(OutputLayer):
    """Hierarchical softmax whose upper and lower nodes differ in vectors, rates or weight decay.

    A node is a lower one if at least `upper_levels` nodes are above it, and at most the share
    `rare` of the tokens passes through it. Without options, the layer is that of the tree.

    A target costs the scores of the tree. With `lower_dim`, those of lower nodes have that many
    multiplications, and a projection of the hidden vector is added. Parameters: those of the tree,
    less where lower vectors are shorter.

    Parameters
    ----------
    tree : Tree
        With one code a label.
    dim : int
        d, the length of hidden vectors.
    counts : int array (V,), optional
        Training counts for the starting biases; `tree.counts` by default, 1 each without any.
    dtype : float dtype, default float32
    random_state : int
        Random seed of the projection.
    upper_levels : int
        Number of levels, the root's first, whose nodes are upper ones.
    rare : float
        Share of the tokens, by the counts of the tree, above which a node is an upper one on any
        level.
    lower_dim : int, optional
        Length of the vectors of lower nodes, which see a projection of the hidden vector: d by
        default, without a projection.
    own_positions : bool
        Give upper and lower nodes hidden vectors made by position matrices of their own, in
        language models.
    upper_rate : float
        Factor on a language model's learning rate for upper nodes.
    lower_rate : float
        Factor on it for lower nodes.
    upper_decay : float
        Factor on a language model's weight decay for the vectors of upper nodes.
    lower_decay : float
        Factor on it for those of lower nodes.

    Attributes
    ----------
    upper, lower : HierarchicalSoftmax
        The two parts; `lower` is None where no node is a lower one.
    projection : float array (lower_dim, d) or None

    Raises
    ------
    InputError
        When a label has several codes.
    OptionError
        When `lower_dim` is not below d.

    References
    ----------
    Y. Shen, S. Tan, C. Pal & A. Courville, "Self-organized hierarchical softmax", 2017 (own
    position matrices); E. Grave, A. Joulin, M. Cisse, D. Grangier & H. Jegou, "Efficient softmax
    approximation for GPUs", ICML 2017 (shorter vectors of rare words).
    """

    def __init__(
        self,
        tree: Tree,
        dim: int,
        *,
        counts: Integer | None = None,
        dtype: Any = np.float32,
        random_state: RandomState = 0,
        upper_levels: Annotated[int, Range(1)] = 1,
        rare: Annotated[float, Range(0, 1)] = 1.0,
        lower_dim: Annotated[int | None, Range(1, 1 << 16)] = None,
        own_positions: bool = False,
        upper_rate: Annotated[float, Range(0)] = 1.0,
        lower_rate: Annotated[float, Range(0)] = 1.0,
        upper_decay: Annotated[float, Range(0)] = 1.0,
        lower_decay: Annotated[float, Range(0)] = 1.0,
    ) -> None:
        super().__init__(tree.n_labels, dim)
        self.own_positions = own_positions
        self._rates, self._decays = (upper_rate, lower_rate), (upper_decay, lower_decay)
        check_single_codes(tree, "levels")
        if lower_dim is not None and lower_dim >= dim:
            raise OptionError.about(
                "lower_dim", f"is {lower_dim}; it must be below {dim}, the length of other vectors"
            )
        # The tree alone decides where it is cut, so that a saved model is cut there again
        share = label_mass(tree, tree.counts)
        is_lower = tree.depth >= upper_levels
        is_lower[1:] &= tree.sum_up(share)[tree.node_edge[1:]] <= rare * share.sum()
        cut = Cut.of(tree, is_lower)
        self._is_in_vain = cut.lower is None and (
            own_positions or lower_dim is not None or {lower_rate, lower_decay} != {1.0}
        )
        mass = label_mass(tree, tree.counts if counts is None else counts)
        self._branch, self._label, self._below = cut.branch, cut.label, cut.below
        of_branch = np.bincount(cut.branch, mass)
        self.upper = HierarchicalSoftmax(cut.upper, dim, counts=of_branch, dtype=dtype)
        self.lower: HierarchicalSoftmax | None = None
        self.projection: Array | None = None
        if cut.lower is not None:
            width = dim if lower_dim is None else lower_dim
            part = SubtreeSoftmax if cut.is_joined else HierarchicalSoftmax
            self.lower = part(cut.lower, width, counts=mass[cut.below], dtype=dtype)
            if lower_dim is not None:
                rng = np.random.default_rng(random_state)
                self.projection = orthogonal_rows(lower_dim, dim, dtype, rng)

    def parameters(self) -> dict[str, Array]:
        """Return the trained arrays, by the names that a saved model gives them."""
        arrays = {"upper_weight": self.upper.weight, "upper_bias": self.upper.bias}
        if self.lower is not None:
            arrays |= {"lower_weight": self.lower.weight, "lower_bias": self.lower.bias}
        if self.projection is not None:
            arrays["lower_projection"] = self.projection
        return arrays

    @classmethod
    def shapes(
        cls, source: Tree, dim: int, *, lower_dim: int | None = None, **options: Any
    ) -> dict[str, tuple[int, ...]]:
        """Return the shapes of `parameters` of a layer."""
        shapes: dict[str, tuple[int, ...]] = {}
        width = dim if lower_dim is None else lower_dim
        for name, array in cls(source, 1, **options).parameters().items():
            length = width if name.startswith("lower") else dim
            shapes[name] = (len(array), length) if array.ndim == 2 else (len(array),)
        if lower_dim is not None and "lower_weight" in shapes:
            shapes["lower_projection"] = (lower_dim, dim)
        return shapes

    def learning_rates(self) -> dict[str, float]:
        """Return the factors on the learning rate of both parts."""
        return self._by_part(self._rates)

    def weight_decays(self) -> dict[str, float]:
        """Return the factors on the weight decay of both parts."""
        return self._by_part(self._decays)

    def _by_part(self, factors: tuple[float, float]) -> dict[str, float]:
        upper, lower = factors
        return {
            name: upper if name.startswith("upper") else lower
            for name in self.training_parameters()
        }

    @classmethod
    def views(cls, *, own_positions: bool = False, **_: Any) -> int:
        """Return the number of hidden vectors of an item."""
        return 2 if own_positions else 1

    @property
    def needs_contexts(self) -> bool:
        """Whether an option is given that language models alone follow."""
        return self.own_positions or {*self._rates, *self._decays} != {1.0}

    def prepare(self, train: Windows) -> None:
        """Refuse options that nothing follows: for lower nodes, or for language models.

        Raises
        ------
        InputError
        """
        if self._is_in_vain:
            raise InputError(
                "no node of this tree is a lower one, and options are given for lower nodes; lower "
                "upper_levels, or raise rare"
            )
        if self.needs_contexts:
            check_words_before(train, "position matrices, rates and decays of its own need")

    def curvature(self, counts: Array) -> dict[str, Float64]:
        """Return the mean curvature of the loss along each row; 1/4 at most in a projection."""
        of_branch = np.bincount(self._branch, counts, minlength=self.upper.n_labels)
        curvature = [*self.upper.curvature(of_branch).values()]
        if self.lower is not None:
            of_lower = counts[self._below]
            share = of_lower.sum() / counts.sum()
            curvature += [share * rows for rows in self.lower.curvature(of_lower).values()]
        if self.projection is not None:
            curvature.append(np.full(len(self.projection), 0.25 * share))
        return dict(zip(self.parameters(), curvature, strict=True))

    def nll(self, hidden: Array, targets: Integer) -> Float64:
        """Return the negative log-likelihoods of targets (B,) in nats, a float64 array (B,)."""
        of_upper, of_lower = self._seen(hidden)
        nll = self.upper.nll(of_upper, self._branch[targets])
        items = np.flatnonzero(self._label[targets] >= 0)
        if self.lower is not None and items.size:
            inputs = self._projected(of_lower[items])
            nll[items] += self.lower.nll(inputs, self._label[targets[items]])
        return nll

    def loss(
        self, hidden: Array, targets: Integer, rng: np.random.Generator | None = None
    ) -> tuple[Float64, Gradients]:
        """Return what `nll` does, and the gradients of the sum; `rng` is not used."""
        of_upper, of_lower = self._seen(hidden)
        losses, upper = self.upper.loss(of_upper, self._branch[targets])
        parameters = renamed(upper.parameters, "upper")
        grad_hidden = np.zeros_like(hidden)
        grad_upper, grad_lower = (grad_hidden[:, columns] for columns in self._columns)
        grad_upper += upper.hidden
        items = np.flatnonzero(self._label[targets] >= 0)
        if self.lower is not None and items.size:
            seen = of_lower[items]
            nll, lower = self.lower.loss(self._projected(seen), self._label[targets[items]])
            losses[items] += nll
            parameters += renamed(lower.parameters, "lower")
            grad = lower.hidden
            if self.projection is not None:
                rows = slice(0, len(self.projection))
                parameters.append(ParameterGradient("lower_projection", rows, grad.T @ seen))
                grad = grad @ self.projection
            grad_lower[items] += grad
        return losses, Gradients(grad_hidden, parameters)

    def log_prob(self, hidden: Array) -> Float64:
        """Return the log-probabilities of all labels, a float64 array (B, V)."""
        of_upper, of_lower = self._seen(hidden)
        log_prob = self.upper.log_prob(of_upper)[:, self._branch]
        if self.lower is not None:
            log_prob[:, self._below] += self.lower.log_prob(self._projected(of_lower))
        return log_prob

    def top_k(self, hidden: Array, k: int) -> tuple[Int64, Float64]:
        """Return the k most probable labels and their log-probabilities; ties by label id.

        Computes all labels, O(V) memory for an item.
        """
        return top_k_of_all(len(hidden), self.n_labels, k, lambda some: self.log_prob(hidden[some]))

    @property
    def _columns(self) -> tuple[slice, slice]:
        """The columns of hidden vectors that upper and lower nodes see."""
        if not self.own_positions:
            return slice(None), slice(None)
        return slice(0, self.dim), slice(self.dim, None)

    def _seen(self, hidden: Array) -> tuple[Array, Array]:
        """Return the hidden vectors (B, d) that upper and lower nodes see."""
        of_upper, of_lower = self._columns
        return np.ascontiguousarray(hidden[:, of_upper]), np.ascontiguousarray(hidden[:, of_lower])

    def _projected(self, hidden: Array) -> Array:
        return hidden if self.projection is None else hidden @ self.projection.T


class SubtreeSoftmax(HierarchicalSoftmax):
    """Hierarchical softmax over each of the sub-trees of a root, whose own branch is given.

    The root has no rows. `log_prob` is that of each label below its branch; `top_k` and `sample`
    are of no use.
    """

    def __init__(
        self, tree: Tree, dim: int, *, counts: Array | None = None, dtype: Any = np.float32
    ) -> None:
        super().__init__(tree, dim, counts=counts, dtype=dtype)
        self.codes = Codes(tree, below_root=True)
        self.weight, self.bias = self.weight[self._rows_of_root :], self.bias[self._rows_of_root :]

    @property
    def _rows_of_root(self) -> int:
        return int(self.tree.row_start[1])

    def curvature(self, counts: Array) -> dict[str, Float64]:
        """Return the mean curvature of the loss along each row."""
        curvature = super().curvature(counts)
        return {name: rows[self._rows_of_root :] for name, rows in curvature.items()}

    def log_prob(self, hidden: Array) -> Float64:
        """Return the log-probabilities of all labels below their branches, (B, V) in float64."""
        result = np.empty((len(hidden), self.n_labels))
        for some in batch_blocks(len(hidden), len(self.tree.child)):
            # (R, b) logits, with those of the root, which cancel
            logits = np.zeros(
                (self._rows_of_root + len(self.bias), len(hidden[some])), self.bias.dtype
            )
            logits[self._rows_of_root :] = self.weight @ hidden[some].T + self.bias[:, None]
            result[some] = self.log_prob_of_logits(logits)
        result += np.log(self.tree.fan_out[0])
        return result


class Cut(NamedTuple):
    """A tree cut in two.

    The labels of the upper tree are the V' branches on which the cut leaves it: labels, and
    sub-trees of lower nodes. Those of the lower tree are the labels in these sub-trees.
    """

    upper: Tree
    lower: Tree | None  #: None where there are no lower nodes
    is_joined: bool  #: whether a root joins several sub-trees in the lower tree
    branch: Int64  #: (V,) the branch of each label
    label: Int64  #: (V,) the label's number in the lower tree, -1 where it is not there
    below: Int64  #: (L,) the labels of the lower tree, ascending

    @classmethod
    def of(cls, tree: Tree, is_lower: Bool) -> Cut:
        """Cut a tree above its lower nodes (N,); whatever is below one is a lower node, too."""
        ends = _is_end(tree, is_lower) & ~is_lower[tree.edge_node]
        # (E,) the branch that an edge is on, right from the ends down
        branch = np.where(ends, np.cumsum(ends) - 1, 0)
        branch_of_edge = branch.copy()
        tree.sum_down(branch_of_edge)
        leaf = np.flatnonzero(tree.child < 0)
        of_label = np.zeros(tree.n_labels, np.int64)
        of_label[~tree.child[leaf]] = branch_of_edge[leaf]
        in_lower = np.zeros(tree.n_labels, np.bool_)
        in_lower[~tree.child[leaf]] = is_lower[tree.edge_node[leaf]]
        below = np.flatnonzero(in_lower)
        label = np.where(in_lower, np.cumsum(in_lower) - 1, -1)
        n_branches = max(1, int(ends.sum()))
        child = np.where(ends, ~branch, tree.child)
        upper = _part(tree, ~is_lower, child, [str(i) for i in range(n_branches)])
        roots = np.flatnonzero(is_lower & ~is_lower[tree.parent])
        if not roots.size:
            return cls(upper, None, False, of_label, label, below)
        child = np.where(tree.child < 0, ~label[~np.minimum(tree.child, -1)], tree.child)
        words = [tree.labels[i] for i in below]
        is_joined = len(roots) > 1
        lower = _part(tree, is_lower, child, words, roots if is_joined else None)
        return cls(upper, lower, is_joined, of_label, label, below)


def _is_end(tree: Tree, is_lower: Bool) -> Bool:
    """Return whether each edge (E,) leads to a label or to a lower node."""
    is_end: Bool = tree.child < 0
    is_end[~is_end] = is_lower[tree.child[~is_end]]
    return is_end


def _part(
    tree: Tree, is_in: Bool, child: Int64, labels: list[str], roots: Int64 | None = None
) -> Tree:
    """Return a tree of some nodes (N,), whose children are at `child` (E,); `roots` are joined."""
    joined = 0 if roots is None else 1
    number = np.cumsum(is_in) - 1 + joined
    child = child[is_in[tree.edge_node]]
    child = np.where(child < 0, child, number[np.maximum(child, 0)])
    fan_out = tree.fan_out[is_in]
    if roots is not None:
        child = np.concatenate([number[roots], child])
        fan_out = np.append(len(roots), fan_out)
    return Tree(labels, offsets(fan_out), child)
