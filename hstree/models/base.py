"""Models: a context model with an output layer, its options, scores, predictions and vectors.

A subclass is a dataclass whose fields are the options; its constructor, the command line and the
key of a kept run are made from them. `hstree.models.registry` lists the models by name, and
`hstree.layers.saved` reads their folders.
"""

from __future__ import annotations

import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from msgspec import Meta
from safetensors.numpy import save as tensors_to_bytes

from hstree import progress
from hstree._arrays import Array, Bool, Float64, Int64, Integer
from hstree._files import replacing_together
from hstree._options import read_options
from hstree._text import one_line
from hstree.data.arrays import check_tensor
from hstree.data.contexts import Contexts
from hstree.data.corpus import Corpus
from hstree.data.provenance import Text, collect_sources
from hstree.data.text_score import TextScore
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.data.windows import ContextBatches
from hstree.errors import FileFormatError, OptionError
from hstree.kernels import backend_name, numpy_for_short_runs, numpy_only
from hstree.layers import saved as saved_models
from hstree.layers.arithmetic import slot_sums, touched_rows
from hstree.layers.base import OutputLayer
from hstree.layers.registry import LayerSpec
from hstree.models.warm_start import copy_context_model
from hstree.training.checkpoints import Checkpoints, checkpoint_key
from hstree.training.scoring import ContextModel, score, scored_batches
from hstree.training.trainer import History, Trainer
from hstree.tree import Tree

M = TypeVar("M", bound=ContextModel)

#: Model of a config that does not name one.
DEFAULT_MODEL = "lbl"

# Types and ranges of options that several models have.
Size = Annotated[int, Meta(ge=1, le=1 << 16)]
Width = Annotated[int, Meta(ge=1, le=1 << 12)]
MAX_EPOCHS = 1_000_000
Epochs = Annotated[int, Meta(ge=0, le=MAX_EPOCHS)]
BatchSize = Annotated[int, Meta(ge=1, le=1 << 22)]
LearningRate = Annotated[float, Meta(gt=0)]
Seconds = Annotated[float, Meta(gt=0)] | None


#: Attributes for subclasses and trainers, which `dir` leaves out.
_AUTHOR_NAMES = {
    "config",
    "context_ids",
    "context_model",
    "converges",
    "describe",
    "for_vectors",
    "from_saved",
    "is_language_model",
    "name",
    "new_context_model",
    "predicts",
    "reencode",
    "scored",
    "shapes",
    "trainer",
    "windows",
}


class Predictor(ABC):
    """What gives words probabilities: one model, or several.

    Attributes
    ----------
    spec : LayerSpec
        Output layer whose labels are the vocabulary.
    """

    spec: LayerSpec

    @abstractmethod
    def scored(self, corpus: Any) -> Iterator[tuple[Float64, Bool]]:
        """Yield the nll in nats of every token and whether it is OOV, some tokens at a time."""

    @abstractmethod
    def score(self, corpus: Any) -> TextScore:
        """Score every position of a text, a corpus or what `Corpus.of` makes one of."""

    @abstractmethod
    def top_k(self, contexts: Contexts, k: int = 10) -> tuple[Int64, Float64]:
        """Return the k most probable labels of each context and their log-probabilities (B, k)."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The labels in their order, with their counts."""
        return self.spec.vocabulary

    def nll(self, corpus: Any) -> Float64:
        """Return the nll in nats of every token in the order of the text, a float64 array (T,).

        The text is a corpus or what `Corpus.of` makes one of. ``<eos>`` is included; a token
        outside the vocabulary has the nll of ``<unk>``.
        """
        return np.concatenate([np.empty(0), *(nll for nll, _ in self.scored(corpus))])

    def perplexity(self, corpus: Any) -> float:
        """Return the perplexity over all tokens of a text, ``<unk>`` and ``<eos>`` included.

        The text is a corpus, the name of a file, lines, lists of tokens or label ids (`Corpus.of`).
        """
        return self.score(corpus).perplexity

    def predict(self, contexts: Contexts, k: int = 10) -> list[list[tuple[str, float]]]:
        """Return the k most probable words of each context and their probabilities, exactly.

        Contexts are lines, lists of words, or label ids; a word outside the vocabulary is read as
        ``<unk>``. Most probable first, ties by label id.

        Examples
        --------
        >>> model.predict([["the", "stock"]], k=2)                    # doctest: +SKIP
        [[('market', 0.41), ('exchange', 0.17)]]
        """
        labels, log_prob = self.top_k(contexts, k)
        words = self.spec.labels
        return [
            [(words[label], probability) for label, probability in zip(*pair, strict=True)]
            for pair in zip(labels.tolist(), np.exp(log_prob).tolist(), strict=True)
        ]


