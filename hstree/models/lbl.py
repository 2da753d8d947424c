"""Log-bilinear language model (LBL) of Mnih & Hinton (2007; 2008, section 2).

The hidden vector is ``sum_i C_i r(w_i)`` over the last n words, with a diagonal (default) or full
matrix C_i for each position. Training uses minibatches and Adagrad on touched rows; the learning
rate is halved when the validation perplexity stalls. Initial vectors, the order of the text and
dropout depend only on the random seed and the text, so that they are the same for all output
layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from msgspec import Meta

from hstree import progress
from hstree._arrays import Array, Float64, Int64, Integer
from hstree._options import RANDOM_STATE, RandomState, checked_count
from hstree._text import plural
from hstree.data.contexts import Contexts, ids_before
from hstree.data.corpus import Corpus
from hstree.data.windows import ContextBatches
from hstree.kernels import compiled
from hstree.layers.arithmetic import slot_sums, touched_rows
from hstree.layers.base import OutputLayer, ParameterGradient
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.layers.ngrams import NgramSoftmax
from hstree.layers.registry import LayerSpec
from hstree.models.base import (
    BatchSize,
    Epochs,
    Fraction,
    LearningRate,
    Seconds,
    Size,
    Width,
    in_sorted_order,
)
from hstree.models.model import Model
from hstree.training.adagrad import RowAdagrad
from hstree.training.scoring import ContextModel
from hstree.training.trainer import Trainer
from hstree.tree import Tree

#: Standard deviation of the initial word vectors.
EMBEDDING_SCALE = 0.1
#: Default weight decay, summed over the text: the penalty loses weight in a longer text, like a
#: prior. Measured from 11,000 to 12.7 million tokens (docs/results/tried.md).
TEXT_DECAY = 14.0
#: Minimum fraction by which the validation perplexity must fall, or else it has stalled.
STALL = 0.002
#: Number of consecutive epochs without an improvement after which training stops.
PATIENCE = 3
#: Minimum fraction by which an improvement lowers the validation perplexity.
MIN_IMPROVEMENT = 0.0005


@dataclass(eq=False)
class LanguageModel(Model["LogBilinear"]):
    """Log-bilinear language model: predicts a word from the words before it.

    See `Model` for `dim`, `epochs`, `learning_rate` and `random_state`.

    Parameters
    ----------
    batch_size : int
        Number of positions in a minibatch.
    context : int
        Number of words before the target.
    full : bool
        Whether position matrices are full instead of diagonal.
    dropout : float
        Dropout probability for elements of hidden vectors.
    weight_decay : float, optional
        L2 penalty on word and output vectors per token, on the scale of PyTorch, where losses are
        means over tokens (default: 14 divided by the number of training tokens).

    Examples
    --------
    >>> model = LanguageModel(tree, dim=100, context=5)              # doctest: +SKIP
    >>> model.fit(train, valid).perplexity(test)                     # doctest: +SKIP
    149.2
    """

    name: ClassVar[str] = "lbl"
    predicts: ClassVar[str] = "word given the words before it"
    is_language_model: ClassVar[bool] = True
    converges: ClassVar[bool] = True

    output: InitVar[Tree | LayerSpec]
    _: KW_ONLY
    dim: Size = 100
    context: Width = 5
    full: bool = False
    epochs: Epochs = 20
    batch_size: BatchSize = 256
    learning_rate: LearningRate = 0.1
    dropout: Fraction = 0.35
    weight_decay: Annotated[float, Meta(ge=0)] | None = None
    seconds: Seconds = None
    random_state: RandomState = 0

    def windows(self, corpus: Corpus) -> ContextBatches:
        """Return the contexts and targets of a corpus, as label ids."""
        return ContextBatches(self.reencode(corpus), self.context)

    def trainer(self, train: ContextBatches) -> LogBilinearTrainer:
        """Return a trainer that continues from the current parameters."""
        return LogBilinearTrainer(self, train)

    def sample(
        self, length: int, context: Sequence[str] = (), *, random_state: int = 0
    ) -> list[str]:
        """Sample `length` words one after the other; see `samples`."""
        return self.samples(length, [context], random_state=random_state)[0]

    def samples(self, length: int, contexts: Contexts, *, random_state: int = 0) -> list[list[str]]:
        """Sample `length` words after each context, one word at a time for all contexts.

        Contexts are lists of words, or label ids (B, n); an empty list is the beginning of a text,
        and ``<eos>`` counts as a word. Raises OptionError when a number is out of range.
        """
        length = checked_count("length", length, 0)
        rng = np.random.default_rng(RANDOM_STATE.checked(random_state))
        ids = self.context_ids(contexts)
        drawn = np.empty((len(ids), length), np.int64)  # labels
        with progress.task("sampling", length, "words") as task:
            for number in range(length):
                hidden = self.context_model.hidden(ids)
                drawn[:, number] = self.layer.in_context(ids).sample(hidden, rng)
                ids = np.column_stack([ids[:, 1:], drawn[:, number]])
                task.advance()
        words = self.spec.labels
        return [[words[label] for label in labels] for labels in drawn.tolist()]

    @classmethod
    def describe(cls, options: Mapping[str, Any]) -> tuple[str, str]:
        """Describe a model and its training from the result of `config`, without limits."""
        matrices = "full" if options["full"] else "diagonal"
        decay = options.get("weight_decay")
        return (
            f"log-bilinear, {plural(options['context'], 'context word')}, "
            f"{options['dim']} dimensions, {matrices} matrices",
            f"{options['batch_size']} positions per batch, "
            f"Adagrad with learning rate {options['learning_rate']}, dropout {options['dropout']}, "
            f"weight decay {f'{TEXT_DECAY:g} / training tokens' if decay is None else decay}",
        )

    def new_context_model(self, rng: np.random.Generator) -> LogBilinear:
        """Return an untrained context model: small vectors and identity position matrices."""
        labels = self.spec.labels
        d = self.dim
        drawn = rng.standard_normal((len(labels), d), np.float32) * np.float32(EMBEDDING_SCALE)
        identity = np.eye(d, dtype=np.float32) if self.full else np.ones(d, np.float32)
        position = np.repeat(identity[None], self.context, axis=0)
        return LogBilinear(in_sorted_order(labels, drawn), position)

    def context_ids(self, contexts: Contexts) -> Int64:
        """Return contexts as label ids (B, n); short contexts are padded with <eos> on the left."""
        return ids_before(contexts, self.context, self.vocabulary)


@dataclass(eq=False)
class LogBilinear(ContextModel):
    """Context model that computes hidden vectors from the n words before a position.

    Attributes
    ----------
    embedding : float32 array (V, d)
    position : float32 array (n, d), or (n, d, d) for full matrices
        Position matrices; the first belongs to the farthest word.
    """

    embedding: Array
    position: Array

    def parameters(self) -> dict[str, Array]:
        """Return the trained arrays, by their names in a saved model."""
        return {"embedding": self.embedding, "position": self.position}

    def hidden(self, contexts: Integer) -> Array:
        """Return the hidden vectors (B, d) of contexts (B, n): label ids, farthest word first."""
        return window_sum(self.embedding, self.position, contexts)

    def nll(self, layer: OutputLayer, contexts: Integer, targets: Integer) -> Float64:
        """Return the negative log-likelihood in nats of each target in its context, (B,)."""
        fast = compiled()
        arrays = (self.embedding, self.position)
        if fast is None or self.position.ndim > 2 or not fast.is_supported(*arrays):
            return super().nll(layer, contexts, targets)
        hidden = fast.window_sums(*arrays, contexts)
        return layer.in_context(contexts).nll(hidden, targets)


def window_sum(embedding: Array, position: Array, contexts: Integer) -> Array:
    """Return ``sum_i position[i] * embedding[contexts[:, i]]``, a float array (B, d).

    Parameters
    ----------
    embedding : float array (V, d)
    position : float array (n, d), or (n, d, d)
        Diagonal or full matrices.
    contexts : int array (B, n)
    """
    vectors = embedding.take(contexts, axis=0)
    if position.ndim == 2:
        return np.asarray(np.einsum("bnd,nd->bd", vectors, position))
    return np.asarray(np.einsum("bnd,ned->be", vectors, position, optimize=True))


def window_sum_backward(
    embedding: Array, position: Array, contexts: Integer, grad_hidden: Array
) -> tuple[Int64, Array, Array]:
    """Return the gradients of `window_sum`.

    Returns
    -------
    words : int64 array (w,)
        Distinct words.
    grad_words : float array (w, d)
    grad_position : float array like `position`
    """
    vectors = embedding.take(contexts, axis=0)
    # (B, n, d) gradients with respect to the vector at each position in a context
    if position.ndim == 2:
        grad_position = np.einsum("bnd,bd->nd", vectors, grad_hidden)
        grad_vectors = grad_hidden[:, None] * position
    else:
        grad_position = np.einsum("be,bnd->ned", grad_hidden, vectors, optimize=True)
        grad_vectors = np.einsum("be,ned->bnd", grad_hidden, position, optimize=True)
    words, slot = touched_rows(contexts, len(embedding))
    flat = grad_vectors.reshape(slot.size, embedding.shape[1])
    return words, slot_sums(flat, slot.ravel(), len(words)), grad_position


class LogBilinearTrainer(Trainer[LogBilinear]):
    """Trainer of a log-bilinear model and its output layer, in place."""

    schedule: ClassVar[tuple[str, ...]] = ("_tokens", "rate", "_since_best")
    optimisers: dict[str, RowAdagrad]

    def __init__(self, model: LanguageModel, train: ContextBatches) -> None:
        super().__init__(model)
        weight_decay = model.weight_decay
        if weight_decay is None:
            weight_decay = TEXT_DECAY / max(1, len(train))
        self._dropout_rate = np.float32(model.dropout)
        self._since_best = 0
        self._tokens = 0
        self.optimisers = {
            "embedding": RowAdagrad(self.model.embedding, weight_decay),
            "position": RowAdagrad(self.model.position),
        }
        options = self.layer.adagrad
        for name, array in self.layer.parameters().items():
            decay = weight_decay if array.ndim > 1 else 0.0  # biases do not decay
            self.optimisers[name] = RowAdagrad(array, decay, **options.get(name, {}))
        #: arrays for the compiled step; None if steps use NumPy
        self._compiled_arrays = self._compiled_step_arrays()
        if self._compiled_arrays is not None:
            # Compile now, by a step without words, so that no epoch includes the time
            self.step(np.empty((0, len(self.model.position)), np.int32), np.empty(0, np.int32), 0.0)

    def _compiled_step_arrays(self) -> Any:
        """Return the arrays for the compiled step, or None if steps use NumPy."""
        fast = compiled()
        layer: Any = self.layer
        # Subclasses may compute something else
        if fast is None or type(layer) not in (HierarchicalSoftmax, NgramSoftmax):
            return None
        if layer.tree.n_nodes == 0 or (layer.is_one_softmax and not layer.needs_contexts):
            return None
        # Use NumPy for full position matrices and other dtypes
        model = self.model
        arrays = (model.embedding, model.position, layer.weight, layer.bias)
        if model.position.ndim > 2 or not fast.is_supported(*arrays):
            return None
        # Add the optimiser state of each matrix; rows of words and nodes decay when touched
        embedding = self.optimisers["embedding"]
        position = self.optimisers["position"]
        words = fast.RowState(embedding.squares, position.squares, embedding.decayed)
        weight = self.optimisers["node_weight"]
        bias = self.optimisers["node_bias"]
        nodes = fast.RowState(weight.squares, bias.squares, weight.decayed)
        return fast.LogBilinearArrays(*arrays, words, nodes)

    def prepare(self, contexts: Integer, targets: Integer) -> tuple[Array, Any]:
        """Draw the scale of every element of the hidden vectors (B, d); lay out the batch.

        The scale is 0 for dropped elements. The second value is the layout for the compiled step,
        or None if the step uses NumPy.
        """
        shape = (len(targets), self.model.embedding.shape[1])
        rate = self._dropout_rate
        keep: Array
        if rate > 0:
            keep = (self.rng.random(shape, np.float32) >= rate) * (1 / (1 - rate))
        else:
            keep = np.ones(shape, np.float32)
        if self._compiled_arrays is None:
            return keep, None

        # The layout for the compiled step
        layer: Any = self.layer.in_context(contexts)
        layout = layer.compiled_layout(targets, keep, with_gradients=True)
        if layout is None:  # too many scores for the compiled step
            return keep, None
        return keep, compiled().lay_out_contexts(contexts, len(self.model.embedding), layout)

    def on_validation(self, valid: float, best: float) -> bool:
        """Halve the learning rate when validation stalls; return True to stop.

        Training stops after `PATIENCE` epochs without an improvement. With a time budget that ends
        inside an epoch, the rate is not halved, since Adagrad reduces the steps anyway.
        """
        if valid > best * (1 - STALL):
            self.rate /= 2
        self._since_best = 0 if valid < best * (1 - MIN_IMPROVEMENT) else self._since_best + 1
        return self._since_best == PATIENCE

    def step(
        self, contexts: Integer, targets: Integer, learning_rate: float, prepared: Any = None
    ) -> float:
        """Train on one batch; return its summed loss in nats."""
        self._tokens += len(targets)
        keep, layout = prepared or self.prepare(contexts, targets)
        if layout is not None:
            return self._compiled_step(layout, keep, learning_rate)

        # Forward: hidden vectors, losses and gradients
        model = self.model
        hidden = model.hidden(contexts)
        layer = self.layer.in_context(contexts)
        nll, gradients = layer.loss(hidden * keep, targets, self.noise)

        # Backward: words and positions
        grad_hidden = gradients.hidden * keep
        words, grad_words, grad_position = window_sum_backward(
            model.embedding, model.position, contexts, grad_hidden
        )
        for g in (
            ParameterGradient("embedding", words, grad_words),
            ParameterGradient("position", slice(None), grad_position),
            *gradients.parameters,
        ):
            self.optimisers[g.name].step(g.rows, g.values, learning_rate, self._tokens)
        return float(nll.sum())

    def _compiled_step(self, layout: Any, keep: Array, learning_rate: float) -> float:
        """Train on a batch with the compiled step; return its summed loss in nats."""
        fast = compiled()
        rates = fast.Rates(
            np.float32(learning_rate),
            self.optimisers["embedding"].weight_decay,
            self.optimisers["node_weight"].weight_decay,
            self._tokens,
        )
        forward = fast.log_bilinear_step(self._compiled_arrays, layout, keep, rates)
        # The compiled step updates words and nodes; n-gram features have their own optimiser
        if "feature_weight" in self.optimisers:
            features = layout.tree.occurrences.feature
            gradient = forward.feature_gradient()
            optimiser = self.optimisers["feature_weight"]
            optimiser.step(features, gradient, learning_rate, self._tokens)
        return float(forward.items.nll.sum())
