"""Trees by splitting words by their vectors, for the builders gmm, kmeans and semantic.

Up to `LARGE` words, every node is split by the vectors of all its words. Of more words, the upper
nodes are split by samples (`hstree.builders.shared.large`).
"""

from collections.abc import Sequence

import numpy as np

from hstree import progress
from hstree._arrays import Array
from hstree.builders.shared.top_down import Splitter, TreeTopology, build_tree
from hstree.data.vector_files import LARGE
from hstree.data.vectors import WordVectors


def build_vector_trees(
    name: str,
    vectors: WordVectors,
    splitter: Splitter,
    seeds: Sequence[np.random.SeedSequence],
    *,
    word_values: Array | None = None,
    n_jobs: int | None = None,
) -> list[TreeTopology]:
    """Split words by their vectors, into one tree per seed.

    Parameters
    ----------
    name : str
        The builder, for progress and files.
    vectors : WordVectors
    splitter : Splitter
        Its `repr` is part of the name of cached files.
    seeds : sequence of SeedSequence
        One per tree.
    word_values : array (V, ...), optional
        What the splitter needs of each word.
    n_jobs : int, optional
        Number of jobs. Up to `LARGE` words, a tree is built by all threads of this process. The
        trees do not depend on it.
    """
    n_words = len(vectors.labels)
    with progress.task(name, total=len(seeds) * n_words, unit="words") as task:
        if n_words > LARGE:
            from hstree.builders.shared.large import build_large_trees  # few builds need it

            return build_large_trees(name, vectors, splitter, seeds, word_values, n_jobs, task)
        rule = splitter.split_rule(vectors.vectors, word_values)
        return [build_tree(splitter, rule, n_words, seed, task=task) for seed in seeds]
