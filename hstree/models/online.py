"""Training of CBOW and skip-gram word by word, in place of batches.

Each word moves the weights before the next one is read: online gradient descent, as in the word2vec
program and gensim with one worker (Mikolov et al. 2013). It needs compiled kernels, the extra
`fast`. One thread trains: two that shared the weights without locks ("Hogwild!", Recht, Re, Wright
& Niu 2011) were half as fast where it was measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hstree._compiled import backend
from hstree._plugins import require
from hstree._ragged import offsets
from hstree._typing import Array, Float32, Int32, Int64
from hstree.data.windows import Batch
from hstree.errors import OptionError
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
            "online",
            "is for trees of two children a node and one code a word, such as huffman; "
            "other output layers train in batches",
        )


class OnlineTrainer(Trainer[ContextModel]):
    """Trains CBOW or skip-gram over a binary tree word by word, in place.

    Gradient descent at a learning rate that falls linearly, as that of `Word2VecTrainer`. Lines
    are read in random order, some thousand tokens at a time. `window` is the largest number of
    words on either side; with `each`, every word of a window predicts by itself.

    Raises MissingExtraError without numba, OptionError when compiled kernels are switched off.
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
        super().__init__(
            model.context_model,
            model.layer,
            epochs=model.epochs,
            seconds=seconds,
            random_state=model.random_state,
        )
        module = backend("models")
        if module is None:
            require("numba", "fast")
            reason = "needs the compiled kernels, which HSTREE_FAST=0 or fast=False switches off"
            raise OptionError.about("online", reason)
        self._train, self._rate = module.train_lines, learning_rate
        self._windows = (window, each)
        layer: Any = model.layer  # hierarchical: `check_spec` refuses others
        self._paths = _paths(layer.codes)
        self._parameters = (self.model.embedding, layer.weight, layer.bias)
        # Compiled now, on no lines, so that no epoch's seconds are of that.
        self.step(np.zeros(1, np.int32), np.empty(0, np.int32), 0.0)

    def batches(self, train: Any) -> Iterator[Batch]:
        """Yield the offsets of some lines of `SymmetricWindows`, their tokens and OOV flags."""
        size = min(TOKENS, len(train) * self.epochs // LEAST_LOOKS)
        batches: Iterator[Batch] = train.line_batches(max(1, size), self.rng)
        return batches

    def learning_rate(self, done: float) -> float:
        """Return the learning rate after `done` epochs."""
        return falling(self._rate, done, self.epochs)

    def prepare(self, contexts: Any, targets: Any) -> int:
        """Return the seed of the lines' window sizes."""
        return int(self.rng.integers(1, 1 << 63))

    def step(self, contexts: Any, targets: Any, learning_rate: float) -> float:
        """Train on lines, whose offsets are `contexts`; return the summed loss of their tokens."""
        loss: float = self._train(
            (contexts, targets),
            self._windows,
            self._paths,
            self._parameters,
            np.float32(learning_rate),
            np.uint64(self.prepared(contexts, targets)),
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
