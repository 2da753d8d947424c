"""Output layer: a distribution over labels for each hidden vector, its loss and its gradients.

Models, trainers, scoring and saved folders use an output layer only through `OutputLayer`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from hstree._arrays import Array, Float64, Int64, Integer
from hstree._options import checked_count
from hstree.layers.arithmetic import slot_sums, touched_rows
from hstree.layers.hooks import TrainingHooks

#: Log-probabilities that differ by no more than this tie (relative to their size below -1).
#: Rounding errors in sums over codes and depths are smaller.
TIE = 1e-12


@dataclass(frozen=True)
class ParameterGradient:
    """Gradient of a batch's summed loss with respect to some rows of a parameter."""

    name: str  #: name of the parameter in `OutputLayer.parameters`
    rows: Int64 | slice  #: (r,) distinct rows of the parameter's first axis
    values: Array  #: (r, ...)


@dataclass(frozen=True)
class Gradients:
    """Gradients of a batch's summed loss."""

    hidden: Array  #: (B, d) with respect to the hidden vectors
    #: with respect to the parameters; missing parameters and rows have a gradient of zero
    parameters: Sequence[ParameterGradient]

    @classmethod
    def for_all_rows(cls, hidden: Array, arrays: Mapping[str, Array]) -> Self:
        """Return gradients with respect to all rows of parameters, given by name."""
        parameters = [
            ParameterGradient(name, slice(0, len(array)), array) for name, array in arrays.items()
        ]
        return cls(hidden, parameters)


def sum_rows(parts: Sequence[ParameterGradient], n_rows: int) -> ParameterGradient:
    """Sum gradients with respect to one parameter with `n_rows` rows; rows may repeat."""
    rows, slot = touched_rows(np.concatenate([part.rows for part in parts]), n_rows)
    values = np.concatenate([part.values for part in parts])
    total = slot_sums(values.reshape(len(values), -1), slot, len(rows))
    return ParameterGradient(parts[0].name, rows, total.reshape(-1, *values.shape[1:]))


def draw_columns(probabilities: Array, uniform: Float64) -> Int64:
    """Draw a column (n,) from each row of probabilities (n, k), given uniform numbers (n,)."""
    cumulative = np.cumsum(probabilities, axis=1, dtype=np.float64)
    below = (cumulative <= uniform[:, None] * cumulative[:, -1:]).sum(axis=1)
    columns: Int64 = np.minimum(below, probabilities.shape[1] - 1)
    return columns


def first_columns(values: Array, k: int) -> tuple[Int64, Array]:
    """Return the columns (B, k) of the k largest values of each row, descending, and the values.

    Values tie if, in descending order, each is within `TIE` of the next (relative to its size above
    1). Ties are broken by column. `k` is at most the number of columns.
    """
    n = values.shape[1]
    columns = np.empty((len(values), k), np.int64)
    # Sort a few of the largest values; if the last ties with the k-th, sort the whole row
    rows = np.arange(len(values))
    for n_sorted in (min(n, 4 * k + 64), n):
        largest = np.argpartition(values[rows], n - n_sorted, axis=1)[:, n - n_sorted :]
        value = values[rows[:, None], largest]
        order = np.argsort(-value, axis=1)
        largest = np.take_along_axis(largest, order, axis=1)
        value = np.take_along_axis(value, order, axis=1)

        # (rows, n_sorted) number of the tie group of each value
        tie = np.zeros(largest.shape, np.int64)
        with np.errstate(invalid="ignore"):  # infinities
            is_apart = -np.diff(value, axis=1) > TIE * np.maximum(1, np.abs(value[:, 1:]))
        np.cumsum(is_apart, axis=1, out=tie[:, 1:])
        order = np.lexsort((largest, tie), axis=1)[:, :k]
        columns[rows] = np.take_along_axis(largest, order, axis=1)
        rows = rows[tie[:, -1] == tie[:, k - 1]]
    return columns, np.take_along_axis(values, columns, axis=1)


