"""Adagrad with one learning rate a row, on touched rows only (Duchi, Hazan & Singer 2011).

Each row of a parameter keeps the sum of its mean squared gradients; a step divides by its root.
Weight decay is decoupled (Loshchilov & Hutter 2019): a factor on the row, not a term of the
gradient. It is lazy: a row shrinks when it is next touched, for all tokens since it last was, so
that rare rows are regularised as much as frequent ones. There is no momentum.
"""

from __future__ import annotations

import numpy as np

from hstree._typing import Array, Int64
from hstree.layers.kernels import adagrad_rows


class RowAdagrad:
    """Adagrad for one parameter whose first axis is rows.

    Parameters
    ----------
    parameter : float array (R,) or (R, ...)
        Changed in place by `step`.
    weight_decay : float, default 0
        L2 penalty per token trained on. A row that was last touched n tokens ago is multiplied by
        ``exp(-rate * weight_decay * n)``, with its current rate, so that it never changes its sign.
    rate : float, default 1
        Factor on the learning rate of each step.
    initial_accumulator : float, default 0
        What the sum of each row begins with.
    """

    def __init__(
        self,
        parameter: Array,
        weight_decay: float = 0.0,
        rate: float = 1.0,
        initial_accumulator: float = 0.0,
    ) -> None:
        self.parameter = parameter
        self.weight_decay = weight_decay
        self.rate = rate
        self.squares = np.full(len(parameter), initial_accumulator, np.float32)
        # (R,) tokens up to which the weight decay of each row is done
        self.decayed = np.zeros(len(parameter) if weight_decay else 0, np.int64)

    def arrays(self) -> dict[str, Array]:
        """Return the arrays that steps change beside the parameter."""
        return {"squares": self.squares, "decayed": self.decayed}

    def step(
        self, rows: Int64 | slice, gradient: Array, learning_rate: float, tokens: int = 0
    ) -> None:
        """Move some rows against their gradients.

        Parameters
        ----------
        rows : int64 array (r,) without repeats, or slice
        gradient : float array (r, ...)
            Gradient of the summed loss of a batch.
        learning_rate : float
        tokens : int
            Number of tokens trained on so far, including this batch.
        """
        owed = None
        if self.weight_decay:
            owed = (self.weight_decay * (tokens - self.decayed[rows])).astype(np.float32)
            self.decayed[rows] = tokens
        adagrad_rows(self.parameter, self.squares, rows, gradient, self.rate * learning_rate, owed)


class TiedAdagrad:
    """Adagrad for output vectors of which some are the input vectors of words.

    These rows are copies. Their gradients move the input vectors, with sums of their own; `copy`
    follows what else moves these. Weight decay is that of the input vectors.

    Parameters
    ----------
    own : RowAdagrad
        Optimiser of the output vectors (R, d), for the rows that are not tied.
    embedding : float array (V, d)
        Input vectors, changed in place by `step`.
    rows, words : int64 arrays (n,)
        The tied rows and their words, both without repeats.
    """

    def __init__(self, own: RowAdagrad, embedding: Array, rows: Int64, words: Int64) -> None:
        self.own, self.parameter = own, own.parameter
        self.inputs = RowAdagrad(embedding, rate=own.rate)
        # (R,) word of each row, (V,) row of each word, -1 where there is none
        self._word_of, self._row_of = np.full(len(own.parameter), -1), np.full(len(embedding), -1)
        self._word_of[rows], self._row_of[words] = words, rows
        self.copy(words)

    def arrays(self) -> dict[str, Array]:
        """Return the arrays that steps change beside the parameters."""
        of_inputs = {f"{name} of inputs": array for name, array in self.inputs.arrays().items()}
        return {**self.own.arrays(), **of_inputs}

    def step(
        self, rows: Int64 | slice, gradient: Array, learning_rate: float, tokens: int = 0
    ) -> None:
        """Move some rows against their gradients; parameters are those of `RowAdagrad.step`."""
        word = self._word_of[rows]
        tied, others = np.flatnonzero(word >= 0), np.flatnonzero(word < 0)
        if others.size:
            row = np.arange(len(self._word_of))[rows]
            self.own.step(row[others], gradient[others], learning_rate, tokens)
        self.inputs.step(word[tied], gradient[tied], learning_rate)
        self.copy(word[tied])

    def copy(self, words: Int64 | slice) -> None:
        """Copy the input vectors of some words to their rows."""
        row = self._row_of[words]
        is_tied = row >= 0
        self.parameter[row[is_tied]] = self.inputs.parameter[words][is_tied]
