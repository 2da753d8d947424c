"""Every reader of files, with valid files to mutate and a check of the object that was read."""

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
from hstree.report.page import make_page, render
from hstree.tree import Tree
from hstree.tree import load as load_tree
from hstree.tree.files import from_json, to_json
from tests.report.comparison import leave
from tests.tree.documents import TREE

#: Contents of files by name; the first is the one that is read.
Files = dict[str, bytes]


@dataclass(frozen=True)
class Reader:
    """A reader of files."""

    name: str
    share: int  #: its fraction of a campaign's files, relative to the other readers' shares
    seeds: Callable[[Path], list[Files]]  #: writes sets of valid files into an empty folder
    read: Callable[[Path], object]  #: reads the first file of a set
    check: Callable[..., None]  #: raises AssertionError for an object that is not valid


WORDS = ["the", "of", "<eos>", "café", "cat", "<unk>", "dog", "漢字", "it's"]
COUNTS = [90, 60, 50, 31, 9, 8, 7, 2, 1]
BINARY = random_tree(Vocabulary(WORDS, COUNTS), random_state=1)
BARE = Tree.from_children(["a", "b", "c", "d"], [[1, 2], [~0, ~1], [~2, ~3]])
WIDE = Tree.from_children(WORDS, [[~0, 1, ~1, 2], [~2, ~3], [~4, ~5, 3], [~6, ~7, ~8]])
ALL_TREES = (TREE, BINARY, WIDE, Tree(["only"], [0], []))


def load_files(folder, names):
    return {name: (folder / name).read_bytes() for name in names}


def trees(*names, trees=ALL_TREES, format=None):
    """Return the function that writes trees in a format; `names` are the files of each."""

    def seeds(folder):
        sets = []
        for tree in trees:
            formats.write(tree, folder / names[0], format)
            sets.append(load_files(folder, names))
        return sets

    return seeds


def texts(name, *contents):
    return lambda folder: [{name: content.encode()} for content in contents]


def vectors(*names, counts=(None,)):
    def seeds(folder):
        rows = np.random.default_rng(0).normal(size=(len(WORDS), 4)).astype(np.float32)
        sets = []
        for each in counts:
            WordVectors(WORDS, rows, counts=each).save(folder / names[0])
            sets.append(load_files(folder, names))
        return sets

    return seeds


def arrays(folder):
    sets = []
    for array in (np.eye(3), np.ones((3, 2), ">f4"), np.arange(6).reshape(2, 3).T):
        np.save(folder / "v.npy", array)
        sets.append(load_files(folder, ["v.npy"]))
    return sets


def gzipped_vectors(folder):
    return [{"v.vec.gz": gzip.compress(files["v.vec"])} for files in vectors("v.vec")(folder)]


def models(folder):
    sets = []
    for tree, options in (
        (BINARY, {"dim": 3, "context": 2}),
        (WIDE, {"dim": 2, "context": 1, "full": True}),
        (BINARY, {"model": "cbow", "dim": 2, "window": 2}),
        (WIDE, {"model": "skipgram", "dim": 3, "window": 1}),
    ):
        new_model(tree, **options).save(folder)
        sets.append(load_files(folder, ["config.json", "tree.json", "weights.safetensors"]))
    return sets


def with_hashes(files):
    """Write the hashes of a model's files into its config, so that damage of these is read."""
    try:
        config = json.loads(files["config.json"])
        tree = Tree(**vars(from_json(files["tree.json"])))
        weights = hashlib.sha256(files["weights.safetensors"]).hexdigest()
        config |= {"tree_sha256": tree.sha256, "weights_sha256": weights}
        return {**files, "config.json": json.dumps(config).encode()}
    except (HstreeError, ValueError, TypeError, RecursionError):
        return files


def comparisons(folder):
    sets = []
    for ngrams in ((), ("kn3", "kn5")):
        home = folder / f"{len(ngrams)}"
        home.mkdir()
        leave(home, {"balanced": BINARY, "wide": WIDE}, ngrams=ngrams)
        sets.append(load_files(home, ["results.json"]))
    return sets


