"""Language model over a sum of word vectors in which recent words have larger weights."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, InitVar, dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from msgspec import Meta
from scipy.sparse import csr_array

from hstree import Corpus, Tree
from hstree.data.contexts import ids_before
from hstree.data.windows import ContextBatches
from hstree.layers import LayerSpec
from hstree.layers.arithmetic import touched_rows
from hstree.models import Model, RandomState
from hstree.models.base import BatchSize, Epochs, LearningRate, Size, Width, in_sorted_order
from hstree.training.adagrad import RowAdagrad
from hstree.training.scoring import ContextModel
from hstree.training.trainer import Trainer


@dataclass(eq=False)
class RecencyModel(Model["WeightedSum"]):
    """Language model over a weighted sum of the words before the target.

    Parameters
    ----------
    context : int
        Number of words before the target.
    decay : float
        Weight of a word relative to that of the next word.
    """

    name: ClassVar[str] = "recency"
    predicts: ClassVar[str] = "word given the words before it"

    output: InitVar[Tree | LayerSpec]
    _: KW_ONLY
    dim: Size = 100
    context: Width = 5
    decay: Annotated[float, Meta(ge=0, le=1)] = 0.7
    epochs: Epochs = 5
    batch_size: BatchSize = 256
    learning_rate: LearningRate = 0.1
    random_state: RandomState = 0

    def windows(self, corpus: Corpus) -> ContextBatches:
        """Return the contexts and targets of a corpus, as label ids."""
        return ContextBatches(self.reencode(corpus), self.context)

    def trainer(self, train: ContextBatches) -> "RecencyTrainer":
        """Return a trainer that continues from the present parameters."""
        return RecencyTrainer(self)

    @classmethod
    def describe(cls, options: Mapping[str, Any]) -> tuple[str, str]:
        """Describe a model and its training in words."""
        model = f"sum of {options['context']} words, decay {options['decay']}, d {options['dim']}"
        return model, f"Adagrad from {options['learning_rate']}"

    def new_context_model(self, rng: np.random.Generator) -> "WeightedSum":
        """Return an untrained context model."""
        weight = self.decay ** np.arange(self.context - 1, -1, -1)
        vectors = 0.1 * rng.standard_normal((len(self.spec.labels), self.dim), np.float32)
        return WeightedSum(in_sorted_order(self.spec.labels, vectors), weight.astype(np.float32))

    def context_ids(self, contexts: Any) -> Any:
        """Return contexts as label ids (B, n)."""
        return ids_before(contexts, self.context, self.vocabulary)


class WeightedSum(ContextModel):
    """Weighted sum of the vectors of the n words before a position."""

    def __init__(self, embedding: Any, weight: Any) -> None:
        self.embedding, self.weight = embedding, weight

    def hidden(self, contexts: Any) -> Any:
        """Return the hidden vectors of contexts (B, n), a float32 array (B, d)."""
        return np.einsum("bnd,n->bd", self.embedding[contexts], self.weight)


class RecencyTrainer(Trainer[WeightedSum]):
    """Adagrad on the word vectors and the output layer."""

    def __init__(self, model: RecencyModel) -> None:
        super().__init__(model)
        arrays = self.model.parameters() | self.layer.parameters()
        self.optimisers = {name: RowAdagrad(array) for name, array in arrays.items()}

    def step(
        self, contexts: Any, targets: Any, learning_rate: float, prepared: Any = None
    ) -> float:
        """Train on one batch; return its summed loss in nats."""
        hidden = self.model.hidden(contexts)
        losses, gradients = self.layer.in_context(contexts).loss(hidden, targets, self.noise)
        # (r,) distinct words of the batch, and (B, n) which of them each position holds
        words, slot = touched_rows(contexts, len(self.model.embedding))
        # (B, r) weight of each word in each hidden vector
        batch, n = contexts.shape
        weights = csr_array(
            (np.tile(self.model.weight, batch), slot.ravel(), np.arange(0, contexts.size + 1, n)),
            shape=(batch, len(words)),
        )
        self.optimisers["embedding"].step(words, weights.T @ gradients.hidden, learning_rate)
        for g in gradients.parameters:
            self.optimisers[g.name].step(g.rows, g.values, learning_rate)
        return float(losses.sum())
