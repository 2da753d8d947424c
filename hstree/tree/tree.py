"""The tree: one immutable object of flat arrays that every builder makes and every layer reads.

Inner nodes are numbered ``0..N-1`` with the root at 0, and a child node has a larger number than
its parent, so that no arrays can describe a cycle. Labels are the leaves. A label may hang under
several nodes; each way from the root to one of its places is a code, and its probability is the
sum over its codes. The flat softmax is the tree of depth one.

What is not here: the way from a label to its codes (`codes`), the file format (`treefile`) and
the figures (`statistics`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hstree.errors import TreeError
from hstree.tree.packing import content_arrays
from hstree.tree.rules import broken_rules

if TYPE_CHECKING:
    import networkx

    from hstree.tree.paths import Paths
    from hstree.tree.statistics import TreeStatistics

Int64 = NDArray[np.int64]


class Tree:
    """A checked hierarchical-softmax tree.

    Parameters
    ----------
    labels : sequence of str, length V
        Unique; at least one.
    child_start : array_like of int, shape (N + 1,)
    child : array_like of int, shape (E,)
        The children of node n are ``child[child_start[n]:child_start[n + 1]]``;
        ``c >= 0`` is a node, ``c < 0`` the label ``~c``.
    counts : array_like of int, shape (V,), optional
        Training counts of the labels.
    names : sequence of str or None, length N, optional
        A name for each inner node ("canine.n.02"), for people to read.
    meta : mapping, optional
        How the tree was made: method, options, random_state, hstree (version), input. JSON values.

    Raises
    ------
    TreeError
        When the content breaks a rule of the format; the message names the rule and the place.

    Notes
    -----
    Two children make one logistic decision, ``P(first child) = sigmoid(q.h + b)``; more make a
    softmax. With V = 1 there is no node and the label has probability one.

    Examples
    --------
    >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]])
    >>> tree.n_nodes, tree.depth.tolist()
    (2, [0, 1])
    """

    def __init__(
        self,
        labels: Sequence[str],
        child_start: ArrayLike,
        child: ArrayLike,
        *,
        counts: ArrayLike | None = None,
        names: Sequence[str | None] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        self.labels: tuple[str, ...] = tuple(labels)
        self.child_start = _frozen(child_start, "child_start")
        self.child = _frozen(child, "child")
        self.counts = None if counts is None else _frozen(counts, "counts")
        self.names: tuple[str | None, ...] | None = None if names is None else tuple(names)
        self.meta: dict[str, Any] = dict(meta or {})
        broken = broken_rules(self.labels, self.child_start, self.child, self.counts, self.names)
        if broken:
            more = f" (and {len(broken) - 1} more broken rules)" if len(broken) > 1 else ""
            raise TreeError(f"not a valid tree: {broken[0]}{more}")

    @classmethod
    def from_children(
        cls,
        labels: Sequence[str],
        children: Sequence[Sequence[int]],
        *,
        counts: ArrayLike | None = None,
        names: Sequence[str | None] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Tree:
        """Make a tree from one list of children for each node, as they stand in tree.json."""
        start = np.zeros(len(children) + 1, np.int64)
        np.cumsum([len(of_node) for of_node in children], out=start[1:])
        child = [c for of_node in children for c in of_node]
        return cls(labels, start, child, counts=counts, names=names, meta=meta)

    @classmethod
    def from_linkage(
        cls, merges: ArrayLike, labels: Sequence[str], *, counts: ArrayLike | None = None
    ) -> Tree:
        """Make a tree from an agglomerative clustering, scipy's or scikit-learn's.

        Parameters
        ----------
        merges : array_like (V - 1, 2 or more)
            The linkage matrix of ``scipy.cluster.hierarchy``, or `children_` of scikit-learn's
            ``AgglomerativeClustering``; see `hstree.builders.linkage.tree_from_linkage`.
        labels : sequence of str, length V
        counts : array_like of int, shape (V,), optional

        Raises
        ------
        InputError
            When `merges` is not that.
        """
        from hstree.builders.linkage import tree_from_linkage

        return tree_from_linkage(merges, labels, counts)

    @classmethod
    def from_networkx(cls, graph: networkx.DiGraph[Any]) -> Tree:
        """Make a tree from a networkx graph; see `hstree.formats.networkx.from_networkx`.

        Raises
        ------
        InputError
            When the graph is no tree as hstree has them.
        """
        from hstree.formats.networkx import from_networkx

        return from_networkx(graph)

    def __repr__(self) -> str:
        method = f", method={self.meta['method']!r}" if "method" in self.meta else ""
        return f"Tree({self.n_labels} labels, {self.n_nodes} nodes{method})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    @property
    def n_labels(self) -> int:
        """V, the number of labels."""
        return len(self.labels)

    @property
    def n_nodes(self) -> int:
        """N, the number of inner nodes; 0 only where V = 1."""
        return len(self.child_start) - 1

    @cached_property
    def fan_out(self) -> Int64:
        """int64 array (N,): the number of children of each node."""
        return _frozen(np.diff(self.child_start), "fan_out")

    @cached_property
    def edge_node(self) -> Int64:
        """int64 array (E,): the node that each edge leaves. Edge e leads to ``child[e]``."""
        return _frozen(np.repeat(np.arange(self.n_nodes), self.fan_out), "edge_node")

    @cached_property
    def node_edge(self) -> Int64:
        """int64 array (N,): the edge that leads to each node, -1 for the root."""
        edge = np.full(self.n_nodes, -1, np.int64)
        inner = np.flatnonzero(self.child >= 0)
        edge[self.child[inner]] = inner
        return _frozen(edge, "node_edge")

    @cached_property
    def parent(self) -> Int64:
        """int64 array (N,): the parent of each node, -1 for the root."""
        parent = np.full(self.n_nodes, -1, np.int64)
        parent[1:] = self.edge_node[self.node_edge[1:]]
        return _frozen(parent, "parent")

    @cached_property
    def depth(self) -> Int64:
        """int64 array (N,): decisions taken before each node is reached; 0 for the root."""
        above = np.ones(self.n_nodes, np.int64)
        above[:1] = 0
        return _frozen(self.sum_to_root(above), "depth")

    def sum_to_root(self, value: NDArray[Any]) -> NDArray[Any]:
        """Sum a figure over each node and all nodes above it.

        Parameters
        ----------
        value : array (N,)

        Returns
        -------
        array (N,)
            By pointer doubling: O(N log depth), so that a chain is no slower than a balanced tree.
        """
        total, jump = np.array(value), np.array(self.parent)
        while (alive := np.flatnonzero(jump >= 0)).size:
            above = jump[alive]
            total[alive] += total[above]
            jump[alive] = jump[above]
        return total

    @cached_property
    def levels(self) -> list[Int64]:
        """The nodes of each depth, in their order: one array a level, from the root down."""
        order = _frozen(np.argsort(self.depth, kind="stable"), "levels")
        return np.split(order, np.cumsum(np.bincount(self.depth))[:-1]) if self.n_nodes else []

    @cached_property
    def sha256(self) -> str:
        """Hash of the content: labels, counts, children and names, not `meta`.

        The three endings of a file agree on it, and so do two versions of hstree;
        ``docs/tree-format.md`` says how it is computed.
        """
        digest = hashlib.sha256(b"hstree tree 1\n")
        content = content_arrays(self.labels, self.counts, self.child_start, self.child, self.names)
        for name, array in content.items():
            digest.update(f"{name} {array.nbytes}\n".encode())
            digest.update(array.astype(array.dtype.newbyteorder("<"), copy=False).data)
        return digest.hexdigest()

    def with_meta(self, meta: Mapping[str, Any]) -> Tree:
        """Return the same tree with other meta; the arrays are shared and not checked again."""
        other = object.__new__(Tree)
        vars(other).update(vars(self), meta=dict(meta))
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and unpickle through `__init__`: arrays come out read-only, and are checked."""
        content = (self.labels, self.child_start, self.child, self.counts, self.names, self.meta)
        return _tree_of, content

    def stats(self) -> TreeStatistics:
        """Compute the tree's figures; see `hstree.tree.statistics.TreeStatistics`."""
        from hstree.tree.statistics import tree_statistics

        return tree_statistics(self)

    def to_paths(self, labels: ArrayLike | None = None) -> Paths:
        """Return the way to each label as gensim, word2vec and Paddle want it.

        Parameters
        ----------
        labels : array_like of int (L,), optional
            Label ids; all labels without.

        Raises
        ------
        InputError
            When the tree is not binary with one code a label; see `hstree.tree.paths.paths_of`.
        """
        from hstree.tree.paths import paths_of

        return paths_of(self, labels)

    def to_networkx(self) -> networkx.DiGraph[int]:
        """Return the tree as a networkx graph; see `hstree.formats.networkx`."""
        from hstree.formats.networkx import to_networkx

        return to_networkx(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tree as ``.json``, ``.json.gz`` or ``.npz``, by the ending of `path`.

        Raises
        ------
        FileFormatError
            When the ending is unknown or the file cannot be written.
        """
        from hstree.tree.files import save

        save(self, path)


def _tree_of(
    labels: Sequence[str],
    child_start: Int64,
    child: Int64,
    counts: Int64 | None,
    names: Sequence[str | None] | None,
    meta: Mapping[str, Any],
) -> Tree:
    return Tree(labels, child_start, child, counts=counts, names=names, meta=meta)


def _frozen(values: ArrayLike, name: str) -> Int64:
    """Return `values` as a read-only int64 vector of its own."""
    try:
        given = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise TreeError(f"not a valid tree: {name} wants a vector of integers ({error})") from error
    if given.size == 0:
        given = given.astype(np.int64)
    whole = np.issubdtype(given.dtype, np.integer)
    if given.ndim != 1 or not whole:
        raise TreeError(
            f"not a valid tree: {name} wants a vector of integers, "
            f"not {given.dtype} of shape {given.shape}"
        )
    if given.dtype == np.uint64 and given.max() > np.iinfo(np.int64).max:
        raise TreeError(f"not a valid tree: {name} holds {given.max()}, above 2**63 - 1")
    array = given.astype(np.int64)
    array.setflags(write=False)
    return array
