r"""word2vec's table of codes and points: ``word<TAB>count<TAB>code<TAB>point``, a line each.

Binary trees with one code a label. `code` is the bits, 0 for a first child; `point` the nodes on
the way, from the root, between spaces, by word2vec's numbers: the root is V - 2 and a node's number
is larger than its children's, so that node n of hstree is V - 2 - n, and row V - 2 - n of syn1 in
word2vec. What is not there: the files that word2vec itself writes hold vectors and no tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hstree._files import replacing
from hstree._ragged import offsets
from hstree._utf8 import BYTE_ORDER_MARK
from hstree.errors import InputError
from hstree.formats.base import Format, check_labels, expected
from hstree.formats.textlines import read_text
from hstree.tree import Tree
from hstree.tree.from_paths import tree_of_paths
from hstree.tree.paths import path_batches

#: Decisions of a file, up to ten bytes each.
LARGEST = 1 << 27
_QUOTABLE = re.compile(r"[^\0\t\n\r]+")
_WHY = "the table is lines with tabs between their fields; drop it or rename it"
_LINE = re.compile(r"([^\t]+)\t([0-9]{0,18})\t([01]*)\t([0-9]{1,18}(?: [0-9]{1,18})*)?")
_FORM = "a word, a count, bits and as many nodes, with tabs between"


def _write(tree: Tree, path: Path) -> None:
    check_labels(tree, _QUOTABLE, _WHY)
    lines = _lines(tree)
    with replacing(path) as file:
        # A reader drops one byte order mark, which must not be the first label's own.
        file.write(BYTE_ORDER_MARK if tree.labels[0].startswith("\ufeff") else b"")
        file.writelines(line.encode() for line in lines)


def _lines(tree: Tree) -> Iterator[str]:
    counts = [""] * tree.n_labels if tree.counts is None else tree.counts.tolist()
    names = list(map(str, range(tree.n_nodes - 1, -1, -1)))
    place = 0
    for paths in path_batches(tree, "a table of points", LARGEST):
        points = np.array(names, object)[paths.node].tolist()
        for bits, first, last in zip(
            paths.strings, paths.start[:-1].tolist(), paths.start[1:].tolist(), strict=True
        ):
            point = " ".join(points[first:last])
            yield f"{tree.labels[place]}\t{counts[place]}\t{bits}\t{point}\n"
            place += 1


def _read(path: Path, labels: Path | None) -> Tree:
    words, counts, codes, points = [], [], [], []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line:
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            raise expected(path, number, _FORM, line)
        word, count, code, point = found.groups(default="")
        if (point.count(" ") + 1 if point else 0) != len(code):
            raise expected(path, number, f"as many nodes as the {len(code)} bits", point)
        words.append(word)
        counts.append(count)
        codes.append(code)
        points.append(point)
    if not words:
        raise InputError(f"{path}: no line in it; give {_FORM}")
    if "" in counts and any(counts):
        raise InputError(f"{path}: {words[counts.index('')]!r} has no count, and others have")
    try:
        tree, _ = tree_of_paths(
            words,
            offsets(np.fromiter(map(len, codes), np.int64, len(codes))),
            np.array(" ".join(filter(None, points)).split(), np.int64),
            np.frombuffer("".join(codes).encode(), np.uint8).astype(np.int64) - ord("0"),
            counts=None if "" in counts else [int(count) for count in counts],
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    return tree


FORMAT = Format(
    "word2vec", (".codes",), frozenset({"counts", "order", "numbers"}), write=_write, read=_read
)
