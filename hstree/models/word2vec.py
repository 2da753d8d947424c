"""Models of word2vec (Mikolov et al. 2013): predict a word from the words on both sides.

CBOW and skip-gram differ only in their context models (`hstree.models.cbow`,
`hstree.models.skipgram`); windows and training are the same. Their perplexity is that of a word
given its window, which includes words after it. It cannot be compared with the perplexity of a
language model.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, InitVar, dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy.sparse
from msgspec import Meta

from hstree._arrays import Array, Float64, Int64, Integer, offsets
from hstree._options import RandomState
from hstree._plugins import require
from hstree._text import plural
from hstree.data.contexts import Contexts, check_ids, ids_or_words, word_ids
from hstree.data.corpus import Corpus
from hstree.data.windows import ContextBatches, LineWindows, SymmetricWindows
from hstree.errors import InputError, OptionError
from hstree.kernels import compiled
from hstree.layers.arithmetic import touched_rows
from hstree.layers.base import OutputLayer, ParameterGradient
from hstree.layers.registry import LayerSpec
from hstree.models.base import (
    BatchSize,
    Epochs,
    LearningRate,
    Seconds,
    Size,
    Width,
    in_sorted_order,
    is_binary,
)
from hstree.models.model import Model
from hstree.training.checkpoints import State
from hstree.training.interrupts import held_back
from hstree.training.scoring import ContextModel
from hstree.training.sgd import DampedSGD
from hstree.training.trainer import Progress, Trainer
from hstree.tree import Tree
from hstree.tree.paths import path_decisions

#: Number of tokens in a step of word-by-word training. The learning rate changes and the clock is
#: read only between steps.
TOKENS = 10_000
#: Minimum number of such steps in a training run.
MIN_STEPS = 100
#: Default sub-sampling when training word vectors, as in the word2vec program.
SAMPLE = 1e-3
#: Minimum learning rate, as a fraction of the initial rate.
LOWEST = 1e-4


@dataclass(frozen=True)
class WindowLoss:
    """Losses of a batch, gradients of their sum, and values that determine the damping of steps.

    Gradients are with respect to the vectors of the words in windows, ascending, and the parameters
    of the output layer.
    """

    nll: Float64  # (B,)
    embedding: ParameterGradient
    output: Sequence[ParameterGradient]
    items: int  # number of predictions
    squares: float  # sum of the squared lengths of their hidden vectors
    fractions: float  # sum of the squared fractions of words in hidden vectors


@dataclass(eq=False)
class WindowModel(ContextModel):
    """Context model with the mean vector of the words around a position; -1 means no word.

    Attributes
    ----------
    embedding : float32 array (V, d)
    """

    embedding: Array
    #: Whether each word in a window is a separate prediction.
    by_word: ClassVar[bool] = False

    def predictions(self, contexts: Integer) -> tuple[Int64, Integer]:
        """Return the item (P,) of each prediction, and its context words (P, m)."""
        return np.arange(len(contexts)), contexts

    def hidden(self, contexts: Integer) -> Array:
        """Return the mean vectors (B, d) of windows (B, n): label ids in any order, -1 for none."""
        means, words = self._means(contexts)
        mean: Array = means @ self.embedding[words]
        return mean

    def loss(
        self, layer: OutputLayer, contexts: Integer, targets: Integer, rng: np.random.Generator
    ) -> WindowLoss:
        """Return the layer's loss for each target, and the gradients of their sum.

        See Rong (2014), section 3.1. By equation 20, each word in the window gets the gradient with
        respect to the hidden vector, times 1/C.
        """
        means, words = self._means(contexts)
        hidden = means @ self.embedding[words]
        nll, gradients = layer.loss(hidden, targets, rng)
        return WindowLoss(
            nll=nll,
            embedding=ParameterGradient("embedding", words, means.T @ gradients.hidden),
            output=gradients.parameters,
            items=len(targets),
            squares=float(np.vdot(hidden, hidden)),
            fractions=float(np.vdot(means.data, means.data)),
        )

    def _means(self, contexts: Integer) -> tuple[scipy.sparse.csr_array, Array]:
        """Return the averaging matrix (B, words), and the distinct words, ascending."""
        is_word = contexts >= 0
        count = is_word.sum(axis=1)
        words, slot = touched_rows(contexts[is_word], len(self.embedding))
        fraction = np.repeat((1 / np.maximum(count, 1)).astype(np.float32), count)
        start = offsets(count).astype(np.int32)
        shape = (len(contexts), len(words))
        return scipy.sparse.csr_array((fraction, slot, start), shape=shape), words


@dataclass(eq=False)
class Word2Vec(Model[WindowModel]):
    """Base class of CBOW and skip-gram.

    If the labels lack ``<eos>``, as in trees from gensim, line ends are left out of texts. If they
    also lack ``<unk>``, words outside the labels are left out, too, as in word2vec and gensim.

    Parameters
    ----------
    window : int
        Maximum number of words on either side of the target, within its line. In training, the size
        of each window is drawn from 1 to this number.
    sample : float
        Threshold for sub-sampling frequent words; 0 disables it, and the default of word2vec is
        0.001. Sub-sampling changes the distribution of training words: vectors get better, and the
        perplexity gets worse. See `hstree.data.windows.SymmetricWindows`.
    online : bool
        Whether to update the weights after every word instead of after every batch, as the word2vec
        program does. This is faster, and needs a binary tree with one code per word and the extra
        `fast`. It is the default of `hstree embed` if possible.

    Raises
    ------
    OptionError
        When `online` is set with another output layer.
    """

    window_model: ClassVar[type[WindowModel]] = WindowModel

    output: InitVar[Tree | LayerSpec]
    _: KW_ONLY
    dim: Size = 100
    window: Width = 5
    epochs: Epochs = 5
    batch_size: BatchSize = 1024
    learning_rate: LearningRate = 0.2
    sample: Annotated[float, Meta(ge=0)] = 0.0
    online: bool = False
    seconds: Seconds = None
    random_state: RandomState = 0

    def __post_init__(self, output: Tree | LayerSpec) -> None:
        super().__post_init__(output)
        if self.online and not is_binary(self.spec):
            raise OptionError.about(
                "online",
                "is for trees of two children per node and one code per word, such as huffman; "
                "leave it out for other output layers, which train in batches",
            )

    @classmethod
    def for_vectors(cls, spec: LayerSpec, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return options for training word vectors: sub-sampling, and `online` if possible.

        If `options` has a batch size, training is in batches.
        """
        online = is_binary(spec) and compiled() is not None and "batch_size" not in options
        return {"sample": SAMPLE, "online": online, **options}

    def new_context_model(self, rng: np.random.Generator) -> WindowModel:
        """Return an untrained context model, uniform from -0.5/d to 0.5/d as in word2vec."""
        words = self.spec.labels
        d = self.dim
        drawn = (rng.random((len(words), d), np.float32) - np.float32(0.5)) / np.float32(d)
        return self.window_model(in_sorted_order(words, drawn))

    @classmethod
    def select_tokens(cls, corpus: Corpus) -> Corpus:
        """Return a corpus, or only its words if the vocabulary lacks ``<eos>``."""
        if corpus.vocabulary.eos is None:
            return corpus.select_words()
        return super().select_tokens(corpus)

    def reencode(self, text: Any) -> Corpus:
        """Return a text with label ids as token ids; only words if the labels lack ``<eos>``."""
        return super().reencode(text).select_words()

    def windows(self, corpus: Corpus) -> SymmetricWindows:
        """Return the windows and targets of a corpus, as label ids."""
        kind = LineWindows if self.online else SymmetricWindows
        return kind(self.reencode(corpus), self.window, self.sample)

    def trainer(self, train: ContextBatches) -> Trainer[Any]:
        """Return a trainer that continues from the current parameters."""
        return OnlineTrainer(self, train) if self.online else Word2VecTrainer(self, train)

    @classmethod
    def describe(cls, options: Mapping[str, Any]) -> tuple[str, str]:
        """Describe a model and its training from the result of `config`, without limits."""
        moved = f"{options['batch_size']} positions per batch"
        if options.get("online"):
            moved = "updates after every word"
        return (
            f"{cls.name}, {plural(options['window'], 'word')} on each side, "
            f"{options['dim']} dimensions",
            f"{moved}, learning rate decreasing from {options['learning_rate']}, "
            f"sub-sampling {options['sample']}",
        )

    def context_ids(self, contexts: Contexts) -> Int64:
        """Return contexts of any length as label ids (B, n), padded with -1."""
        lists = ids_or_words(contexts, self.vocabulary)
        if isinstance(lists, np.ndarray):
            if lists.ndim != 2:
                raise InputError(f"contexts of shape {lists.shape}; this model takes (B, n)")
            check_ids(lists, len(self.spec.labels), lowest=-1)
            return lists.astype(np.int64)
        # The words of each context, then -1
        length = np.array([len(words) for words in lists], np.int64)
        ids = np.full((len(lists), max(1, int(length.max(initial=0)))), -1, np.int64)
        is_word = np.arange(ids.shape[1]) < length[:, None]
        ids[is_word] = word_ids([word for words in lists for word in words], self.vocabulary)
        return ids


