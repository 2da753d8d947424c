"""Base of all models: options, scores, predictions, mean vectors and saved folders.

A subclass is a dataclass whose fields are the options; its constructor, the command line and the
key of a kept run are made from them. `hstree.models.registry` lists the models by name, and
`hstree.layers.saved` reads their folders. `hstree.models.model` has the base of the models over
context windows, in NumPy.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from msgspec import Meta
from safetensors.numpy import save as tensors_to_bytes

from hstree import progress
from hstree._arrays import Array, Bool, Float64, Int64, Integer
from hstree._files import replacing_together
from hstree._options import read_options
from hstree._text import one_line
from hstree.data.contexts import Contexts
from hstree.data.corpus import Corpus
from hstree.data.provenance import Text, collect_sources
from hstree.data.text_score import TextScore
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.data.windows import ContextBatches
from hstree.errors import FileFormatError, OptionError
from hstree.kernels import backend_name
from hstree.layers import saved as saved_models
from hstree.layers.arithmetic import slot_sums, touched_rows
from hstree.layers.registry import LayerSpec
from hstree.training.checkpoints import Checkpoints, checkpoint_key
from hstree.training.trainer import EpochLoop, History
from hstree.tree import Tree

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


#: Attributes for subclasses, trainers and experiments. `dir`, and completion by Tab, leave them
#: out, so that users see `fit`, `score`, `predict` and the like.
_AUTHOR_NAMES = {
    "backend",
    "check_layer",
    "check_setup",
    "computed_by",
    "config",
    "context_ids",
    "context_model",
    "converges",
    "describe",
    "draw",
    "for_vectors",
    "from_saved",
    "hidden_batches",
    "is_language_model",
    "more_candidates",
    "name",
    "new_context_model",
    "predicts",
    "reach",
    "reencode",
    "select_tokens",
    "scored",
    "scored_batches",
    "tables",
    "take_over",
    "timed_calls",
    "trainer",
    "training_steps",
    "vector_options",
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

    def score(self, corpus: Any, *, details: bool = False) -> TextScore:
        """Score every position of a text; `details` add ln Z, where the layer has one.

        The text is a corpus or what `Corpus.of` makes one of. `TextScore.to_frame` has the score of
        each token.
        """
        text = self.reencode(corpus)
        batches = list(self.scored(text))
        nll = np.concatenate([np.empty(0), *(nll for nll, _ in batches)])
        oov = np.concatenate([np.empty(0, np.bool_), *(oov for _, oov in batches)])
        return TextScore.of(text, nll, oov)

    @abstractmethod
    def top_k(self, contexts: Contexts, k: int = 10) -> tuple[Int64, Float64]:
        """Return the k most probable labels of each context and their log-probabilities (B, k)."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The labels in their order, with their counts."""
        return self.spec.vocabulary

    def reencode(self, text: Any) -> Corpus:
        """Return a corpus, or what `Corpus.of` makes one of, with label ids as token ids."""
        corpus = Corpus.of(text, self.spec.vocabulary)
        if corpus.vocabulary.words == self.spec.labels:
            return corpus
        return corpus.with_vocabulary(self.spec.vocabulary)

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


