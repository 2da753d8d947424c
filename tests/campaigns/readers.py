"""Every reader of files, with valid files to begin with and what a read object must be."""

import gzip
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hstree import formats
from hstree.builders.random import random as random_tree
from hstree.builders.word_classes.class_file import read_classes
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import HstreeError
from hstree.experiments import results
from hstree.models import load as load_model
from hstree.models import new_model
from hstree.tree import Tree
from hstree.tree import load as load_tree
from hstree.tree.content import broken_rules
from hstree.tree.files import from_json, to_json
from tests.report.comparison import leave
from tests.tree.documents import TREE

#: Files by their names; the first is the one that is read.
Files = dict[str, bytes]

WORDS = ["the", "of", "<eos>", "café", "cat", "<unk>", "dog", "漢字", "it's"]
COUNTS = [90, 60, 50, 31, 9, 8, 7, 2, 1]


@dataclass(frozen=True)
class Reader:
    """A reader of files.

    Attributes
    ----------
    name : str
    share : int
        Its part of a campaign's files, by its speed: of the sum of all shares.
    seeds : callable
        Writes valid files into an empty folder, each set into a folder of its own.
    read : callable
        Reads the first of them.
    check : callable
        Raises AssertionError where what was read is not valid.
    """

    name: str
    share: int
    seeds: Callable[[Path], list[Files]]
    read: Callable[[Path], object]
    check: Callable[..., None]


def _binary() -> Tree:
    return random_tree(Vocabulary(WORDS, COUNTS), random_state=1)


def _wide() -> Tree:
    return Tree.from_children(WORDS, [[~0, 1, ~1, 2], [~2, ~3], [~4, ~5, 3], [~6, ~7, ~8]])


def _written(folder: Path, *names: str) -> Files:
    return {name: (folder / name).read_bytes() for name in names}


def _of_trees(*names: str, trees=None, format: str | None = None):
    """Return what writes trees in a format; `names` are the files that one leaves."""

    def seeds(folder: Path) -> list[Files]:
        given = trees or (TREE, _binary(), _wide(), Tree(["only"], [0], []))
        found = []
        for tree in given:
            formats.write(tree, folder / names[0], format)
            found.append(_written(folder, *names))
        return found

    return seeds


def _of_binary_trees(*names: str, format: str | None = None):
    return lambda folder: _of_trees(*names, trees=(_binary(), _binary_bare()), format=format)(
        folder
    )


def _binary_bare() -> Tree:
    return Tree.from_children(["a", "b", "c", "d"], [[1, 2], [~0, ~1], [~2, ~3]])


def _vectors(*names: str):
    def seeds(folder: Path) -> list[Files]:
        rows = np.random.default_rng(0).normal(size=(len(WORDS), 4)).astype(np.float32)
        found = []
        for counts in (None, COUNTS) if names[0].endswith(".npy") else (None,):
            WordVectors(WORDS, rows, counts=counts).save(folder / names[0])
            found.append(_written(folder, *names))
        return found

    return seeds


def _raw_npy(folder: Path) -> list[Files]:
    arrays = (
        np.eye(3),
        np.ones((3, 2), ">f4"),
        np.arange(6).reshape(2, 3).T,
        np.ones((2, 2), "f2"),
    )
    found = []
    for array in arrays:
        np.save(folder / "v.npy", array)
        found.append(_written(folder, "v.npy"))
    return found


def _text(name: str, *texts: str):
    return lambda folder: [{name: text.encode()} for text in texts]


def _gzipped_vectors(folder: Path) -> list[Files]:
    plain = _vectors("v.vec")(folder)
    return [{"v.vec.gz": gzip.compress(files["v.vec"])} for files in plain]


def _models(folder: Path) -> list[Files]:
    found = []
    for tree, options in (
        (_binary(), {"dim": 3, "context": 2}),
        (_wide(), {"dim": 2, "context": 1, "full": True}),
        (_binary(), {"model": "cbow", "dim": 2, "window": 2}),
        (_wide(), {"model": "skipgram", "dim": 3, "window": 1}),
    ):
        new_model(tree, **options).save(folder)
        found.append(_written(folder, "config.json", "tree.json", "weights.safetensors"))
    return found


def with_hashes(files: Files) -> Files:
    """Let a model's config name its other files' hashes, so that damage in them is looked at."""
    try:
        config = json.loads(files["config.json"])
        tree = Tree(**vars(from_json(files["tree.json"])))
        weights = hashlib.sha256(files["weights.safetensors"]).hexdigest()
        config |= {"tree_sha256": tree.sha256, "weights_sha256": weights}
        return {**files, "config.json": json.dumps(config).encode()}
    except (HstreeError, ValueError, TypeError, RecursionError):
        return files


