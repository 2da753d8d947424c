"""What every context model offers to the models over trees, whatever it does inside."""

from __future__ import annotations

from typing import Protocol

from hstree._typing import Array, Float64, Integer
from hstree.layers.hierarchical import HierarchicalSoftmax


class ContextModel(Protocol):
    """From the words around a position to its hidden vector."""

    embedding: Array
    """The word vectors, float32 (V, d)."""

    def hidden(self, contexts: Integer) -> Array:
        """Return the hidden vectors (B, d) of contexts (B, n)."""

    def nll(self, layer: HierarchicalSoftmax, contexts: Integer, targets: Array) -> Float64:
        """Return the negative log-likelihood in nats of each target in its context, (B,)."""

    def tensors(self) -> dict[str, Array]:
        """Return the parameters by the names that a model's folder gives them."""
