"""Arrays of a tree, checked and read-only, and arrays derived from them.

Inner nodes are numbered ``0..N-1``, and the root is 0. A child node has a larger number than its
parent, so that arrays cannot describe a cycle. Labels are the leaves. A label may occur under
several nodes; each root-to-leaf path is a code, and the probability of a label is the sum over its
codes. The flat softmax is the tree of depth one.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain, pairwise
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hstree._arrays import Array, Int64, UInt8, offsets, ranges, refuse_masked, segment_ids
from hstree._text import brief
from hstree.errors import InputError, TreeError
from hstree.tree.content import Content, pack
from hstree.tree.order import sum_to_root
from hstree.tree.row_numbers import RowNumbers

T = TypeVar("T", bound=np.generic)

#: Minimum length of derived arrays that are int32 if their values fit.
LONG = 1 << 22


def derived(compute: Callable[[Any], Array]) -> cached_property[Array]:
    """Define a read-only array of a tree that is computed on first access; see `compact`."""
    return cached_property(lambda tree: compact(compute(tree)))


def compact(array: Array) -> Array:
    """Make an integer array read-only, and int32 if it is long and its values fit."""
    is_long = len(array) >= LONG and array.dtype == np.int64 and array.max() < 1 << 31
    array = array.astype(np.int32) if is_long else array
    array.setflags(write=False)
    return array


class Level(NamedTuple):
    """Nodes of one depth, and the edges that leave them."""

    nodes: Array  #: (n,), ascending
    edges: Array  #: (e,), edges of the first node, then of the second node, and so on
    edge_start: Int64  #: (n + 1,), offsets of the nodes in `edges`
    edge_index: slice | Array  #: `edges`, as a slice (without copying) if they are consecutive


class TreeArrays:
    """Arrays of a checked tree and the arrays derived from them; see `hstree.Tree`.

    An edge leads from a node to one of its children. Edges are numbered as in ``child``, so that
    the edges of node n are ``child_start[n]:child_start[n + 1]``, and edge e leads to ``child[e]``.

    A binary node has one weight row. A node with k > 2 children has k rows, in the order of its
    children (``docs/tree-format.md``).
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
        self.labels = labels if isinstance(labels, RowNumbers) else _plain(labels, "labels")
        self.n_labels = len(self.labels)  #: V, the number of labels
        self.child_start = _checked(child_start, "child_start")
        self.child = _checked(child, "child")
        self.n_nodes = len(self.child_start) - 1  #: N, the number of inner nodes; 0 only if V = 1
        #: Whether no label has more than one code.
        self.has_single_codes = int(np.count_nonzero(self.child < 0)) <= self.n_labels
        self.counts = None if counts is None else _checked(counts, "counts")
        self.names: tuple[str | None, ...] | None = None
        if names is not None:
            self.names = _plain(names, "names")
            # A tree in which no node has a name must have the same hash as a tree without `names`
            if self.names == (None,) * self.n_nodes:
                self.names = None
        self.meta: dict[str, Any] = dict(meta or {})
        content = Content(self.labels, self.child_start, self.child, self.counts, self.names)
        if broken := content.broken_rules():
            rule, where = next(iter(broken.items()))
            more = f" (and {len(broken) - 1} more broken rules)" if len(broken) > 1 else ""
            raise TreeError(f"not a valid tree: {rule}: {where}{more}")

    @classmethod
    def from_children(
        cls,
        labels: Sequence[str],
        children: Sequence[Sequence[int]],
        *,
        counts: ArrayLike | None = None,
        names: Sequence[str | None] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Self:
        """Make a tree from a list of children for each node, as in ``tree.json``."""
        start = offsets(np.fromiter(map(len, children), np.int64, len(children)))
        child = list(chain.from_iterable(children))
        return cls(labels, start, child, counts=counts, names=names, meta=meta)

    def __repr__(self) -> str:
        method = f", method={self.meta['method']!r}" if "method" in self.meta else ""
        return f"{type(self).__name__}({self.n_labels} labels, {self.n_nodes} nodes{method})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeArrays) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __len__(self) -> int:
        return self.n_labels

    def __contains__(self, label: object) -> bool:
        return isinstance(label, str) and label in self._ids

    @cached_property
    def _ids(self) -> Mapping[str, int] | RowNumbers:
        if isinstance(self.labels, RowNumbers):
            return self.labels
        return {label: i for i, label in enumerate(self.labels)}

    def label_id(self, label: str) -> int:
        """Return the index of a label in `labels`. Raises InputError if there is no such label."""
        if label not in self:
            kind = "" if isinstance(label, str) else f" ({type(label).__name__}; labels are text)"
            shown = brief(label) if kind else repr(label)
            raise InputError(
                f"{shown}{kind} is none of the tree's {self.n_labels:,} labels "
                f"({self.labels[0]!r}, ...); `tree.labels` lists them"
            )
        ids = self._ids
        return ids.index(label) if isinstance(ids, RowNumbers) else ids[label]

    # Derived arrays, which a tree has only after they are used.

    #: (N,), the number of children of each node.
    fan_out = derived(lambda tree: np.diff(tree.child_start))
    #: (N + 1,), the weight rows of node n are ``row_start[n]:row_start[n + 1]``.
    row_start = derived(lambda tree: offsets(np.where(tree.fan_out == 2, 1, tree.fan_out)))
    #: (E,), the node that each edge leaves.
    edge_node = derived(lambda tree: segment_ids(tree.child_start))
    #: (E,), position of each edge among the edges of its node, from 0.
    edge_branch = derived(
        lambda tree: np.arange(len(tree.child)) - tree.child_start[tree.edge_node]
    )
    #: (E,), the number of children of the node that each edge leaves.
    edge_width = derived(lambda tree: tree.fan_out[tree.edge_node])
    #: (E,), the first weight row of the node that each edge leaves.
    edge_row = derived(lambda tree: tree.row_start[tree.edge_node])
    #: (E,), the edge before each edge on its path, -1 for edges of the root.
    parent_edge = derived(lambda tree: tree.node_edge[tree.edge_node])
    #: (N,), the parent of each node, -1 for the root.
    parent = derived(lambda tree: np.where(tree.node_edge < 0, -1, tree.edge_node[tree.node_edge]))
    #: (N,), number of decisions before each node; 0 for the root.
    depth = derived(lambda tree: sum_to_root((tree.parent >= 0).astype(np.int64), tree.parent))
    #: (V,), the number of codes of each label; 0 only if V = 1.
    codes_per_label = derived(
        lambda tree: np.bincount(~tree.child[tree.child < 0], minlength=tree.n_labels)
    )

    @derived
    def node_edge(self) -> Int64:
        """Edge that leads to each node, -1 for the root: an integer array (N,)."""
        edge = np.full(self.n_nodes, -1)
        inner = np.flatnonzero(self.child >= 0)  # edges to nodes
        edge[self.child[inner]] = inner
        return edge

    @cached_property
    def levels(self) -> list[Level]:
        """Nodes and edges of each depth, from the root down."""
        # (N,) nodes by depth, (N + 1,) offsets of their edges, and (E,) these edges
        nodes = compact(np.argsort(self.depth, kind="stable"))
        start = offsets(self.fan_out[nodes])
        edges = compact(ranges(self.child_start[nodes], start))
        levels = []
        for first, stop in pairwise(offsets(np.bincount(self.depth)).tolist()):
            level_edges = edges[start[first] : start[stop]]
            edge_start = start[first : stop + 1] - start[first]
            edge_start.setflags(write=False)
            span = slice(int(level_edges[0]), int(level_edges[-1]) + 1)
            is_span = span.stop - span.start == len(level_edges)
            edge_index = span if is_span else level_edges
            levels.append(Level(nodes[first:stop], level_edges, edge_start, edge_index))
        return levels

    def sum_up(self, label_values: NDArray[T]) -> NDArray[T]:
        """Return the sum (E, ...) of label values (V, ...) over the leaves below each edge.

        The value of a label counts once for each of its codes.
        """
        # (E, ...) values at edges to labels; other entries are replaced, from the leaves up
        total = label_values[~np.minimum(self.child, -1)]
        for level in reversed(self.levels[1:]):
            below = np.add.reduceat(total[level.edge_index], level.edge_start[:-1])
            total[self.node_edge[level.nodes]] = below
        return total

    def sum_down(self, edge_values: Array) -> None:
        """Add to each edge value (E, ...), in place, the values of all edges above it."""
        for level in self.levels[1:]:
            edge_values[level.edge_index] += edge_values[self.parent_edge[level.edges]]

    @cached_property
    def sha256(self) -> str:
        """SHA-256 hash of labels, counts, children and names, without `meta`, in hexadecimal.

        It is the same for every file format and version of hstree (``docs/tree-format.md``).
        """
        digest = hashlib.sha256(b"hstree tree 1\n")
        for name, array in self.content_arrays().items():
            digest.update(f"{name} {array.nbytes}\n".encode())
            digest.update(array.astype(array.dtype.newbyteorder("<"), copy=False).data)
        return digest.hexdigest()

    def content_arrays(self) -> dict[str, UInt8 | Int64]:
        """Return the tree's content as named arrays, in the order of ``docs/tree-format.md``.

        Counts and names are left out if the tree has none. ``named`` lists the nodes with a name.
        """
        buffer, start = pack(self.labels)
        arrays: dict[str, UInt8 | Int64] = {"labels": buffer, "label_start": start}
        if self.counts is not None:
            arrays["counts"] = self.counts
        arrays |= {"child_start": self.child_start, "child": self.child}
        if self.names is not None:
            named = [node for node, name in enumerate(self.names) if name is not None]
            buffer, start = pack([name for name in self.names if name is not None])
            arrays |= {"named": np.array(named, np.int64), "names": buffer, "name_start": start}
        return arrays

    def with_meta(self, meta: Mapping[str, Any]) -> Self:
        """Return the tree with other meta; it shares the arrays."""
        other = object.__new__(type(self))
        vars(other).update(vars(self), meta=dict(meta))
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and unpickle through `__init__`, which checks arrays and makes them read-only."""
        fields = ("labels", "child_start", "child", "counts", "names", "meta")
        return partial(type(self), **{name: getattr(self, name) for name in fields}), ()


def _plain(texts: Sequence[Any], name: str) -> tuple[Any, ...]:
    """Return texts as a tuple; convert subclasses of str, such as numpy.str_, to str."""
    if isinstance(texts, set | frozenset):
        raise TreeError(f"not a valid tree: {name} are a set, which has no order; give a list")
    plain = tuple(texts)
    if not set(map(type, plain)) <= {str, type(None)}:
        plain = tuple(str.__str__(text) if isinstance(text, str) else text for text in plain)
    return plain


def _checked(values: ArrayLike, name: str) -> Int64:
    """Return a vector of integers as a read-only int64 array; copy it unless it is read-only."""
    refuse_masked(values, name)
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise TreeError(
            f"not a valid tree: {name} must be a vector of integers ({error})"
        ) from error
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise TreeError(
            f"not a valid tree: {name} must be a vector of integers, "
            f"not {array.dtype} of shape {array.shape}"
        )
    if array.dtype == np.uint64 and array.max() > np.iinfo(np.int64).max:
        raise TreeError(f"not a valid tree: {name} holds {array.max()}, above 2**63 - 1")

    # A read-only array that owns its memory or is a view of bytes cannot change: do not copy it
    base = array.base.base if isinstance(array.base, np.ndarray) else array.base
    is_fixed = not array.flags.writeable and (array.flags.owndata or isinstance(base, bytes))
    checked = array.astype(np.int64, copy=not is_fixed)
    checked.setflags(write=False)
    return checked
