"""Trees by splitting words by their vectors, for the builders gmm, kmeans and semantic.

Up to `LARGE` words, every node is split by the vectors of all its words. Of more words, the upper
nodes are split by samples (`hstree.builders.shared.large`).
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from hstree import progress
from hstree._arrays import Array
from hstree._parallel import n_parallel, parallel
from hstree.builders.shared.top_down import Splitter, TreeTopology, build_tree, run_job
from hstree.data.vector_files import LARGE
from hstree.data.vectors import WordVectors

#: Number of words of several trees, together, from which on each tree is a job. Processes take
#: longer to start than fewer words take to split.
WORTH_PROCESSES = 400_000


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
        Number of jobs. Up to `LARGE` words, each of several trees is a job; a single tree is built
        by all threads of this process. The trees do not depend on it.
    """
    n_words = len(vectors.labels)
    with progress.task(name, total=len(seeds) * n_words, unit="words") as task:
        if n_words > LARGE:
            from hstree.builders.shared.large import build_large_trees  # few builds need it

            return build_large_trees(name, vectors, splitter, seeds, word_values, n_jobs, task)
        if len(seeds) > 1 and len(seeds) * n_words >= WORTH_PROCESSES and n_parallel(n_jobs) > 1:
            jobs = ((vectors.vectors, word_values, splitter.max_codes, seed) for seed in seeds)
            trees = dict[int, TreeTopology]()
            for number, tree in parallel(partial(run_job, splitter), jobs, n_jobs):
                trees[number] = tree
                task.advance(n_words)
            return [trees[number] for number in sorted(trees)]
        rule = splitter.split_rule(vectors.vectors, word_values)
        return [build_tree(splitter, rule, n_words, seed, task=task) for seed in seeds]
