"""Compiled twins of functions of `hstree.layers`: passes through a tree, and searches of it."""

from hstree.layers.compiled.arithmetic import exponentials
from hstree.layers.compiled.passes import batch_loss, batch_nll
from hstree.layers.compiled.plans import numbers
from hstree.layers.compiled.search import log_prob_of_items, search_all

__all__ = [
    "batch_loss",
    "batch_nll",
    "exponentials",
    "log_prob_of_items",
    "numbers",
    "search_all",
]
