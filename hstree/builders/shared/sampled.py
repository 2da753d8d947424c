"""Divisive clustering of words by their vectors, also of more words than are split at once.

Up to `LARGE` words, every node is split by the vectors of all its words (`divisive`). Of more, the
upper nodes are split by a sample: the split is computed from `SAMPLE` of a node's rows, then all
its rows are read, some at a time, and go to one side or the other. Nodes of up to `PART` words are
sub-trees, each with a seed of its own, divided as above by several jobs and kept in the cache
folder until the tree is complete: a build that was killed goes on from them.
"""

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from hstree import progress
from hstree._arrays import Array, Float64, Floating, Int64, offsets
from hstree._files import cache_folder, hash_of, locked, remove_unused, replacing
from hstree._parallel import in_threads, n_parallel, parallel
from hstree._version import __version__
from hstree.builders.shared.divisive import DividedTree, Split, divide
from hstree.builders.shared.nodes import Nodes, scale_of
from hstree.data.vector_files import LARGE
from hstree.data.vectors import WordVectors
from hstree.kernels import compiled

T = TypeVar("T")

#: Rows of a node that its split is computed from; most words of a sub-tree; rows read at once.
SAMPLE, PART, READ = 1 << 17, 1 << 18, 1 << 14
#: Words of several trees, together, from which each tree is a job: fewer take less than processes.
APART = 400_000


class Scores(NamedTuple):
    """Quadratic functions of rows, by which words go to the children of a node.

    Score j is ``constant[j] + quadratic[j] * x @ x + linear[j] @ x``, where x is ``scale * row -
    centre``.
    """

    scale: float
    centre: Floating  #: (d,)
    constant: Float64  #: (k,)
    quadratic: Float64  #: (k,)
    linear: Floating  #: (k, d)

    def of(self, rows: Floating) -> Float64:
        """Return the scores (k, n) of rows (n, d)."""
        x = rows * rows.dtype.type(self.scale)
        x -= self.centre
        dot = np.stack([np.vecdot(x, one) for one in self.linear])
        square = self.quadratic[:, None] * np.vecdot(x, x)
        return np.asarray(self.constant[:, None] + square + dot, np.float64)


def centred(
    rows: Floating, weight: Float64 | None = None
) -> tuple[Nodes, Floating, float, Floating]:
    """Return the layout of one node, its rows scaled and centred, their scale and their centre."""
    weight = np.ones(len(rows)) if weight is None else weight
    nodes, scale = Nodes(np.array([0, len(rows)])), scale_of(rows)
    x = rows * rows.dtype.type(scale)
    centre = nodes.weighted_sum(weight / weight.sum(), x)[0]
    return nodes, x - centre, scale, centre


class Splitter(Protocol):
    """How a builder splits nodes. It can be pickled; `value` is what it needs of each word."""

    @property
    def arity(self) -> int:
        """Number of children of a node that is split."""

    @property
    def max_leaves(self) -> int:
        """Number of words up to which a node is not split; of no effect below `arity`."""

    @property
    def max_codes(self) -> int:
        """Maximum number of codes of a word."""

    def split_of(self, vectors: Floating, value: Any) -> Split:
        """Return the rule that splits nodes of words with these vectors (V, d)."""

    def drawn(self, rng: np.random.Generator, n: int) -> Any:
        """Draw what the rule needs for n words."""

    def scores(self, rows: Floating, value: Any, rng: np.random.Generator) -> Scores:
        """Split one node of the rows (n, d), as the rule does; return what scores other rows."""

    def branches(self, nodes: Nodes, scores: Float64, value: Any) -> Int64:
        """Return the branches (n,) of words by their scores (k, n), as the rule does."""


class Upper(NamedTuple):
    """Upper nodes of a tree, and the words of the sub-trees below them."""

    fan_out: Int64  #: (U,) of each upper node
    child: Int64  #: ``c >= 0`` is an upper node, ``c < 0`` the sub-tree ``~c``
    word: Int64  #: of the first sub-tree, ascending, then of the second, and so on
    start: Int64  #: (P + 1,) offsets of the sub-trees in `word`


