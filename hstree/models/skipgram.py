"""Skip-gram (Mikolov et al. 2013): predicts a word from each single word around it.

Each pair of a word in the window and the target is one prediction. Its hidden vector is the vector
of the word in the window. A pair is a CBOW window of one word, so that this module only defines
sums over pairs.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hstree._arrays import Float64, Int64, Integer
from hstree.layers.base import OutputLayer
from hstree.models.base import LearningRate
from hstree.models.word2vec import WindowLoss, WindowModel, Word2Vec, item_means


class EachOfWindow(WindowModel):
    """Context model in which each word around a position is a separate prediction.

    `hidden` is used to predict words. It is the mean over a context, which is exact for one word.
    For several words, it is the usual approximation in word2vec.
    """

    by_word: ClassVar[bool] = True

    def predictions(self, contexts: Integer) -> tuple[Int64, Integer]:
        """Return the item (P,) and the word (P, 1) of each pair; -1 for an item without words."""
        # A target without context words keeps its first column, as a pair without a word
        is_pair = contexts >= 0
        is_pair[~is_pair.any(axis=1), 0] = True
        item, column = np.nonzero(is_pair)
        return item, contexts[item, column][:, None]

    def nll(self, layer: OutputLayer, contexts: Integer, targets: Integer) -> Float64:
        """Return the mean nll in nats over the pairs of each target, (B,).

        A target without context words is one pair, with a hidden vector of zero.
        """
        item, single = self.predictions(contexts)
        return item_means(super().nll(layer, single, targets[item]), item, len(targets))

    def log_normaliser(self, layer: OutputLayer, contexts: Integer) -> Float64 | None:
        """Return the mean ln Z over the pairs of each target, (B,); None if the layer has none."""
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
    """Skip-gram as in word2vec: predicts a word from each single word of its window.

    The nll of a token is the mean of its nll given each single word in its window. For a token
    without a window, the prediction depends only on the biases.

    Examples
    --------
    >>> model = SkipGram(tree, sample=1e-3).fit(train)               # doctest: +SKIP
    >>> model.vectors(train).save("vectors.vec")                     # doctest: +SKIP
    """

    name: ClassVar[str] = "skipgram"
    predicts: ClassVar[str] = "word given one word of its window, mean over the window"

    window_model: ClassVar[type[WindowModel]] = EachOfWindow

    learning_rate: LearningRate = 0.05