def item_means(nll: Float64, item: Int64, n_items: int) -> Float64:
    """Return the mean over the predictions of each item; every item has at least one."""
    total = np.bincount(item, nll, minlength=n_items)
    mean: Float64 = total / np.bincount(item, minlength=n_items)
    return mean


class FallingTrainer(Trainer[WindowModel]):
    """Trainer whose learning rate falls linearly with the fraction of training done."""

    def learning_rate(self, done: float) -> float:
        """Return the learning rate after `done` epochs."""
        return self.rate * max(1 - done / max(1, self.epochs), LOWEST)


class Word2VecTrainer(FallingTrainer):
    """Trainer of CBOW or skip-gram and its output layer, in place.

    It uses minibatches and damped gradient descent (`hstree.training.sgd`). The learning rate falls
    linearly with the fraction of training done: of the epochs, or of the time budget if that is
    larger. The counts of the training text determine how often a batch touches each row.
    """

    def __init__(self, model: Word2Vec, train: ContextBatches) -> None:
        super().__init__(model)
        counts = train.training_counts
        curvature = self.layer.curvature(counts)
        self.embedding = DampedSGD(self.model.embedding, counts / float(counts.sum()))
        self.output = {
            name: DampedSGD(array, curvature[name])
            for name, array in self.layer.parameters().items()
        }

    def step(
        self, contexts: Integer, targets: Integer, learning_rate: float, prepared: Any = None
    ) -> float:
        """Train on one batch; return its summed loss in nats."""
        loss = self.model.loss(self.layer, contexts, targets, self.noise)

        # Curvature of a prediction along its hidden vector, over the touched rows
        curvature = 0.0
        for g in loss.output:
            if g.values.ndim > 1:
                optimiser = self.output[g.name]
                vectors: Array = optimiser.parameter[g.rows].reshape(len(g.values), -1)
                curvature += float(optimiser.curvature[g.rows] @ np.vecdot(vectors, vectors))

        # Update words, then the output layer
        words = loss.embedding
        scale = loss.fractions * curvature
        self.embedding.step(words.rows, words.values, learning_rate, scale)
        for g in loss.output:
            scale = loss.squares if g.values.ndim > 1 else loss.items
            self.output[g.name].step(g.rows, g.values, learning_rate, scale)
        return float(loss.nll.sum())


