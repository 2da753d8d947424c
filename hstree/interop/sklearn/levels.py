"""Inner nodes of a classifier's tree: probabilities, predictions at a level, targets there."""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from hstree._typing import Array, Float64, Int64
from hstree.errors import InputError
from hstree.interop.sklearn.linear import LinearTree, Rows
from hstree.tree import Tree, load
from hstree.tree.hierarchy import Hierarchy


class LevelsMixin:
    """Methods of a classifier whose tree is a taxonomy."""

    tree: Tree | str | os.PathLike[str] | None
    tree_: Tree
    classes_: Array
    _model: LinearTree
    _label_of_class: Int64
    _checked: Any

    @property
    def nodes_(self) -> Array:
        """Names of inner nodes, those of one child among them, an array of str (M,).

        A node without a name is called by its number, "node 0" for the root. Samples may have the
        others' names in `y`, where the tree was given.
        """
        levels = Hierarchy(self.tree_)
        return np.array([levels.names[item] for item in levels.inner], str)

    def predict_node_proba(self, X: Any) -> Float64:
        """Return the probabilities of `nodes_`, a float64 array (n, M).

        That of a node is the sum over the classes below it.
        """
        X = self._checked(X)
        levels = Hierarchy(self.tree_)
        return np.concatenate([prob[:, levels.inner] for prob in self._item_proba(X, levels)])

    def predict_nodes(
        self, X: Any, *, depth: int | None = None, confidence: float | None = None
    ) -> Array:
        """Return the name of the node or class predicted at a level, an array of str (n,).

        Parameters
        ----------
        X : array_like or sparse, shape (n, n_features)
        depth : int, optional
            Depth of the answers, 0 for the root: the most probable node there, or class above it.
            By default the classes.
        confidence : float, optional
            With it, the deepest node or class whose probability is as high, down to `depth`; of
            several, the most probable. From 0 to 1.

        Returns
        -------
        array of str (n,)
            A name of `nodes_`, or ``str(class)``.
        """
        X = self._checked(X)
        levels = Hierarchy(self.tree_)
        items = levels.candidates(depth, confidence)
        chosen = [
            levels.choose(prob[:, items], items, confidence) for prob in self._item_proba(X, levels)
        ]
        return np.array(levels.names, str)[np.concatenate(chosen)]

    def _item_proba(self, X: Rows, levels: Hierarchy) -> Iterator[Float64]:
        """Yield the probabilities (some, I) of all items of the hierarchy."""
        for _, log_prob in self._model.log_prob(X):
            yield levels.probabilities(np.exp(log_prob))

    def _given_tree(self) -> Tree | None:
        """Return the tree that the classifier was given, if any."""
        return self.tree if self.tree is None or isinstance(self.tree, Tree) else load(self.tree)

    def _targets_of(self, y: Array) -> tuple[Array, Int64]:
        """Return the classes and what else is in y, ascending, and the target of each.

        That is its label id; ``V + n`` for node n. Raises InputError for a name that the tree
        does not have, or no longer has without the classes that are not in the data.
        """
        others = np.setdiff1d(y, self.classes_)
        if not others.size:
            return self.classes_, self._label_of_class
        if not len(self.classes_):
            raise InputError("y has names of inner nodes alone; give samples of classes, too")
        known = np.union1d(self.classes_, others)
        levels, names = Hierarchy(self.tree_), [str(value) for value in others.tolist()]
        if missing := [name for name in names if not levels.knows(name)]:
            raise InputError(f"y has {missing[0]!r}, and no class of the data is below that node")
        target = np.empty(len(known), np.int64)
        target[np.searchsorted(known, self.classes_)] = self._label_of_class
        target[np.searchsorted(known, others)] = levels.target[levels.find(names)]
        return known, target


def without_nodes(tree: Tree | None, values: Array) -> Array:
    """Return those of some values of y that are classes, not names of inner nodes of a tree.

    A label goes before a node of the same name.
    """
    names = [str(value) for value in values.tolist()]
    if tree is None or not tree.has_single_codes or not (others := set(names) - set(tree.labels)):
        return values
    levels = Hierarchy(tree)
    is_class = np.array([name not in others or not levels.knows(name) for name in names])
    return np.asarray(values[is_class])
