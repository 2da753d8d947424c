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
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import HstreeError
from hstree.experiments import results
from hstree.models import load_model, new_model
from hstree.report import page
from hstree.tree import Tree
from hstree.tree import load as load_tree
from hstree.tree.files import from_json, to_json
from tests.report.comparison import leave
from tests.tree.documents import TREE

#: Files by their names; the first is the one that is read.
Files = dict[str, bytes]

WORDS = ["the", "of", "<eos>", "café", "cat", "<unk>", "dog", "漢字", "it's"]
COUNTS = [90, 60, 50, 31, 9, 8, 7, 2, 1]


@dataclass(frozen=True)
class Reader:
    """A reader of files."""

    name: str
    share: int  #: its part of a campaign's files, by its speed: of the sum of all shares
    seeds: Callable[[Path], list[Files]]  #: writes sets of valid files into an empty folder
    read: Callable[[Path], object]  #: reads the first file of a set
    check: Callable[..., None]  #: raises AssertionError where what was read is not valid


BINARY = random_tree(Vocabulary(WORDS, COUNTS), random_state=1)
BARE = Tree.from_children(["a", "b", "c", "d"], [[1, 2], [~0, ~1], [~2, ~3]])
WIDE = Tree.from_children(WORDS, [[~0, 1, ~1, 2], [~2, ~3], [~4, ~5, 3], [~6, ~7, ~8]])
ANY = (TREE, BINARY, WIDE, Tree(["only"], [0], []))


def _written(folder: Path, *names: str) -> Files:
    return {name: (folder / name).read_bytes() for name in names}


def _of_trees(*names: str, trees=ANY, format: str | None = None):
    """Return what writes trees in a format; `names` are the files that one leaves."""

    def seeds(folder: Path) -> list[Files]:
        sets = []
        for tree in trees:
            formats.write(tree, folder / names[0], format)
            sets.append(_written(folder, *names))
        return sets

    return seeds


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
    sets = []
    for array in (np.eye(3), np.ones((3, 2), ">f4"), np.arange(6).reshape(2, 3).T):
        np.save(folder / "v.npy", array)
        sets.append(_written(folder, "v.npy"))
    return sets


def _text(name: str, *texts: str):
    return lambda folder: [{name: text.encode()} for text in texts]


def _gzipped_vectors(folder: Path) -> list[Files]:
    plain = _vectors("v.vec")(folder)
    return [{"v.vec.gz": gzip.compress(files["v.vec"])} for files in plain]


def _models(folder: Path) -> list[Files]:
    found = []
    for tree, options in (
        (BINARY, {"dim": 3, "context": 2}),
        (WIDE, {"dim": 2, "context": 1, "full": True}),
        (BINARY, {"model": "cbow", "dim": 2, "window": 2}),
        (WIDE, {"model": "skipgram", "dim": 3, "window": 1}),
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
    trees = {"balanced": BINARY, "wide": WIDE}
    found = []
    for ngrams in ((), ("kn3", "kn5")):
        home = folder / f"{len(ngrams)}"
        home.mkdir()
        leave(home, trees, ngrams=ngrams)
        found.append(_written(home, "results.json"))
    return found


def _page(path: Path) -> str:
    return page.markup(page.page_of(results.load(path), path.parent), path.parent)


def _check_tree(tree: Tree) -> None:
    assert isinstance(tree, Tree)
    assert b"".join(to_json(tree))
    assert tree.stats().labels == tree.n_labels


def _check_vectors(found: WordVectors) -> None:
    assert found.vectors.shape[0] == len(found.labels) == len(set(found.labels))
    assert found.vectors.dtype == np.float32
    assert np.isfinite(found.vectors).all()
    assert found.counts is None or found.counts.min() >= 0


def _check_vocabulary(found: Vocabulary) -> None:
    assert len(found.words) == len(set(found.words)) == len(found.counts) > 0


def _check_model(found) -> None:
    tensors = [found.context_model.embedding, found.layer.weight, found.layer.bias]
    assert all(np.isfinite(tensor).all() for tensor in tensors)
    assert found.context_model.embedding.shape == (found.tree.n_labels, found.dim)


_PATHS = "0\tthe\t90\n10\tof\t5\n110\tcat\t3\n111\tdog\t3\n"
_SHARED = "0\tthe\t90\n0\tof\t5\n10\tcat\t3\n11\tdog\t0\n11\tit\t2\n"
_GLOVE = "the 0.5 -1 2\nof 1e-3 .25 -7\nNew York 1 2 3\ncafé 0 0 1\n"

_LEVELS = ("kind,name\nit,a\nit,the\nof,of\n", "a\tb\tc\na\tb\td\ne\n")
_PARENTS = ("parent,child\n,thing\nthing,cat\nthing,'dog'\n", '"a, b";c\nc;d\nc;e\n')

_TWO = (BINARY, BARE)
_COUNTED = ("".join(map("{}\t{}\n".format, WORDS, COUNTS)), "a\t1\r\nb\t0\r\n")
_LINKAGE = _of_trees("z.npy", "z.labels.tsv", trees=_TWO, format="linkage")
_NAPKINXC = _of_trees("t.napkinxc", "t.labels.tsv", trees=(BINARY, WIDE))
_GRAPHML = _of_trees("t.graphml", trees=(*_TWO, WIDE))
_VECTORS, _TREE = (WordVectors.read, _check_vectors), (formats.read, _check_tree)
_FROM_LINKAGE = (lambda path: formats.read(path, "linkage"), _check_tree)

READERS = {
    name: Reader(name, share, seeds, read, check)
    for name, share, seeds, (read, check) in (
        ("tree .json", 160, _of_trees("t.json"), (load_tree, _check_tree)),
        ("tree .json.gz", 80, _of_trees("t.json.gz"), (load_tree, _check_tree)),
        ("tree .npz", 60, _of_trees("t.npz"), (load_tree, _check_tree)),
        ("vectors .npy", 120, _vectors("v.npy", "v.labels.tsv"), _VECTORS),
        ("vectors .npy alone", 60, _raw_npy, _VECTORS),
        ("word2vec text", 80, _vectors("v.vec"), _VECTORS),
        ("word2vec text .gz", 30, _gzipped_vectors, _VECTORS),
        ("word2vec binary", 60, _vectors("v.bin"), _VECTORS),
        ("GloVe", 60, _text("g.txt", _GLOVE), _VECTORS),
        ("vocabulary", 80, _text("w.tsv", *_COUNTED), (Vocabulary.from_file, _check_vocabulary)),
        ("linkage", 50, _LINKAGE, _FROM_LINKAGE),
        ("brown", 60, _text("t.paths", _PATHS, _SHARED), _TREE),
        ("napkinxc", 30, _NAPKINXC, _TREE),
        ("graphml", 20, _GRAPHML, _TREE),
        ("newick", 20, _of_trees("t.nwk", trees=(BINARY, BARE, WIDE)), _TREE),
        ("taxonomy", 20, _text("t.csv", *_LEVELS, *_PARENTS), _TREE),
        ("model", 30, _models, (lambda path: load_model(path.parent), _check_model)),
        ("results.json", 20, _results, (_page, str.encode)),
    )
}
