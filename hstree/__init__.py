"""hstree: which hierarchical-softmax tree?"""

from hstree.tree import Tree

__version__ = "0.1.0"

__all__ = ["Tree", "__version__"]
