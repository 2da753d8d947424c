"""How builders split words by vectors: a rule for all rows of a node, and scores of rows."""

from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from hstree import progress
from hstree._arrays import Float64, Floating, Int64
from hstree.builders.shared.nodes import Nodes
from hstree.builders.shared.top_down import SplitRule, TreeTopology, build_top_down


class RowScores(NamedTuple):
    """Quadratic functions of rows, by which words go to the children of a node.

    Score j is ``constant[j] + quadratic[j] * x @ x + linear[j] @ x``, where x is ``scale * row -
    centre``.
    """

    scale: float
    centre: Floating  #: (d,)
    constant: Float64  #: (k,)
    quadratic: Float64  #: (k,)
    linear: Floating  #: (k, d)

    def evaluate(self, rows: Floating) -> Float64:
        """Return the scores (k, n) of rows (n, d)."""
        x = rows * rows.dtype.type(self.scale)
        x -= self.centre
        dot = np.stack([np.vecdot(x, coefficients) for coefficients in self.linear])
        square = self.quadratic[:, None] * np.vecdot(x, x)
        return np.asarray(self.constant[:, None] + square + dot, np.float64)


class Splitter(Protocol):
    """How a builder splits nodes, given `word_values` beside the vectors. It can be pickled."""

    @property
    def arity(self) -> int:
        """Number of children of a node that is split."""

    @property
    def max_leaves(self) -> int:
        """Number of words up to which a node is not split; of no effect below `arity`."""

    @property
    def max_codes(self) -> int:
        """Maximum number of codes of a word."""

    def split_rule(self, vectors: Floating, word_values: Any) -> SplitRule:
        """Return the rule that splits nodes of words with these vectors (V, d)."""

    def draw(self, rng: np.random.Generator, n: int) -> Any:
        """Draw the random numbers that the rule needs for n words."""

    def fit_scores(self, rows: Floating, word_values: Any, rng: np.random.Generator) -> RowScores:
        """Split one node of the rows (n, d), as the rule does; return what scores other rows."""

    def branches(self, nodes: Nodes, scores: Float64, word_values: Any) -> Int64:
        """Return the branches (n,) of words by their scores (k, n), as the rule does."""


def build_tree(
    splitter: Splitter,
    rule: SplitRule,
    n_words: int,
    seed: np.random.SeedSequence,
    max_codes: int | Int64 | None = None,
    *,
    task: progress.Task,
) -> TreeTopology:
    """Build one tree from a seed."""
    return build_top_down(
        n_words,
        rule,
        draw=partial(splitter.draw, np.random.default_rng(seed)),
        arity=splitter.arity,
        max_leaves=splitter.max_leaves,
        max_codes=splitter.max_codes if max_codes is None else max_codes,
        task=task,
    )


def run_job(splitter: Splitter, job: tuple[Floating, Any, int | Int64, Any]) -> TreeTopology:
    """Build the tree of one job: its rows, their word values, maximum codes and seed."""
    rows, word_values, max_codes, seed = job
    rows = np.array(rows)  # joblib may map them from a file
    with progress.task("sub-tree", total=len(rows), unit="words") as task:
        rule = splitter.split_rule(rows, word_values)
        return build_tree(splitter, rule, len(rows), seed, max_codes, task=task)
