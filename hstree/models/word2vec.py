"""CBOW and skip-gram over a tree: a word from the words on both sides of it, as in word2vec.

What these models answer is in `base`. Their perplexity is that of a word given its window,
which holds words after it too: it is no language model's, and compares with none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal

import numpy as np

from hstree._text import plural
from hstree._typing import Int64
from hstree.data.contexts import Contexts, check_ids, check_words, checked_size, ids_of
from hstree.data.corpus import Corpus
from hstree.data.symmetric_windows import SymmetricWindows
from hstree.data.windows import Windows
from hstree.errors import InputError, OptionError
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.models.base import TreeModel
from hstree.models.cbow import Cbow
from hstree.models.skipgram import SkipGram
from hstree.models.word2vec_training import Word2VecOptions, Word2VecTrainer
from hstree.tree import Tree

#: By name: the context model, and its learning rate by default.
_MODELS: dict[str, tuple[type[Cbow], float]] = {"cbow": (Cbow, 0.2), "skipgram": (SkipGram, 0.05)}
#: What the probabilities of each are of.
PREDICTS = {
    "cbow": "word given window",
    "skipgram": "word given one word of its window, mean over the window",
}


class Word2Vec(TreeModel[Cbow], names=("cbow", "skipgram")):
    """CBOW or skip-gram over a tree's labels.

    Parameters
    ----------
    tree : Tree
        Its labels are the vocabulary; ``<eos>`` is one of them.
    dim : int, default 100
        d, the length of the word vectors; up to 65,536.
    window : int, default 5
        The words on either side of the target that are in its window, within its line; up to
        4,096. To train, each window's reach is drawn from 1 to this.
    model : {"cbow", "skipgram"}
        A word from the mean of its window's vectors, or from each word of the window by itself.
    sample : float, default 0
        Sub-sampling of frequent words as in word2vec, whose own default is 0.001; see
        `hstree.data.symmetric_windows.SymmetricWindows`. It trains for another distribution than
        that of the text, better for vectors and worse for perplexity.
    epochs, batch_size, learning_rate, random_state
        See `hstree.models.word2vec_training.Word2VecOptions`. The learning rate is 0.2 for CBOW and
        0.05 for skip-gram by default.

    Attributes
    ----------
    history_ : History
        The epochs of the last `fit`.

    Notes
    -----
    The nll of a token under skip-gram is the mean over the words of its window of the nll of the
    token given that one word. A token without a window, alone in its line, is predicted by the
    biases, which start as the unigram distribution. A perplexity is exp of the mean over tokens.

    Examples
    --------
    >>> model = Word2Vec(tree, model="skipgram", sample=1e-3)        # doctest: +SKIP
    >>> model.fit(train).vectors(train).save("vectors.vec")               # doctest: +SKIP
    """

    def __init__(
        self,
        tree: Tree,
        dim: int = 100,
        window: int = 5,
        *,
        model: Literal["cbow", "skipgram"] = "cbow",
        sample: float = 0.0,
        epochs: int = 5,
        batch_size: int = 1024,
        learning_rate: float | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__(tree, dim)
        if model not in _MODELS:
            raise OptionError(f"model is {model!r}; it must be {' or '.join(_MODELS)}")
        self.window, self.kind = checked_size("window", window), model
        self._class, default_rate = _MODELS[model]
        self.predicts = PREDICTS[model]
        rate = default_rate if learning_rate is None else learning_rate
        self.options = Word2VecOptions(epochs, batch_size, rate, sample, random_state)

    def windows(self, corpus: Corpus) -> SymmetricWindows:
        """Return the windows and targets of a corpus, as label ids."""
        return SymmetricWindows(self.reencode(corpus), self.window, self.options.sample)

    def trainer(self, train: Windows) -> Word2VecTrainer:
        """Return what trains the parameters as they are on the windows of a corpus."""
        return Word2VecTrainer(self.model, self.layer, self.options, train)

    def config(self) -> dict[str, Any]:
        """Return the parameters that `__init__` takes besides the tree."""
        sizes = {"model": self.kind, "dim": self.dim, "window": self.window}
        return {**sizes, **asdict(self.options)}

    @classmethod
    def of_name(cls, name: str, tree: Tree, options: Mapping[str, Any]) -> Word2Vec:
        """Return an untrained model."""
        return cls(tree, model="cbow" if name == "cbow" else "skipgram", **options)

    @classmethod
    def describe(cls, options: Mapping[str, Any]) -> tuple[str, str]:
        """Describe the model and how it is trained."""
        return (
            f"{options['model']}, {plural(options['window'], 'word')} on either side, "
            f"{options['dim']} numbers a word",
            f"{plural(options['epochs'], 'epoch')}, {options['batch_size']} positions a batch, "
            f"a rate falling from {options['learning_rate']}, sub-sampling {options['sample']}",
        )

    @classmethod
    def predicts_of(cls, options: Mapping[str, Any]) -> str:
        """Return what the probabilities are of."""
        return PREDICTS[options["model"]]

    def _lay_out(self, counts: Int64 | None) -> tuple[Cbow, HierarchicalSoftmax]:
        """Return drawn word vectors, and the unigram distribution of `counts`."""
        rng = np.random.default_rng([self.options.random_state, 0])
        model = self._class(self.tree.labels, self.dim, rng)
        return model, HierarchicalSoftmax(self.tree, self.dim, counts=counts)

    def _ids(self, contexts: Contexts) -> Int64:
        """Return contexts as label ids (B, n), of any length, padded with -1."""
        if isinstance(contexts, np.ndarray):
            if contexts.ndim != 2:
                raise InputError(f"contexts of shape {contexts.shape}; this model takes (B, n)")
            check_ids(contexts, self.tree.n_labels, lowest=-1)
            return contexts.astype(np.int64)
        check_words(contexts)
        length = np.array([len(words) for words in contexts], np.int64)
        ids = np.full((len(contexts), max(1, int(length.max(initial=0)))), -1, np.int64)
        there = np.arange(ids.shape[1]) < length[:, None]
        ids[there] = ids_of([word for words in contexts for word in words], self.vocabulary)
        return ids
