"""Base classes of all models: options, scores, predictions, mean vectors and saved folders.

A subclass is a dataclass whose fields are the options. They define the constructor, the command
line and the key of a cached run. `hstree.models.registry` lists models by name, and
`hstree.layers.saved` reads their folders. `hstree.models.model` has the base class for models over
context windows in NumPy.
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

#: Model for a config without a model name.
DEFAULT_MODEL = "lbl"

# Types and ranges of options in several models.
Size = Annotated[int, Meta(ge=1, le=1 << 16)]
Width = Annotated[int, Meta(ge=1, le=1 << 12)]
MAX_EPOCHS = 1_000_000
Epochs = Annotated[int, Meta(ge=0, le=MAX_EPOCHS)]
BatchSize = Annotated[int, Meta(ge=1, le=1 << 22)]
LearningRate = Annotated[float, Meta(gt=0)]
Fraction = Annotated[float, Meta(ge=0, lt=1)]
Seconds = Annotated[float, Meta(gt=0)] | None


#: Attributes for subclasses, trainers and experiments. `dir` and tab completion leave them out, so
#: that users see methods such as `fit`, `score` and `predict`.
_AUTHOR_NAMES = {
    "backend",
    "check_layer",
    "check_setup",
    "computed_by",
    "config",
    "context_ids",
    "context_model",
    "converges",
    "default_candidates",
    "describe",
    "draw",
    "for_vectors",
    "from_saved",
    "hidden_batches",
    "is_language_model",
    "make_network",
    "name",
    "network_name",
    "new_context_model",
    "predicts",
    "reach",
    "reencode",
    "select_tokens",
    "scored",
    "scored_batches",
    "tables",
    "take_over",
    "tensors",
    "timed_calls",
    "torch_device",
    "train_once",
    "trainer",
    "training_steps",
    "vector_options",
    "windows",
}


class Predictor(ABC):
    """One model or several models that predict word probabilities.

    Attributes
    ----------
    spec : LayerSpec
        Output layer whose labels are the vocabulary.
    """

    spec: LayerSpec

    @abstractmethod
    def scored(self, corpus: Any) -> Iterator[tuple[Float64, Bool]]:
        """Yield the nll in nats of every token, and whether it is OOV, in batches."""

    def score(self, corpus: Any, *, details: bool = False) -> TextScore:
        """Score every position of a text; `details` includes ln Z, if the layer has it.

        The text is anything that `Corpus.of` accepts. `TextScore.to_frame` returns the score of
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
        """Labels in their order, with their counts."""
        return self.spec.vocabulary

    def reencode(self, text: Any) -> Corpus:
        """Return a text (anything that `Corpus.of` accepts) with label ids as token ids."""
        corpus = Corpus.of(text, self.spec.vocabulary)
        if corpus.vocabulary.words == self.spec.labels:
            return corpus
        return corpus.with_vocabulary(self.spec.vocabulary)

    def nll(self, corpus: Any) -> Float64:
        """Return the nll in nats of every token in text order, a float64 array (T,).

        The text is anything that `Corpus.of` accepts. ``<eos>`` is included; a token outside the
        vocabulary has the nll of ``<unk>``.
        """
        return np.concatenate([np.empty(0), *(nll for nll, _ in self.scored(corpus))])

    def perplexity(self, corpus: Any) -> float:
        """Return the perplexity over all tokens of a text, including ``<unk>`` and ``<eos>``.

        The text is a corpus, a file name, lines, or lists of tokens or label ids (`Corpus.of`).
        """
        return self.score(corpus).perplexity

    def predict(self, contexts: Contexts, k: int = 10) -> list[list[tuple[str, float]]]:
        """Return the k most probable words of each context and their probabilities, exactly.

        Contexts are lines, lists of words, or label ids; a word outside the vocabulary counts as
        ``<unk>``. The most probable word is first, ties by label id.

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
    """Base class of all models, independent of how hidden vectors are computed.

    Experiments, commands and ensembles use a model only through these methods.

    Parameters
    ----------
    dim : int
        Length of hidden vectors.
    epochs : int
        Maximum number of epochs; 0 leaves the model untrained.
    seconds : float, optional
        Time limit for training in seconds, without validation (default: no limit).
    random_state : int
        Random seed for the initial weights and for training.

    Attributes
    ----------
    spec : LayerSpec
        Output layer, whose labels are the vocabulary.
    tree : Tree or None
        Tree of the output layer.
    history_ : History
        Epochs of the last `fit`.
    texts : list of dict
        Texts for training and validation (`hstree.data.provenance.collect_sources`).
    """

    name: ClassVar[str]
    """Name of the model in commands, files and comparisons."""
    predicts: ClassVar[str]
    """Description of a prediction, such as "word given the words before it"."""
    is_language_model: ClassVar[bool] = False
    """Whether it predicts a word from the words before it, and can generate text."""
    converges: ClassVar[bool] = False
    """Whether training may stop before the maximum number of epochs."""
    backend: ClassVar[str] = "NumPy"
    """Name of the backend."""
    default_candidates: ClassVar[tuple[str, ...]] = (
        "huffman",
        "huffman + ngrams",
        "gmm",
        "gmm + ngrams",
        "classes",
        "classes + ngrams",
        "sampled",
        "flat",
        "kn5",
    )
    """Default candidates of a comparison; those that the model cannot train are left out."""
    vector_options: ClassVar[Mapping[str, Any] | None] = None
    """Options of the model that trains word vectors for trees; None to use mean hidden vectors."""

    dim: int
    epochs: int
    random_state: int
    # An option that some models do not have
    seconds: float | None = None

    def __post_init__(self, output: Tree | LayerSpec) -> None:
        # Check the options; this converts NumPy numbers to Python numbers
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
        """Describe a model and its training from the result of `config`, without limits."""

    @classmethod
    def for_vectors(cls, spec: LayerSpec, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return options with the defaults for training that is only for word vectors."""
        return dict(options)

    @classmethod
    def check_layer(cls, spec: LayerSpec, dim: int) -> None:
        """Raise OptionError if models of this kind cannot train an output layer."""
        # Creating the layer refuses heads of PyTorch networks and invalid options
        if spec.new(dim).needs_contexts and not cls.is_language_model:
            raise OptionError(
                f"the output layer {spec.kind.name!r} needs the words before each target; "
                f"{cls.name} predicts a {cls.predicts}: train a language model, or leave the "
                "candidate out"
            )

    @classmethod
    def check_setup(cls, words: Vocabulary, options: Mapping[str, Any]) -> None:
        """Raise OptionError if no output layer over these words can be trained here."""

    @property
    def computed_by(self) -> str:
        """Name of the backend, as in `History.kernels`."""
        return backend_name()

    @classmethod
    def select_tokens(cls, corpus: Corpus) -> Corpus:
        """Return the tokens of a corpus that models of this kind read and score.

        Raises InputError if the vocabulary lacks ``<eos>``, or ``<unk>`` for other words.
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
            A corpus, a file name, lines, or lists of tokens or label ids (`Corpus.of`).
        valid : likewise, optional
            Text that determines the weights to keep.
        checkpoints : path, optional
            Folder for checkpoints, from which the same training run continues.
        pauses : bool, default False
            Whether the same model with more `epochs` or `seconds` continues from them, too.
        """

    @abstractmethod
    def scored_batches(self, corpus: Corpus) -> Iterator[tuple[Float64, Bool]]:
        """Yield the nll in nats of every token in a corpus over the labels, and whether it is OOV.

        A batch has `hstree.training.scoring.BATCH` tokens, in text order.
        """

    def scored(self, corpus: Any) -> Iterator[tuple[Float64, Bool]]:
        """Yield the nll in nats of every token, and whether it is OOV, in batches."""
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
        """Draw a label for each context, (B,)."""

    @abstractmethod
    def reach(self, corpus: Corpus) -> int:
        """Return how many tokens on either side of a token affect its score."""

    @abstractmethod
    def hidden_batches(self, corpus: Corpus) -> Iterator[tuple[Array, Integer]]:
        """Yield the hidden vectors (B, d) and the targets (B,) of a text, in batches."""

    @abstractmethod
    def parameters(self) -> dict[str, Array]:
        """Return all trained arrays, by their names in a saved model."""

    @property
    def tables(self) -> Mapping[str, Array]:
        """Other arrays in a saved model."""
        return {}

    @abstractmethod
    def take_over(self, saved: saved_models.Saved) -> None:
        """Copy the arrays of a saved model. Raises FileFormatError if they do not fit options."""

    @abstractmethod
    def training_steps(self, corpus: Corpus) -> Iterator[tuple[float, bool]]:
        """Continue to train, one batch after the other, to measure the speed.

        Yields after each batch its number of tokens, and whether a period of batches ends here
        (`TrainingHooks.period`).
        """

    @abstractmethod
    def timed_calls(
        self, corpus: Corpus, batch_size: int, max_scores: int, k: int
    ) -> dict[str, tuple[Callable[[int], object], int]]:
        """Return functions to time in testing; each takes a number of positions, up to a maximum.

        ``nll`` is the probability of one word, ``top_k`` the k most probable words, and
        ``unnormalised`` the score of one word, for layers that report ln Z.

        Parameters
        ----------
        corpus : Corpus
        batch_size : int
            Maximum number of positions.
        max_scores : int
            Maximum number of positions times words, if all words are scored.
        k : int
        """

    def remove_checkpoints(self) -> None:
        """Remove the checkpoints of the last `fit`; call it when the result is saved."""
        if self._checkpoints is not None and not self.history_.interrupted:
            self._checkpoints.remove()
            with suppress(OSError):  # the parent folder may contain other checkpoints
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
        """Open the checkpoints of a training run, by a hash of everything that determines it.

        With `pauses`, the run may continue with other limits.
        """
        self._checkpoints = None
        if folder is not None:
            limits = {"epochs", "seconds"} if pauses else set()
            config = {name: v for name, v in self.config().items() if name not in limits}
            key = checkpoint_key(self.spec.config(), config, batch_size, texts, start)
            self._checkpoints = Checkpoints(folder, key)

    def _run(self, trainer: EpochLoop, train: ContextBatches, valid: ContextBatches | None) -> None:
        """Train with the open checkpoints.

        The checkpoints are released also after an error, so that other processes can remove them.
        """
        try:
            self.history_ = trainer.fit(train, valid, self._checkpoints)
        finally:
            if self._checkpoints is not None:
                self._checkpoints.release()
        self.history_.kernels = self.computed_by

    def _read_texts(self, train: Any, valid: Any) -> tuple[Corpus, Corpus | None]:
        """Return texts as corpora; texts that are not yet a corpus get the labels as vocabulary."""
        if not isinstance(train, Corpus):
            train = Corpus.of(train, self.spec.vocabulary)
        if not isinstance(valid, Corpus | None):
            valid = Corpus.of(valid, self.spec.vocabulary)
        return train, valid

    def mean_predicted_vectors(self, corpus: Any) -> WordVectors:
        """Return the mean hidden vector of each label over the positions where it is the target.

        These are the features of Mnih & Hinton (2008, section 4). A label that is never a target
        gets the mean over all other labels. Counts are those of the text.
        """
        corpus = Corpus.of(corpus, self.spec.vocabulary)
        total = np.zeros((len(self.spec.labels), self.dim))
        occurrences = np.zeros(len(total), np.int64)

        # (V, d) sums of the hidden vectors before each label, in float64
        for hidden, targets in self.hidden_batches(corpus):
            labels, slot = touched_rows(targets, len(total))
            total[labels] += slot_sums(hidden.astype(np.float64), slot, len(labels))
            occurrences[labels] += np.bincount(slot)

        # Means; labels that are never a target get the mean over the other labels
        vectors = total / np.maximum(occurrences, 1)[:, None]
        vectors[occurrences == 0] = vectors[occurrences > 0].mean(axis=0)
        source = self._source("mean predicted vectors", corpus, corpus=corpus.source)
        vectors = vectors.astype(np.float32)
        return WordVectors(self.spec.labels, vectors, counts=occurrences, source=source)

    def _source(self, kind: str, corpus: Corpus, /, **more: object) -> dict[str, object]:
        """Return the record for word vectors, with the texts of layer, training and corpus."""
        texts = collect_sources([self.spec.provenance, self.texts, corpus.record])
        return {"kind": kind, **more, "texts": texts}

    def config(self) -> dict[str, Any]:
        """Return the model's name, unless it is the default, and the values of its options.

        Options that are None by default are left out if they are not set.
        """
        config = {} if self.name == DEFAULT_MODEL else {"model": self.name}
        for option in read_options(type(self)):
            value = getattr(self, option.name)
            if value is not None or option.default is not None:
                config[option.name] = value
        return config

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the model to a folder (`hstree.layers.saved`). Raises FileFormatError on failure.

        All files are replaced together: a process that is killed leaves the old or the new model.
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
        """Read a model of this class from its folder. Raises FileFormatError if there is none."""
        return cls.from_saved(saved_models.read(folder))

    @classmethod
    def from_saved(cls, saved: saved_models.Saved) -> Self:
        """Make a model from the content of a folder.

        Raises FileFormatError when the model has another class, or weights do not fit the options.
        """
        options = dict(saved.config)
        if (name := options.pop("model", DEFAULT_MODEL)) != cls.name:
            raise FileFormatError(
                f"{saved.folder} holds a model {name!r}, not {cls.name!r}; "
                "load it with hstree.load_model"
            )

        # All errors from a damaged folder name the folder
        try:
            new: Callable[..., Self] = cls
            model = new(saved.spec, **options)
            model.take_over(saved)
        except (TypeError, ValueError, OverflowError, MemoryError, OptionError) as error:
            raise FileFormatError(
                f"{saved.folder}: no model can be made from it: {one_line(error)}"
            ) from error

        model.texts = saved.texts
        return model


def in_sorted_order(words: Sequence[str], drawn: Array) -> Array:
    """Assign drawn rows to words in sorted order; return the rows in the order of `words`.

    Models over the same words therefore start from the same vectors, for any order of labels.
    """
    rows = np.empty_like(drawn)
    rows[sorted(range(len(words)), key=words.__getitem__)] = drawn
    return rows


def is_binary(spec: LayerSpec) -> bool:
    """Return whether an output layer is a binary tree with one code per word."""
    tree = spec.tree if spec.is_plain_tree else None
    return tree is not None and tree.has_single_codes and bool((tree.edge_width == 2).all())
