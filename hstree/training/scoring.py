"""Scoring of a text, position by position, by a context model and an output layer."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from hstree import progress
from hstree._arrays import Array, Float64, Integer
from hstree._parallel import in_threads, n_threads
from hstree.data.text_score import LogNormaliser, TextScore
from hstree.data.windows import Batch, ContextBatches
from hstree.kernels import compiled
from hstree.layers.base import OutputLayer

#: Number of positions that are scored at a time.
BATCH = 1024


class ContextModel(ABC):
    """Model that computes hidden vectors from the words around a position.

    Attributes
    ----------
    embedding : float32 array (V, d)
        Word vectors.
    """

    embedding: Array

    @abstractmethod
    def hidden(self, contexts: Integer) -> Array:
        """Return the hidden vectors of contexts (B, n), a float32 array (B, d)."""

    def parameters(self) -> dict[str, Array]:
        """Return the trained arrays, by the names that a saved model gives them."""
        return {"embedding": self.embedding}

    def nll(self, layer: OutputLayer, contexts: Integer, targets: Integer) -> Float64:
        """Return the negative log-likelihood in nats of each target in its context, (B,)."""
        return layer.in_context(contexts).nll(self.hidden(contexts), targets)

    def log_normaliser(self, layer: OutputLayer, contexts: Integer) -> Float64 | None:
        """Return ln Z of the layer in each context, (B,); None if the layer has no ln Z."""
        return layer.in_context(contexts).log_normaliser(self.hidden(contexts))


def score(
    model: ContextModel, layer: OutputLayer, windows: ContextBatches, *, details: bool = False
) -> TextScore:
    """Score every position of a text, without dropout; `details` includes ln Z."""
    batch_nll = [np.empty(0)]
    batch_oov = [np.empty(0, np.bool_)]
    log_z: list[Float64] = []
    # Skip layers without ln Z, for which it is 0 by design
    has_log_z = details and type(layer).log_normaliser is not OutputLayer.log_normaliser
    with progress.task(f"scoring {windows.corpus.name}", len(windows), "tokens") as task:
        for (contexts, targets, oov), nll in scored_batches(model, layer, windows):
            batch_nll.append(nll)
            batch_oov.append(oov)
            if has_log_z and (batch_log_z := model.log_normaliser(layer, contexts)) is not None:
                log_z.append(batch_log_z)
            task.advance(len(targets))
    token_nll = np.concatenate(batch_nll)
    normaliser = None
    if log_z:
        normaliser = LogNormaliser.of(np.concatenate(log_z), float(token_nll.sum()))
    return TextScore.of(windows.corpus, token_nll, np.concatenate(batch_oov), normaliser)


def scored_batches(
    model: ContextModel, layer: OutputLayer, windows: ContextBatches
) -> Iterator[tuple[Batch, Float64]]:
    """Yield the batches of a text in order, with the nll of their tokens."""
    uses_threads = compiled() is not None and n_threads() > 1 and layer.scores_in_threads
    batches = windows.batches(BATCH)
    return in_threads(lambda batch: model.nll(layer, *batch[:2]), batches, when=uses_threads)
