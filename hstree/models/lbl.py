"""Log-bilinear language model (LBL) of Mnih & Hinton (2007; 2008, section 2).

The hidden vector is ``sum_i C_i r(w_i)`` over the last n words, with a diagonal (default) or full
matrix C_i for each position. It is trained in minibatches by Adagrad on touched rows; the learning
rate is halved when the validation perplexity stalls. Starting vectors, the order of the text and
the dropout depend on the random seed and the text alone, so that all output layers get the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from hstree import progress
from hstree._compiled import backend, twin
from hstree._options import RANDOM_STATE, RandomState, Range, checked_count
from hstree._text import plural
from hstree._typing import Array, Int64, Integer
from hstree.data.contexts import Contexts, ids_before
from hstree.data.corpus import Corpus
from hstree.data.windows import Windows
from hstree.layers.base import ParameterGradient
from hstree.layers.hooks import hooks_of
from hstree.layers.kernels import slot_sums, touched_rows
from hstree.layers.registry import LayerSpec
from hstree.models.base import (
    BatchSize,
    Epochs,
    LearningRate,
    Model,
    Seconds,
    Size,
    Width,
    in_sorted_order,
)
from hstree.training.adagrad import RowAdagrad
from hstree.training.scoring import ContextModel
from hstree.training.trainer import Trainer
from hstree.tree import Tree

#: Standard deviation of the starting word vectors.
EMBEDDING_SCALE = 0.1
#: Weight decay of a whole text, by default: a longer text outweighs the penalty, as data outweigh
#: a prior. Measured from 11,000 to 12.7 million tokens (docs/results/tried.md).
TEXT_DECAY = 14.0
#: A validation perplexity that falls by less than this share has stalled.
STALL = 0.002
#: Training stops after so many epochs in a row of which each lowered the validation perplexity by
#: less than this share.
PATIENCE, LEAST = 3, 0.0005


@dataclass(eq=False)
class LanguageModel(Model["LogBilinear"]):
    """Log-bilinear language model: a word from the words before it.

    `dim`, `epochs`, `learning_rate` and `random_state` are those of every `Model`.

    Parameters
    ----------
    batch_size : int
        Number of positions in a minibatch.
    context : int
        Number of words before the target.
    full : bool
        Full position matrices instead of diagonal ones.
    dropout : float
        Probability that an element of a hidden vector is left out in training.
    weight_decay : float, optional
        L2 penalty on word and output vectors, per token. On the scale of PyTorch's, whose losses
        are means over tokens. Default: 14 divided by the number of training tokens.

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
    dropout: Annotated[float, Range(0, 1, exclude_max=True)] = 0.35
    weight_decay: Annotated[float | None, Range(0)] = None
    seconds: Seconds = None
    random_state: RandomState = 0

    def windows(self, corpus: Corpus) -> Windows:
        """Return the contexts and targets of a corpus, as label ids."""
        return Windows(self.reencode(corpus), self.context)

    def trainer(self, train: Windows) -> LogBilinearTrainer:
        """Return a trainer that goes on from the present parameters."""
        return LogBilinearTrainer(self, train)

    def sample(
        self, length: int, context: Sequence[str] = (), *, random_state: int = 0
    ) -> list[str]:
        """Write `length` words, each drawn given the ones before it; see `samples`."""
        return self.samples(length, [context], random_state=random_state)[0]

    def samples(self, length: int, contexts: Contexts, *, random_state: int = 0) -> list[list[str]]:
        """Write `length` words after each context, all contexts a word at a time.

        Contexts are lists of words, an empty one the beginning of a text, or label ids (B, n); an
        ``<eos>`` counts as a word. Raises OptionError when a number is out of range.
        """
        length = checked_count("length", length, 0)
        rng = np.random.default_rng(RANDOM_STATE.checked(random_state))
        ids = self.context_ids(contexts)
        drawn = np.empty((len(ids), length), np.int64)  # labels
        with progress.task("sampling", length, "words") as task:
            for number in range(length):
                hidden = self.context_model.hidden(ids)
                drawn[:, number] = hooks_of(self.layer).in_context(ids).sample(hidden, rng)
                ids = np.column_stack([ids[:, 1:], drawn[:, number]])
                task.advance()
        words = self.spec.labels
        return [[words[label] for label in labels] for labels in drawn.tolist()]

    @classmethod
    def describe(cls, options: Mapping[str, Any]) -> tuple[str, str]:
        """Describe a model and its training, without limits, from what `config` returns."""
        matrices = "full" if options["full"] else "diagonal"
        decay = options.get("weight_decay")
        return (
            f"log-bilinear, {plural(options['context'], 'word')} of context, "
            f"{options['dim']} numbers a word, {matrices} matrices",
            f"{options['batch_size']} positions per batch, "
            f"Adagrad from {options['learning_rate']}, dropout {options['dropout']}, "
            f"weight decay {f'{TEXT_DECAY:g} / tokens of the text' if decay is None else decay}",
        )

    def new_context_model(self, rng: np.random.Generator) -> LogBilinear:
        """Return an untrained context model: small vectors, and the sum of words."""
        labels, d = self.spec.labels, self.dim
        drawn = rng.standard_normal((len(labels), d), np.float32) * np.float32(EMBEDDING_SCALE)
        one = np.eye(d, dtype=np.float32) if self.full else np.ones(d, np.float32)
        position = np.repeat(one[None], self.context, axis=0)
        return LogBilinear(in_sorted_order(labels, drawn), position)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of all parameters from the options and the layer's source alone."""
        d, n = self.dim, self.context
        return super().shapes() | {"position": (n, d, d) if self.full else (n, d)}

    def context_ids(self, contexts: Contexts) -> Int64:
        """Return contexts as label ids (B, n); shorter ones are padded with <eos> on the left."""
        return ids_before(contexts, self.context, self.vocabulary)


