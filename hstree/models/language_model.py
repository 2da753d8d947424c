"""The log-bilinear language model over a tree: the next word from the words before it.

What it answers is in `base`; here are the model itself, its training, and writing text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from hstree import progress
from hstree._options import RandomState, check_value
from hstree._text import plural
from hstree._typing import Int64
from hstree.data.contexts import Contexts, check_ids, check_words, checked_size, ids_of
from hstree.data.corpus import Corpus
from hstree.data.vocabulary import EOS
from hstree.data.windows import Windows
from hstree.errors import InputError, OptionError
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.models.base import TreeModel
from hstree.models.lbl import LogBilinear
from hstree.models.lbl_training import LogBilinearTrainer, TrainingOptions
from hstree.tree import Tree


class LanguageModel(TreeModel[LogBilinear], names=("lbl",)):
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
        See `hstree.models.lbl_training.TrainingOptions`.

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

    predicts = "word given the words before it"

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
        super().__init__(tree, dim)
        self.context, self.full = checked_size("context", context), full
        self.options = TrainingOptions(
            epochs, batch_size, learning_rate, dropout, weight_decay, random_state
        )

    def windows(self, corpus: Corpus) -> Windows:
        """Return the contexts and targets of a corpus, as label ids."""
        return Windows(self.reencode(corpus), self.context)

    def trainer(self, train: Windows) -> LogBilinearTrainer:
        """Return what trains the parameters as they are."""
        return LogBilinearTrainer(self.model, self.layer, self.options)

    def sample(
        self, length: int, context: Sequence[str] = (), *, random_state: int = 0
    ) -> list[str]:
        """Write `length` words, each drawn given the ones before it; see `samples`."""
        return self.samples(length, [context], random_state=random_state)[0]

    def samples(self, length: int, contexts: Contexts, *, random_state: int = 0) -> list[list[str]]:
        """Write `length` words after each context, all of them a word at a time.

        Parameters
        ----------
        length : int
            0 or more; an ``<eos>`` counts as a word.
        contexts : list of lists of str, or int array (B, n)
            An empty list is the beginning of a text.
        random_state : int

        Returns
        -------
        list of lists of str

        Raises
        ------
        OptionError
            When `length` is negative, or `random_state` is not from 0 to 4294967295.
        """
        if length < 0:
            raise OptionError(f"length is {length}; it must be 0 or more")
        check_value("random_state", random_state, RandomState)
        rng = np.random.default_rng(random_state)
        ids = self._ids(contexts)
        drawn = np.empty((len(ids), length), np.int64)
        with progress.task("sampling", length, "words") as task:
            for place in range(length):
                drawn[:, place] = self.layer.sample(self.model.hidden(ids), rng)
                ids = np.column_stack([ids[:, 1:], drawn[:, place]])
                task.advance()
        words = self.tree.labels
        return [[words[label] for label in labels] for labels in drawn.tolist()]

    def config(self) -> dict[str, Any]:
        """Return the parameters that `__init__` takes besides the tree."""
        sizes = {"dim": self.dim, "context": self.context, "full": self.full}
        return {**sizes, **asdict(self.options)}

    @classmethod
    def describe(cls, options: Mapping[str, Any]) -> tuple[str, str]:
        """Describe the model and how it is trained."""
        matrices = "full" if options["full"] else "diagonal"
        return (
            f"log-bilinear, {plural(options['context'], 'word')} of context, "
            f"{options['dim']} numbers a word, {matrices} matrices",
            f"{plural(options['epochs'], 'epoch')} at the most, "
            f"{options['batch_size']} positions a batch, Adagrad from {options['learning_rate']}, "
            f"dropout {options['dropout']}, weight decay {options['weight_decay']}",
        )

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        d, n = self.dim, self.context
        return {**super()._shapes(), "position": (n, d, d) if self.full else (n, d)}

    def _lay_out(self, counts: Int64 | None) -> tuple[LogBilinear, HierarchicalSoftmax]:
        """Return drawn word vectors, and the unigram distribution of `counts`."""
        rng = np.random.default_rng([self.options.random_state, 0])
        model = LogBilinear(self.tree.labels, self.dim, self.context, rng, full=self.full)
        return model, HierarchicalSoftmax(self.tree, self.dim, counts=counts)

    def _ids(self, contexts: Contexts) -> Int64:
        """Return contexts as label ids (B, n); shorter ones are padded with <eos> on the left."""
        if isinstance(contexts, np.ndarray):
            if contexts.ndim != 2 or contexts.shape[1] != self.context:
                raise InputError(
                    f"contexts of shape {contexts.shape}; this model takes (B, {self.context})"
                )
            check_ids(contexts, self.tree.n_labels)
            return contexts.astype(np.int64)
        check_words(contexts)
        padded = [
            [EOS] * (self.context - len(words)) + list(words[-self.context :]) for words in contexts
        ]
        ids = ids_of([word for words in padded for word in words], self.vocabulary)
        return ids.astype(np.int64).reshape(-1, self.context)
