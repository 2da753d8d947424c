"""The compiled functions that `hstree.kernels.compiled` returns, all in one module."""

from hstree.kernels.arithmetic import is_supported
from hstree.kernels.clusters import ClassCounts, WordPairs, clusters, move_words
from hstree.kernels.decisions import ForwardPass, tree_nll
from hstree.kernels.layout import MAX_LOGITS, Layout, lay_out
from hstree.kernels.ngrams import Features, context_numbers
from hstree.kernels.search import SearchedCodes, SearchedTree, label_log_prob, search
from hstree.kernels.updates import (
    LogBilinearArrays,
    Rates,
    RowState,
    adagrad_rows,
    lay_out_contexts,
    log_bilinear_step,
)
from hstree.kernels.windows import (
    LabelPaths,
    train_lines,
    window_sum,
    window_sum_backward,
    zeros_at_cache_lines,
)

__all__ = [
    "MAX_LOGITS",
    "ClassCounts",
    "Features",
    "ForwardPass",
    "LabelPaths",
    "Layout",
    "LogBilinearArrays",
    "Rates",
    "RowState",
    "SearchedCodes",
    "SearchedTree",
    "WordPairs",
    "adagrad_rows",
    "clusters",
    "context_numbers",
    "is_supported",
    "label_log_prob",
    "lay_out",
    "lay_out_contexts",
    "log_bilinear_step",
    "move_words",
    "search",
    "train_lines",
    "tree_nll",
    "window_sum",
    "window_sum_backward",
    "zeros_at_cache_lines",
]
