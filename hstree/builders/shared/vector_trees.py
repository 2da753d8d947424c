"""Trees that split words by their vectors, for the builders gmm, kmeans and semantic.

Up to `LARGE` words, every split is computed from the vectors of all words of the node. With more
words, the splits of the upper nodes are computed from samples (`hstree.builders.shared.large`).
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
    """Build one tree per seed by splitting words by their vectors.

    Parameters
    ----------
    name : str
        Name of the builder, for progress bars and cached files.
    vectors : WordVectors
    splitter : Splitter
        Its `repr` is part of the names of cached files.
    seeds : sequence of SeedSequence
        One per tree.
    word_values : array (V, ...), optional
        Values of each word that the splitter needs.
    n_jobs : int, optional
        Number of jobs for more than `LARGE` words. A smaller tree is built by all threads of this
        process. The trees do not depend on it.
    """
    n_words = len(vectors.labels)
    with progress.task(name, total=len(seeds) * n_words, unit="words") as task:
        if n_words > LARGE:
            from hstree.builders.shared.large import build_large_trees  # few builds need it

            return build_large_trees(name, vectors, splitter, seeds, word_values, n_jobs, task)
        rule = splitter.split_rule(vectors.vectors, word_values)
        return [build_tree(splitter, rule, n_words, seed, task=task) for seed in seeds]
