"""Trees as taxonomies: names, depths and probabilities of the nodes at every level."""

from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from hstree._arrays import Float64, Int64, Integer
from hstree._options import checked_count
from hstree._text import quoted
from hstree.errors import InputError, OptionError, TreeError
from hstree.tree.bit_paths import check_single_codes
from hstree.tree.content import COLLAPSED
from hstree.tree.order import sum_to_root
from hstree.tree.tree import Tree

#: Maximum number of names in the path of a node whose name is not unique.
LONGEST_PATH = 32


class Hierarchy:
    """Items of a taxonomy: nodes and labels of a tree, and the nodes with one child above them.

    Nodes with one child are not in the tree, since they decide nothing; the tree's meta has their
    names (`collapsed`). A target is a label id v, or ``V + n`` for node n; an item with one child
    has the target of the item below it.

    Parameters
    ----------
    tree : Tree
        It must have one code per label.

    Attributes
    ----------
    names : tuple of str, length I
        Nodes in their order, then labels; an item with one child is before the item below it. A
        node without a name has the name "node 0", with its number; an item with one child and no
        name has the name of the item below it. If the name of a node is not unique, it is replaced
        by the path from the root, such as "shoes/Other".
    given_names : tuple of str or None, length I
        Original names; None for items without a name.
    parent, depth, target : int64 arrays (I,)
        Item above each item (-1 for the root), number of items above it, and its target.
    is_label : bool array (I,)

    Raises
    ------
    InputError
        When a label has several codes.
    TreeError
        When `collapsed` does not fit the tree.

    Examples
    --------
    >>> tree = Tree.from_taxonomy({"animal": {"pet": ["cat", "dog"]}, "plant": {"tree": ["oak"]}})
    >>> levels = Hierarchy(tree)
    >>> [levels.names[item] for item in levels.at_depth(2)]
    ['pet', 'tree']
    >>> levels.names_of([0, 2], depth=1)
    ['animal', 'plant']
    """

    def __init__(self, tree: Tree) -> None:
        check_single_codes(tree, "a taxonomy")
        self.tree = tree
        n_nodes = tree.n_nodes
        n_labels = tree.n_labels
        # Names of the items, and the item of each node, then the item of each label
        chains = collapsed_names(tree)
        names = list[str | None]()
        last = list[int]()
        for at, name in enumerate([*(tree.names or [None] * n_nodes), *tree.labels]):
            names += [*chains.get(at, ()), name]
            last.append(len(names) - 1)
        self.given_names = tuple(names)
        self.last = np.array(last, np.int64)

        # (I,) node or label of each item
        order = np.repeat(np.arange(len(last)), np.diff(self.last, prepend=-1))
        self.target = np.where(order < n_nodes, n_labels + order, order - n_nodes)
        self.is_label = np.zeros(len(order), bool)
        self.is_label[self.last[n_nodes:]] = True

        # (N + V,) node above each node and above each label
        above = np.full(len(last), -1)
        above[:n_nodes] = tree.parent
        is_leaf = tree.child < 0
        above[n_nodes + ~tree.child[is_leaf]] = tree.edge_node[is_leaf]
        self.parent = np.arange(-1, len(order) - 1)
        first = np.append(0, self.last[:-1] + 1)
        self.parent[first] = np.where(above < 0, -1, self.last[above])
        self.depth = sum_to_root(np.ones(len(order), np.int64), self.parent) - 1

        # Make names unique: numbers replace missing names, and paths replace repeated names
        numbered = [*(f"node {node}" for node in range(n_nodes)), *tree.labels]
        unique_names = [
            numbered[at] if name is None else name
            for at, name in zip(order.tolist(), names, strict=True)
        ]
        inner = self.inner.tolist()
        n_called = Counter(names)
        for item in inner:
            if names[item] is not None and n_called[names[item]] > 1:
                unique_names[item] = self._path(item)
        self.names = tuple(unique_names)

    def _path(self, item: int) -> str:
        """Return the names from the root down to an item; of a long path, only the end."""
        names = list[str]()
        while item >= 0 and len(names) < LONGEST_PATH:
            names += filter(None, [self.given_names[item]])
            item = int(self.parent[item])
        return "/".join(reversed(names))

    @cached_property
    def inner(self) -> Int64:
        """Items that are not labels, ascending."""
        return np.flatnonzero(~self.is_label)

    @cached_property
    def _named(self) -> dict[str, int]:
        """Item of each name: the label with this name, if any; -1 if several nodes have it."""
        items: dict[str, int] = {}
        for item in self.inner.tolist():
            if (name := self.given_names[item]) is not None:
                items[name] = -1 if name in items else item
                if name != (path := self.names[item]):
                    items[path] = -1 if path in items else item
        return items | dict(
            zip(self.tree.labels, self.last[self.tree.n_nodes :].tolist(), strict=True)
        )

    @cached_property
    def _numbered(self) -> dict[str, int]:
        """Item of each node without a name, by a key such as "node 0"."""
        unnamed = (item for item, name in enumerate(self.given_names) if name is None)
        return {self.names[item]: item for item in unnamed}

    def has_name(self, name: str) -> bool:
        """Return whether a label or a node has this name; numbers such as "node 0" do not count."""
        return name in self._named

    def find(self, names: Iterable[str]) -> Int64:
        """Return the items with these names; a label has precedence over a node.

        Raises InputError when no item has the name, or several nodes have it.
        """
        items = []
        for name in names:
            item = self._named.get(name, self._numbered.get(name))
            if item is None:
                raise InputError(
                    f"no label and no node of the tree is called {quoted(name)}; `names` of "
                    "hstree.tree.hierarchy.Hierarchy lists them"
                )
            if item < 0:
                # Show the paths of the first two nodes with this name
                same = (i for i in self.inner.tolist() if self.given_names[i] == name)
                paths = " and ".join(repr(self.names[i]) for i in islice(same, 2))
                remedy = f"they are {paths}" if paths else "give them different names"
                raise InputError(f"several nodes of the tree are called {quoted(name)}; {remedy}")
            items.append(item)
        return np.array(items, np.int64)

    def at_depth(self, depth: int) -> Int64:
        """Return the items at a depth, and the labels above it: disjoint classes of all labels."""
        depth = checked_count("depth", depth, 0)
        return np.flatnonzero((self.depth == depth) | (self.is_label & (self.depth < depth)))

    def candidates(self, depth: int | None = None, confidence: float | None = None) -> Int64:
        """Return the items from which `choose` selects.

        With a confidence, these are all items down to a depth (default: all items). Without one,
        these are the items at the depth (default: the labels).
        """
        if confidence is None:
            return np.flatnonzero(self.is_label) if depth is None else self.at_depth(depth)
        if not 0 < confidence <= 1:
            raise OptionError(f"confidence is {confidence!r}; it must be above 0 and at most 1")
        if depth is None:
            return np.arange(len(self.names))
        return np.flatnonzero(self.depth <= checked_count("depth", depth, 0))

    def choose(self, prob: Float64, items: Int64, confidence: float | None) -> Int64:
        """Return the predicted item (n,), given the probabilities (n, K) of `items` (K,).

        It is the most probable item. With a confidence, it is the deepest item whose probability
        reaches the confidence, and of these the most probable.
        """
        if confidence is not None:
            # Probabilities are at most 1, so that the depth has precedence; 0 below the confidence
            prob = np.where(prob >= confidence, 2 * self.depth[items] + 1 + prob, 0)
        return np.asarray(items[prob.argmax(axis=1)])

    def probabilities(self, label_prob: Float64) -> Float64:
        """Return the probabilities of all items (n, I), given those of the labels (n, V)."""
        tree = self.tree
        # (V + N, n) probabilities of targets; the root has probability one
        total = np.ones((tree.n_labels + tree.n_nodes, len(label_prob)))
        total[: tree.n_labels] = label_prob.T
        if tree.n_nodes > 1:
            total[tree.n_labels + 1 :] = tree.sum_up(label_prob.T)[tree.node_edge[1:]]
        return total[self.target].T

    def names_of(self, targets: Integer, depth: int | None = None) -> list[str]:
        """Return the names of targets, or of their ancestors at the depth if they are below it."""
        if depth is not None:
            depth = checked_count("depth", depth, 0)
        # Index of each target among nodes, then labels; its item, or the ancestor at the depth
        at = np.asarray(targets)
        at = np.where(at < self.tree.n_labels, at + self.tree.n_nodes, at - self.tree.n_labels)
        item = self.last[at]
        while depth is not None and np.any(low := self.depth[item] > depth):
            item = np.where(low, self.parent[item], item)
        return [self.names[i] for i in item.tolist()]


def collapsed_names(tree: Tree) -> dict[int, list[str | None]]:
    """Return the names of the nodes with one child above node n (key n) and label v (key N + v).

    The names are from the top down, as in the tree's meta. Raises TreeError when they do not fit
    the tree.
    """
    chains: dict[int, list[str | None]] = {}
    number: Any
    for entry in tree.meta.get(COLLAPSED, ()):
        # [number as in `Tree.child`, names from the top down]
        number, *names = entry if isinstance(entry, list) and entry else [None]
        is_number = isinstance(number, int) and -tree.n_labels <= number < tree.n_nodes
        if not is_number or not all(isinstance(name, str | None) for name in names):
            raise TreeError(
                f"collapsed in the tree's meta holds {quoted(repr(entry))}; an entry must be a "
                "child of the tree and the names above it"
            )
        chains[number if number >= 0 else tree.n_nodes + ~number] = names
    return chains
