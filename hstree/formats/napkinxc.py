r"""napkinXC's text tree, the file of its option ``--treeStructure``. Written, not read.

The first line has the numbers of labels and of all nodes, leaves included. Every other line is a
parent, a child and, for a leaf, its label as a number; the root's parent is -1. One code per label;
wide nodes are allowed. Words and counts are in ``NAME.labels.tsv`` beside the file.
"""

from pathlib import Path

import numpy as np

from hstree.errors import InputError
from hstree.formats.base import Format, replacing_labelled
from hstree.tree import Tree
from hstree.tree.paths import check_single_codes


def _write(tree: Tree, path: Path) -> None:
    if tree.n_labels == 1:
        raise InputError("napkinXC refuses a tree of one label; there is nothing to decide in it")
    check_single_codes(tree, "napkinXC's tree")
    # Node n keeps its number, the leaf of label v is N + v
    item = np.where(tree.child < 0, tree.n_nodes + ~tree.child, tree.child)
    label = ["" if c >= 0 else f" {~c}" for c in tree.child.tolist()]
    lines = map("{} {}{}\n".format, tree.edge_node.tolist(), item.tolist(), label)
    head = f"{tree.n_labels} {tree.n_nodes + tree.n_labels}\n-1 0\n"
    with replacing_labelled(tree, path) as file:
        file.write((head + "".join(lines)).encode())


FORMAT = Format(
    "napkinxc", (".napkinxc",), ("counts", "order", "numbers"), _write, has_labels_file=True
)
