"""Hierarchical softmax whose nodes also see the last words themselves: direct n-gram features."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Annotated, Any, Self

import numpy as np

from hstree._options import Range
from hstree._typing import Array, Float64, Int64, Integer
from hstree.data.windows import SymmetricWindows, Windows
from hstree.errors import InputError
from hstree.layers.base import (
    Gradients,
    OutputLayer,
    ParameterGradient,
)
from hstree.layers.hierarchical import HierarchicalSoftmax, Pass
from hstree.layers.ngram_features import Features, NgramFeatures, summed
from hstree.layers.node_groups import Block, Decisions, Gradient, WideNodes
from hstree.layers.top_k import top_k
from hstree.tree import Tree

#: What Adagrad's sums of features begin with: those of a few n-grams learn slowly.
INITIAL = 5.0


class NgramSoftmax(HierarchicalSoftmax):
    """Hierarchical softmax with direct connections from the last words to the nodes.

    The score of weight row r is ``q_r . h + b_r + sum_n f(w_1..w_n, r)``, with a weight f for the
    last word, for the last two, and so on. There is one where the training text decides at the
    row's node after these words: for the row of a binary node, and for a child that was taken at
    another node. What the hidden vector says in general, the features correct for what the text
    often has in so many words. Any tree, the flat one too, can have them.

    A target costs the scores of the tree, and a search for the features of its contexts at each
    node. Parameters: those of the tree, and a weight for each pair of words and a row.

    Parameters
    ----------
    words : int
        Number of words before the target that features are of, at most: no more than the model's
        context has.
    min_count : int
        Number of times that an n-gram, these words and the target, occurs in the training text, for
        its features.

    Attributes
    ----------
    features : NgramFeatures
        Empty before `prepare`.
    feature_weight : float array (F,)
        Zero at the start.

    References
    ----------
    T. Mikolov, A. Deoras, D. Povey, L. Burget & J. Cernocky, "Strategies for training large scale
    neural network language models", ASRU 2011.
    """

    needs_contexts = True

    def __init__(
        self,
        tree: Tree,
        dim: int,
        *,
        counts: Integer | None = None,
        dtype: Any = np.float32,
        words: Annotated[int, Range(1, 64)] = 5,
        min_count: Annotated[int, Range(1)] = 2,
    ) -> None:
        super().__init__(tree, dim, counts=counts, dtype=dtype)
        self.min_count = min_count
        self.features = NgramFeatures.none(words, tree.n_labels, len(self.weight))
        self.feature_weight: Array = np.zeros(0, dtype)
        # (B, words) numbers of the contexts that this is bound to
        self._number: Int64 | None = None

    @property
    def words(self) -> int:
        """Number of words of the longest contexts."""
        return len(self.features.start) - 1

    def prepare(self, train: Windows) -> None:
        """Find the features of the training text, unless there are some from a saved model."""
        if isinstance(train, SymmetricWindows):
            raise InputError(
                "n-gram features need the words before each target, and this model's words are on "
                "both sides; train a language model"
            )
        if len(self.features.contexts):
            return
        self._take(NgramFeatures.of_text(train, self.codes, self.words, self.min_count))

    def _take(self, features: NgramFeatures) -> None:
        self.features = features
        self.feature_weight = np.zeros(len(features.keys), self.weight.dtype)

    def parameters(self) -> dict[str, Array]:
        """Return the trained arrays, by the names that a saved model gives them."""
        return {**super().parameters(), "feature_weight": self.feature_weight}

    def tables(self) -> dict[str, Int64]:
        """Return what the features are of: their contexts, and their keys."""
        return self.features.tables()

    def restore(self, tables: Mapping[str, Array]) -> None:
        """Take over the features of a saved model; FileFormatError when they are not of it."""
        empty = NgramFeatures.none(self.words, self.n_labels, len(self.weight))
        self._take(empty.restored(tables))

    def adagrad(self) -> dict[str, dict[str, float]]:
        """Return what the sums of squared gradients of features begin with."""
        return {"feature_weight": {"initial_accumulator": INITIAL}}

    @classmethod
    def shapes(cls, source: Tree, dim: int, **options: Any) -> dict[str, tuple[int, ...]]:
        """Return the shapes of `parameters` of a layer that has not read a text."""
        return {**HierarchicalSoftmax.shapes(source, dim), "feature_weight": (0,)}

    def curvature(self, counts: Array) -> dict[str, Float64]:
        """Return the mean curvature of the loss along each row, at most 1/4 along a feature."""
        return {
            **super().curvature(counts),
            "feature_weight": np.full(len(self.features.keys), 0.25),
        }

    def in_context(self, contexts: Integer) -> Self:
        """Return the layer after contexts (B, n), whose features its methods take."""
        bound = copy.copy(self)
        bound._number = self.features.numbers(contexts)
        return bound

    def pass_of_batch(self, hidden: Array, targets: Integer) -> Pass:
        """Return the pass of a batch by NumPy."""
        if self._number is None:
            return super().pass_of_batch(hidden, targets)
        return FeaturePass(self, self._number, hidden, targets)

    def bound_features(self) -> Features | None:
        """Return the direct features of the contexts that the layer is bound to; None has none."""
        if (number := self._number) is None:
            return None
        return number, self.features.context_start, self.features.rows, self.feature_weight

    def add_to_logits(self, logits: Array, some: slice) -> None:
        """Add the features of the contexts that the layer is bound to."""
        if self._number is not None:
            in_range = self.features.in_range(self._number[some], 0, len(self.bias))
            for item, row, index in in_range:
                logits[item, row] += self.feature_weight[index]

    def top_k(self, hidden: Array, k: int) -> tuple[Int64, Float64]:
        """Return the k most probable labels of each hidden vector, as for the tree alone."""
        if (number := self._number) is None:
            return super().top_k(hidden, k)

        def log_prob(some: Int64) -> Float64:
            bound = copy.copy(self)
            bound._number = number[some]
            return bound.log_prob(hidden[some])

        features = self.bound_features()
        return top_k(self.codes, self.weight, self.bias, hidden, k, log_prob, features)

    def sample(self, hidden: Array, rng: np.random.Generator) -> Int64:
        """Draw one label for each hidden vector; int64 array (B,)."""
        if self._number is None:
            return super().sample(hidden, rng)
        return OutputLayer.sample(self, hidden, rng)


class FeaturePass(Pass):
    """Forward and backward pass of a batch whose scores have features.

    `number` (B, n) are the numbers of the items' contexts.
    """

    layer: NgramSoftmax

    def __init__(self, layer: NgramSoftmax, number: Int64, hidden: Array, targets: Integer) -> None:
        self.number = number
        # features of a batch, and the gradient with respect to their weights, which may repeat
        self._index, self._error = list[Int64](), list[Array]()
        # pairs of items and rows that have features, by the rows that they are of
        self._pairs: dict[int, tuple[Int64, Int64]] = {}
        super().__init__(layer, hidden, targets)

    def add_gradient(self, index: Int64, error: Array) -> None:
        """Add the errors of scores to the gradient of their features."""
        self._index.append(index)
        self._error.append(error)

    def gradients(self) -> Gradients:
        """Return the gradients of the summed loss."""
        of_tree = super().gradients()
        if not self._index:
            return of_tree
        index, error = np.concatenate(self._index), np.concatenate(self._error)
        rows, values = summed(index, error, len(self.layer.feature_weight))
        of_features = ParameterGradient("feature_weight", rows, values)
        return Gradients(of_tree.hidden, [*of_tree.parameters, of_features])

    def _wide(self, taken: Decisions) -> WideNodes:
        return FeatureWideNodes(self, taken)

    def _pair_logits(self, item: Int64, row: Int64) -> Array:
        pair, index = self.layer.features.at_rows(self.number[item], row)
        self._pairs[id(row)] = pair, index
        # (P,) sums over the features of each pair
        added = np.bincount(pair, self.layer.feature_weight[index], len(row))
        logits = super()._pair_logits(item, row)
        logits += added.astype(logits.dtype)
        return logits

    def _pair_gradient(self, item: Int64, row: Int64, error: Array) -> Gradient:
        pair, index = self._pairs[id(row)]
        self.add_gradient(index, error[pair])
        return super()._pair_gradient(item, row, error)


class FeatureWideNodes(WideNodes):
    """Decisions at wide nodes whose scores have features."""

    def __init__(self, batch: FeaturePass, taken: Decisions) -> None:
        self._batch = batch
        # features of each block, by its first visit
        self._kept: dict[int, list[tuple[Int64, Int64, Int64]]] = {}
        layer = batch.layer
        super().__init__(layer._scratch, layer.weight, layer.bias, batch.hidden, taken)

    def _logits(self, block: Block, out: Array | None) -> Array:
        logits = super()._logits(block, out)
        for visit, branch, index in self._features(block):
            logits[visit, branch] += self._batch.layer.feature_weight[index]
        return logits

    def _to_error(self, table: Array, block: Block, share: Array | None) -> None:
        super()._to_error(table, block, share)
        for visit, branch, index in self._features(block):
            self._batch.add_gradient(index, table[visit, branch])

    def _features(self, block: Block) -> list[tuple[Int64, Int64, Int64]]:
        """Return the visits, branches and indices of the features of a block, by their words."""
        if (features := self._kept.get(block.visits.start)) is None:
            number, rows = self._batch.number[self.item[block.visits]], block.rows
            in_range = self._batch.layer.features.in_range(number, rows.start, rows.stop)
            features = [(item, row - rows.start, index) for item, row, index in in_range]
            self._kept[block.visits.start] = features
        return features
