"""A small tree and optimisers that only record their steps, for the tests of trainers."""

from typing import ClassVar

import numpy as np

from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.tree import Tree

WORDS = list("abcdef")
#: Binary and wide nodes, and two codes of "a".
TREE = Tree.from_children(
    WORDS, [[1, ~1, 2], [~0, ~2], [~3, ~4, ~5, ~0]], counts=[5, 4, 3, 3, 2, 1]
)


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
        """What a `DampedSGD` is made with."""
        return self.options[0]

    @property
    def gradient(self):
        """The gradients of all steps, spread out and summed."""
        total = np.zeros_like(self.parameter)
        for rows, gradient, *_ in self.steps:
            total[rows] += gradient
        return total


def random_layer(rng, dim):
    """Return a layer of `TREE` with float64 weights."""
    layer = HierarchicalSoftmax(TREE, dim, dtype=np.float64)
    layer.weight[...] = rng.standard_normal(layer.weight.shape)
    layer.bias[...] = rng.standard_normal(layer.bias.shape)
    return layer
