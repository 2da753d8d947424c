"""Which tree? The one of lowest perplexity, and the fastest of those that are nearly as good."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: How far above the lowest test perplexity a tree may be to count as nearly as good.
WITHIN = 0.03


def choice(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Choose among the trees of a comparison.

    Parameters
    ----------
    rows : sequence of dict
        The rows of a results file; baselines are no choice.

    Returns
    -------
    dict or None
        ``best``, the tree with the lowest mean test perplexity; ``within``, the share that
        others may be above it; ``fastest``, the tree of most training tokens a second among
        those. Ties go to the first. None where there is no tree.
    """
    trees = [row for row in rows if row["kind"] == "tree"]
    if not trees:
        return None
    best = min(trees, key=_test)
    near = [row for row in trees if _test(row) <= (1 + WITHIN) * _test(best)]
    fastest = max(near, key=lambda row: float(row["tokens_per_second"]))
    return {"best": best["name"], "within": WITHIN, "fastest": fastest["name"]}


def _test(row: dict[str, Any]) -> float:
    return float(row["perplexity"]["test"]["mean"])
