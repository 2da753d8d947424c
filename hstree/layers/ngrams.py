"""Hierarchical softmax with n-gram features: nodes also receive the last words directly."""

import copy
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Self

import numpy as np
from msgspec import Meta

from hstree._arrays import Array, Integer
from hstree.data.windows import ContextBatches, SymmetricWindows
from hstree.errors import InputError
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.layers.hooks import TrainingHooks
from hstree.layers.ngram_features import ContextFeatures, NgramFeatures
from hstree.tree import Tree

#: Initial value of the Adagrad sums for features; features of rare n-grams then learn slowly.
INITIAL = 5.0


class NgramSoftmax(HierarchicalSoftmax):
    """Hierarchical softmax with direct connections from the last words to the nodes.

    The score of weight row r is ``q_r . h + b_r + sum_n f(w_1..w_n, r)``, with a weight f for the
    last word, for the last two words, and so on. A weight exists if the training text has a
    decision at the row's node after these words; at nodes with more than two children, only for
    children that were chosen. The features correct the scores of the hidden vector for frequent
    word sequences. Any tree can have them, including the flat tree.

    A target costs the scores of the tree, and a search for the features of its contexts at each
    node. Parameters: those of the tree, and one weight per feature.

    Parameters
    ----------
    words : int
        Maximum number of words in a feature; a feature has no more words than the model's context.
    min_count : int
        Minimum number of times that an n-gram (the words of the feature and the target) occurs in
        the training text.

    Attributes
    ----------
    features : NgramFeatures
        Empty before `prepare`.
    feature_weight : float array (F,)
        Initially zero.

    References
    ----------
    T. Mikolov, A. Deoras, D. Povey, L. Burget & J. Cernocky, "Strategies for training large scale
    neural network language models", ASRU 2011.
    """

    needs_contexts = True
    carry = TrainingHooks.carry  # raises OptionError: features belong to the words of one text
    adagrad = MappingProxyType({"feature_weight": {"initial_accumulator": INITIAL}})

    def __init__(
        self,
        tree: Tree,
        dim: int,
        *,
        counts: Integer | None = None,
        dtype: Any = np.float32,
        words: Annotated[int, Meta(ge=1, le=64)] = 5,
        min_count: Annotated[int, Meta(ge=1)] = 2,
    ) -> None:
        super().__init__(tree, dim, counts=counts, dtype=dtype)
        self.words = words
        self.min_count = min_count
        self._take(NgramFeatures.empty(words, tree.n_labels, len(self.weight)))

    def prepare(self, train: ContextBatches) -> None:
        """Find the features of the training text, unless a saved model has set them."""
        if isinstance(train, SymmetricWindows):
            raise InputError(
                "n-gram features need the words before each target, and the context of this model "
                "is on both sides; train a language model"
            )
        if not len(self.features.contexts):
            self._take(NgramFeatures.from_text(train, self.codes, self.words, self.min_count))

    def _take(self, features: NgramFeatures) -> None:
        self.features = features
        self.tables = features.tables()
        self.feature_weight: Array = np.zeros(len(features.keys), self.weight.dtype)

    def parameters(self) -> dict[str, Array]:
        """Return the trained arrays, by the names that a saved model gives them."""
        return {**super().parameters(), "feature_weight": self.feature_weight}

    def restore(self, tables: Mapping[str, Array]) -> None:
        """Set the features from a saved model. Raises FileFormatError if they do not fit it."""
        empty = NgramFeatures.empty(self.words, self.n_labels, len(self.weight))
        self._take(empty.restored(tables))

    def in_context(self, contexts: Integer) -> Self:
        """Return the layer for contexts (B, n); its methods use the features of these contexts."""
        # A shallow copy shares the weights, and is safe with several threads
        layer = copy.copy(self)
        number = self.features.numbers(contexts)
        layer.context_features = ContextFeatures(self.features, number, self.feature_weight)
        return layer
