"""Trees: structure, rules, codes, statistics and files."""

from hstree.tree.codes import Codes
from hstree.tree.tree import Tree, as_tree, load

__all__ = ["Codes", "Tree", "as_tree", "load"]
