"""Compiled twins of functions of `hstree.layers`: passes through a tree, and searches of it."""

from hstree.layers.compiled.dense import exponentials
from hstree.layers.compiled.passes import batch_loss, batch_nll
from hstree.layers.compiled.search import drawn_branches, log_prob_of_items, search_all

__all__ = [
    "batch_loss",
    "batch_nll",
    "drawn_branches",
    "exponentials",
    "log_prob_of_items",
    "search_all",
]
