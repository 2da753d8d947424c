"""The language model: a context model, a tree's output layer, and the text they are trained on.

This is the class that a user of the library meets. Training is in `training`, the measure in
`scoring`, the folder it is kept in is described in `modelfile`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from reprlib import repr as brief
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hstree.corpus import Corpus
from hstree.errors import InputError, OptionError
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.models.lbl import LogBilinear
from hstree.scoring import Score, nlls, score
from hstree.training import History, Trainer, TrainingOptions
from hstree.tree import Tree
from hstree.vectors import WordVectors
from hstree.vocabulary import EOS, UNK, Vocabulary
from hstree.windows import Windows

Array = NDArray[Any]

#: The largest d and n that a model may have: far beyond what a log-bilinear model gains from.
LARGEST = {"dim": 1 << 16, "context": 1 << 12}

#: Contexts: words, shorter lists padded with <eos> on the left, or label ids (B, n).
Contexts = Sequence[Sequence[str]] | NDArray[np.integer]


class LanguageModel:
    """A log-bilinear language model over a tree's labels.

    Parameters
    ----------
    tree : Tree
        Its labels are the vocabulary; ``<eos>`` is one of them.
    dim : int, default 100
        d, the length of the word vectors; up to 65,536.
    context : int, default 5
        n, the number of words before the target; up to 4,096.
    full : bool, default False
        Full position matrices instead of diagonal ones.
    epochs, batch_size, learning_rate, dropout, weight_decay, random_state
        See `hstree.training.TrainingOptions`.

    Attributes
    ----------
    history_ : History
        The epochs of the last `fit`.

    Examples
    --------
    >>> model = LanguageModel(tree, dim=100, context=5)              # doctest: +SKIP
    >>> model.fit(train, valid).perplexity(test)                     # doctest: +SKIP
    149.2
    """

    def __init__(
        self,
        tree: Tree,
        dim: int = 100,
        context: int = 5,
        *,
        full: bool = False,
        epochs: int = 20,
        batch_size: int = 256,
        learning_rate: float = 0.1,
        dropout: float = 0.35,
        weight_decay: float = 1.5e-5,
        random_state: int = 0,
    ) -> None:
        for name, value in (("dim", dim), ("context", context)):
            if not isinstance(value, int | np.integer) or not 1 <= value <= LARGEST[name]:
                expected = f"a whole number from 1 to {LARGEST[name]:,}"
                raise OptionError(f"{name} is {value!r}; it must be {expected}")
        self.tree, self.dim, self.context, self.full = tree, dim, context, full
        self.options = TrainingOptions(
            epochs, batch_size, learning_rate, dropout, weight_decay, random_state
        )
        counts = np.ones(tree.n_labels, np.int64) if tree.counts is None else tree.counts
        self.vocabulary = Vocabulary(tree.labels, counts)
        self.history_ = History()
        self._start(None)

    def _start(self, counts: NDArray[np.int64] | None) -> None:
        """Lay out fresh parameters: the unigram distribution of `counts`, drawn word vectors."""
        rng = np.random.default_rng([self.options.random_state, 0])
        self.model = LogBilinear(self.tree.labels, self.dim, self.context, rng, full=self.full)
        self.layer = HierarchicalSoftmax(self.tree, self.dim, counts=counts)

    def fit(self, train: Corpus, valid: Corpus | None = None) -> LanguageModel:
        """Train from the start; with `epochs` = 0 the model is the unigram distribution of `train`.

        Parameters
        ----------
        train : Corpus
        valid : Corpus, optional
            Decides the learning rate, when to stop and which weights are kept.

        Returns
        -------
        LanguageModel
            Itself.

        Raises
        ------
        InputError
            When a word is not among the labels and these hold no ``<unk>``.
        """
        windows = self.windows(train)
        self._start(windows.corpus.counts)
        trainer = Trainer(self.model, self.layer, self.options)
        self.history_ = trainer.fit(windows, None if valid is None else self.windows(valid))
        return self

    def seen(self, corpus: Corpus) -> Corpus:
        """Return a corpus through this model's labels, so that its ids are label ids."""
        if corpus.vocabulary.words == self.tree.labels:
            return corpus
        return corpus.with_vocabulary(self.vocabulary)

    def windows(self, corpus: Corpus) -> Windows:
        """Return the contexts and targets of a corpus, as label ids."""
        return Windows(self.seen(corpus), self.context)

    def score(self, corpus: Corpus) -> Score:
        """Score every position of a corpus; see `hstree.scoring.Score`."""
        return score(self.model, self.layer, self.windows(corpus))

    def nll(self, corpus: Corpus) -> NDArray[np.float64]:
        """Return the nll in nats of every token in the order of the text; `hstree.scoring.nlls`."""
        return nlls(self.model, self.layer, self.windows(corpus))

    def perplexity(self, corpus: Corpus) -> float:
        """Return the perplexity over all tokens of a corpus, ``<unk>`` and ``<eos>`` included."""
        return self.score(corpus).perplexity

    def hidden(self, contexts: Contexts) -> Array:
        """Return the hidden vectors of contexts, a float32 array (B, d)."""
        return self.model.hidden(self._ids(contexts))

    def log_prob(self, contexts: Contexts) -> NDArray[np.float64]:
        """Return the log-probabilities of all labels, a float64 array (B, V)."""
        return self.layer.log_prob(self.hidden(contexts))

    def top_k(
        self, contexts: Contexts, k: int = 10
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the k most probable labels of each context and their log-probabilities (B, k)."""
        return self.layer.top_k(self.hidden(contexts), k)

    def sample(
        self, length: int, context: Sequence[str] = (), *, random_state: int = 0
    ) -> list[str]:
        """Write `length` words, each drawn given the ones before it."""
        rng = np.random.default_rng(random_state)
        ids = self._ids([context])[0]
        words = []
        for _ in range(length):
            label = self.layer.sample(self.model.hidden(ids[None]), rng)[0]
            ids = np.append(ids[1:], label)
            words.append(self.tree.labels[label])
        return words

    def mean_predicted_vectors(self, corpus: Corpus) -> WordVectors:
        """Return each label's mean hidden vector over the positions where it is the target.

        The features of Mnih & Hinton (2008, section 4). A label that is never a target gets the
        mean over all labels that are. Counts are those of the corpus.
        """
        windows = self.windows(corpus)
        total = np.zeros((self.tree.n_labels, self.dim))
        seen = np.zeros(self.tree.n_labels, np.int64)
        for contexts, targets, _ in windows.batches(1 << 14):
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
        }
        return WordVectors(self.tree.labels, vectors.astype(np.float32), counts=seen, source=source)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the model as a folder; see `hstree.modelfile`."""
        from hstree.modelfile import save

        save(self, folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> LanguageModel:
        """Read a model from its folder; see `hstree.modelfile`."""
        from hstree.modelfile import load

        return load(folder)

    def config(self) -> dict[str, Any]:
        """Return the parameters that `__init__` takes besides the tree."""
        sizes = {"dim": self.dim, "context": self.context, "full": self.full}
        return {**sizes, **asdict(self.options)}

    def _ids(self, contexts: Contexts) -> NDArray[np.int64]:
        """Return contexts as label ids (B, n)."""
        if isinstance(contexts, np.ndarray):
            if contexts.ndim != 2 or contexts.shape[1] != self.context:
                raise InputError(
                    f"contexts of shape {contexts.shape}; this model takes (B, {self.context})"
                )
            if contexts.dtype.kind not in "iu":
                raise InputError(f"contexts of type {contexts.dtype}; label ids are whole numbers")
            if contexts.size and not 0 <= contexts.min() <= contexts.max() < self.tree.n_labels:
                raise InputError(f"contexts hold ids outside 0 to {self.tree.n_labels - 1}")
            return contexts.astype(np.int64)
        odd = [c for c in contexts if isinstance(c, str) or not all(isinstance(w, str) for w in c)]
        if odd:
            raise InputError(
                f"a context is {brief(odd[0])}; give each as a list of words, "
                f"or all of them as an integer array of label ids (B, {self.context})"
            )
        padded = [
            [EOS] * (self.context - len(words)) + list(words[-self.context :]) for words in contexts
        ]
        unk = self.vocabulary.index(UNK) if UNK in self.vocabulary else -1
        ids = self.vocabulary.ids([w for words in padded for w in words])
        if unk < 0 and (ids < 0).any():
            word = [w for words in padded for w in words][int(np.argmin(ids))]
            raise InputError(f"{word!r} is not among the labels, and these hold no {UNK}")
        return np.where(ids < 0, unk, ids).reshape(-1, self.context)
