"""Differentiated softmax: shorter vectors for rarer words, in one softmax over all words."""

from typing import Any

import numpy as np

from hstree._arrays import Array, Float64, Integer
from hstree._options import RandomState
from hstree.data.vocabulary import Vocabulary
from hstree.errors import OptionError
from hstree.layers.arithmetic import softmax
from hstree.layers.bands import Bands, check_cutoffs
from hstree.layers.base import Gradients
from hstree.layers.dense import SoftmaxLayer, batch_blocks, log_unigram


class DifferentiatedSoftmax(SoftmaxLayer):
    """Softmax over all words in which rarer words have shorter vectors.

    D-softmax*. Words are in bands of descending frequency. The words in band i have the logits
    ``s_w = v_w . P_i h + b_w``, with vectors of length d_i (P_i is left out if d_i = d), and
    ``P(w | h) = exp(s_w) / Z``. This is the softmax with the weight matrix ``v_w P_i``, which has
    rank d_i in band i.

    A target costs V exponentials and ``sum_i V_i d_i`` multiplications, in training and testing,
    plus ``d d_i`` for each projection. Parameters: ``sum_i V_i (d_i + 1)``, plus the projections.

    Parameters
    ----------
    random_state : int
        Random seed for the projections.
    bands : str
        Last rank by count and vector length of each band, such as "2000:64,10000:32,*:16", where *
        is the last word. "auto" makes two bands: a fifth of the words with vectors of full length,
        and the other words with a quarter of that length.

    Attributes
    ----------
    weights : list of float arrays (V_i, d_i)
        Output vectors of each band, initially zero.
    projections : list of float arrays (d_i, d) or None
    bias : float array (V,)
        Biases of the words in the order of the bands, initially the log of the unigram
        probabilities.

    References
    ----------
    W. Chen, D. Grangier & M. Auli, "Strategies for training large vocabulary neural language
    models", ACL 2016.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        dim: int,
        *,
        counts: Integer | None = None,
        dtype: Any = np.float32,
        random_state: RandomState = 0,
        bands: str = "auto",
    ) -> None:
        super().__init__(len(vocabulary), dim)
        cutoffs, widths = _bands(self.n_labels, dim, bands)
        if max(widths) > dim:
            reason = f"is {bands!r}; give vectors the length of hidden vectors, {dim}, or less"
            raise OptionError.about("bands", reason)
        self.bands = Bands(vocabulary.counts, cutoffs)

        # Arrays by their names in a saved model; vectors of full length need no projection
        self._arrays: dict[str, Array] = {"bias": np.zeros(self.n_labels, dtype)}
        for i, (size, width) in enumerate(zip(np.diff(self.bands.start), widths, strict=True), 1):
            self._arrays[f"band{i}_weight"] = np.zeros((size, width), dtype)
            if width < dim:
                self._arrays[f"band{i}_projection"] = np.zeros((width, dim), dtype)

        # Initially, words have their frequencies, and projections are random
        self.bias = self._arrays["bias"]
        log_frequency = log_unigram(vocabulary.counts if counts is None else counts)
        self.bias[...] = log_frequency[self.bands.label]
        numbers = range(1, len(widths) + 1)
        rng = np.random.default_rng(random_state)
        self.weights = [self._arrays[f"band{i}_weight"] for i in numbers]
        self.projections = [self._arrays.get(f"band{i}_projection") for i in numbers]
        for projection in self.projections:
            if projection is not None:  # keep the mean squared length of a vector
                width = len(projection)
                projection[...] = rng.standard_normal((width, dim)) / np.sqrt(width)

    def parameters(self) -> dict[str, Array]:
        """Return the trained arrays, by the names that a saved model gives them."""
        return dict(self._arrays)

    def logits(self, hidden: Array) -> Array:
        """Return the logits of all labels, a float array (B, V)."""
        logits = self._logits(hidden)
        return logits if self.bands.is_identity else logits.take(self.bands.column, axis=1)

    def _logits(self, hidden: Array) -> Array:
        """Return the logits (B, V) of all words, in the order of the bands."""
        inputs = self._inputs(hidden)
        logits = [x @ weight.T for x, weight in zip(inputs, self.weights, strict=True)]
        return np.hstack(logits) + self.bias

    def _inputs(self, hidden: Array) -> list[Array]:
        """Return the hidden vectors (B, d_i) of each band."""
        return [hidden if p is None else hidden @ p.T for p in self.projections]

    def loss(
        self, hidden: Array, targets: Integer, rng: np.random.Generator | None = None
    ) -> tuple[Float64, Gradients]:
        """Return the negative log-likelihoods and the gradients of their sum; `rng` is not used."""
        nll = np.empty(len(targets))
        grad_hidden = np.zeros_like(hidden)
        gradients = {name: np.zeros_like(array) for name, array in self.parameters().items()}
        for block in batch_blocks(len(targets), self.n_labels, keep=True):
            # (b, V) logits, then d loss / d logits = probability - [target]
            item = np.arange(block.stop - block.start)
            column = self.bands.column[targets[block]]
            error = self._logits(hidden[block])
            target_logit = error[item, column]
            nll[block] = softmax(error) - target_logit
            error[item, column] -= 1

            # Gradients band by band
            gradients["bias"] += error.sum(axis=0)
            inputs = self._inputs(hidden[block])
            errors = np.split(error, self.bands.start[1:-1], axis=1)
            for i, band_error in enumerate(errors):
                gradients[f"band{i + 1}_weight"] += band_error.T @ inputs[i]
                grad_inputs = band_error @ self.weights[i]
                projection = self.projections[i]
                if projection is None:
                    grad_hidden[block] += grad_inputs
                else:
                    grad_hidden[block] += grad_inputs @ projection
                    gradients[f"band{i + 1}_projection"] += grad_inputs.T @ hidden[block]
        return nll, Gradients.for_all_rows(grad_hidden, gradients)

    def curvature(self, counts: Array) -> dict[str, Float64]:
        """Return p (1 - p) for rows of words, and 1/4 of the band's probability for projections."""
        fraction = (counts / counts.sum())[self.bands.label]
        curvature = {"bias": fraction * (1 - fraction)}
        for i, band_fraction in enumerate(np.split(fraction, self.bands.start[1:-1])):
            curvature[f"band{i + 1}_weight"] = band_fraction * (1 - band_fraction)
            width = self.weights[i].shape[1]
            curvature[f"band{i + 1}_projection"] = np.full(width, band_fraction.sum() / 4)
        return {name: curvature[name] for name in self.parameters()}


def _bands(n_labels: int, dim: int, text: str) -> tuple[list[int], list[int]]:
    """Parse the option `bands` into cut-offs and lengths; raise OptionError if it is illegal."""
    if text == "auto":
        cutoffs = [n_labels // 5] if n_labels >= 5 and dim > 1 else []
        return cutoffs, [dim, max(1, dim // 4)] if cutoffs else [dim]
    try:
        # "2000:64,10000:32,*:16": last rank and vector length of each band
        pairs = [band.split(":") for band in text.split(",")]
        cutoffs = [int(end) for end, _ in pairs[:-1]]
        widths = [int(width) for _, width in pairs]
        if pairs[-1][0].strip() != "*" or min(widths) < 1:
            raise ValueError
    except ValueError:
        reason = (
            f"is {text!r}; it must be ranks and lengths such as '2000:64,10000:32,*:16', where the "
            "last rank is '*', or 'auto'"
        )
        raise OptionError.about("bands", reason) from None
    check_cutoffs(cutoffs, n_labels, "bands", text)
    return cutoffs, widths
