"""Which tree? The one of lowest perplexity, and the fastest of those that are nearly as good.

Trees are chosen by validation perplexity, so that the test perplexity of the chosen one is not
lowered by the choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: The part whose perplexity decides.
PART = "valid"
#: How far above the lowest validation perplexity a tree may be to count as nearly as good.
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
        ``by``, the part that the perplexities are of, "valid"; ``among``, the number of trees
        chosen from; ``best``, the tree with the lowest mean perplexity; ``within``, the share
        that others may be above it; ``fastest``, the tree of most training tokens a second among
        those. Ties go to the first. None where there is no tree.
    """
    trees = [row for row in rows if row["kind"] == "tree"]
    if not trees:
        return None
    best = min(trees, key=_perplexity)
    near = [row for row in trees if _perplexity(row) <= (1 + WITHIN) * _perplexity(best)]
    fastest = max(near, key=lambda row: float(row["tokens_per_second"]))
    return {
        "by": PART,
        "among": len(trees),
        "best": best["name"],
        "within": WITHIN,
        "fastest": fastest["name"],
    }


def _perplexity(row: dict[str, Any]) -> float:
    return float(row["perplexity"][PART]["mean"])