class BaseModel(Predictor):
    """Base of all models: what they share, whatever computes the hidden vectors.

    Experiments, commands and ensembles use a model through these methods alone.

    Parameters
    ----------
    dim : int
        Length of the hidden vectors.
    epochs : int
        Maximum number of epochs; 0 leaves the model untrained.
    seconds : float, optional
        Budget of training in seconds, validations not counted; no limit by default.
    random_state : int
        Random seed of the starting weights and of the training.

    Attributes
    ----------
    spec : LayerSpec
        The output layer, whose labels are the vocabulary.
    tree : Tree or None
        That of the output layer.
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
    backend: ClassVar[str] = "NumPy"
    """What computes it."""
    more_candidates: ClassVar[tuple[str, ...]] = ()
    """Candidates of a comparison that names none, beside those of other models."""
    vector_options: ClassVar[Mapping[str, Any] | None] = None
    """Options of the model whose word vectors trees are built from; None: the model's own means."""

    dim: int
    epochs: int
    random_state: int
    # An option that not all models have
    seconds: float | None = None

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

    @classmethod
    @abstractmethod
    def describe(cls, options: Mapping[str, Any]) -> tuple[str, str]:
        """Describe a model and its training, without limits, from what `config` returns."""

    @classmethod
    def for_vectors(cls, spec: LayerSpec, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return options with the defaults of a training that is for its word vectors alone."""
        return dict(options)

    @classmethod
    def check_layer(cls, spec: LayerSpec, dim: int) -> None:
        """Raise OptionError where models of this kind cannot train an output layer."""
        # Making the layer refuses heads of PyTorch networks, and invalid options
        if spec.new(dim).needs_contexts and not cls.is_language_model:
            raise OptionError(
                f"the output layer {spec.kind.name!r} needs the words before each target; "
                f"{cls.name} predicts a {cls.predicts}: train a language model, or leave the "
                "candidate out"
            )

    @classmethod
    def check_setup(cls, words: Vocabulary, options: Mapping[str, Any]) -> None:
        """Raise OptionError where no output layer over these words can be trained here."""

    @property
    def computed_by(self) -> str:
        """What computes it, as `History.kernels` names it."""
        return backend_name()

    @classmethod
    def select_tokens(cls, corpus: Corpus) -> Corpus:
        """Return the tokens of a corpus that models of this kind read and score.

        Raises InputError where its vocabulary lacks ``<eos>``, or ``<unk>`` for words outside it.
        """
        ContextBatches(corpus, 1)
        return corpus

    @abstractmethod
    def fit(
        self,
        train: Any,
        valid: Any = None,
        *,
        checkpoints: str | os.PathLike[str] | None = None,
        pauses: bool = False,
    ) -> Self:
        """Train from the start; without epochs, the model is the unigram distribution of `train`.

        Parameters
        ----------
        train : Corpus, str, path, iterable or array
            A corpus, the name of a file, lines, lists of tokens or label ids (`Corpus.of`).
        valid : likewise, optional
            Decides which weights are kept.
        checkpoints : path, optional
            Folder for states of trainings, from which the same training continues.
        pauses : bool, default False
            Whether the same model with more `epochs` or `seconds` continues from them, too.
        """

    @abstractmethod
    def scored_batches(self, corpus: Corpus) -> Iterator[tuple[Float64, Bool]]:
        """Yield the nll in nats of every token of a corpus over the labels, and whether it is OOV.

        `hstree.training.scoring.BATCH` tokens at a time, in the order of the text.
        """

    def scored(self, corpus: Any) -> Iterator[tuple[Float64, Bool]]:
        """Yield the nll in nats of every token and whether it is OOV, some tokens at a time."""
        text = self.reencode(corpus)
        with progress.task(f"scoring {text.name}", len(text), "tokens") as task:
            for nll, oov in self.scored_batches(text):
                yield nll, oov
                task.advance(len(nll))

    @abstractmethod
    def log_prob(self, contexts: Contexts) -> Float64:
        """Return the log-probabilities of all labels, a float64 array (B, V)."""

    @abstractmethod
    def draw(self, contexts: Contexts, rng: np.random.Generator) -> Int64:
        """Draw a label after each context, (B,)."""

    @abstractmethod
    def reach(self, corpus: Corpus) -> int:
        """Return the number of tokens on either side of a token on which its score depends."""

    @abstractmethod
    def hidden_batches(self, corpus: Corpus) -> Iterator[tuple[Array, Integer]]:
        """Yield the hidden vectors (B, d) and the targets (B,) of a text, some at a time."""

    @abstractmethod
    def parameters(self) -> dict[str, Array]:
        """Return all trained arrays by their names in a file."""

    @property
    def tables(self) -> Mapping[str, Array]:
        """Other arrays of a saved model."""
        return {}

    @abstractmethod
    def take_over(self, saved: saved_models.Saved) -> None:
        """Take over the arrays of a folder; FileFormatError when they do not fit the options."""

    @abstractmethod
    def training_steps(self, corpus: Corpus) -> Iterator[tuple[float, bool]]:
        """Continue to train, one batch after the other, so that the speed can be measured.

        Yields after each batch its number of tokens of the text, and whether the costs of batches
        repeat from here.
        """

    @abstractmethod
    def timed_calls(
        self, corpus: Corpus, batch_size: int, max_scores: int, k: int
    ) -> dict[str, tuple[Callable[[int], object], int]]:
        """Return what is measured in testing: functions of a number of positions, and the maximum.

        ``nll`` is the probability of one word, ``top_k`` the k most probable words and
        ``unnormalised`` one word's score, of layers that report ln Z.

        Parameters
        ----------
        corpus : Corpus
        batch_size : int
            Maximum number of positions.
        max_scores : int
            Maximum number of positions times words, where all words have a score.
        k : int
        """

    def remove_checkpoints(self) -> None:
        """Remove the checkpoints of the last `fit`, when its result is in a safe place."""
        if self._checkpoints is not None and not self.history_.interrupted:
            self._checkpoints.remove()
            with suppress(OSError):  # others may be in the folder of all
                self._checkpoints.folder.parent.rmdir()

    def _open_checkpoints(
        self,
        folder: str | os.PathLike[str] | None,
        texts: Sequence[Corpus | None],
        batch_size: int,
        *,
        pauses: bool,
        start: Mapping[str, Array] | None = None,
    ) -> None:
        """Open the checkpoints of a training, by the hash of all that it depends on.

        A training that pauses may continue with other limits.
        """
        self._checkpoints = None
        if folder is not None:
            limits = {"epochs", "seconds"} if pauses else set()
            config = {name: v for name, v in self.config().items() if name not in limits}
            key = checkpoint_key(self.spec.config(), config, batch_size, texts, start)
            self._checkpoints = Checkpoints(folder, key)

    def _run(self, trainer: EpochLoop, train: ContextBatches, valid: ContextBatches | None) -> None:
        """Train with the checkpoints that are open.

        A training that fails lets other processes remove its checkpoints, too.
        """
        try:
            self.history_ = trainer.fit(train, valid, self._checkpoints)
        finally:
            if self._checkpoints is not None:
                self._checkpoints.release()
        self.history_.kernels = self.computed_by

    def _read_texts(self, train: Any, valid: Any) -> tuple[Corpus, Corpus | None]:
        """Return texts as corpora; those in memory and files get the labels as vocabulary."""
        if not isinstance(train, Corpus):
            train = Corpus.of(train, self.spec.vocabulary)
        if not isinstance(valid, Corpus | None):
            valid = Corpus.of(valid, self.spec.vocabulary)
        return train, valid

    def mean_predicted_vectors(self, corpus: Any) -> WordVectors:
        """Return each label's mean hidden vector over the positions where it is the target.

        The features of Mnih & Hinton (2008, section 4). A label that is never a target gets the
        mean over all labels that are. Counts are those of the text.
        """
        corpus = Corpus.of(corpus, self.spec.vocabulary)
        total = np.zeros((len(self.spec.labels), self.dim))
        occurrences = np.zeros(len(total), np.int64)

        # (V, d) sums of the hidden vectors before each label, in float64
        for hidden, targets in self.hidden_batches(corpus):
            labels, slot = touched_rows(targets, len(total))
            total[labels] += slot_sums(hidden.astype(np.float64), slot, len(labels))
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
        weights = tensors_to_bytes({**self.parameters(), **self.tables})
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

        # Whatever options and weights a damaged folder holds, the error names the folder
        try:
            new: Callable[..., Self] = cls
            model = new(saved.spec, **options)
            model.take_over(saved)
        except (TypeError, ValueError, OverflowError, MemoryError, OptionError) as error:
            raise FileFormatError(
                f"{saved.folder}: no model can be made of it: {one_line(error)}"
            ) from error

        model.texts = saved.texts
        return model


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
