"""Training of CBOW and skip-gram word by word, by several threads at once.

Each word moves the weights before the next one is read, as in the word2vec program and gensim
(Mikolov et al. 2013; Recht, Re, Wright, Niu 2011, "Hogwild!", NIPS). Threads share the weights
without locks, and may overwrite each other's moves: with more than one thread, results differ from
run to run. It needs compiled kernels, the extra `fast`.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from hstree._compiled import n_threads, twins
from hstree._optional import require
from hstree._ragged import offsets
from hstree._typing import Array, Float32, Int32, Int64
from hstree.data.windows import Batch, SymmetricWindows, Windows
from hstree.errors import OptionError
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.layers.registry import LayerSpec
from hstree.models.base import Model
from hstree.training.scoring import ContextModel
from hstree.training.sgd import falling
from hstree.training.trainer import Trainer
from hstree.tree.codes import Codes

#: Tokens between two looks at the learning rate and the clock, and least looks in a training.
TOKENS, LEAST_LOOKS = 10_000, 100


def check_spec(spec: LayerSpec) -> None:
    """Refuse output layers that are not trained word by word; raises OptionError."""
    tree = spec.tree if spec.is_plain_tree else None
    if tree is None or not tree.has_single_codes or (tree.edge_width != 2).any():
        raise OptionError.about(
            "asynchronous",
            "is for trees of two children a node and one code a word, such as huffman; "
            "other output layers train in batches",
        )


class AsynchronousTrainer(Trainer[ContextModel]):
    """Trains CBOW or skip-gram over a binary tree word by word, in place.

    Gradient descent at a learning rate that falls linearly, as that of `Word2VecTrainer`. Lines
    are read in random order, some thousand tokens at a time.

    Parameters
    ----------
    model : Model
    window : int
        Largest number of words on either side.
    each : bool
        Whether each word of a window predicts by itself.
    learning_rate : float
    seconds : float or None

    Raises
    ------
    MissingExtraError
        Without numba.
    OptionError
        When compiled kernels are switched off.
    """

    def __init__(
        self,
        model: Model[Any],
        *,
        window: int,
        each: bool,
        learning_rate: float,
        seconds: float | None,
    ) -> None:
        super().__init__(model.context_model, model.layer, model.epochs, seconds)
        module = twins("models")
        if module is None:
            require("numba", "fast")
            reason = "needs the compiled kernels, which HSTREE_FAST=0 or fast=False switches off"
            raise OptionError.about("asynchronous", reason)
        self._train, self._rate = module.train_lines, learning_rate
        self._windows = (window, each)
        layer = model.layer
        assert isinstance(layer, HierarchicalSoftmax)
        self._paths = _paths(layer.codes)
        self._parameters = (self.model.embedding, layer.weight, layer.bias)
        self._rng = np.random.default_rng([model.random_state, 1])
        self._n_threads = n_threads()
        self._pool = ThreadPoolExecutor(self._n_threads)
        # Compiled now, on no lines, so that no epoch's seconds are of that.
        nothing = np.zeros(1, np.int32)
        self._part((nothing, np.empty(0, np.int32)), 0, 0, 0.0, 1)

    def epoch_batches(self, train: Windows) -> Iterator[Batch]:
        """Yield the batches of one epoch."""
        return self.batches(train)

    def batches(self, train: Windows) -> Iterator[Batch]:
        """Yield the offsets of some lines, their tokens, and whether these are OOV."""
        assert isinstance(train, SymmetricWindows)
        size = min(TOKENS, len(train) * self.epochs // LEAST_LOOKS)
        return train.line_batches(max(1, size), self._rng)

    def expected(self, train: Windows) -> float:
        """Return the expected number of targets that sub-sampling leaves."""
        return float(train.training_counts().sum())

    def learning_rate(self, done: float) -> float:
        """Return the learning rate after `done` epochs."""
        return falling(self._rate, done, self.epochs)

    def step(self, contexts: Any, targets: Any, learning_rate: float) -> float:
        """Train on lines, whose offsets are `contexts`; return the summed loss of their tokens."""
        n_lines = len(contexts) - 1
        # Each thread gets whole lines, about as many tokens as the others.
        cuts = np.searchsorted(contexts, np.linspace(0, len(targets), self._n_threads + 1)[1:-1])
        first = np.concatenate([[0], cuts, [n_lines]])
        seeds = self._rng.integers(1, 1 << 63, self._n_threads)
        text = (contexts, targets)
        parts = [
            (text, int(a), int(b), learning_rate, int(seed))
            for a, b, seed in zip(first[:-1], first[1:], seeds, strict=True)
        ]
        if len(parts) == 1:
            return self._part(*parts[0])
        futures = [self._pool.submit(self._part, *part) for part in parts]
        try:
            return sum(future.result() for future in futures)
        finally:
            wait(futures)  # no thread moves the weights after an interruption

    def _part(self, text: Any, first: int, stop: int, rate: float, seed: int) -> float:
        """Train on the lines from `first` to `stop`; return the summed loss of their tokens."""
        loss: float = self._train(
            text,
            (first, stop),
            self._windows,
            self._paths,
            self._parameters,
            np.float32(rate),
            np.uint64(seed),
        )
        return loss


def _paths(codes: Codes) -> tuple[Int64, Int32, Float32, Array]:
    """Return the decisions of each label: offsets, weight rows, signs, and room for the longest.

    The sign is 1 where the first child is taken, -1 where the second is.
    """
    tree, labels = codes.tree, np.arange(len(codes.label_start) - 1)
    edge = codes.expand(labels).edge
    row = tree.edge_row[edge].astype(np.int32)
    sign = (1 - 2 * tree.edge_branch[edge]).astype(np.float32)
    return offsets(codes.length), row, sign, np.empty(int(codes.length.max(initial=0)), np.float32)