def _results(folder: Path) -> list[Files]:
    trees = {"balanced": _binary(), "wide": _wide()}
    found = []
    for ngrams in ((), ("kn3", "kn5")):
        home = folder / f"{len(ngrams)}"
        home.mkdir()
        leave(home, trees, ngrams=ngrams)
        found.append(_written(home, "results.json"))
    return found


def _check_tree(tree: Tree) -> None:
    assert isinstance(tree, Tree)
    assert not broken_rules(tree.labels, tree.child_start, tree.child, tree.counts, tree.names)
    assert b"".join(to_json(tree))
    assert tree.stats().labels == tree.n_labels


def _check_vectors(found: WordVectors) -> None:
    assert found.vectors.shape[0] == len(found.labels) == len(set(found.labels))
    assert found.vectors.dtype == np.float32
    assert np.isfinite(found.vectors).all()
    assert found.counts is None or found.counts.min() >= 0


def _check_vocabulary(found: Vocabulary) -> None:
    assert len(found.words) == len(set(found.words)) == len(found.counts) > 0


def _check_classes(found) -> None:
    assert found.class_of
    assert len(found.counts) in (0, len(found.class_of))


def _check_model(found) -> None:
    tensors = [found.context_model.embedding, found.layer.weight, found.layer.bias]
    assert all(np.isfinite(tensor).all() for tensor in tensors)
    assert found.context_model.embedding.shape == (found.tree.n_labels, found.dim)


def _check_results(found) -> None:
    assert str(found)  # the table can be laid out


def _read_format(name: str):
    return lambda path: formats.read(path, name)


_PATHS = "0\tthe\t90\n10\tof\t5\n110\tcat\t3\n111\tdog\t3\n"
_SHARED = "0\tthe\t90\n0\tof\t5\n10\tcat\t3\n11\tdog\t0\n11\tit\t2\n"
_GLOVE = "the 0.5 -1 2\nof 1e-3 .25 -7\nNew York 1 2 3\ncafé 0 0 1\n"

READERS = {
    reader.name: reader
    for reader in (
        Reader("tree .json", 160, _of_trees("t.json"), load_tree, _check_tree),
        Reader("tree .json.gz", 80, _of_trees("t.json.gz"), load_tree, _check_tree),
        Reader("tree .npz", 60, _of_trees("t.npz"), load_tree, _check_tree),
        Reader(
            "vectors .npy", 120, _vectors("v.npy", "v.labels.tsv"), WordVectors.read, _check_vectors
        ),
        Reader("vectors .npy alone", 60, _raw_npy, WordVectors.read, _check_vectors),
        Reader("word2vec text", 80, _vectors("v.vec"), WordVectors.read, _check_vectors),
        Reader("word2vec text .gz", 30, _gzipped_vectors, WordVectors.read, _check_vectors),
        Reader("word2vec binary", 60, _vectors("v.bin"), WordVectors.read, _check_vectors),
        Reader("GloVe", 60, _text("g.txt", _GLOVE), WordVectors.read, _check_vectors),
        Reader(
            "vocabulary",
            80,
            _text("w.tsv", "".join(map("{}\t{}\n".format, WORDS, COUNTS)), "a\t1\r\nb\t0\r\n"),
            Vocabulary.from_file,
            _check_vocabulary,
        ),
        Reader(
            "classes",
            60,
            _text("c.tsv", "the\tDET\na\tDET\ncat\tN\ndog\tN\n", _PATHS, _SHARED),
            read_classes,
            _check_classes,
        ),
        Reader(
            "linkage",
            50,
            _of_binary_trees("z.npy", "z.labels.tsv", format="linkage"),
            _read_format("linkage"),
            _check_tree,
        ),
        Reader("brown", 30, _text("t.paths", _PATHS, _SHARED), formats.read, _check_tree),
        Reader(
            "napkinxc",
            30,
            _of_trees("t.napkinxc", "t.labels.tsv", trees=(_binary(), _wide())),
            formats.read,
            _check_tree,
        ),
        Reader("nested", 50, _of_trees("t.nested.json"), formats.read, _check_tree),
        Reader(
            "graphml",
            20,
            _of_trees("t.graphml", trees=(_binary(), _wide(), _binary_bare())),
            formats.read,
            _check_tree,
        ),
        Reader("model", 30, _models, lambda path: load_model(path.parent), _check_model),
        Reader("results.json", 40, _results, results.load, _check_results),
    )
}
