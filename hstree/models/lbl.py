"""The log-bilinear context model (LBL) of Mnih & Hinton (2007; 2008, section 2).

``r_hat = sum_i C_i r(w_i)`` over the last n words, with C_i a diagonal (default) or a full
matrix a position. It holds the word vectors and the position matrices, and knows nothing of trees.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse

from hstree._typing import Array, Float64, Integer
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.layers.kernels import touched_rows
from hstree.layers.node_groups import RowGradient
from hstree.models.drawing import in_sorted_order

#: Standard deviation of the starting word vectors.
EMBEDDING_SCALE = 0.1


class LogBilinear:
    """Predict the hidden vector of a position from the n words before it.

    Parameters
    ----------
    words : sequence of str, length V
        In the order of the tree's labels. Each word's starting vector depends on the set of
        words and on `rng` alone: they are drawn in sorted order, so that two trees over the same
        words start from the same model however they order their labels.
    dim : int
        d, the length of the vectors.
    context : int
        n, the number of words before the target.
    rng : numpy.random.Generator
    full : bool, default False
        Full position matrices (d, d) instead of diagonal ones.

    Attributes
    ----------
    embedding : float32 array (V, d)
    position : float32 array (n, d) or (n, d, d)
        ``position[0]`` belongs to the farthest word.
    """

    def __init__(
        self,
        words: Sequence[str],
        dim: int,
        context: int,
        rng: np.random.Generator,
        *,
        full: bool = False,
    ) -> None:
        drawn = rng.standard_normal((len(words), dim), np.float32) * np.float32(EMBEDDING_SCALE)
        self.embedding: Array = in_sorted_order(words, drawn)
        one = np.eye(dim, dtype=np.float32) if full else np.ones(dim, np.float32)
        self.position: Array = np.repeat(one[None], context, axis=0)

    @property
    def full(self) -> bool:
        """Whether the position matrices are full."""
        return self.position.ndim == 3

    def hidden(self, contexts: Integer) -> Array:
        """Return the hidden vectors of contexts, a float32 array (B, d).

        Parameters
        ----------
        contexts : int array (B, n)
            Word ids, the farthest first.
        """
        return self.forward(contexts)[0]

    def nll(
        self,
        layer: HierarchicalSoftmax,
        contexts: Integer,
        targets: Integer,
    ) -> Float64:
        """Return the negative log-likelihood in nats of each target in its context, (B,)."""
        return layer.nll(self.hidden(contexts), targets)

    def tensors(self) -> dict[str, Array]:
        """Return the parameters by the names that a model's folder gives them."""
        return {"embedding": self.embedding, "position": self.position}

    def forward(self, contexts: Integer) -> tuple[Array, Array]:
        """Return the hidden vectors (B, d) and the context vectors (B, n, d) for `backward`."""
        given = self.embedding.take(contexts, axis=0)
        if self.full:
            return np.einsum("bnd,ned->be", given, self.position, optimize=True), given
        return np.einsum("bnd,nd->bd", given, self.position), given

    def backward(
        self, contexts: Integer, given: Array, grad_hidden: Array
    ) -> tuple[RowGradient, Array]:
        """Carry the gradient by the hidden vectors back to the parameters.

        Parameters
        ----------
        contexts : int array (B, n)
        given : float32 array (B, n, d)
            The context vectors, as `forward` returned them.
        grad_hidden : float32 array (B, d)

        Returns
        -------
        gradient by embedding : RowGradient
            Over the touched words, ascending; its biases are empty.
        gradient by position : float32 array, as `position`
        """
        batch, n = contexts.shape
        if self.full:
            grad_position = np.einsum("be,bnd->ned", grad_hidden, given, optimize=True)
            by_given = np.einsum("be,ned->bnd", grad_hidden, self.position, optimize=True)
        else:
            grad_position = np.einsum("bnd,bd->nd", given, grad_hidden)
            by_given = grad_hidden[:, None] * self.position
        touched, slot = touched_rows(contexts, len(self.embedding))
        one = np.ones(batch * n, np.float32)
        start = np.arange(batch * n + 1, dtype=np.int32)
        S = scipy.sparse.csr_array((one, slot.ravel(), start), shape=(batch * n, len(touched)))
        by_word = S.T @ by_given.reshape(batch * n, -1)
        return RowGradient(touched, by_word, np.empty(0, np.float32)), grad_position