class OutputLayer(TrainingHooks, ABC):
    """Distribution over V labels for hidden vectors of length d.

    A subclass defines `parameters`, `loss` and `log_prob`; the other methods have defaults that use
    these. Its constructor is ``Layer(source, dim, *, counts=None, dtype=np.float32)``. Its other
    keyword-only parameters are options (`hstree.layers.registry`), which it documents.

    Parameters
    ----------
    source : Tree or Vocabulary
        The subclass annotates which of the two it takes.
    dim : int
        Length of hidden vectors, d.
    counts : int or float array (V,), optional
        Training counts (default: the counts of the source, or 1 for each label). The untrained
        layer predicts each label by its fraction of the counts.
    dtype : float dtype, default float32
        Type of the parameters.
    random_state : int, optional
        Random seed, in classes that draw initial parameters.

    Attributes
    ----------
    n_labels : int
        Number of labels, V.
    dim : int
        Length of hidden vectors, d.
    is_likelihood : bool
        Whether the losses of `loss` are the negative log-likelihoods of the targets.
    """

    is_likelihood: ClassVar[bool] = True

    def __init__(self, n_labels: int, dim: int) -> None:
        self.n_labels = n_labels
        self.dim = checked_count("dim", dim, 0)

    @abstractmethod
    def parameters(self) -> dict[str, Array]:
        """Return the trained arrays, by the names that a saved model gives them.

        Trainers change them in place, by rows of the first axis. An array with two or more axes
        holds vectors that are multiplied by hidden vectors: weight decay applies to it, and its
        curvature grows with the squared length of hidden vectors. An array with one axis holds
        biases.
        """

    @abstractmethod
    def loss(
        self, hidden: Array, targets: Integer, rng: np.random.Generator
    ) -> tuple[Float64, Gradients]:
        """Return the losses (B,) that training minimises, in nats, and the gradients of their sum.

        `hidden` (B, d) are hidden vectors, and `targets` (B,) are label ids. Random numbers come
        from `rng`.
        """

    @abstractmethod
    def log_prob(self, hidden: Array) -> Float64:
        """Return the normalised log-probabilities of all labels, a float64 array (B, V)."""

    # Methods that follow from the log-probabilities.

    def log_normaliser(self, hidden: Array) -> Float64 | None:
        """Return ln Z for each hidden vector, a float64 array (B,); None if Z is 1 by design.

        Z is the sum of the unnormalised probabilities of all labels. The unnormalised
        log-probability of a label is ``log_prob + ln Z``.
        """
        return None

    def unnormalised_nll(self, hidden: Array, targets: Integer) -> Float64 | None:
        """Return ``nll - ln Z`` (B,), the negative unnormalised log-probabilities of targets.

        Layers whose training keeps ln Z near 0 compute it without Z. Returns None if Z is 1 by
        design.
        """
        log_z = self.log_normaliser(hidden)
        return None if log_z is None else self.nll(hidden, targets) - log_z

    def nll(self, hidden: Array, targets: Integer) -> Float64:
        """Return the exact negative log-likelihoods of targets in nats, a float64 array (B,)."""
        nll: Float64 = -self.log_prob(hidden)[np.arange(len(targets)), targets]
        return nll

    def top_k(self, hidden: Array, k: int) -> tuple[Int64, Float64]:
        """Return the k most probable labels of each hidden vector (B, d), exactly.

        Returns labels and their log-probabilities (B, min(k, V)), the most probable first, ties by
        label id. Raises OptionError when `k` is not a whole number, 1 or more.
        """
        k = min(checked_count("k", k), self.n_labels)
        return first_columns(self.log_prob(hidden), k)

    def sample(self, hidden: Array, rng: np.random.Generator) -> Int64:
        """Draw one label for each hidden vector, an int64 array (B,)."""
        return draw_columns(np.exp(self.log_prob(hidden)), rng.random(len(hidden)))

    def curvature(self, counts: Array) -> dict[str, Float64]:
        """Estimate the mean curvature of the loss along each row, per parameter (R,).

        The curvature is the second derivative of a target's loss with respect to the row's logit,
        averaged over targets. An upper estimate prevents the trainers of word2vec from
        overshooting. The default is p (1 - p) for parameters with a row per label, where p is the
        label's fraction of the targets, and 1/4, the maximum for one logit, for other rows.
        `counts` (V,) is the mean number of times that each label is a target.
        """
        p = counts / counts.sum()
        return {
            name: p * (1 - p) if len(array) == self.n_labels else np.full(len(array), 0.25)
            for name, array in self.parameters().items()
        }
