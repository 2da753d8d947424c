"""A page to look at: one self-contained HTML file made of a comparison's folder.

The page asks nothing of a network. Its plots need the ``report`` extra, which nothing else does.
"""

from hstree.report.writing import PAGE, write

__all__ = ["PAGE", "write"]
