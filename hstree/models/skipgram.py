"""Skip-gram (Mikolov et al. 2013): a word is predicted from each word around it by itself.

Each (word of the window, target) pair is one prediction, whose hidden vector is the vector of
the window's word, as word2vec trains it. The pairs of a target share its code; a pair is a CBOW
window of one word, so that only what is summed over them is written here.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hstree._typing import Float64, Int64, Integer
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.models.cbow import Cbow, Loss


class SkipGram(Cbow):
    """Predict a word from every word around it, each on its own.

    `hidden`, from which words are predicted, is the mean over a context as for `Cbow`: exact
    for a context of one word, and what word2vec's users take for one of several.
    """

    def nll(self, layer: HierarchicalSoftmax, contexts: Integer, targets: Integer) -> Float64:
        """Return the mean over its pairs of each target's negative log-likelihood, (B,).

        In nats. A target without any word around it is one pair, with a hidden vector of zero.
        """
        item, single = _pairs(contexts)
        return _mean_of_items(super().nll(layer, single, targets[item]), item, len(targets))

    def loss(self, layer: HierarchicalSoftmax, contexts: Integer, targets: Integer) -> Loss:
        """Return what `nll` does, and the gradients of the sum of the losses of all pairs."""
        item, single = _pairs(contexts)
        of_pairs = super().loss(layer, single, targets[item])
        return replace(of_pairs, nll=_mean_of_items(of_pairs.nll, item, len(targets)))


def _pairs(contexts: Integer) -> tuple[Int64, Integer]:
    """Return the item of each pair (P,), and its word (P, 1): -1 for an item without any word."""
    there = contexts >= 0
    there[~there.any(axis=1), 0] = True
    item, place = np.nonzero(there)
    return item, contexts[item, place][:, None]


def _mean_of_items(nll: Float64, item: Int64, n_items: int) -> Float64:
    """Return the mean over the pairs of each item; every item has one or more."""
    total = np.bincount(item, nll, minlength=n_items)
    mean: Float64 = total / np.bincount(item, minlength=n_items)
    return mean