def divide_vectors(
    name: str,
    vectors: WordVectors,
    splitter: Splitter,
    seeds: Sequence[np.random.SeedSequence],
    *,
    value: Array | None = None,
    n_jobs: int | None = None,
) -> list[DividedTree]:
    """Divide words by their vectors, into several trees; see the module for how.

    Parameters
    ----------
    name : str
        The builder, for progress and files.
    vectors : WordVectors
    splitter : Splitter
        What is kept in the cache is named by its `repr`.
    seeds : sequence of SeedSequence
        One for each tree.
    value : array (V,), optional
        What the splitter needs of each word.
    n_jobs : int, optional
        Number of jobs. Up to `LARGE` words, each of several trees is one; a single tree is divided
        by all threads of this process. The trees are the same for any.
    """
    n_words = len(vectors.labels)
    with progress.task(name, total=len(seeds) * n_words, unit="words") as task:
        if n_words > LARGE:
            document = {"builder": name, "splitter": repr(splitter), "vectors": vectors.sha256}
            document |= {"seeds": repr(seeds), "version": __version__}
            if value is not None:
                document["value"] = hashlib.sha256(np.ascontiguousarray(value).data).hexdigest()
            folder = cache_folder() / "trees" / hash_of(document)[:16]
            # another process may build the same tree
            with locked(folder, shared=True):
                divided = [
                    _divide_large(
                        splitter, vectors.vectors, value, seed, f"{folder}/{number}", n_jobs, task
                    )
                    for number, seed in enumerate(seeds)
                ]
            remove_unused(folder)
            return divided
        if len(seeds) > 1 and len(seeds) * n_words >= APART and n_parallel(n_jobs) > 1:
            jobs = ((vectors.vectors, value, splitter.max_codes, seed) for seed in seeds)
            trees = dict[int, DividedTree]()
            for number, tree in parallel(partial(_divide_part, splitter), jobs, n_jobs):
                trees[number] = tree
                task.advance(n_words)
            return [trees[number] for number in sorted(trees)]
        split = splitter.split_of(vectors.vectors, value)
        return [_divide(splitter, split, n_words, seed, task=task) for seed in seeds]


def _divide(
    splitter: Splitter,
    split: Split,
    n_words: int,
    seed: np.random.SeedSequence,
    max_codes: int | Int64 | None = None,
    *,
    task: progress.Task,
) -> DividedTree:
    draw = partial(splitter.drawn, np.random.default_rng(seed))
    most = splitter.max_codes if max_codes is None else max_codes
    return divide(
        n_words,
        split,
        draw=draw,
        arity=splitter.arity,
        max_leaves=splitter.max_leaves,
        max_codes=most,
        task=task,
    )


