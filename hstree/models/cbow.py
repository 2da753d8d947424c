"""Continuous bag of words (CBOW; Mikolov et al. 2013): a word from the mean of its window.

The hidden vector is ``h = (1/C) sum_c v_c`` over the C words around a position. A window without a
word has h = 0, so that the output layer's biases alone predict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import scipy.sparse

from hstree._ragged import offsets
from hstree._typing import Array, Integer
from hstree.layers.base import OutputLayer, ParameterGradient
from hstree.layers.kernels import touched_rows
from hstree.models.base import in_sorted_order
from hstree.models.word2vec import WindowLoss, WindowModel, Word2Vec


class CBOW(Word2Vec):
    """CBOW of word2vec: a word from the mean of its window's vectors.

    Examples
    --------
    >>> CBOW(tree, dim=100, window=5).fit(train, valid)              # doctest: +SKIP
    """

    name: ClassVar[str] = "cbow"
    predicts: ClassVar[str] = "word given window"

    def new_context_model(self, rng: np.random.Generator) -> MeanOfWindow:
        """Return an untrained context model."""
        return MeanOfWindow(self.spec.labels, self.dim, rng)


class MeanOfWindow(WindowModel):
    """Mean vectors of the words around a position.

    Attributes
    ----------
    embedding : float32 array (V, d)
        Drawn uniformly from -0.5/d to 0.5/d, as in word2vec.
    """

    def __init__(self, words: Sequence[str], dim: int, rng: np.random.Generator) -> None:
        drawn = (rng.random((len(words), dim), np.float32) - np.float32(0.5)) / np.float32(dim)
        self.embedding = in_sorted_order(words, drawn)

    def hidden(self, contexts: Integer) -> Array:
        """Return the mean vectors (B, d) of windows (B, n), label ids in any order, -1 for none."""
        means, words = self._means(contexts)
        mean: Array = means @ self.embedding[words]
        return mean

    def loss(
        self, layer: OutputLayer, contexts: Integer, targets: Integer, rng: np.random.Generator
    ) -> WindowLoss:
        """Return the layer's loss of each target, and the gradients of their sum.

        Rong (2014), section 3.1, with equation 20 for the words of the window: each gets the
        gradient with respect to the hidden vector times 1/C.
        """
        means, words = self._means(contexts)
        hidden = means @ self.embedding[words]
        nll, gradients = layer.loss(hidden, targets, rng)
        return WindowLoss(
            nll=nll,
            embedding=ParameterGradient("embedding", words, means.T @ gradients.hidden),
            output=gradients.parameters,
            items=len(targets),
            squares=float(np.vdot(hidden, hidden)),
            shares=float(np.vdot(means.data, means.data)),
        )

    def _means(self, contexts: Integer) -> tuple[scipy.sparse.csr_array, Array]:
        """Return the means as a matrix (B, words), and the words that occur, ascending."""
        is_word = contexts >= 0
        count = is_word.sum(axis=1)
        words, slot = touched_rows(contexts[is_word], len(self.embedding))
        share = np.repeat((1 / np.maximum(count, 1)).astype(np.float32), count)
        start = offsets(count).astype(np.int32)
        shape = (len(contexts), len(words))
        return scipy.sparse.csr_array((share, slot, start), shape=shape), words
