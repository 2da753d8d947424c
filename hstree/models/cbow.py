"""Continuous bag of words (CBOW; Mikolov et al. 2013): the hidden vector is the mean of a window.

``h = (1/C) sum_c v_c`` over the C words around a position, as many as there are: -1 in a context
stands for no word, and a window without any word has h = 0, so that the layer's biases alone
predict. It holds the word vectors, and knows of trees no more than that a layer has a loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from hstree._ragged import offsets
from hstree._typing import Array, Float64, Integer
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.layers.kernels import touched_rows
from hstree.layers.node_groups import RowGradient
from hstree.models.drawing import in_sorted_order


@dataclass(frozen=True)
class Loss:
    """The losses of a batch, the gradients of their sum, and what says how far these may lead.

    Attributes
    ----------
    nll : float64 array (B,)
    grad_embedding : RowGradient
        Over the words of the windows, ascending; its biases are empty.
    by_rows : list of RowGradient
        By the layer's rows, as `hstree.layers.hierarchical.Gradients` has them.
    items : int
        The predictions made.
    squares : float
        The sum of the squared lengths of their hidden vectors.
    shares : float
        The sum of the squares of the shares that words have in hidden vectors.
    """

    nll: Float64
    grad_embedding: RowGradient
    by_rows: list[RowGradient]
    items: int
    squares: float
    shares: float


class Cbow:
    """Predict a word from the mean vector of the words around it.

    Parameters
    ----------
    words : sequence of str, length V
        In the order of the tree's labels; a word's starting vector does not depend on it.
    dim : int
        d, the length of the vectors.
    rng : numpy.random.Generator

    Attributes
    ----------
    embedding : float32 array (V, d)
        Drawn uniformly from -0.5/d to 0.5/d, as in word2vec.
    """

    def __init__(self, words: Sequence[str], dim: int, rng: np.random.Generator) -> None:
        drawn = (rng.random((len(words), dim), np.float32) - np.float32(0.5)) / np.float32(dim)
        self.embedding: Array = in_sorted_order(words, drawn)

    def hidden(self, contexts: Integer) -> Array:
        """Return the mean vectors of windows, a float32 array (B, d).

        Parameters
        ----------
        contexts : int array (B, n)
            Word ids in any order; -1 where there is no word.
        """
        return _Means(contexts, len(self.embedding)).of(self.embedding)

    def nll(self, layer: HierarchicalSoftmax, contexts: Integer, targets: Integer) -> Float64:
        """Return the negative log-likelihood in nats of each target given its window, (B,)."""
        return layer.nll(self.hidden(contexts), targets)

    def loss(self, layer: HierarchicalSoftmax, contexts: Integer, targets: Integer) -> Loss:
        """Return what `nll` does, and the gradients of the sum of the losses.

        Notes
        -----
        Rong (2014), section 3.1, with equation 20 for the words of the window: each gets the
        hidden vector's gradient times 1/C.
        """
        means = _Means(contexts, len(self.embedding))
        hidden = means.of(self.embedding)
        nll, gradients = layer.loss(hidden, targets)
        return Loss(
            nll=nll,
            grad_embedding=means.back(gradients.hidden),
            by_rows=gradients.rows,
            items=len(targets),
            squares=float(np.vdot(hidden, hidden)),
            shares=float(np.vdot(means.share, means.share)),
        )

    def tensors(self) -> dict[str, Array]:
        """Return the parameters by the names that a model's folder gives them."""
        return {"embedding": self.embedding}


class _Means:
    """The means over some windows, as a sparse matrix over the words that stand in them."""

    def __init__(self, contexts: Integer, n_words: int) -> None:
        there = contexts >= 0
        count = there.sum(axis=1)
        ids = contexts[there]
        self.words, slot = touched_rows(ids, n_words)
        self.share = np.repeat((1 / np.maximum(count, 1)).astype(np.float32), count)
        start = offsets(count).astype(np.int32)
        self._matrix = scipy.sparse.csr_array(
            (self.share, slot, start), shape=(len(contexts), len(self.words))
        )

    def of(self, embedding: Array) -> Array:
        """Return the mean vectors (B, d)."""
        return self._matrix @ embedding[self.words]

    def back(self, grad_hidden: Array) -> RowGradient:
        """Carry the gradient by the means back to the words."""
        return RowGradient(self.words, self._matrix.T @ grad_hidden, np.empty(0, np.float32))
