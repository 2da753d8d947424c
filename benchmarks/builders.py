"""Seconds and peak memory to learn a tree from vectors, by the number of words.

    python -m benchmarks.builders [--sizes 10000,100000,1000000] [--json FILE]

The vectors are synthetic, 100 numbers each: 256 clusters, the leaves of a binary tree whose
steps shrink by 0.8 per level, drawn with Zipf's weights; a cluster is a Gaussian. Column k of steps
and noise has the scale k^-0.5, so that ambiguous words are about as frequent as in a language
model's. Every row is a separate process, whose peak includes vectors and interpreter. For 10,000
words the adaptive tree is also built by a loop over nodes around scikit-learn's `GaussianMixture`.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.mixture import GaussianMixture

from benchmarks import table
from benchmarks.fresh import measured
from hstree._arrays import Bool, Float32, Float64
from hstree.builders.gmm import VARIANCE_FLOOR, gmm
from hstree.builders.kmeans import kmeans
from hstree.data.vectors import WordVectors
from hstree.tree import Tree

DIMENSION = 100
LEVELS = 8
SHRINK = 0.8
SIZES = (10_000, 100_000, 1_000_000)
REFERENCE_WORDS = 10_000

BUILDERS: dict[str, Callable[..., Tree]] = {
    "gmm": gmm,
    "gmm epsilon=0.4": partial(gmm, epsilon=0.4),
    "gmm split=balanced": partial(gmm, split="balanced"),
    "kmeans": kmeans,
    "kmeans balanced=true": partial(kmeans, balanced=True),
}


def synthetic_vectors(n_words: int, seed: int = 0) -> Float32:
    """Draw the vectors that the head of this page describes: float32 (n_words, 100)."""
    rng = np.random.default_rng(seed)
    scale = np.arange(1, DIMENSION + 1) ** -0.5
    scale = (scale / np.sqrt(np.mean(scale**2))).astype(np.float32)
    centre = np.zeros((1, DIMENSION), np.float32)
    for level in range(LEVELS):
        centre = centre.repeat(2, axis=0)
        centre += SHRINK**level * scale * rng.standard_normal(centre.shape, np.float32)
    weight = 1 / np.arange(1, len(centre) + 1)
    cluster = rng.choice(len(centre), n_words, p=rng.permutation(weight) / weight.sum())
    vectors = rng.standard_normal((n_words, DIMENSION), np.float32)
    vectors *= np.float32(2 * SHRINK**LEVELS) * scale
    for block in np.split(np.arange(n_words), range(1 << 16, n_words, 1 << 16)):
        vectors[block] += centre[cluster[block]]
    return vectors


def read(path: Path) -> WordVectors:
    vectors = np.load(path)
    return WordVectors([f"word{i}" for i in range(len(vectors))], vectors)


def loop_of_scikit_learn(vectors: WordVectors) -> Tree:
    """Build the adaptive tree node by node."""
    rng = np.random.default_rng(0)
    X = vectors.vectors.astype(np.float64)
    children: list[list[int]] = []
    waiting = [(np.arange(len(X)), -1, 0)]
    while waiting:
        words, parent, branch = waiting.pop()
        if parent >= 0:
            children[parent][branch] = ~int(words[0]) if len(words) == 1 else len(children)
        if len(words) == 1:
            continue
        second = _second(X[words], rng)
        node = len(children)
        children.append([0, 0])
        waiting += [(words[~second], node, 0), (words[second], node, 1)]
    return Tree.from_children(vectors.labels, children)


def _second(X: Float64, rng: np.random.Generator) -> Bool:
    """Fit one node from a random even half; where that splits no words, keep the half."""
    start = rng.permutation(len(X)) >= (len(X) + 1) // 2
    if len(X) < 3:
        return start
    floor = VARIANCE_FLOOR * X.var(axis=0).mean()
    halves = X[~start], X[start]
    mixture = GaussianMixture(
        2,
        covariance_type="spherical",
        max_iter=10,
        tol=0,
        reg_covar=floor,
        weights_init=[np.mean(~start), np.mean(start)],
        means_init=[half.mean(axis=0) for half in halves],
        precisions_init=[1 / (half.var(axis=0).mean() + floor) for half in halves],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that ten rounds have not converged
        second: Bool = mixture.fit(X).predict(X) == 1
    return second if 0 < second.sum() < len(X) else start


def figures(tree: Tree) -> dict[str, float]:
    stats = tree.stats()
    return {
        "codes_per_word": stats.codes_per_label,
        "code_length": stats.length_uniform / stats.codes_per_label,
        "depth": stats.depth,
    }


def rows(sizes: Sequence[int]) -> Iterator[table.Row]:
    """Measure every builder at every size, each in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.npy"
        for size in sizes:
            np.save(path, synthetic_vectors(size))
            beside = {"loop of scikit-learn": loop_of_scikit_learn}
            builders = BUILDERS | (beside if size == REFERENCE_WORDS else {})
            for name, builder in builders.items():
                cost = measured(read, builder, path, describe=figures)
                yield {"words": size, "builder": name} | cost


if __name__ == "__main__":
    command = table.parser(__doc__)
    command.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of words")
    options = command.parse_args()
    table.report("builders", rows([int(size) for size in options.sizes.split(",")]), options.json)
