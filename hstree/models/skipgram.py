"""Skip-gram (Mikolov et al. 2013): a word from each word around it by itself.

Each (word of the window, target) pair is one prediction, whose hidden vector is the vector of the
window's word. A pair is a CBOW window of one word, so that only sums over pairs are defined here.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hstree._arrays import Float64, Int64, Integer
from hstree.layers.base import OutputLayer
from hstree.models.base import LearningRate
from hstree.models.word2vec import WindowLoss, WindowModel, Word2Vec, item_means


class EachOfWindow(WindowModel):
    """Vectors of the words around a position, each by itself.

    `hidden`, from which words are predicted, is the mean over a context: exact for a context of one
    word, and what users of word2vec take for one of several.
    """

    by_word: ClassVar[bool] = True

    def predictions(self, contexts: Integer) -> tuple[Int64, Integer]:
        """Return the item of each pair (P,), and its word (P, 1): -1 for an item without a word."""
        # A target without a word around it keeps its first column, as a pair without a word
        is_pair = contexts >= 0
        is_pair[~is_pair.any(axis=1), 0] = True
        item, column = np.nonzero(is_pair)
        return item, contexts[item, column][:, None]

    def nll(self, layer: OutputLayer, contexts: Integer, targets: Integer) -> Float64:
        """Return the mean nll in nats over the pairs of each target, (B,).

        A target without a word around it is one pair, with a hidden vector of zero.
        """
        item, single = self.predictions(contexts)
        return item_means(super().nll(layer, single, targets[item]), item, len(targets))

    def log_normaliser(self, layer: OutputLayer, contexts: Integer) -> Float64 | None:
        """Return the mean ln Z over the pairs of each target, (B,); None where there is none."""
        item, single = self.predictions(contexts)
        log_z = super().log_normaliser(layer, single)
        return None if log_z is None else item_means(log_z, item, len(contexts))

    def loss(
        self, layer: OutputLayer, contexts: Integer, targets: Integer, rng: np.random.Generator
    ) -> WindowLoss:
        """Return the mean loss over the pairs of each target, and the gradients of their sum."""
        item, single = self.predictions(contexts)
        pair_loss = super().loss(layer, single, targets[item], rng)
        return replace(pair_loss, nll=item_means(pair_loss.nll, item, len(targets)))


@dataclass(eq=False, kw_only=True)
class SkipGram(Word2Vec):
    """Skip-gram of word2vec: a word from each word of its window by itself.

    The nll of a token is the mean over the words of its window of its nll given that one word.
    The biases alone predict a token without a window.

    Examples
    --------
    >>> model = SkipGram(tree, sample=1e-3).fit(train)               # doctest: +SKIP
    >>> model.vectors(train).save("vectors.vec")                     # doctest: +SKIP
    """

    name: ClassVar[str] = "skipgram"
    predicts: ClassVar[str] = "word given one word of its window, mean over the window"

    window_model: ClassVar[type[WindowModel]] = EachOfWindow

    learning_rate: LearningRate = 0.05
