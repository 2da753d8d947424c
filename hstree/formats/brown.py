r"""Brown clustering's ``paths`` files: lines of ``bits<TAB>word<TAB>count``.

The trees are binary, with one code per label: bit 0 is the first child, and bit 1 the second. Names
and numbers of nodes are dropped. A tree without counts is written with zeros, and a file with only
zeros is read as a tree without counts. Words with the same bits (a Brown cluster) become a Huffman
tree whose root has the bits as its name.
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
    reason = "Brown paths are lines with tabs between their fields"
    check_quotable(tree, r"[^\0\t\n\r]+", reason, names=False)
    counts = [0] * tree.n_labels if tree.counts is None else tree.counts.tolist()
    return map("{}\t{}\t{}\n".format, paths_of(tree).strings, tree.labels, counts)


def _read(path: Path, labels: Path | None) -> Tree:
    bits_by_word: dict[str, str] = {}
    numbers: list[int] = []
    for number, line in read_lines(path, "the paths"):
        match = _LINE.fullmatch(line)
        if match is None:
            form = "bits of 0 and 1, a tab, a word, a tab and a count"
            raise unexpected(path, number, form, line)
        if match[2] in bits_by_word:
            raise unexpected(path, number, "a word that no earlier line has", line)
        bits_by_word[match[2]] = match[1]
        numbers.append(int(match[3]))
    if not bits_by_word:
        raise InputError(f"{path}: no line in it; give lines of bits, a word and its count")
    counts = counts_array(path, numbers)
    strings = sorted(set(bits_by_word.values()))
    for before, after in pairwise(strings):
        if after.startswith(before):
            raise InputError(
                f"{path}: the bit string {before!r} is a prefix of {after!r}, so the code is not "
                "prefix-free; give the paths as the clustering wrote them"
            )

    # The words of each bit string become a tree, which replaces the leaf of the string
    index = {bits: i for i, bits in enumerate(strings)}
    string_index = np.array([index[bits] for bits in bits_by_word.values()], np.int64)  # (V,)
    words = list(bits_by_word)
    groups = class_members(string_index, np.argsort(-counts, kind="stable"))
    trees = [
        with_name(huffman_tree([words[i] for i in group], counts[group]), bits)
        for group, bits in zip(groups, strings, strict=True)
    ]
    return graft(_prefix_tree(strings), trees, words, counts=counts if counts.any() else None)


def _prefix_tree(strings: Sequence[str]) -> Tree:
    """Return the binary tree of a prefix-free code, given its bit strings in ascending order.

    If all strings with the same prefix have the same next bit, this bit has no node, since it
    decides nothing.
    """
    children: list[list[int]] = []
    # Ranges of strings below nodes that have no children yet, level by level
    waiting = deque([(0, len(strings))] if len(strings) > 1 else [])
    n_nodes = len(waiting)
    while waiting:
        first, stop = waiting.popleft()
        # Split the strings at the first bit in which the first and the last string differ
        pairs = zip(strings[first], strings[stop - 1], strict=False)
        length = next(i for i, (x, y) in enumerate(pairs) if x != y)
        middle = bisect_left(strings, strings[first][:length] + "1", first, stop)
        node_children = []
        for child_first, child_stop in ((first, middle), (middle, stop)):
            if child_stop - child_first == 1:
                node_children.append(~child_first)
            else:
                node_children.append(n_nodes)
                n_nodes += 1
                waiting.append((child_first, child_stop))
        children.append(node_children)
    return Tree.from_children(strings, children)


FORMAT = Format("brown", (".paths",), ("counts", "order"), partial(write_lines, _lines), _read)
