r"""Brown clustering's ``paths``: lines of ``bits<TAB>word<TAB>count``.

Binary trees with one code per label: bit 0 is a first child, 1 a second. Names and the numbers of
nodes are dropped. A tree without counts is written with zeros, and only zeros are read as no
counts. Words with the same bits, as in Brown clusters, become a Huffman tree whose root is named by
the bits; the method `classes` with `classes_file` does the same over a corpus.
"""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from hstree.builders.word_classes.class_file import read_classes
from hstree.builders.word_classes.clustering import class_members
from hstree.builders.word_classes.tree_shape import class_shapes, graft, huffman_shape, prefix_shape
from hstree.data.word_files import counts_array
from hstree.errors import InputError
from hstree.formats.base import Format, check_quotable, write_lines
from hstree.tree import Tree
from hstree.tree.paths import path_batches

#: Maximum number of bits in a file, a byte each.
MAX_BITS = 1 << 30


def _lines(tree: Tree) -> Iterator[str]:
    why = "Brown paths are lines with tabs between their fields"
    check_quotable(tree, r"[^\0\t\n\r]+", why, names=False)
    strings = chain.from_iterable(p.strings for p in path_batches(tree, "Brown paths", MAX_BITS))
    counts = [0] * tree.n_labels if tree.counts is None else tree.counts.tolist()
    return map("{}\t{}\t{}\n".format, strings, tree.labels, counts)


def _read(path: Path, labels: Path | None) -> Tree:
    classes = read_classes(path)
    if not classes.is_paths:
        raise InputError(
            f"{path} has lines of a word and a class, which are not a tree; give the bits of Brown "
            "clustering, or build with the method classes and its option classes_file"
        )
    counts = counts_array(path, classes.counts)
    strings = sorted(set(classes.class_of.values()))
    index = {bits: i for i, bits in enumerate(strings)}
    # (V,) index of each word's bit string
    class_of = np.array([index[bits] for bits in classes.class_of.values()], np.int64)
    groups = class_members(class_of, np.argsort(-counts, kind="stable"))
    nodes = class_shapes(groups, counts, huffman_shape, strings)
    words = list(classes.class_of)
    return graft(prefix_shape(strings), nodes).tree(words, counts if counts.any() else None)


FORMAT = Format("brown", (".paths",), ("counts", "order"), partial(write_lines, _lines), _read)
