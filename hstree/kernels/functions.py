"""All compiled functions in one module, which `hstree.kernels.compiled` returns."""

from hstree.kernels.arithmetic import is_supported
from hstree.kernels.clusters import ClassCounts, WordPairs, clusters, move_words
from hstree.kernels.decisions import tree_nll
from hstree.kernels.layout import MAX_LOGITS, Paths, lay_out
from hstree.kernels.ngrams import Features, context_numbers
from hstree.kernels.search import SearchedCodes, SearchedTree, label_log_prob, search
from hstree.kernels.updates import (
    LogBilinearArrays,
    Rates,
    RowState,
    lay_out_contexts,
    log_bilinear_step,
)
from hstree.kernels.windows import (
    LabelPaths,
    train_lines,
    window_sums,
    zeros_at_cache_lines,
)

__all__ = [
    "MAX_LOGITS",
    "ClassCounts",
    "Features",
    "LabelPaths",
    "LogBilinearArrays",
    "Paths",
    "Rates",
    "RowState",
    "SearchedCodes",
    "SearchedTree",
    "WordPairs",
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
    "window_sums",
    "zeros_at_cache_lines",
]
