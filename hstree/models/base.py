"""Models: a context model and an output layer; scoring, prediction, saving, and the registry.

A subclass defines its context model, its windows and its trainer, and registers itself under its
names. A model is saved as a folder (`files`).
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, Self, TypeVar

import numpy as np

from hstree._typing import Array, Float32, Float64, Int64, Integer
from hstree.data.contexts import Contexts, checked_size
from hstree.data.corpus import Corpus
from hstree.data.provenance import Text, texts
from hstree.data.text_score import TextScore
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.data.windows import Windows
from hstree.errors import FileFormatError, HstreeError, OptionError
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.models import files
from hstree.training.context_model import ContextModel
from hstree.training.loop import History, Trainer
from hstree.training.scoring import nlls, score
from hstree.tree import Tree

M = TypeVar("M", bound=ContextModel)


class TreeModel(ABC, Generic[M]):
    """A context model and the output layer of a tree.

    Attributes
    ----------
    tree : Tree
    dim : int
        d, the length of the word vectors.
    predicts : str
        What the probabilities are of, given what.
    vocabulary : Vocabulary
        The tree's labels, in its order.
    history_ : History
        The epochs of the last `fit`.
    texts : list of dict
        The texts that it was trained and validated on (`hstree.data.provenance.texts`).
    """

    predicts: str

    def __init_subclass__(cls, *, names: tuple[str, ...] = (), **more: Any) -> None:
        """Register a model under the names that commands, files and comparisons use."""
        super().__init_subclass__(**more)
        MODELS.update(dict.fromkeys(names, cls))

    def __init__(self, tree: Tree, dim: int) -> None:
        self.tree, self.dim = tree, checked_size("dim", dim)
        counts = np.ones(tree.n_labels, np.int64) if tree.counts is None else tree.counts
        self.vocabulary = Vocabulary(tree.labels, counts)
        self.history_ = History()
        self.texts: list[Text] = []
        self._laid_out: tuple[M, HierarchicalSoftmax] | None = None

    @abstractmethod
    def windows(self, corpus: Corpus) -> Windows:
        """Return the contexts and targets of a corpus, as label ids."""

    @abstractmethod
    def trainer(self, train: Windows) -> Trainer[M]:
        """Return what trains the parameters as they are on the windows of a corpus."""

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """Return the parameters that make the same model anew, besides the tree."""

    @abstractmethod
    def _lay_out(self, counts: Int64 | None) -> tuple[M, HierarchicalSoftmax]:
        """Return fresh parameters: drawn word vectors, the unigram distribution of `counts`."""

    @abstractmethod
    def _ids(self, contexts: Contexts) -> Integer:
        """Return contexts as the label ids that the context model takes (B, n)."""

    @property
    def model(self) -> M:
        """The context model."""
        return self._parameters[0]

    @property
    def layer(self) -> HierarchicalSoftmax:
        """The output layer."""
        return self._parameters[1]

    @property
    def _parameters(self) -> tuple[M, HierarchicalSoftmax]:
        # Laid out when they are first asked for: `fit` makes its own.
        if self._laid_out is None:
            self._laid_out = self._lay_out(None)
        return self._laid_out

    def fit(self, train: Corpus, valid: Corpus | None = None) -> Self:
        """Train from the start; with `epochs` = 0 the model is the unigram distribution of `train`.

        Parameters
        ----------
        train : Corpus
        valid : Corpus, optional
            Decides which weights are kept, and for the log-bilinear model the learning rate and
            when to stop.

        Returns
        -------
        Self

        Raises
        ------
        InputError
            When a word is not among the labels and these hold no ``<unk>``.
        TrainingError
            When the perplexity is no finite number any more, or sub-sampling leaves no token.
        """
        windows = self.windows(train)
        held_out = None if valid is None else self.windows(valid)
        self._laid_out = self._lay_out(windows.corpus.counts)
        self.texts = texts([part.record for part in (train, valid) if part is not None])
        self.history_ = self.trainer(windows).fit(windows, held_out)
        return self

    def reencode(self, corpus: Corpus) -> Corpus:
        """Return a corpus through this model's labels, so that its ids are label ids."""
        if corpus.vocabulary.words == self.tree.labels:
            return corpus
        return corpus.with_vocabulary(self.vocabulary)

    def score(self, corpus: Corpus) -> TextScore:
        """Score every position of a corpus; see `hstree.data.text_score.TextScore`."""
        return score(self.model, self.layer, self.windows(corpus))

    def nll(self, corpus: Corpus) -> Float64:
        """Return the nll in nats of every token in the order of the text (`scoring.nlls`)."""
        return nlls(self.model, self.layer, self.windows(corpus))

    def perplexity(self, corpus: Corpus) -> float:
        """Return the perplexity over all tokens of a corpus, ``<unk>`` and ``<eos>`` included."""
        return self.score(corpus).perplexity

    def predict(self, contexts: Contexts, k: int = 10) -> list[list[tuple[str, float]]]:
        """Return the k most probable words of each context and their probabilities, exactly.

        Parameters
        ----------
        contexts : list of lists of str, or int array
            One list of words a context; a word outside the vocabulary is read as ``<unk>``.
        k : int, default 10
            At least 1; more than V means V.

        Returns
        -------
        list of lists of (str, float)
            For each context, most probable first; ties by label id.

        Examples
        --------
        >>> model.predict([["the", "stock"]], k=2)                    # doctest: +SKIP
        [[('market', 0.41), ('exchange', 0.17)]]
        """
        labels, log_prob = self.top_k(contexts, k)
        words = self.tree.labels
        return [
            [(words[label], probability) for label, probability in zip(*pair, strict=True)]
            for pair in zip(labels.tolist(), np.exp(log_prob).tolist(), strict=True)
        ]

    def hidden(self, contexts: Contexts) -> Array:
        """Return the hidden vectors of contexts, a float32 array (B, d)."""
        return self.model.hidden(self._ids(contexts))

    def log_prob(self, contexts: Contexts) -> Float64:
        """Return the log-probabilities of all labels, a float64 array (B, V)."""
        return self.layer.log_prob(self.hidden(contexts))

    def top_k(self, contexts: Contexts, k: int = 10) -> tuple[Int64, Float64]:
        """Return the k most probable labels of each context and their log-probabilities (B, k)."""
        return self.layer.top_k(self.hidden(contexts), k)

    def vectors(self, corpus: Corpus) -> WordVectors:
        """Return the word vectors, those of contexts, by count in a corpus: the largest first.

        Ties are by word.
        """
        counts, labels = self.reencode(corpus).counts, self.tree.labels
        order = sorted(range(len(labels)), key=lambda label: (-counts[label], labels[label]))
        words = [labels[label] for label in order]
        source: dict[str, object] = {"kind": "word vectors", "texts": self._texts_of(corpus)}
        return WordVectors(words, self.model.embedding[order], counts=counts[order], source=source)

    def mean_predicted_vectors(self, corpus: Corpus) -> WordVectors:
        """Return each label's mean hidden vector over the positions where it is the target.

        The features of Mnih & Hinton (2008, section 4). A label that is never a target gets the
        mean over all labels that are. Counts are those of the corpus.
        """
        total = np.zeros((self.tree.n_labels, self.dim))
        seen = np.zeros(self.tree.n_labels, np.int64)
        for contexts, targets, _ in self.windows(corpus).batches(1 << 14):
            hidden = self.model.hidden(contexts)
            order = np.argsort(targets, kind="stable")
            first = np.flatnonzero(np.diff(targets[order], prepend=-1))
            label = targets[order][first]
            total[label] += np.add.reduceat(hidden[order].astype(np.float64), first)
            seen[label] += np.diff(first, append=len(targets))
        vectors = total / np.maximum(seen, 1)[:, None]
        vectors[seen == 0] = vectors[seen > 0].mean(axis=0)
        source: dict[str, object] = {
            "kind": "mean predicted vectors",
            "corpus": corpus.source,
            "texts": self._texts_of(corpus),
        }
        return WordVectors(self.tree.labels, vectors.astype(np.float32), counts=seen, source=source)

    def _texts_of(self, corpus: Corpus) -> list[Text]:
        """List the texts that the tree, the training and a corpus bring into word vectors."""
        return texts([self.tree.meta.get("input"), self.texts, corpus.record])

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the model as a folder; see `hstree.models.files`.

        Raises
        ------
        FileFormatError
            When the folder cannot be made or written.
        """
        files.write(folder, self.tree, self.config(), self._tensors(), self.texts)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read a model from its folder; see `load`.

        Raises
        ------
        FileFormatError
            When it cannot be read, or holds a model of another class.
        """
        model = load(folder)
        if not isinstance(model, cls):
            raise FileFormatError(
                f"{folder} holds a model of the class {type(model).__name__}, not {cls.__name__}; "
                f"load it with hstree.models.load"
            )
        return model

    @classmethod
    def of_name(cls, name: str, tree: Tree, options: Mapping[str, Any]) -> Self:
        """Return an untrained model; `name` is one of those that the class is registered under."""
        return cls(tree, **options)

    @classmethod
    @abstractmethod
    def describe(cls, options: Mapping[str, Any]) -> tuple[str, str]:
        """Describe the model and how it is trained, from what `config` returns."""

    @classmethod
    def predicts_of(cls, options: Mapping[str, Any]) -> str:
        """Return what the probabilities are of, from what `config` returns."""
        return cls.predicts

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of `_tensors`, from the options and the tree alone."""
        rows = int(self.tree.row_start[-1])
        return {
            "embedding": (self.tree.n_labels, self.dim),
            "node_weight": (rows, self.dim),
            "node_bias": (rows,),
        }

    def _tensors(self) -> dict[str, Float32]:
        """Return all parameters by their names in a file."""
        return {
            **self.model.tensors(),
            "node_weight": self.layer.weight,
            "node_bias": self.layer.bias,
        }


#: The classes of models by name; a subclass of `TreeModel` registers itself.
MODELS: dict[str, type[TreeModel[Any]]] = {}


def model_class(name: str) -> type[TreeModel[Any]]:
    """Return the class of a model.

    Raises
    ------
    OptionError
        When there is no model of this name.
    """
    if name not in MODELS:
        raise OptionError(f"model is {name!r}; it must be one of {', '.join(MODELS)}")
    return MODELS[name]


def new_model(tree: Tree, *, model: str = "lbl", **options: Any) -> TreeModel[Any]:
    """Return an untrained model.

    Parameters
    ----------
    tree : Tree
    model : str, default "lbl"
        One of `MODELS`: "lbl", "cbow", "skipgram".
    **options
        Those of its class: `LanguageModel` for "lbl", `Word2Vec` for the others.

    Raises
    ------
    OptionError
        When there is no such model, or an option cannot have its value.
    TypeError
        When it does not have such an option.
    """
    return model_class(model).of_name(model, tree, options)


def load(folder: str | os.PathLike[str]) -> TreeModel[Any]:
    """Read a model of any class from its folder.

    Raises
    ------
    FileFormatError
        When a file is missing, damaged, of another version or does not fit the others.
    """
    saved = files.read(folder)
    try:
        model = new_model(saved.tree, **saved.config)
    except (TypeError, ValueError, KeyError, OverflowError, HstreeError) as error:
        reason = " ".join(str(error).split())
        raise FileFormatError(f"{folder}: no model can be made of it: {reason}") from error
    # Checked before the model allocates its own, which may claim far more than the file holds.
    for name, shape in model._shapes().items():
        _check(saved.tensors.get(name), shape, f"{folder}: {name}")
    for name, parameter in model._tensors().items():
        parameter[...] = saved.tensors[name]
    model.texts = saved.texts
    return model


def describe(options: Mapping[str, Any]) -> tuple[str, str]:
    """Describe a model and how it is trained, for readers of a figure.

    Parameters
    ----------
    options : mapping
        As `TreeModel.config` returns them.

    Returns
    -------
    model, budget : str
    """
    return model_class(options.get("model", "lbl")).describe(options)


def predicts(options: Mapping[str, Any]) -> str:
    """Return what the perplexities of a model are of; `options` as for `describe`."""
    return model_class(options.get("model", "lbl")).predicts_of(options)


def _check(tensor: Array | None, shape: tuple[int, ...], what: str) -> None:
    """Refuse a tensor that is missing, of another type or shape, or not finite."""
    if tensor is None or tensor.shape != shape or tensor.dtype != np.float32:
        found = "nothing" if tensor is None else f"{tensor.dtype} of shape {tensor.shape}"
        raise FileFormatError(f"{what} wants float32 of shape {shape}, found {found}")
    if not np.isfinite(tensor).all():
        raise FileFormatError(f"{what} holds numbers that are not finite; train the model again")
