r"""Text format for trees in napkinXC, the file for its option ``--treeStructure``.

The first line has the number of labels and the number of all nodes, including leaves. Every other
line has a parent, a child and, for a leaf, the label number; the parent of the root is -1. Labels
have one code; wide nodes are allowed. Words and counts are in ``NAME.labels.tsv`` beside the file.
"""

import re
from pathlib import Path

import numpy as np

from hstree._arrays import Int64
from hstree._text import brief
from hstree.data.word_files import read_lines, unexpected
from hstree.errors import InputError, naming
from hstree.formats.base import Format, read_labels_or_numbers, replacing_labelled
from hstree.tree import Tree
from hstree.tree.bit_paths import check_single_codes
from hstree.tree.order import from_edges

_HEADER = re.compile(r"([0-9]{1,10})[ \t]+([0-9]{1,10})[ \t]*")
_LINE = re.compile(r"(-1|[0-9]{1,10})[ \t]+([0-9]{1,10})(?:[ \t]+(-1|[0-9]{1,10}))?[ \t]*")


def _write(tree: Tree, path: Path) -> None:
    if tree.n_labels == 1:
        raise InputError("napkinXC refuses a tree of one label; give a tree with two or more")
    check_single_codes(tree, "napkinXC's tree")
    # Node n keeps its number; the leaf of label v has the number N + v
    item = np.where(tree.child < 0, tree.n_nodes + ~tree.child, tree.child)
    label = ["" if c >= 0 else f" {~c}" for c in tree.child.tolist()]
    lines = map("{} {}{}\n".format, tree.edge_node.tolist(), item.tolist(), label)
    head = f"{tree.n_labels} {tree.n_nodes + tree.n_labels}\n-1 0\n"
    with replacing_labelled(tree, path) as file:
        file.write((head + "".join(lines)).encode())


def _read(path: Path, labels: Path | None) -> Tree:
    lines = [(number, line) for number, line in read_lines(path) if line.strip(" \t")]
    if not lines:
        raise InputError(
            f"{path}: no line in it; the first line must have the numbers of labels and nodes"
        )
    header = _HEADER.fullmatch(lines[0][1])
    if header is None:
        raise unexpected(path, lines[0][0], "the numbers of labels and nodes", lines[0][1])
    # The first line has the numbers of labels and of all items; each item has a line
    n_labels = int(header[1])
    n_items = int(header[2])
    if len(lines) - 1 != n_items:
        raise InputError(
            f"{path}: line {lines[0][0]} announces {n_items} nodes, but {len(lines) - 1} lines "
            "follow; every node needs one, including the root"
        )
    parent, child, label = _numbers(path, lines[1:], n_items)

    # The line of the root is not an edge
    is_link = parent >= 0
    with naming(path):
        edges = from_edges(parent[is_link], child[is_link], n_items, str)
        if len(edges.leaves) != n_labels:
            raise InputError(
                f"{len(edges.leaves)} leaves for the {n_labels} labels of the first line; "
                "each label must have one leaf"
            )
        # (V,) label of each leaf: a permutation of 0 to V - 1
        item_label = np.full(n_items, -1)
        item_label[child] = label
        number = item_label[edges.leaves]
        if not np.array_equal(np.sort(number), np.arange(n_labels)):
            raise InputError(
                f"the leaves have the labels {brief(number.tolist())}; each must have a different "
                f"label from 0 to {n_labels - 1}"
            )

    # Names of the labels, from the file beside this file
    words, counts = read_labels_or_numbers(path, labels, n_labels)
    if len(words) != n_labels:
        raise InputError(
            f"{len(words)} labels for the {n_labels} of {path}; give one line for each"
        )
    # Leaf i of `edges` is label number[i]
    is_leaf = edges.child < 0
    edges.child[is_leaf] = ~number[~edges.child[is_leaf]]
    return Tree(words, edges.child_start, edges.child, counts=counts)


def _numbers(path: Path, lines: list[tuple[int, str]], n_items: int) -> tuple[Int64, Int64, Int64]:
    """Return the columns parent, child and label; a missing label is -1."""
    rows = []
    children: set[int] = set()
    for number, line in lines:
        fields = _LINE.fullmatch(line)
        if fields is None:
            raise unexpected(path, number, "a parent, a child and perhaps a label", line)
        # The parent of the root is -1, and a missing label is -1, too
        parent, child, label = (int(field or -1) for field in fields.groups())
        if max(parent, child) >= n_items:
            raise unexpected(path, number, f"nodes below {n_items}, as the first line says", line)
        if child in children:
            raise unexpected(path, number, "a child that no earlier line has", line)
        children.add(child)
        rows.append((parent, child, label))
    parent_column, child_column, label_column = np.array(rows, np.int64).reshape(-1, 3).T
    return parent_column, child_column, label_column


FORMAT = Format(
    "napkinxc", (".napkinxc",), ("counts", "order", "numbers"), _write, _read, takes_labels=True
)
