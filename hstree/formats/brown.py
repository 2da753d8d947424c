r"""Brown clustering's ``paths``: lines of ``bits<TAB>word<TAB>count``.

Binary trees with one code per label: bit 0 is a first child, 1 a second. Names and the numbers of
nodes are dropped. A tree without counts is written with zeros, and only zeros are read as no
counts. Words with the same bits, as in Brown clusters, become a Huffman tree whose root is named by
the bits.
"""

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from hstree.builders.classes.clustering import class_members
from hstree.builders.huffman import huffman_tree
from hstree.builders.shared.join import graft, with_name
from hstree.data.word_files import counts_array, read_lines, unexpected
from hstree.errors import InputError
from hstree.formats.base import Format, check_quotable, write_lines
from hstree.tree import Tree
from hstree.tree.bit_paths import paths_of

_LINE = re.compile(r"([01]*)\t([^\t]+)\t([0-9]{1,19})")


def _lines(tree: Tree) -> Iterator[str]:
    why = "Brown paths are lines with tabs between their fields"
    check_quotable(tree, r"[^\0\t\n\r]+", why, names=False)
    counts = [0] * tree.n_labels if tree.counts is None else tree.counts.tolist()
    return map("{}\t{}\t{}\n".format, paths_of(tree).strings, tree.labels, counts)


def _read(path: Path, labels: Path | None) -> Tree:
    bits_of: dict[str, str] = {}
    numbers: list[int] = []
    for number, line in read_lines(path, "the paths"):
        match = _LINE.fullmatch(line)
        if match is None:
            form = "bits of 0 and 1, a tab, a word, a tab and a count"
            raise unexpected(path, number, form, line)
        if match[2] in bits_of:
            raise unexpected(path, number, "a word that no line before has", line)
        bits_of[match[2]] = match[1]
        numbers.append(int(match[3]))
    if not bits_of:
        raise InputError(f"{path}: no line in it; give lines of bits, a word and its count")
    counts = counts_array(path, numbers)
    strings = sorted(set(bits_of.values()))
    for before, after in pairwise(strings):
        if after.startswith(before):
            raise InputError(
                f"{path}: the bit string {before!r} is a prefix of {after!r}, so the code is not "
                "prefix-free; give the paths as the clustering wrote them"
            )
    index = {bits: i for i, bits in enumerate(strings)}
    # (V,) index of each word's bit string
    class_of = np.array([index[bits] for bits in bits_of.values()], np.int64)
    words = list(bits_of)
    groups = class_members(class_of, np.argsort(-counts, kind="stable"))
    trees = [
        with_name(huffman_tree([words[i] for i in group], counts[group]), bits)
        for group, bits in zip(groups, strings, strict=True)
    ]
    return graft(_prefix_tree(strings), trees, words, counts=counts if counts.any() else None)


def _prefix_tree(strings: Sequence[str]) -> Tree:
    """Return the binary tree of a prefix-free code, bit strings in ascending order, its labels.

    A bit that is the same in all strings with the same bits before it makes no node, since it
    decides nothing.
    """
    children: list[list[int]] = []
    waiting = deque([(0, len(strings))] if len(strings) > 1 else [])
    n_nodes = len(waiting)
    while waiting:
        first, last = waiting.popleft()
        a, b = strings[first], strings[last - 1]
        length = next(i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
        middle = bisect_left(strings, a[:length] + "1", first, last)
        of_node = []
        for start, stop in ((first, middle), (middle, last)):
            if stop - start == 1:
                of_node.append(~start)
            else:
                of_node.append(n_nodes)
                n_nodes += 1
                waiting.append((start, stop))
        children.append(of_node)
    return Tree.from_children(strings, children)


FORMAT = Format("brown", (".paths",), ("counts", "order"), partial(write_lines, _lines), _read)
