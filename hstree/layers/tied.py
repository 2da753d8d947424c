"""Hierarchical softmax whose output vectors of words are their input vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hstree._typing import Array, Int64, Integer
from hstree.data.windows import Windows
from hstree.errors import FileFormatError
from hstree.layers.base import check_words_before
from hstree.layers.hierarchical import HierarchicalSoftmax, check_single_codes
from hstree.tree import Tree

#: Name of the table of a saved model that holds the tied rows.
TIED_ROWS = "tied_rows"


class TiedSoftmax(HierarchicalSoftmax):
    """Hierarchical softmax with tied vectors: a word's output vector is its input vector.

    So it is wherever a word has a vector by itself, as a child of a node with more than two: in the
    flat softmax, in short lists and in classes. Take full position matrices in language models;
    with diagonal ones, a word before the target makes itself probable.

    A target costs the scores of the tree. Parameters: those of the tree, less the tied vectors,
    which memory and saved models hold twice.

    Parameters
    ----------
    tree : Tree
        With one code a label.
    dim : int
        d, the length of hidden vectors.
    counts : int array (V,), optional
        Training counts for the starting biases; `tree.counts` by default, 1 each without any.
    dtype : float dtype, default float32

    Raises
    ------
    InputError
        When a label has several codes.

    References
    ----------
    A. Mnih & G. Hinton, "Three new graphical models for statistical language modelling", ICML 2007;
    O. Press & L. Wolf, "Using the output embedding to improve language models", EACL 2017.
    """

    needs_contexts = True  # for they alone are tied to

    def __init__(
        self, tree: Tree, dim: int, *, counts: Integer | None = None, dtype: Any = np.float32
    ) -> None:
        check_single_codes(tree, "tied")
        super().__init__(tree, dim, counts=counts, dtype=dtype)

    def prepare(self, train: Windows) -> None:
        """Refuse models of other kinds than language models, which do not tie vectors."""
        check_words_before(train, "tied vectors are those of")

    def tied_rows(self) -> dict[str, tuple[Int64, Int64]]:
        """Return the rows of labels that are children of nodes with more than two."""
        tree = self.tree
        edge = np.flatnonzero((tree.child < 0) & (tree.edge_width > 2))
        return {"node_weight": (tree.edge_row[edge] + tree.edge_branch[edge], ~tree.child[edge])}

    def tables(self) -> dict[str, Int64]:
        """Return the tied rows, which do not count as parameters of a saved model."""
        rows, _ = self.tied_rows()["node_weight"]
        return {TIED_ROWS: rows}

    def restore(self, tables: Mapping[str, Array]) -> None:
        """Check the tied rows of a saved model; FileFormatError when they are others."""
        rows = tables.get(TIED_ROWS)
        if rows is None or not np.array_equal(rows, self.tables()[TIED_ROWS]):
            raise FileFormatError(
                f"{TIED_ROWS} of a saved layer are not those of its tree; train the model again"
            )

    @classmethod
    def shapes(cls, source: Tree, dim: int, **options: Any) -> dict[str, tuple[int, ...]]:
        """Return the shapes of `parameters` of a layer, the tied vectors among them."""
        return HierarchicalSoftmax.shapes(source, dim)
