"""Statistics of a tree: code lengths, scores per target, entropy and the Huffman bound."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hstree._arrays import NARROW, Float64, Int64, batches, offsets, segment_ids
from hstree._text import TextTable, format_number
from hstree.tree.arrays import TreeArrays
from hstree.tree.codes import Codes
from hstree.tree.huffman_code import merge_order
from hstree.tree.order import sum_to_root

#: Number of decisions that are counted at a time.
_DECISIONS = 1 << 20


@dataclass(frozen=True)
class TreeStatistics:
    """Statistics of one tree; values weighted by counts are None without counts."""

    method: str | None  #: name of the builder, if the tree's meta has it
    nodes: int  #: number of inner nodes, N
    labels: int  #: number of labels, V
    codes_per_label: float  #: mean over labels; 0 if V = 1
    max_codes_per_label: int
    length_uniform: float  #: mean number of decisions per label, summed over its codes
    length_weighted: float | None  #: the same, weighted by the counts
    #: Mean number of node scores computed for a target: 1 at a binary node, k at a node with k > 2
    #: children, summed over the codes (V for the flat tree). A node with more than 32 children
    #: counts once for all codes of the target that pass through it. Weighted by counts, if any.
    scores_per_target: float
    root_fraction: float | None  #: fraction of the counts whose labels have a code of one decision
    entropy: float | None  #: entropy of the counts in bits
    #: Weighted code length of a binary Huffman tree: the minimum for binary trees with one code
    #: per label.
    huffman_length: float | None
    depth: int  #: maximum number of decisions of a code
    sha256: str  #: hash of the tree

    def as_dict(self) -> dict[str, Any]:
        """Return the statistics as JSON values, without `max_codes_per_label`."""
        values = vars(self) | {"code_length": {}}
        for name in ("uniform", "weighted"):
            values["code_length"][name] = values.pop(f"length_{name}")
        del values["max_codes_per_label"]
        return values

    def facts(self) -> list[tuple[str, str]]:
        """Return names and values for display."""
        weighted = self.length_weighted
        by_counts = "" if weighted is None else f"{format_number(weighted)} by counts, "
        # Facts for all trees, then facts for trees with counts or with several codes per label
        rows = [
            ("method", self.method or "-"),
            ("labels", f"{self.labels:,}"),
            ("nodes", f"{self.nodes:,}"),
            ("code length", f"{by_counts}{format_number(self.length_uniform)} per label"),
            ("scores/target", format_number(self.scores_per_target)),
            ("depth", f"{self.depth:,}"),
            ("sha256", self.sha256),
        ]
        if self.entropy is not None:
            entropy = format_number(self.entropy)
            huffman = format_number(self.huffman_length)
            bounds = f"entropy {entropy}, Huffman length {huffman} (binary codes, one per label)"
            rows.insert(-1, ("bounds", bounds))
        if self.root_fraction and self.nodes > 1:
            rows.insert(4, ("at the root", f"{self.root_fraction:.1%} of the counts"))
        if self.max_codes_per_label > 1:
            codes = f"{format_number(self.codes_per_label)}, at most {self.max_codes_per_label:,}"
            rows.insert(3, ("codes/label", f"{codes}; the code length is their sum"))
        return rows

    def _repr_html_(self) -> str:
        return TextTable((), self.facts())._repr_html_()


def tree_statistics(tree: TreeArrays, counts: Int64 | None = None) -> TreeStatistics:
    """Compute statistics of a tree in O(V log V + E log depth), without expanding codes.

    Labels are weighted by `counts` (V,) (default: the counts of the tree).

    Examples
    --------
    >>> from hstree import Tree
    >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]], counts=[2, 1, 1])
    >>> stats = tree_statistics(tree)
    >>> stats.length_weighted, stats.entropy, stats.huffman_length
    (1.5, 1.5, 1.5)
    """
    # (C,) label of each code, node above the label, number of decisions, and number of scores
    leaf_edge = np.flatnonzero(tree.child < 0)
    label = ~tree.child[leaf_edge]
    node = tree.edge_node[leaf_edge]
    length = tree.depth[node] + 1
    scores = sum_to_root(np.where(tree.fan_out == 2, 1, tree.fan_out), tree.parent)[node]
    # (V,) number of decisions and scores for each label
    label_length = np.bincount(label, length, tree.n_labels)
    label_scores: Float64 = np.bincount(label, scores, tree.n_labels).astype(np.float64)
    if not tree.has_single_codes:
        label_scores -= _shared_scores(tree)

    counts = tree.counts if counts is None else counts
    frequency = None
    root_fraction = None
    entropy = None
    huffman_length = None
    if counts is not None and counts.any():
        # (V,) relative frequencies; the sum of the counts may exceed 64 bits
        weight = counts.astype(np.float64)
        frequency = weight / weight.sum()
        root_fraction = float(frequency[np.unique(label[length == 1])].sum())
        positive = frequency[frequency > 0]
        entropy = float(-(positive @ np.log2(positive))) + 0.0  # no -0.0
        merged_weight = merge_order(counts)[1].astype(np.float64)
        huffman_length = float(merged_weight.sum() / counts.sum(dtype=np.float64))
    method = tree.meta.get("method")
    return TreeStatistics(
        method=method if isinstance(method, str) else None,
        nodes=tree.n_nodes,
        labels=tree.n_labels,
        codes_per_label=len(leaf_edge) / tree.n_labels,
        max_codes_per_label=int(np.bincount(label, minlength=1).max()),
        length_uniform=float(label_length.mean()),
        length_weighted=None if frequency is None else float(frequency @ label_length),
        scores_per_target=float(
            label_scores.mean() if frequency is None else frequency @ label_scores
        ),
        root_fraction=root_fraction,
        entropy=entropy,
        huffman_length=huffman_length,
        depth=int(length.max(initial=0)),
        sha256=tree.sha256,
    )


def _shared_scores(tree: TreeArrays) -> Float64:
    """Return how many scores of each label (V,) its codes share at wide nodes.

    These scores are computed once; the result counts them for all codes except the first.
    """
    shared = np.zeros(tree.n_labels)
    is_wide = tree.fan_out > NARROW
    if not is_wide.any():
        return shared
    codes = Codes(tree, cache_limit=0)
    n_decisions = np.add.reduceat(codes.length, codes.label_start[:-1])  # (V,)
    for first, stop in batches(offsets(n_decisions), _DECISIONS):
        # (D,) label and node of each decision
        expanded = codes.expand(np.arange(first, stop))
        label = first + expanded.code_item[segment_ids(expanded.decision_start)]
        node = tree.edge_node[expanded.edge]
        # Pairs of a label and a wide node, and the number of codes that they share
        pairs = (label * tree.n_nodes + node)[is_wide[node]]
        pair, n_codes = np.unique(pairs, return_counts=True)
        repeated = (n_codes - 1) * tree.fan_out[pair % tree.n_nodes]
        shared += np.bincount(pair // tree.n_nodes, repeated, tree.n_labels)
    return shared