def read_page(path):
    return render(make_page(results.load(path), path.parent), path.parent)


def check_tree(tree):
    assert isinstance(tree, Tree)
    assert b"".join(to_json(tree))
    assert tree.stats().labels == tree.n_labels


def check_vectors(vectors):
    assert vectors.vectors.shape[0] == len(vectors.labels) == len(set(vectors.labels))
    assert vectors.vectors.dtype == np.float32
    assert np.isfinite(vectors.vectors).all()
    assert vectors.counts is None or vectors.counts.min() >= 0


def check_vocabulary(vocabulary):
    assert len(vocabulary.words) == len(set(vocabulary.words)) == len(vocabulary.counts) > 0


def check_model(model):
    tensors = [model.context_model.embedding, model.layer.weight, model.layer.bias]
    assert all(np.isfinite(tensor).all() for tensor in tensors)
    assert model.context_model.embedding.shape == (model.tree.n_labels, model.dim)


GLOVE = texts("g.txt", "the 0.5 -1 2\nof 1e-3 .25 -7\nNew York 1 2 3\ncafé 0 0 1\n")
COUNTED = texts("w.tsv", "".join(map("{}\t{}\n".format, WORDS, COUNTS)), "a\t1\r\nb\t0\r\n")
BROWN = texts(
    "t.paths",
    "0\tthe\t90\n10\tof\t5\n110\tcat\t3\n111\tdog\t3\n",
    "0\tthe\t90\n0\tof\t5\n10\tcat\t3\n11\tdog\t0\n11\tit\t2\n",
)
TAXONOMY = texts(
    "t.csv",
    "kind,name\nit,a\nit,the\nof,of\n",
    "a\tb\tc\na\tb\td\ne\n",
    "parent,child\n,thing\nthing,cat\nthing,'dog'\n",
    '"a, b";c\nc;d\nc;e\n',
)
LINKAGE = trees("z.npy", "z.labels.tsv", trees=(BINARY, BARE), format="linkage")
NAPKINXC = trees("t.napkinxc", "t.labels.tsv", trees=(BINARY, WIDE))
GRAPHML = trees("t.graphml", trees=(BINARY, BARE, WIDE))
NEWICK = trees("t.nwk", trees=(BINARY, BARE, WIDE))
NPY = vectors("v.npy", "v.labels.tsv", counts=(None, COUNTS))


def read_linkage(path):
    return formats.read(path, "linkage")


def read_model(path):
    return load_model(path.parent)


READERS = {
    reader.name: reader
    for reader in (
        Reader("tree .json", 160, trees("t.json"), load_tree, check_tree),
        Reader("tree .json.gz", 80, trees("t.json.gz"), load_tree, check_tree),
        Reader("tree .npz", 60, trees("t.npz"), load_tree, check_tree),
        Reader("vectors .npy", 120, NPY, WordVectors.read, check_vectors),
        Reader("vectors .npy alone", 60, arrays, WordVectors.read, check_vectors),
        Reader("word2vec text", 80, vectors("v.vec"), WordVectors.read, check_vectors),
        Reader("word2vec text .gz", 30, gzipped_vectors, WordVectors.read, check_vectors),
        Reader("word2vec binary", 60, vectors("v.bin"), WordVectors.read, check_vectors),
        Reader("GloVe", 60, GLOVE, WordVectors.read, check_vectors),
        Reader("vocabulary", 80, COUNTED, Vocabulary.from_file, check_vocabulary),
        Reader("linkage", 50, LINKAGE, read_linkage, check_tree),
        Reader("brown", 60, BROWN, formats.read, check_tree),
        Reader("napkinxc", 30, NAPKINXC, formats.read, check_tree),
        Reader("graphml", 20, GRAPHML, formats.read, check_tree),
        Reader("newick", 20, NEWICK, formats.read, check_tree),
        Reader("taxonomy", 20, TAXONOMY, formats.read, check_tree),
        Reader("model", 30, models, read_model, check_model),
        Reader("results.json", 20, comparisons, read_page, str.encode),
    )
}
