"""What class trees cost in training, and the short list and classes for a wanted cost.

A cost is in scores, with the update of the row that a score needs: that of the flat softmax over
S words is S.
"""

import numpy as np

from hstree._typing import Int64
from hstree.errors import OptionError

#: Targets of a batch of the log-bilinear model.
BATCH = 256
#: Scores that take as long as the update of a row after a batch, measured with compiled kernels by
#: ``python -m benchmarks.class_costs``; a node by itself takes nothing that could be measured.
ROW = 10.0
#: Ratio of neighbouring lengths of short lists, and numbers of classes, that are compared.
STEP = 1.05


def class_cost(counts: Int64, short_list: int, n_classes: int, trees: int = 1) -> float:
    """Estimate the cost of a target in training, in scores.

    Counts (V,) are largest first. The words of the short list are under the root, the others in
    classes of equal size and mass, anew in each tree.
    """
    scores, rows, _ = work_of(counts, short_list, n_classes)
    gates = {1: 0, 2: 1}.get(trees, trees)  # scored once for each code of a target
    return trees * (scores + gates + ROW / BATCH * rows) / (1 + ROW / BATCH)


def work_of(counts: Int64, short_list: int, n_classes: int) -> tuple[float, float, float]:
    """Return the scores of a target in one tree, and the rows and class nodes of a batch.

    A target has a score for every child of each node on its path. After a batch, the rows of the
    nodes that were visited are updated: those of a class with probability
    ``1 - (1 - share)^BATCH``. Parameters are those of `class_cost`.
    """
    in_classes = float(counts[short_list:].sum()) / max(int(counts.sum()), 1)
    size, under_root = (len(counts) - short_list) / n_classes, short_list + n_classes
    visited = n_classes * (1 - (1 - in_classes / n_classes) ** BATCH)
    return under_root + in_classes * size, under_root + visited * size, visited


def longest_list(
    counts: Int64, scores: float, trees: int = 1, n_classes: int | None = None
) -> tuple[int, int]:
    """Return the longest short list whose tree costs at most `scores`, and its number of classes.

    Other parameters are those of `class_cost`. The number of classes, if not given, is that for
    which the list is longest; of several, the cheapest. Raises OptionError when even without a
    short list the classes cost more.
    """
    least = np.inf
    for n in [*reversed(_spread(len(counts) - 1)), 0]:
        left = len(counts) - n
        tried = _spread(left) if n_classes is None else [min(n_classes, left)]
        costs = [class_cost(counts, n, c, trees) for c in tried]
        least = min(costs)
        if least <= scores:
            return n, tried[int(np.argmin(costs))]
    raise OptionError.about(
        "scores",
        f"is {scores:g}; classes of these {len(counts):,} words cost {least:,.0f} scores a target "
        "without a short list: give more",
    )


def _spread(most: int) -> list[int]:
    """Return whole numbers from 1 to `most`, each about `STEP` times the one before."""
    if most < 1:
        return []
    numbers = np.geomspace(1, most, 1 + int(np.log(most) / np.log(STEP)))
    distinct: list[int] = np.unique(numbers.astype(np.int64)).tolist()
    return distinct
