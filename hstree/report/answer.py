"""The answer on the page: the recommendation, the command that trains it, and the reasons."""

import math
from contextlib import suppress
from pathlib import Path

from markupsafe import Markup

from hstree._text import plural
from hstree.experiments.results import Choice, Comparison
from hstree.report.formats import TEMPLATES, Link
from hstree.report.recipe import Recipe


def candidate_noun(comparison: Comparison) -> str:
    """Return the noun for the candidates of a comparison."""
    trained = [candidate for candidate in comparison.candidates if candidate.is_trained]
    return "tree" if all(candidate.has_tree for candidate in trained) else "output layer"


def answer_markup(comparison: Comparison, recipe: Recipe | None, folder: Path) -> Markup:
    """Return the answer as HTML, with a link to the tree if its file is in `folder`."""
    tree = None
    if recipe is not None and recipe.tree_file is not None:
        with suppress(OSError, ValueError):  # a path with a null character is a ValueError
            tree = Link.to("tree.json", (folder / recipe.tree_file).read_bytes())
    choice = comparison.choice
    eligible = [] if choice is None else list(map(comparison.candidate, choice.candidates))
    timed = [candidate for candidate in eligible if candidate.timings.total]
    html = TEMPLATES.get_template("answer.html").render(
        comparison=comparison,
        recipe=recipe,
        tree=tree,
        among=plural(len(eligible), "candidate"),
        p=None if choice is None else _p_value(comparison, choice),
        quickest=min(timed, key=lambda candidate: candidate.timings.total or 0.0, default=None),
    )
    return Markup(html)


def _p_value(comparison: Comparison, choice: Choice) -> float | None:
    """Return the p value of Welch's t-test over seeds of the chosen candidate and its rival.

    Returns None if either was trained with only one seed.
    """
    if choice.rival is None:
        return None
    chosen = comparison.candidate(choice.chosen).perplexity["test"]
    rival = comparison.candidate(choice.rival).perplexity["test"]
    if not (chosen.mean and chosen.sd and rival.mean and rival.sd):
        return None

    from scipy.stats import ttest_ind_from_stats  # the import takes half a second

    test = ttest_ind_from_stats(
        chosen.mean, chosen.sd, chosen.n, rival.mean, rival.sd, rival.n, equal_var=False
    )
    p_value = float(test.pvalue)
    return p_value if math.isfinite(p_value) else None