class OnlineTrainer(FallingTrainer):
    """Trainer of CBOW or skip-gram over a binary tree, word by word and in place.

    Each word updates the weights before the next word is read. This is gradient descent with a
    linearly falling learning rate, as in the word2vec program and in gensim with one worker. Lines
    are read in random order, about 10,000 tokens at a time. Training uses one thread: in
    measurements, two threads that shared the weights without locks ("Hogwild!", Recht et al. 2011)
    were half as fast.

    Raises MissingExtraError without numba, and OptionError when compiled kernels are disabled.
    """

    def __init__(self, model: Word2Vec, train: ContextBatches) -> None:
        super().__init__(model)
        #: number of tokens in a step; smaller for short texts, so that the rate falls smoothly
        self.batch_size = max(1, min(TOKENS, len(train) * self.epochs // MIN_STEPS))
        fast = compiled()
        if fast is None:
            require("numba")
            reason = "needs the compiled kernels, which HSTREE_FAST=0 or fast=False switches off"
            raise OptionError.about("online", reason)
        self._train = fast.train_lines

        self._windows = (model.window, self.model.by_word)
        layer: Any = model.layer  # hierarchical: the model refuses others

        # The decisions of all labels, with a sign of 1 for branch 0 and -1 for branch 1
        decisions, _ = path_decisions(layer.codes, np.arange(layer.n_labels))
        length = layer.codes.length
        self._paths = fast.LabelPaths(
            start=offsets(length),
            row=decisions.row.astype(np.int32),
            sign=(1 - 2 * decisions.branch).astype(np.float32),
            room=np.empty(int(length.max(initial=0)), np.float32),
        )

        matrices = (self.model.embedding, layer.weight)
        #: pairs of a matrix and its training copy, whose rows are padded to whole cache lines
        self._rooms = [(matrix, fast.zeros_at_cache_lines(matrix)) for matrix in matrices]
        self._is_apart = False  # whether the copies are newer than the matrices
        self._parameters = (*(room for _, room in self._rooms), layer.bias)
        # Compile now, by a step without lines, so that no epoch includes the time
        self.step(np.zeros(1, np.int32), np.empty(0, np.int32), 0.0)

    @contextmanager
    def at_cache_lines(self) -> Iterator[None]:
        """Copy the matrices to their training copies, and back after the body."""
        for matrix, room in self._rooms:
            room[:, : matrix.shape[1]] = matrix
        self._is_apart = True
        try:
            yield
        finally:
            with held_back():
                self._write_back()
                self._is_apart = False

    def _train_epoch(self, *arguments: Any) -> tuple[float, float]:
        with self.at_cache_lines():
            return super()._train_epoch(*arguments)

    def _state(self, run: Progress) -> State:
        if self._is_apart:  # in the middle of an epoch
            self._write_back()
        return super()._state(run)

    def _write_back(self) -> None:
        for matrix, room in self._rooms:
            matrix[...] = room[:, : matrix.shape[1]]

    def prepare(self, contexts: Any, targets: Any) -> int:
        """Return the random seed for the window sizes in these lines."""
        return int(self.rng.integers(1, 1 << 63))

    def step(
        self, contexts: Any, targets: Any, learning_rate: float, prepared: int | None = None
    ) -> float:
        """Train on lines, whose offsets are `contexts`; return the summed loss of their tokens.

        Call it inside `at_cache_lines`, which copies the changes to the model.
        """
        loss: float = self._train(
            (contexts, targets),
            self._windows,
            self._paths,
            self._parameters,
            np.float32(learning_rate),
            np.uint64(prepared or self.prepare(contexts, targets)),
        )
        return loss
