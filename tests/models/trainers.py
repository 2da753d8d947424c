"""A small tree and optimisers that only record their steps, for the tests of trainers."""

from typing import ClassVar

import numpy as np

from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.tree import Tree
from tests.layers.gradients import drawn

WORDS = list("abcdef")
#: Binary and wide nodes, and two codes of "a".
TREE = Tree.from_children(
    WORDS, [[1, ~1, 2], [~0, ~2], [~3, ~4, ~5, ~0]], counts=[5, 4, 3, 3, 2, 1]
)


class EachOnce:
    """A training text in which each of n words occurs once."""

    def __init__(self, n=6):
        self.training_counts = np.ones(n)

    def __len__(self):
        return len(self.training_counts)


#: Windows of four words in part, and the words that they are around.
CONTEXTS = np.array([[1, 2, 2, -1], [-1, 3, -1, -1], [0, 1, 4, 5], [-1, -1, -1, -1]])
TARGETS = np.array([3, 0, 0, 5])


class Noted:
    """An optimiser that moves nothing and records its steps."""

    made: ClassVar[list["Noted"]] = []

    def __init__(self, parameter, *options, **named):
        self.parameter, self.options, self.named = parameter, options, named
        self.steps = []
        self.made.append(self)

    def step(self, rows, gradient, learning_rate, *more):
        self.steps.append((rows, gradient.copy(), learning_rate, *more))

    @property
    def curvature(self):
        """Arguments of a `DampedSGD`."""
        return self.options[0]

    @property
    def gradient(self):
        """The gradients of all steps, spread out and summed."""
        total = np.zeros_like(self.parameter)
        for rows, gradient, *_ in self.steps:
            total[rows] += gradient
        return total


def drawn_layer(dim, tree=TREE):
    return drawn(HierarchicalSoftmax(tree, dim, dtype=np.float64))[0]
