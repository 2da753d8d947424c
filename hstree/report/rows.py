"""The rows of a comparison as the page shows them: each with a colour and a marker of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hstree.experiments import results
from hstree.experiments.results import Comparison, Scored

#: Told apart by most eyes, and readable on white and on near-black alike.
COLOURS = (
    "#2f82c3", "#d4573b", "#2f9967", "#a569c9", "#b57a1c", "#0f97a3",
    "#cb5590", "#7c8a24", "#6a75d8", "#9a7155", "#c0504d", "#6e8090",
)  # fmt: skip
MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "hex", "star")


@dataclass(frozen=True)
class Row:
    """One row of the results, and how it is drawn.

    Attributes
    ----------
    index : int
        Its place in the table; the page and its plots know it by this.
    result : hstree.experiments.results.Row
    """

    index: int
    result: results.Row

    @property
    def name(self) -> str:
        """Return the name that the user knows it by."""
        return self.result.name

    @property
    def is_tree(self) -> bool:
        """Tell whether it is a tree, the flat softmax too, and not a baseline."""
        return self.result.kind == "tree"

    @property
    def is_flat(self) -> bool:
        """Tell whether it is the flat softmax, wherever it came from: all labels under a root."""
        return self.result.tree is not None and self.result.tree.nodes == 1

    @property
    def colour(self) -> str:
        """Return its colour; they begin again after the twelfth row, with other markers."""
        return COLOURS[self.index % len(COLOURS)]

    @property
    def marker(self) -> str:
        """Return its marker, as bokeh names it."""
        return MARKERS[self.index % len(MARKERS)]

    @property
    def dash(self) -> str:
        """Return its line: dashed for a baseline, dotted where colours have begun again."""
        if not self.is_tree:
            return "dashed"
        return "solid" if self.index < len(COLOURS) else "dotted"

    def perplexity(self, split: Scored = "test") -> float | None:
        """Return the mean perplexity over seeds."""
        return self.result.perplexity[split].mean

    @property
    def tokens_per_second(self) -> float | None:
        """Return the training speed."""
        return self.result.tokens_per_second


def rows_of(comparison: Comparison) -> list[Row]:
    """Return the rows in the order of the table."""
    return [Row(index, result) for index, result in enumerate(comparison.rows)]


def best_tree(rows: Sequence[Row]) -> Row | None:
    """Return the tree of the lowest validation perplexity, flat aside; the first of equals."""
    scored = [row for row in rows if row.is_tree and not row.is_flat and row.perplexity("valid")]
    return min(scored, key=lambda row: row.perplexity("valid") or 0.0, default=None)


def flat_row(rows: Sequence[Row]) -> Row | None:
    """Return the flat softmax, where it was compared."""
    return next((row for row in rows if row.is_flat), None)


def recommended(comparison: Comparison, rows: Sequence[Row]) -> Row | None:
    """Return the answer: the fastest tree near enough to the best, as the comparison chose it."""
    return _chosen(comparison, rows, "fastest")


def lowest(comparison: Comparison, rows: Sequence[Row]) -> Row | None:
    """Return the tree of the lowest validation perplexity, flat or not, as it was chosen."""
    return _chosen(comparison, rows, "best")


def _chosen(comparison: Comparison, rows: Sequence[Row], what: str) -> Row | None:
    choice = comparison.choice
    return (
        None if choice is None else next(row for row in rows if row.name == getattr(choice, what))
    )
