import numpy as np
import pytest
from sklearn.cluster import KMeans

from hstree.builders.word_classes import centres as module
from hstree.builders.word_classes.centres import around_centres


def same_parts(a, b):
    return len(set(zip(a.tolist(), b.tolist(), strict=True))) == len(set(a.tolist()))


def test_lloyd_agrees_with_scikit_learn_from_the_same_centres(monkeypatch):
    X = np.random.default_rng(0).normal(size=(400, 5))
    monkeypatch.setattr(module, "_BLOCK_ROWS", 64)
    scaled = X / np.abs(X).max()
    scaled -= scaled.mean(axis=0)
    first = module._first_centres(scaled, 7, np.random.default_rng(3))
    theirs = KMeans(7, init=first, n_init=1, max_iter=100, tol=0).fit(scaled).labels_
    assert around_centres(X, 7, 3).tolist() == theirs.tolist()


@pytest.mark.parametrize("scale", [1e-30, 1, 1e30])
def test_planted_clusters_come_back(scale):
    rng = np.random.default_rng(1)
    planted = rng.integers(4, size=200)
    X = (10 * np.eye(4)[planted] + rng.normal(size=(200, 4))).astype(np.float32)
    assert same_parts(around_centres(X * np.float32(scale), 4, 0), planted)


def test_alike_vectors_and_single_ones():
    assert around_centres(np.ones((5, 2)), 3, 0).tolist() == [0] * 5
    assert around_centres(np.zeros((1, 3)), 1, 0).tolist() == [0]
    assert len(set(around_centres(np.eye(4), 4, 0).tolist())) == 4


def test_the_seed_decides():
    X = np.random.default_rng(2).normal(size=(100, 2))
    assert around_centres(X, 9, 1).tolist() == around_centres(X, 9, 1).tolist()
    assert around_centres(X, 9, 1).tolist() != around_centres(X, 9, 2).tolist()
