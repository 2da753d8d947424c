"""`Tree`, an immutable tree in flat arrays, which builders create and output layers read."""

from __future__ import annotations

import os
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hstree._arrays import offsets, ranges
from hstree._options import checked_count
from hstree.errors import InputError, TreeError
from hstree.tree import files
from hstree.tree.arrays import TreeArrays
from hstree.tree.statistics import tree_statistics

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Tree(TreeArrays):
    """A checked hierarchical-softmax tree.

    Parameters
    ----------
    labels : sequence of str, length V
        At least one; labels are unique.
    child_start : array_like of int, shape (N + 1,)
    child : array_like of int, shape (E,)
        The children of node n are ``child[child_start[n]:child_start[n + 1]]``;
        ``c >= 0`` is a node, ``c < 0`` the label ``~c``.
    counts : array_like of int, shape (V,), optional
        Training counts of the labels.
    names : sequence of str or None, length N, optional
        Names of the inner nodes for display, such as "canine.n.02".
    meta : mapping, optional
        JSON values that record the origin of the tree: method, options, random_state, hstree
        (the version), input.

    Raises
    ------
    TreeError
        When the content breaks a rule of the format; the message names the rule and the position.

    Notes
    -----
    A node with two children is a logistic decision, ``P(first child) = sigmoid(q.h + b)``; a node
    with more children is a softmax. With V = 1, there is no node, and the label has probability
    one.

    Examples
    --------
    >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]])
    >>> tree.n_nodes, tree.depth.tolist()
    (2, [0, 1])
    >>> len(tree), "c" in tree, tree.code("c"), tree.neighbours("c")
    (3, True, [(0, 1), (1, 1)], ['b', 'a'])
    """

    stats = tree_statistics
    save = files.save

    def plot(self, *, max_depth: int = 12, ax: Axes | None = None) -> Axes:
        """Draw the tree as an icicle: each branch is as wide as its fraction of the counts.

        See `hstree.tree.branches.draw` for parameters and errors.
        """
        from hstree.tree.branches import draw

        return draw(self, max_depth=max_depth, ax=ax)

    def codes(self, label: str) -> list[list[tuple[int, int]]]:
        """Return all codes of a label as lists of (node, branch) pairs, from the root down.

        Raises InputError when the tree has no such label.

        Examples
        --------
        >>> tree = Tree.from_children(["a", "b"], [[~0, ~1]])
        >>> tree.codes("b")
        [[(0, 1)]]
        """
        node = self.edge_node
        branch = self.edge_branch
        return [
            [(int(node[edge]), int(branch[edge])) for edge in reversed(path)]
            for path in self._paths(label)
        ]

    def code(self, label: str) -> list[tuple[int, int]]:
        """Return the code of a label: the nodes on its path, and the branch taken at each node.

        Raises InputError when the tree has no such label, or the label has several codes.

        Examples
        --------
        >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]])
        >>> tree.code("c")
        [(0, 1), (1, 1)]
        """
        codes = self.codes(label)
        if len(codes) > 1:
            raise InputError(f"{label!r} has {len(codes)} codes; tree.codes({label!r}) lists them")
        return codes[0] if codes else []

    def neighbours(self, label: str, k: int = 10) -> list[str]:
        """Return the k labels that share the deepest nodes with a label, nearest first.

        Labels that share a node of the same depth are ordered by the number of decisions below that
        node, the fewest first; ties are in the order of the children. Raises InputError when the
        tree has no such label, and OptionError when `k` is not a whole number, 1 or more.

        Examples
        --------
        >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]])
        >>> tree.neighbours("c")
        ['b', 'a']
        """
        k = checked_count("k", k)
        # Edges on the paths to the label, the deepest first
        towards = chain(*self._paths(label))
        edges = sorted(towards, key=lambda edge: -int(self.depth[self.edge_node[edge]]))
        # Labels in the order in which they are found, each once
        near: dict[int, None] = {self.label_id(label): None}
        for edge in dict.fromkeys(edges):
            # Visit the levels below the node, except below the branch to the label
            nodes = self.edge_node[[edge]]
            while nodes.size and len(near) <= k:
                edges_below = ranges(self.child_start[nodes], offsets(self.fan_out[nodes]))
                below = self.child[edges_below]
                near |= dict.fromkeys((~below[below < 0]).tolist())
                nodes = below[(below >= 0) & (below != self.child[edge])]
            if len(near) > k:
                break
        return [self.labels[i] for i in list(near)[1 : k + 1]]

    def _paths(self, label: str) -> list[list[int]]:
        """Return the edges of each code of a label, from the leaf up."""
        paths = []
        for edge in np.flatnonzero(self.child == ~self.label_id(label)).tolist():
            paths.append(path := list[int]())
            while edge >= 0:
                path.append(edge)
                edge = int(self.parent_edge[edge])
        return paths

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self.stats()._repr_html_()}"

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a tree and check it.

        Raises
        ------
        FileFormatError
            When the file cannot be read or does not have this format.
        TreeError
            When the content breaks a rule.

        Examples
        --------
        >>> Tree.load("tree.json")  # doctest: +SKIP
        Tree(10000 labels, 9999 nodes, method='huffman')
        """
        try:
            return cls(**vars(files.read_content(path)))
        except TreeError as error:
            more = "`hstree.tree.files.read_content(...).broken_rules()` lists all broken rules"
            raise TreeError(f"{path}: {error}; {more}") from error

    @classmethod
    def from_taxonomy(cls, source: Any) -> Self:
        """Make the tree of a taxonomy, whose leaves are the labels.

        Nodes with one child are left out, since they decide nothing; their names are available in
        `hstree.tree.hierarchy.Hierarchy`. Other inner nodes keep their names.

        Parameters
        ----------
        source : object
            One of

            - a nested mapping from names to mappings, lists of names, or None for a leaf;
            - a mapping from each child to its parent;
            - a mapping from each node to the list of its children; one child must be a key, too;
            - edges, as pairs (parent, child); rows of other lengths are levels, from the top down;
            - a ``.csv`` or ``.tsv`` file or a DataFrame, with parents and children or with columns
              of levels, or a ``.nwk`` file;
            - Newick text, which ends with a semicolon;
            - a ``networkx.DiGraph`` with edges from parents to children.

        Raises
        ------
        InputError
            When the source has none of these forms or is ambiguous, or when it has several roots, a
            cycle, a duplicate leaf, an item with several parents, or a name that is not text, a
            number or a date.

        Notes
        -----
        If the form is not obvious, a rule decides (``docs/taxonomies.md``), and `hstree.progress`
        reports it. Whole numbers are named by their digits: 10, 10.0 and "10" are the same.

        Examples
        --------
        >>> tree = Tree.from_taxonomy({"cat": "animal", "dog": "animal", "animal": "thing",
        ...                            "car": "thing"})
        >>> tree.labels, tree.names
        (('cat', 'dog', 'car'), ('thing', 'animal'))
        """
        from hstree.tree.taxonomy import read_taxonomy  # builders do not need it

        return cls(**vars(read_taxonomy(source)))


load = Tree.load


def as_tree(tree: Tree | str | os.PathLike[str]) -> Tree:
    """Return a tree, or read it if a file name is given.

    Raises InputError when the argument is neither a tree nor a file name, and FileFormatError when
    the file is not a tree.
    """
    if isinstance(tree, Tree):
        return tree
    if isinstance(tree, str | os.PathLike):
        return load(tree)
    raise InputError(
        f"tree is of type {type(tree).__name__}; give an hstree.Tree or the name of a tree file"
    )
