"""Helpers for tests of the torch module: trees of every kind, two layers with equal weights."""

from random import Random

import numpy as np
import pytest

import hstree
from hstree.data.vocabulary import Vocabulary
from hstree.layers.hierarchical import HierarchicalSoftmax as NumPyLayer
from hstree.tree import Tree
from tests import needs
from tests.strategies import random_children

torch = pytest.importorskip("torch", reason=needs.TORCH)

from hstree.interop.torch import HierarchicalSoftmax  # noqa: E402

needs_gloo = pytest.mark.skipif(
    not torch.distributed.is_available() or not torch.distributed.is_gloo_available(),
    reason="this torch has no gloo",
)


def labels(n):
    return [f"w{i}" for i in range(n)]


def random_tree(n_labels, seed, **more):
    return Tree.from_children(labels(n_labels), random_children(Random(seed), n_labels, **more))


def flat(n_labels):
    return Tree(labels(n_labels), [0, n_labels], ~np.arange(n_labels))


def classes(n_classes, size):
    """A root over classes of `size` and `size + 1` labels in turn, each with label 0 as well."""
    sizes = [size + number % 2 for number in range(n_classes)]
    children, first = [list(range(1, n_classes + 1))], 0
    for n in sizes:
        leaves = [~label for label in range(first, first + n)]
        children.append(leaves if first == 0 else [*leaves, ~0])
        first += n
    return Tree.from_children(labels(first), children)


def short_list(method, n_labels, **options):
    """The most frequent labels under a wide root, beside a tree of the others."""
    words = Vocabulary(labels(n_labels), np.arange(n_labels, 0, -1))
    if method == "huffman":
        return hstree.build(method, words, **options)
    vectors = np.random.default_rng(0).standard_normal((n_labels, 4))
    more = {"labels": words.words, "counts": words.counts}
    return hstree.build(method, vectors, **more, **options)


TREES = {
    "binary": random_tree(40, 0, wide=False),
    "several codes": random_tree(40, 1, wide=False, extra_codes=60),
    "narrow": random_tree(40, 2),
    "narrow, several codes": random_tree(40, 3, extra_codes=30),
    "flat": flat(40),
    "flat, narrow": flat(20),
    "classes, several codes": classes(40, 34),
    "short list": short_list("huffman", 60, short_list=40),
    "short list, several codes": short_list("gmm", 70, short_list=40, epsilon=0.4, trees=2),
    "two labels": flat(2),
    "three labels": flat(3),
    "one label": Tree.from_children(["a"], []),
    "many codes of few labels": Tree.from_children(["a", "b"], [[1, 2], [~0, ~1], [~1, ~0]]),
}
every_tree = pytest.mark.parametrize("tree", TREES.values(), ids=TREES)


def twins(tree, dim=5, seed=0, dtype=torch.float64, **options):
    """Return the NumPy layer and the torch module on the same random weights."""
    rng = np.random.default_rng(seed)
    module = HierarchicalSoftmax(tree, dim, dtype=dtype, **options)
    layer = NumPyLayer(tree, dim, dtype=module.weight.detach().numpy().dtype)
    layer.weight[:] = rng.standard_normal(layer.weight.shape)
    layer.bias[:] = rng.standard_normal(layer.bias.shape)
    module.load_state_dict(
        {"weight": torch.from_numpy(layer.weight), "bias": torch.from_numpy(layer.bias)}
    )
    return layer, module


def batch(tree, size=50, dim=5, seed=1, dtype=np.float64):
    """Return hidden vectors and targets, as NumPy arrays."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((size, dim)).astype(dtype), rng.integers(0, tree.n_labels, size)


def as_tensors(tree, **options):
    """Return a batch as tensors."""
    return tuple(torch.from_numpy(array) for array in batch(tree, **options))
