"""Trees with very many words: samples split the upper nodes, and jobs build the sub-trees.

The split of an upper node is computed from `SAMPLE_ROWS` of its rows. Then all its rows are read in
blocks, and each row is assigned to a child. Nodes with up to `SUBTREE_WORDS` words are sub-trees.
Each sub-tree has its own seed. A job builds it from the vectors of all its words. All parts are
kept in the cache folder until the tree is complete, so that a build that was killed can continue.
"""

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from hstree import progress
from hstree._arrays import Array, Floating, Int64, offsets
from hstree._files import cache_folder, json_hash, locked, remove_unused, replacing
from hstree._parallel import in_threads, parallel
from hstree._version import __version__
from hstree.builders.shared.join import graft_nodes
from hstree.builders.shared.nodes import Nodes
from hstree.builders.shared.top_down import Splitter, TreeTopology, run_job
from hstree.data.vectors import WordVectors

T = TypeVar("T")

#: Number of rows from which the split of an upper node is computed.
SAMPLE_ROWS = 1 << 17
#: Maximum number of words of a sub-tree.
SUBTREE_WORDS = 1 << 18
#: Number of rows that are read at once.
READ_ROWS = 1 << 14


class UpperNodes(NamedTuple):
    """Upper nodes of a tree, and the words of the sub-trees below them."""

    child_start: Int64  #: (U + 1,), as in `Tree`
    child: Int64  #: ``c >= 0`` is an upper node, ``c < 0`` the sub-tree ``~c``
    word: Int64  #: words of the first sub-tree, ascending, then of the second, and so on
    start: Int64  #: (P + 1,) offsets of the sub-trees in `word`


def build_large_trees(
    name: str,
    vectors: WordVectors,
    splitter: Splitter,
    seeds: Sequence[np.random.SeedSequence],
    word_values: Array | None,
    n_jobs: int | None,
    task: progress.Task,
) -> list[TreeTopology]:
    """Build one tree per seed, as `build_vector_trees` does; remove the kept files at the end."""
    # The name of the folder is a hash of everything on which the trees depend
    document = {"builder": name, "splitter": repr(splitter), "vectors": vectors.sha256}
    document |= {"seeds": repr(seeds), "version": __version__}
    if word_values is not None:
        document["value"] = hashlib.sha256(np.ascontiguousarray(word_values).data).hexdigest()
    folder = cache_folder() / "trees" / json_hash(document)[:16]

    trees = []
    with locked(folder, shared=True):  # another process may build the same trees
        for number, seed in enumerate(seeds):
            prefix = f"{folder}/{number}"
            rows = vectors.vectors
            tree = _build_large_tree(splitter, rows, word_values, seed, prefix, n_jobs, task)
            trees.append(tree)
    remove_unused(folder)
    return trees


