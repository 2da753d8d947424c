"""Word vectors of words w0, w1, ..., and their names."""

import numpy as np

from hstree.data.vectors import WordVectors


def words(vectors, **more):
    vectors = np.asarray(vectors, np.float32)
    return WordVectors([f"w{i}" for i in range(len(vectors))], vectors, **more)


def normal(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def named(indices):
    return frozenset(f"w{i}" for i in indices)