@dataclass(eq=False)
class LogBilinear(ContextModel):
    """Hidden vectors from the n words before a position.

    Attributes
    ----------
    embedding : float32 array (V, d)
    position : float32 array (n, d), or (n, d, d) where they are full
        Position matrices; the first belongs to the farthest word.
    """

    embedding: Array
    position: Array

    def parameters(self) -> dict[str, Array]:
        """Return the trained arrays, by the names that a saved model gives them."""
        return {"embedding": self.embedding, "position": self.position}

    def hidden(self, contexts: Integer) -> Array:
        """Return the hidden vectors (B, d) of contexts (B, n), label ids, farthest first."""
        return window_sum(self.embedding, self.position, contexts)[0]


@twin
def window_sum(embedding: Array, position: Array, contexts: Integer) -> tuple[Array, Array]:
    """Return ``sum_i position[i] * embedding[contexts[:, i]]``, a float array (B, d).

    Parameters
    ----------
    embedding : float array (V, d)
    position : float array (n, d), or (n, d, d)
        Diagonal matrices, or full ones.
    contexts : int array (B, n)

    Returns
    -------
    hidden : float array (B, d)
    vectors : float array
        For `window_sum_backward`.
    """
    vectors = embedding.take(contexts, axis=0)
    if position.ndim > 2:
        return np.einsum("bnd,ned->be", vectors, position, optimize=True), vectors
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
    grad_position : float array like `position`
    """
    # (B, n, d) with respect to the vector at each place of a context
    if position.ndim > 2:
        grad_position = np.einsum("be,bnd->ned", grad_hidden, vectors, optimize=True)
        by_place = np.einsum("be,ned->bnd", grad_hidden, position, optimize=True)
    else:
        grad_position = np.einsum("bnd,bd->nd", vectors, grad_hidden)
        by_place = grad_hidden[:, None] * position
    words, slot = touched_rows(contexts, len(embedding))
    flat = by_place.reshape(slot.size, embedding.shape[1])
    return words, slot_sums(flat, slot.ravel(), len(words)), grad_position


class LogBilinearTrainer(Trainer[LogBilinear]):
    """Trains a log-bilinear model and its output layer, in place."""

    schedule: ClassVar[tuple[str, ...]] = ("_tokens", "rate", "_since_best")
    optimisers: dict[str, RowAdagrad]
    #: the compiled step; None where NumPy trains
    _compiled: Any = None

    def __init__(self, model: LanguageModel, train: Windows) -> None:
        super().__init__(model)
        weight_decay = model.weight_decay
        if weight_decay is None:
            weight_decay = TEXT_DECAY / max(1, len(train))
        self._dropout_rate, self._since_best, self._tokens = np.float32(model.dropout), 0, 0
        self.optimisers = {
            "embedding": RowAdagrad(self.model.embedding, weight_decay),
            "position": RowAdagrad(self.model.position),
        }
        options = self.hooks.adagrad
        for name, array in self.layer.parameters().items():
            decay = weight_decay if array.ndim > 1 else 0.0  # biases do not decay
            self.optimisers[name] = RowAdagrad(array, decay, **options.get(name, {}))
        optimisers = self.optimisers.values()
        if (module := backend("models")) is not None:
            self._compiled = module.log_bilinear_step(self.layer, self.batch_size, *optimisers)
        # What steps call is compiled on a batch of nothing, so that no epoch's seconds are of that.
        contexts, targets = np.empty((0, model.context), np.int32), np.empty(0, np.int32)
        if self._compiled is not None:
            self.step(contexts, targets, 0.0)
        elif module is not None:
            words = self.model.embedding, self.model.position, contexts
            hidden, vectors = window_sum(*words)
            window_sum_backward(*words, vectors, hidden)
            if model.tree is not None:
                self.hooks.in_context(contexts).loss(hidden, targets, np.random.default_rng(0))
            for optimiser in optimisers:
                optimiser.step(np.empty(0, np.int64), optimiser.parameter[:0], 0.0)

    def prepare(self, contexts: Integer, targets: Integer) -> tuple[Any, Any]:
        """Draw the scale of every element of the hidden vectors (B, d); lay out the batch.

        The scale is 0 where dropout leaves an element out. The second value is the plan of the
        compiled step, None without one.
        """
        rate, shape = self._dropout_rate, (len(targets), self.model.embedding.shape[1])
        keep: Array
        if rate > 0:
            keep = (self.rng.random(shape, np.float32) >= rate) * (1 / (1 - rate))
        else:
            keep = np.ones(shape if self._compiled else 1, np.float32)
        return keep, None if self._compiled is None else self._compiled.plan(contexts, targets)

    def on_validation(self, valid: float, best: float) -> bool:
        """Halve the learning rate at a stall; return True to stop after `PATIENCE` small falls.

        A budget of seconds that ends inside an epoch ends it without another halving: the steps of
        Adagrad shrink by themselves.
        """
        if valid > best * (1 - STALL):
            self.rate /= 2
        self._since_best = 0 if valid < best * (1 - LEAST) else self._since_best + 1
        return self._since_best == PATIENCE

    def step(
        self, contexts: Integer, targets: Integer, learning_rate: float, prepared: Any = None
    ) -> float:
        """Train on one batch; return its summed loss in nats."""
        self._tokens += len(targets)
        keep, plan = prepared or self.prepare(contexts, targets)
        if self._compiled is not None:
            loss: float = self._compiled(plan, keep, learning_rate, self._tokens)
            return loss
        words = self.model.embedding, self.model.position, contexts
        hidden, vectors = window_sum(*words)
        after = self.hooks.in_context(contexts)
        losses, gradients = after.loss(hidden * keep, targets, self.noise)
        grad_hidden = gradients.hidden * keep
        rows, grad_words, grad_position = window_sum_backward(*words, vectors, grad_hidden)
        for g in (
            ParameterGradient("embedding", rows, grad_words),
            ParameterGradient("position", slice(None), grad_position),
            *gradients.parameters,
        ):
            self.optimisers[g.name].step(g.rows, g.values, learning_rate, self._tokens)
        return float(losses.sum())