def _divide_large(
    splitter: Splitter,
    vectors: Floating,
    value: Array | None,
    seed: np.random.SeedSequence,
    prefix: str,
    n_jobs: int | None,
    task: progress.Task,
) -> DividedTree:
    """Divide the words of one tree: its upper nodes, then its sub-trees, then join them.

    Both are kept in files, whose names begin with `prefix`.
    """
    n_words = len(vectors)
    of_upper, of_parts = seed.spawn(2)
    file = Path(f"{prefix}-upper.npz")
    upper = _read(Upper, file)
    if upper is None:
        upper = _upper_nodes(splitter, vectors, value, of_upper)
        _write(upper, file)
    size = np.diff(upper.start)
    files = [Path(f"{prefix}-part-{p}.npz") for p in range(len(size))]
    parts = [None if n == 1 else _read(DividedTree, f) for n, f in zip(size, files, strict=True)]
    missing = [p for p, part in enumerate(parts) if part is None and size[p] > 1]
    task.advance(n_words - int(size[missing].sum()))
    n_codes = np.bincount(upper.word, minlength=n_words)
    most = np.maximum(splitter.max_codes // n_codes, 1)  # (V,) codes of a word in each sub-tree
    seeds = of_parts.spawn(len(size))

    divided = list[int]()  # numbers of the sub-trees of the jobs

    def jobs() -> Iterator[tuple[Any, ...]]:
        for p in missing:
            parts[p] = _read(DividedTree, files[p])
            if parts[p] is not None:  # another process has made it by now
                task.advance(int(size[p]))
                continue
            divided.append(p)
            words = upper.word[upper.start[p] : upper.start[p + 1]]
            of_words = None if value is None else value[words]
            yield vectors.take(words, axis=0), of_words, most[words], seeds[p]

    for number, part in parallel(partial(_divide_part, splitter), jobs(), n_jobs):
        p = divided[number]
        parts[p] = part
        _write(part, files[p])
        task.advance(int(size[p]))
    return _joined(upper, parts)


def _divide_part(splitter: Splitter, job: tuple[Any, ...]) -> DividedTree:
    """Divide the words of a sub-tree, or of a tree; its numbers of words are those in the job."""
    rows, value, most, seed = job
    rows = np.array(rows)  # joblib may map them from a file
    with progress.task("sub-tree", total=len(rows), unit="words") as task:
        split = splitter.split_of(rows, value)
        return _divide(splitter, split, len(rows), seed, most, task=task)


def _upper_nodes(
    splitter: Splitter, vectors: Floating, value: Array | None, seed: np.random.SeedSequence
) -> Upper:
    """Split nodes of more than `PART` words by samples of their rows, level by level."""
    n_words = len(vectors)
    n_codes = np.ones(n_words, np.int64)
    nodes, parts, n_nodes = deque([np.arange(n_words)]), list[Int64](), 1
    fan_out, child = list[int](), list[int]()
    with progress.task("upper nodes", unit="words") as task:
        while nodes:
            words = nodes.popleft()
            rng = np.random.default_rng(seed.spawn(1)[0])
            branch = _branches(splitter, vectors, value, words, rng, task)
            both = np.flatnonzero(branch < 0)
            refused = both[n_codes[words[both]] >= splitter.max_codes]
            branch[refused] = ~branch[refused]
            n_codes[words[branch < 0]] += 1
            fans = 0
            for j in range(splitter.arity):
                below = words[(branch == j) | (branch < 0)]
                if len(below) > max(PART, splitter.max_leaves):
                    child.append(n_nodes)
                    nodes.append(below)
                    n_nodes += 1
                elif len(below):
                    child.append(~len(parts))
                    parts.append(below)
                fans += len(below) > 0
            fan_out.append(fans)
    start = offsets(np.array([len(part) for part in parts]))
    return Upper(np.array(fan_out), np.array(child), np.concatenate(parts), start)


def _branches(
    splitter: Splitter,
    vectors: Floating,
    value: Array | None,
    words: Int64,
    rng: np.random.Generator,
    task: progress.Task,
) -> Int64:
    """Return the branches (n,) of the words of one node, split by a sample of their rows."""
    n = len(words)
    sample = words[np.sort(rng.choice(n, min(n, SAMPLE), replace=False))]
    of_sample = None if value is None else value[sample]
    by = splitter.scores(np.asarray(vectors.take(sample, axis=0)), of_sample, rng)
    scores = np.empty((len(by.constant), n))

    def score(first: int) -> int:
        some = slice(first, first + READ)
        scores[:, some] = by.of(np.asarray(vectors.take(words[some], axis=0)))
        return len(words[some])

    for _, n_rows in in_threads(score, iter(range(0, n, READ)), when=compiled() is not None):
        task.advance(n_rows)
    branch = splitter.branches(
        Nodes(np.array([0, n])), scores, None if value is None else value[words]
    )
    # identical vectors are split in their order
    return np.arange(n) * splitter.arity // n if np.all(branch == branch[0]) else branch


def _joined(upper: Upper, parts: list[DividedTree | None]) -> DividedTree:
    """Return the tree of upper nodes and sub-trees; a sub-tree of one word is a leaf."""
    n_nodes = [0 if part is None else len(part.child_start) - 1 for part in parts]
    first = len(upper.fan_out) + offsets(np.array(n_nodes))  # (P + 1,) root of each sub-tree
    root = np.where(np.diff(upper.start) == 1, ~upper.word[upper.start[:-1]], first[:-1])
    fan_outs = [upper.fan_out]
    children = [np.where(upper.child < 0, root[~np.minimum(upper.child, -1)], upper.child)]
    for p, part in enumerate(parts):
        if part is not None:
            words = upper.word[upper.start[p] : upper.start[p + 1]]
            leaf = ~words[~np.minimum(part.child, -1)]
            children.append(np.where(part.child < 0, leaf, part.child + first[p]))
            fan_outs.append(np.diff(part.child_start))
    return DividedTree(offsets(np.concatenate(fan_outs)), np.concatenate(children))


def _write(arrays: Any, path: Path) -> None:
    """Write a NamedTuple of arrays."""
    with replacing(path) as file:
        np.savez(file, **arrays._asdict())


def _read(kind: Callable[..., T], path: Path) -> T | None:
    """Read a NamedTuple of vectors of integers; None where the file is missing or damaged."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        are_vectors = all(a.ndim == 1 and a.dtype.kind == "i" for a in arrays.values())
        return kind(**arrays) if are_vectors else None
    except Exception:  # damaged files raise many kinds; they are made again
        return None
