"""Hierarchical softmax whose words change their places in the tree while it is trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from hstree._options import Range
from hstree._typing import Array, Float64, Int64, Integer
from hstree.builders.learned import Places
from hstree.data.windows import Windows
from hstree.errors import FileFormatError, InputError
from hstree.layers.base import (
    Gradients,
    OutputLayer,
    check_words_before,
)
from hstree.layers.hierarchical import (
    HierarchicalSoftmax,
    check_single_codes,
    name_of,
    renamed,
)
from hstree.layers.kernels import sum_by_word
from hstree.tree import Tree
from hstree.tree.codes import Codes
from hstree.tree.weight_rows import label_mass

#: Beginning of the names of parameters.
PART = "reassigned"
#: Name of the table of a saved model that holds the places.
PLACE = f"{PART}_place"


class ReassignedSoftmax(OutputLayer):
    """Hierarchical softmax whose words are assigned to the leaves anew during training.

    The shape of the tree stays, and so do the weights of its nodes. Every so many batches of a
    language model's training, each node divides its words anew, from the root down, as many to each
    child as there are leaves below it: such that their log-likelihood is the largest, as the
    builder `learned` does, but greedily at nodes of more than two children. The mean predicted
    vectors that this needs are those of the training so far; the sums that they are made of halve
    each time. The row of a word in a wide node moves with it; the sums of the optimiser do not.

    Balance is that of the tree that the training begins with, whose codes are of about the same
    length; purity is what is gained. Figures of trees in comparisons are those of that tree. A
    target costs the scores of the tree, and a sum; parameters are those of the tree.

    Parameters
    ----------
    tree : Tree
        That of the beginning: with one code a label, and codes whose lengths differ by at most 1.
    dim : int
        d, the length of hidden vectors.
    counts : int array (V,), optional
        Training counts for the starting biases and as weights of words; `tree.counts` by default,
        1 each without any.
    dtype : float dtype, default float32
    every : int
        Number of batches between two assignments.
    times : int
        Number of assignments; the tree stays afterwards.

    Attributes
    ----------
    place : int64 array (V,)
        The label whose place in the first tree each label has.
    present : HierarchicalSoftmax
        Layer over the present tree, `tree`, with the same weights.

    Raises
    ------
    InputError
        When a label has several codes, or their lengths differ by more.

    References
    ----------
    Y. Jernite, A. Choromanska & D. Sontag, "Simultaneous learning of trees and representations for
    extreme classification and density estimation", ICML 2017.
    """

    needs_contexts = True  # for language models alone assign words anew

    def __init__(
        self,
        tree: Tree,
        dim: int,
        *,
        counts: Integer | None = None,
        dtype: Any = np.float32,
        every: Annotated[int, Range(1)] = 1000,
        times: Annotated[int, Range(1)] = 24,
    ) -> None:
        super().__init__(tree.n_labels, dim)
        check_single_codes(tree, "reassigned")
        _check_balanced(tree)
        self.every, self.times, self._first = every, times, tree
        counts = tree.counts if counts is None else counts
        self._counts = label_mass(tree, counts)
        self.place: Int64 = np.arange(tree.n_labels)
        self._present = (
            self.place.copy(),
            HierarchicalSoftmax(tree, dim, counts=counts, dtype=dtype),
        )
        self.weight, self.bias = self._present[1].weight, self._present[1].bias
        # (V, d) sums of the hidden vectors of each label, (V,) their numbers, and that of batches
        self._sums: Array = np.zeros((tree.n_labels, dim), dtype)
        self._n_summed, self._batches = np.zeros(tree.n_labels), np.zeros(1, np.int64)

    @property
    def tree(self) -> Tree:
        """The present tree."""
        return self.present.tree

    @property
    def present(self) -> HierarchicalSoftmax:
        """The layer over the present tree."""
        place, layer = self._present
        if not np.array_equal(place, self.place):
            first = self._first
            label_at = np.argsort(self.place)
            is_leaf = first.child < 0
            child = first.child.copy()
            child[is_leaf] = ~label_at[~child[is_leaf]]
            tree = Tree(first.labels, first.child_start, child, counts=first.counts)
            layer = HierarchicalSoftmax(tree, self.dim, dtype=self.bias.dtype)
            layer.weight, layer.bias = self.weight, self.bias
            self._present = self.place.copy(), layer
        return layer

    def parameters(self) -> dict[str, Array]:
        """Return the trained arrays, by the names that a saved model gives them."""
        return {"reassigned_weight": self.weight, "reassigned_bias": self.bias}

    @classmethod
    def shapes(cls, source: Tree, dim: int, **options: Any) -> dict[str, tuple[int, ...]]:
        """Return the shapes of `parameters` of a layer."""
        shapes = HierarchicalSoftmax.shapes(source, dim)
        return {name_of(PART, name): shape for name, shape in shapes.items()}

    def tables(self) -> dict[str, Int64]:
        """Return the places of labels, for saved models."""
        return self.assignment()

    def assignment(self) -> dict[str, Int64]:
        """Return the places of labels, which belong to the weights of the tree's nodes."""
        return {PLACE: self.place}

    def restore(self, tables: Mapping[str, Array]) -> None:
        """Take over the places of a saved model; FileFormatError when they are none."""
        place = tables.get(PLACE)
        labels = np.arange(self.n_labels)
        if place is None or place.dtype != np.int64 or not np.array_equal(np.sort(place), labels):
            raise FileFormatError(
                f"{PLACE} of a saved layer is missing, or not an order of its {self.n_labels} "
                "labels; train the model again"
            )
        self.place[...] = place

    def training_state(self) -> dict[str, Array]:
        """Return the sums of hidden vectors, their numbers, and the number of batches."""
        return {"sums": self._sums, "n_summed": self._n_summed, "batches": self._batches}

    def prepare(self, train: Windows) -> None:
        """Refuse models of other kinds than language models, which do not assign words anew."""
        check_words_before(train, "words that are assigned anew need")

    def curvature(self, counts: Array) -> dict[str, Float64]:
        """Return the mean curvature of the loss along each row."""
        return {name_of(PART, n): rows for n, rows in self.present.curvature(counts).items()}

    @property
    def scores_in_threads(self) -> bool:
        """Whether several threads may call `nll` at once."""
        return self.present.scores_in_threads

    def nll(self, hidden: Array, targets: Integer) -> Float64:
        """Return the negative log-likelihoods of targets (B,) in nats, a float64 array (B,)."""
        return self.present.nll(hidden, targets)

    def log_prob(self, hidden: Array) -> Float64:
        """Return the log-probabilities of all labels, a float64 array (B, V)."""
        return self.present.log_prob(hidden)

    def top_k(self, hidden: Array, k: int) -> tuple[Int64, Float64]:
        """Return the k most probable labels of each hidden vector, as for the present tree."""
        return self.present.top_k(hidden, k)

    def sample(self, hidden: Array, rng: np.random.Generator) -> Int64:
        """Draw one label for each hidden vector; int64 array (B,)."""
        return self.present.sample(hidden, rng)

    def loss(
        self, hidden: Array, targets: Integer, rng: np.random.Generator | None = None
    ) -> tuple[Float64, Gradients]:
        """Return what `nll` does, and the gradients of the sum; `rng` is not used."""
        losses, gradients = self.present.loss(hidden, targets)
        return losses, Gradients(gradients.hidden, renamed(gradients.parameters, PART))

    def loss_in_context(
        self, hidden: Array, targets: Integer, contexts: Integer, rng: np.random.Generator
    ) -> tuple[Float64, Gradients]:
        """Return what `loss` does; assign the words anew before it, where that is due."""
        batches = int(self._batches[0])
        if 0 < batches <= self.every * self.times and batches % self.every == 0:
            self.assign()
        if batches < self.every * self.times:
            labels, sums = sum_by_word(targets[:, None], hidden[:, None], self.n_labels)
            self._sums[labels] += sums
            self._n_summed += np.bincount(targets, minlength=self.n_labels)
        self._batches += 1
        return self.loss(hidden, targets, rng)

    def assign(self) -> None:
        """Assign the words to the leaves anew, by their mean hidden vectors in training."""
        tree = self.tree
        has_occurred = self._n_summed > 0
        n_summed = np.where(has_occurred, self._n_summed, 1).astype(self._sums.dtype)
        mean = self._sums / n_summed[:, None]
        # Words that did not occur have the mean of all
        mean[~has_occurred] = self._sums.sum(axis=0) / self._n_summed.sum()
        places = Places.of(tree, mean, self._counts, self.weight, self.bias, is_greedy=True)
        child = places.assigned()
        leaf = np.flatnonzero(tree.child < 0)
        before, now = ~tree.child[leaf], ~child[leaf]
        at_wide = tree.edge_width[leaf] > 2
        # (V,) weight row of each word in a wide node, -1 where it is in another
        row = np.full(self.n_labels, -1)
        row[before[at_wide]] = (tree.edge_row + tree.edge_branch)[leaf[at_wide]]
        to, source = row[before], row[now]
        moves = (to >= 0) & (source >= 0)
        for array in (self.weight, self.bias):
            array[to[moves]] = array[source[moves]]
        self.place[now] = self.place[before]
        self._sums /= 2
        self._n_summed /= 2


def _check_balanced(tree: Tree) -> None:
    """Refuse trees whose codes are of different lengths: frequent words would lose short ones."""
    lengths = Codes(tree, cache_limit=0).length
    if lengths.size and lengths.max() > lengths.min() + 1:
        raise InputError(
            "the layer reassigned takes trees whose codes are about equally long, and those of "
            f"this tree have from {lengths.min()} to {lengths.max()} decisions; take balanced, "
            "random or classes"
        )