class Model(Predictor, Generic[M]):
    """A context model and an output layer.

    A subclass is a dataclass: first ``output: InitVar[Tree | LayerSpec]``, then its options as
    keyword-only fields, among them `dim`, `epochs` and `random_state`. Options have annotations and
    ranges as `hstree._options` reads them.

    Parameters
    ----------
    output : Tree or LayerSpec
        The output layer; a tree means the hierarchical softmax over it. Its labels are the
        vocabulary, ``<eos>`` among them.
    dim : int
        Length of the word vectors.
    epochs : int
        Maximum number of epochs; 0 leaves the model untrained.
    batch_size : int
        Positions in a minibatch.
    learning_rate : float
        Learning rate at the start.
    seconds : float, optional
        Budget of training in seconds, validations not counted; no limit by default. It ends the
        training inside an epoch, which a validation follows. See `hstree.training.trainer.Trainer`.
    random_state : int
        Random seed of the starting vectors and of the training. The same seed gives the same
        weights, byte for byte, on the same number of BLAS threads. With another number, weights
        differ in the last digits where BLAS uses all of them: for other layers than trees and the
        flat softmax, for full matrices, and for wide nodes where no compiled kernels are.

    Attributes
    ----------
    spec : LayerSpec
    tree : Tree or None
        That of the output layer.
    context_model : ContextModel
    layer : OutputLayer
        Both are untrained before `fit`.
    history_ : History
        Epochs of the last `fit`.
    texts : list of dict
        The texts that it was trained and validated on (`hstree.data.provenance.collect_sources`).
    """

    name: ClassVar[str]
    """The model's name in commands, files and comparisons."""
    predicts: ClassVar[str]
    """Description of a prediction, such as "word given the words before it"."""
    is_language_model: ClassVar[bool] = False
    """Whether it predicts a word from the words before it, and can write text."""
    converges: ClassVar[bool] = False
    """Whether training may stop before its limit of epochs."""

    dim: int
    epochs: int
    random_state: int
    # Options that not all models have
    seconds: float | None = None
    online: bool = False

    def __post_init__(self, output: Tree | LayerSpec) -> None:
        # Check the options, which convert numbers of NumPy to those of Python
        for option in read_options(type(self)):
            setattr(self, option.name, option.checked(getattr(self, option.name)))
        self.spec = output if isinstance(output, LayerSpec) else LayerSpec(output)
        self.tree = self.spec.tree
        self.history_ = History()
        self._checkpoints: Checkpoints | None = None
        self.texts: list[Text] = []

    def __dir__(self) -> list[str]:
        return sorted(set(super().__dir__()) - _AUTHOR_NAMES)

    @abstractmethod
    def windows(self, corpus: Corpus) -> ContextBatches:
        """Return the contexts and targets of a corpus, as label ids."""

    @abstractmethod
    def trainer(self, train: ContextBatches) -> Trainer[M]:
        """Return a trainer that continues from the present parameters."""

    @classmethod
    @abstractmethod
    def describe(cls, options: Mapping[str, Any]) -> tuple[str, str]:
        """Describe a model and its training, without limits, from what `config` returns."""

    @classmethod
    def for_vectors(cls, spec: LayerSpec, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return options with the defaults of a training that is for its word vectors alone."""
        return dict(options)

    @abstractmethod
    def new_context_model(self, rng: np.random.Generator) -> M:
        """Return an untrained context model."""

    @abstractmethod
    def context_ids(self, contexts: Contexts) -> Integer:
        """Return contexts as the label ids that the context model takes (B, n)."""

    # Allocated when they are first used; `fit` replaces them.

    @cached_property
    def context_model(self) -> M:
        """The context model."""
        return self.new_context_model(np.random.default_rng([self.random_state, 0]))

    @cached_property
    def layer(self) -> OutputLayer:
        """The output layer."""
        return self.spec.new(self.dim, random_state=self.random_state)

    def fit(
        self,
        train: Any,
        valid: Any = None,
        *,
        warm_start: Model[Any] | None = None,
        fast: bool | None = None,
        checkpoints: str | os.PathLike[str] | None = None,
        pauses: bool = False,
    ) -> Self:
        """Train from the start; without epochs, the model is the unigram distribution of `train`.

        Parameters
        ----------
        train : Corpus, str, path, iterable or array
            A corpus, the name of a file, lines, lists of tokens or label ids (`Corpus.of`).
        valid : likewise, optional
            Decides which weights are kept, and for some models the learning rate and when to stop.
        warm_start : Model, optional
            Trained model of the same kind and sizes, whose context model the training begins with;
            word vectors follow their words, and words that it lacks begin with random ones. The
            output layer and the sums of the optimiser start over. With the model itself as
            `warm_start`, its own output layer is kept, as after `load` and `grow`.
        fast : bool, optional
            Whether to train by compiled kernels, where numba is installed; by NumPy otherwise. By
            default they train unless the tokens of all epochs are fewer than a million, or the
            seconds than 60: compiling would take longer than the training. Their sums are rounded
            differently, so that weights differ in the last digits.
        checkpoints : path, optional
            Folder for states of trainings, one of every five minutes and those at Ctrl-C and the
            end. The same training, this model fitted to these texts, continues from the last one,
            also from its end, to the same bits. When the model is saved, `remove_checkpoints`
            removes them.
        pauses : bool, default False
            Whether the same model with more `epochs` or `seconds` continues from the checkpoints,
            too: to the same bits as one that never paused, unless its learning rate falls until its
            end, as those of CBOW and skip-gram do.

        Raises
        ------
        OptionError
            When `warm_start` is no model, or of another kind or other sizes.
        InputError
            When a word is not among the labels and these hold no ``<unk>``.
        TrainingError
            When the perplexity is not finite any more, or sub-sampling leaves no token.
        """
        # Texts in memory and files are read with the labels as vocabulary
        if not isinstance(train, Corpus):
            train = Corpus.of(train, self.spec.vocabulary)
        if not isinstance(valid, Corpus | None):
            valid = Corpus.of(valid, self.spec.vocabulary)

        # The context model, new or from another model
        windows = self.windows(train)
        valid_windows = None if valid is None else self.windows(valid)
        context_model = self.new_context_model(np.random.default_rng([self.random_state, 0]))
        records: list[object] = [part.record for part in (train, valid) if part is not None]
        if warm_start is not None:
            if not isinstance(warm_start, Model):
                raise OptionError(
                    f"warm_start takes a trained model, not {type(warm_start).__name__}; read a "
                    "saved one with hstree.load_model"
                )
            copy_context_model(warm_start, self, context_model)
            records = [[warm_start.spec.provenance, warm_start.texts], records]
        self.context_model = context_model
        self.texts = collect_sources(records)

        # The output layer, and what it reads from the training text
        counts = windows.corpus.counts
        if warm_start is not self:
            self.layer = self.spec.new(self.dim, counts=counts, random_state=self.random_state)
        began = time.perf_counter()
        self.layer.prepare(windows)
        preparation = time.perf_counter() - began

        # Train; only compiled functions train word by word, which `online` asks for
        needs_compiled = self.online if fast is None else fast
        n_tokens = len(train) * self.epochs
        short_runs = numpy_for_short_runs(n_tokens, self.seconds, always=needs_compiled)
        with numpy_only() if fast is False else short_runs:
            self._checkpoints = None
            trainer = self.trainer(windows)

            # Checkpoints, by the hash of all that the training depends on
            if checkpoints is not None:
                start = None
                if warm_start is not None:
                    start = self.parameters() if warm_start is self else context_model.parameters()
                # A training that pauses may continue with other limits.
                limits = {"epochs", "seconds"} if pauses else set()
                config = {name: v for name, v in self.config().items() if name not in limits}
                texts = (train, valid)
                key = checkpoint_key(self.spec.config(), config, trainer.batch_size, texts, start)
                self._checkpoints = Checkpoints(checkpoints, key)
            trainer.preparation = preparation

            # A training that fails lets other processes remove its checkpoints, too
            try:
                self.history_ = trainer.fit(windows, valid_windows, self._checkpoints)
            finally:
                if self._checkpoints is not None:
                    self._checkpoints.release()
            self.history_.kernels = backend_name()
        return self

    def remove_checkpoints(self) -> None:
        """Remove the checkpoints of the last `fit`, when its result is in a safe place."""
        if self._checkpoints is not None and not self.history_.interrupted:
            self._checkpoints.remove()
            with suppress(OSError):  # others may be in the folder of all
                self._checkpoints.folder.parent.rmdir()

    def grow(self, tree: Tree, **options: Any) -> Self:
        """Return a model over a tree grown or pruned from its own, with what this one learned.

        Word vectors follow their words, and weight rows their nodes (`hstree.carried_rows`); new
        words begin with random vectors, and new nodes with the unigram distribution of the tree's
        counts, as in an untrained model. The models share no array. To continue the training::

            grown = model.grow(hstree.grow(model.tree, text))
            grown.fit(text, warm_start=grown)

        Parameters
        ----------
        tree : Tree
            From `hstree.grow`, `hstree.prune`, both, or ``from=`` of a builder.
        **options
            Options of the model to change, such as `epochs`.

        Raises
        ------
        OptionError
            When the output layer is not over a tree, or an option changes the sizes of the context
            model.
        InputError
            When the tree is not grown or pruned from the model's.
        """
        if self.tree is None:
            raise OptionError(
                f"the output layer {self.spec.kind.name!r} is over words, which no tree grows by; "
                "train a model over a tree"
            )
        from hstree.builders.carried_rows import carried_rows  # other models do not wait for it

        # A new model over the tree, with the same options but those given
        rows = carried_rows(self.tree, tree)
        spec = LayerSpec(tree, self.spec.kind.name, **self.spec.options)
        make: Callable[..., Self] = type(self)
        new = make(spec, **{f.name: getattr(self, f.name) for f in fields(self)} | options)  # type: ignore[arg-type]

        # Copy word vectors by their words and weight rows by their nodes
        copy_context_model(self, new, new.context_model)
        new.layer.carry(self.layer, rows)
        new.texts = self.texts
        return new

    def reencode(self, text: Any) -> Corpus:
        """Return a corpus, or what `Corpus.of` makes one of, with label ids as token ids."""
        is_corpus = isinstance(text, Corpus)
        corpus: Corpus = text if is_corpus else Corpus.of(text, self.spec.vocabulary)
        if corpus.vocabulary.words == self.spec.labels:
            return corpus
        return corpus.with_vocabulary(self.spec.vocabulary)

    def scored(self, corpus: Any) -> Iterator[tuple[Float64, Bool]]:
        """Yield the nll in nats of every token and whether it is OOV, some tokens at a time."""
        windows = self.windows(self.reencode(corpus))
        with progress.task(f"scoring {windows.corpus.name}", len(windows), "tokens") as task:
            for batch, nll in scored_batches(self.context_model, self.layer, windows):
                yield nll, batch[2]
                task.advance(len(nll))

    def score(self, corpus: Any, *, details: bool = False) -> TextScore:
        """Score every position of a text; `details` add ln Z and the nll of each token."""
        windows = self.windows(self.reencode(corpus))
        with numpy_for_short_runs(len(windows)):
            return score(self.context_model, self.layer, windows, details=details)

    def hidden(self, contexts: Contexts) -> Array:
        """Return the hidden vectors of contexts, a float32 array (B, d)."""
        return self.context_model.hidden(self.context_ids(contexts))

    def log_prob(self, contexts: Contexts) -> Float64:
        """Return the log-probabilities of all labels, a float64 array (B, V)."""
        ids = self.context_ids(contexts)
        return self.layer.in_context(ids).log_prob(self.context_model.hidden(ids))

    def top_k(self, contexts: Contexts, k: int = 10) -> tuple[Int64, Float64]:
        """Return the k most probable labels of each context and their log-probabilities (B, k)."""
        ids = self.context_ids(contexts)
        return self.layer.in_context(ids).top_k(self.context_model.hidden(ids), k)

    def vectors(self, corpus: Any) -> WordVectors:
        """Return the word vectors by count in a text, largest first, ties by word."""
        corpus = Corpus.of(corpus, self.spec.vocabulary)
        counts = self.reencode(corpus).counts
        labels = self.spec.labels

        # Labels by falling count, ties by word
        order = sorted(range(len(labels)), key=lambda label: (-counts[label], labels[label]))
        words = [labels[label] for label in order]

        vectors = self.context_model.embedding[order]
        source = self._source("word vectors", corpus)
        return WordVectors(words, vectors, counts=counts[order], source=source)

    def mean_predicted_vectors(self, corpus: Any) -> WordVectors:
        """Return each label's mean hidden vector over the positions where it is the target.

        The features of Mnih & Hinton (2008, section 4). A label that is never a target gets the
        mean over all labels that are. Counts are those of the text.
        """
        corpus = Corpus.of(corpus, self.spec.vocabulary)
        total = np.zeros((len(self.spec.labels), self.dim))
        occurrences = np.zeros(len(total), np.int64)

        # (V, d) sums of the hidden vectors before each label, in float64
        for contexts, targets, _ in self.windows(corpus).batches(1 << 14):
            hidden = self.context_model.hidden(contexts).astype(np.float64)
            labels, slot = touched_rows(targets, len(total))
            total[labels] += slot_sums(hidden, slot, len(labels))
            occurrences[labels] += np.bincount(slot)

        # Means; labels that are never a target get the mean of the others
        vectors = total / np.maximum(occurrences, 1)[:, None]
        vectors[occurrences == 0] = vectors[occurrences > 0].mean(axis=0)
        source = self._source("mean predicted vectors", corpus, corpus=corpus.source)
        vectors = vectors.astype(np.float32)
        return WordVectors(self.spec.labels, vectors, counts=occurrences, source=source)

    def _source(self, kind: str, corpus: Corpus, /, **more: object) -> dict[str, object]:
        """Return the record of word vectors, with the texts of layer, training and corpus."""
        texts = collect_sources([self.spec.provenance, self.texts, corpus.record])
        return {"kind": kind, **more, "texts": texts}

    def config(self) -> dict[str, Any]:
        """Return the model's name, unless it is the default, and the values of its options.

        Options that are None by default and not set are left out.
        """
        config = {} if self.name == DEFAULT_MODEL else {"model": self.name}
        for option in read_options(type(self)):
            value = getattr(self, option.name)
            if value is not None or option.default is not None:
                config[option.name] = value
        return config

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the model as a folder (`hstree.layers.saved`); FileFormatError if it cannot be.

        Files of these names are replaced together: a process that is killed here leaves the old
        model or the new one.
        """
        # Arrays, then the options with the hash of these arrays
        weights = tensors_to_bytes({**self.parameters(), **self.layer.tables})
        content = {
            "format": saved_models.FORMAT,
            "version": saved_models.VERSION,
            **self.spec.config(),
            "weights_sha256": sha256(weights).hexdigest(),
            "texts": self.texts,
            **self.config(),
        }
        with replacing_together(folder) as new:
            self.spec.source.save(new / self.spec.file)
            (new / saved_models.WEIGHTS).write_bytes(weights)
            (new / saved_models.CONFIG).write_bytes((json.dumps(content, indent=2) + "\n").encode())

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read a model of this class from its folder; FileFormatError if there is none."""
        return cls.from_saved(saved_models.read(folder))

    @classmethod
    def from_saved(cls, saved: saved_models.Saved) -> Self:
        """Make a model of what a folder holds.

        Raises FileFormatError when it is of another class, or the weights do not fit the options.
        """
        options = dict(saved.config)
        if (name := options.pop("model", DEFAULT_MODEL)) != cls.name:
            raise FileFormatError(
                f"{saved.folder} holds a model {name!r}, not {cls.name!r}; "
                "load it with hstree.load_model"
            )

        # Check the shapes before arrays are allocated: their claimed size may be far beyond the
        # file's. The lengths of those that have a 0 are set by `restore`.
        try:
            new: Callable[..., Self] = cls
            model = new(saved.spec, **options)
            for tensor, shape in model.shapes().items():
                if 0 not in shape:
                    check_tensor(saved.tensors.get(tensor), shape, f"{saved.folder}: {tensor}")

            # Tables from the training text, which set the lengths of the other arrays
            if model.layer.tables:
                try:
                    model.layer.restore(saved.tensors)
                except FileFormatError as error:
                    raise FileFormatError(f"{saved.folder}: {error}") from error

            # The layer's arrays have their lengths now
            for tensor, parameter in model.layer.parameters().items():
                name = f"{saved.folder}: {tensor}"
                check_tensor(saved.tensors.get(tensor), parameter.shape, name)
        except (TypeError, ValueError, OverflowError, OptionError) as error:
            raise FileFormatError(
                f"{saved.folder}: no model can be made of it: {one_line(error)}"
            ) from error

        # All fit: copy them
        for tensor, parameter in model.parameters().items():
            parameter[...] = saved.tensors[tensor]
        model.texts = saved.texts
        return model

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of `parameters` from the options and the layer's source alone."""
        spec = self.spec
        layer_shapes = spec.kind.layer.shapes(spec.source, self.dim, **spec.options)
        return {"embedding": (len(spec.labels), self.dim), **layer_shapes}

    def parameters(self) -> dict[str, Array]:
        """Return all trained arrays by their names in a file."""
        return {**self.context_model.parameters(), **self.layer.parameters()}


def in_sorted_order(words: Sequence[str], drawn: Array) -> Array:
    """Give drawn rows to words in sorted order; return them in the order of `words`.

    So models over the same words start from the same vectors, however a layer orders its labels.
    """
    rows = np.empty_like(drawn)
    rows[sorted(range(len(words)), key=words.__getitem__)] = drawn
    return rows


def is_binary(spec: LayerSpec) -> bool:
    """Return whether an output layer is a tree of two children per node and one code per word."""
    tree = spec.tree if spec.is_plain_tree else None
    return tree is not None and tree.has_single_codes and bool((tree.edge_width == 2).all())
