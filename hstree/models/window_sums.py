"""Sums of the vectors of windows, each times a vector of its position, and their gradients."""

from __future__ import annotations

import numpy as np

from hstree._compiled import twin
from hstree._typing import Array, Int64, Integer
from hstree.layers.kernels import sum_by_word


@twin
def window_sum(embedding: Array, position: Array, contexts: Integer) -> tuple[Array, Array]:
    """Return ``sum_i position[i] * embedding[contexts[:, i]]``, a float array (B, d).

    Parameters
    ----------
    embedding : float array (V, d)
    position : float array (n, d)
    contexts : int array (B, n)

    Returns
    -------
    hidden : float array (B, d)
    vectors : float array
        For `window_sum_backward`.
    """
    vectors = embedding.take(contexts, axis=0)
    return np.einsum("bnd,nd->bd", vectors, position), vectors


@twin
def window_sum_backward(
    embedding: Array, position: Array, contexts: Integer, vectors: Array, grad_hidden: Array
) -> tuple[Int64, Array, Array]:
    """Gradients through `window_sum`.

    Returns
    -------
    words : int64 array (w,)
        The words that occur, each once.
    grad_words : float array (w, d)
    grad_position : float array (n, d)
    """
    grad_position = np.einsum("bnd,bd->nd", vectors, grad_hidden)
    words, grad_words = sum_by_word(contexts, grad_hidden[:, None] * position, len(embedding))
    return words, grad_words, grad_position