def _build_large_tree(
    splitter: Splitter,
    vectors: Floating,
    word_values: Array | None,
    seed: np.random.SeedSequence,
    prefix: str,
    n_jobs: int | None,
    task: progress.Task,
) -> TreeTopology:
    """Build the upper nodes of a tree, then its sub-trees, and join them.

    The parts are kept in files whose names begin with `prefix`.
    """
    # Read the upper nodes that an earlier build kept, or build them
    upper_seed, subtrees_seed = seed.spawn(2)
    upper_file = Path(f"{prefix}-upper.npz")
    upper = _read(UpperNodes, upper_file)
    if upper is None:
        upper = _build_upper_nodes(splitter, vectors, word_values, upper_seed)
        _write(upper, upper_file)

    # Read the sub-trees that an earlier build kept; sub-trees with one word are leaves
    size = np.diff(upper.start)
    files = [Path(f"{prefix}-part-{number}.npz") for number in range(len(size))]
    leaf = TreeTopology(np.zeros(1, np.int64), np.empty(0, np.int64))
    subtrees = [
        leaf if n_words == 1 else _read(TreeTopology, file)
        for n_words, file in zip(size, files, strict=True)
    ]
    missing = [i for i, tree in enumerate(subtrees) if tree is None]
    task.advance(len(vectors) - int(size[missing].sum()))

    # Build the other sub-trees in jobs. The codes of a word are divided among its sub-trees
    n_codes = np.bincount(upper.word, minlength=len(vectors))
    max_codes = np.maximum(splitter.max_codes // n_codes, 1)  # (V,) in each sub-tree
    seeds = subtrees_seed.spawn(len(size))
    numbers = list[int]()  # number of the sub-tree of each job

    def jobs() -> Iterator[tuple[Any, ...]]:
        for number in missing:
            subtrees[number] = _read(TreeTopology, files[number])
            if subtrees[number] is not None:  # another process has built it by now
                task.advance(int(size[number]))
                continue
            numbers.append(number)
            words = upper.word[upper.start[number] : upper.start[number + 1]]
            values = None if word_values is None else word_values[words]
            yield vectors.take(words, axis=0), values, max_codes[words], seeds[number]

    for job, tree in parallel(partial(run_job, splitter), jobs(), n_jobs):
        number = numbers[job]
        subtrees[number] = tree
        _write(tree, files[number])
        task.advance(int(size[number]))
    words_of_subtrees = np.split(upper.word, upper.start[1:-1])
    return TreeTopology(*graft_nodes(upper, subtrees, words_of_subtrees))


def _build_upper_nodes(
    splitter: Splitter, vectors: Floating, word_values: Array | None, seed: np.random.SeedSequence
) -> UpperNodes:
    """Split nodes of more than `SUBTREE_WORDS` words by samples of their rows, level by level."""
    n_words = len(vectors)
    n_codes = np.ones(n_words, np.int64)
    waiting = deque([np.arange(n_words)])  # words of the upper nodes that are not yet split
    n_nodes = 1
    fan_out = list[int]()
    child = list[int]()
    subtree_words = list[Int64]()
    with progress.task("upper nodes", unit="words") as task:
        while waiting:
            words = waiting.popleft()
            rng = np.random.default_rng(seed.spawn(1)[0])
            branch = _split_by_sample(splitter, vectors, word_values, words, rng, task)

            # Words that have their maximum number of codes go to one child only
            both = np.flatnonzero(branch < 0)
            refused = both[n_codes[words[both]] >= splitter.max_codes]
            branch[refused] = ~branch[refused]
            n_codes[words[branch < 0]] += 1

            # A child with few words is a sub-tree, which a job builds
            n_children = 0
            for j in range(splitter.arity):
                child_words = words[(branch == j) | (branch < 0)]
                if len(child_words) == 0:
                    continue
                n_children += 1
                if len(child_words) > max(SUBTREE_WORDS, splitter.max_leaves):
                    child.append(n_nodes)
                    waiting.append(child_words)
                    n_nodes += 1
                else:
                    child.append(~len(subtree_words))
                    subtree_words.append(child_words)
            fan_out.append(n_children)
    start = offsets(np.array([len(words) for words in subtree_words]))
    return UpperNodes(
        child_start=offsets(np.array(fan_out)),
        child=np.array(child),
        word=np.concatenate(subtree_words),
        start=start,
    )


def _split_by_sample(
    splitter: Splitter,
    vectors: Floating,
    word_values: Array | None,
    words: Int64,
    rng: np.random.Generator,
    task: progress.Task,
) -> Int64:
    """Return the branches (n,) of the words of one node, split by a sample of their rows."""
    # Split a sample of the rows
    n = len(words)
    sample = words[np.sort(rng.choice(n, min(n, SAMPLE_ROWS), replace=False))]
    sample_values = None if word_values is None else word_values[sample]
    sample_rows = np.asarray(vectors.take(sample, axis=0))
    row_scores = splitter.fit_scores(sample_rows, sample_values, rng)

    # Compute the scores (k, n) of all rows
    scores = np.empty((len(row_scores.constant), n))

    def score(first: int) -> int:
        part = slice(first, first + READ_ROWS)
        scores[:, part] = row_scores.evaluate(np.asarray(vectors.take(words[part], axis=0)))
        return len(words[part])

    for _, n_rows in in_threads(score, iter(range(0, n, READ_ROWS))):
        task.advance(n_rows)

    nodes = Nodes(np.array([0, n]))
    values = None if word_values is None else word_values[words]
    branch = splitter.branches(nodes, scores, values)
    if np.all(branch == branch[0]):  # split identical vectors in their order
        return np.arange(n) * splitter.arity // n
    return branch


def _write(arrays: Any, path: Path) -> None:
    """Write a NamedTuple of arrays to a file."""
    with replacing(path) as file:
        np.savez(file, **arrays._asdict())


def _read(kind: Callable[..., T], path: Path) -> T | None:
    """Read a NamedTuple of integer vectors; return None if the file is missing or damaged."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        are_vectors = all(array.ndim == 1 and array.dtype.kind == "i" for array in arrays.values())
        return kind(**arrays) if are_vectors else None
    except Exception:  # damaged files raise many kinds of errors; the part is then built again
        return None
