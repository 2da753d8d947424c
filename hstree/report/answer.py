"""The answer: which row to use, in one sentence, for every distance to the lowest perplexity."""

import math
from contextlib import suppress
from pathlib import Path

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from hstree._text import figure, plural
from hstree.experiments import results
from hstree.experiments.results import Choice, Comparison, RowResult
from hstree.report.formats import TEMPLATES, Link
from hstree.report.recipe import Recipe, recipe_of

#: Furthest that the chosen row may be above the lowest perplexity, and the step of its slider.
FURTHEST, STEP = 0.5, 0.001


class Offer(Struct, frozen=True):
    """The answer from a distance to the lowest perplexity on, `within`, and how to get it."""

    within: float
    choice: Choice | None
    says: str  #: the answer in one sentence, after the name of the chosen row
    recipe: Recipe | None = None


def noun_of(comparison: Comparison) -> str:
    """Return what the rows are."""
    return "output layer" if any(row.kind == "layer" for row in comparison.rows) else "tree"


def offers_of(comparison: Comparison, folder: Path) -> list[Offer]:
    """Return the answer for every distance to the lowest perplexity at which it changes."""
    stored, choosable = comparison.choice, _choosable(comparison)
    if stored is None:
        return [Offer(0.0, None, sentence_of(comparison, None))]
    choices: dict[float, Choice] = {}
    for within in (STEP * n for n in range(round(FURTHEST / STEP) + 1)):
        choice = results.choose(choosable, within)
        last = next(reversed(choices.values()), None)
        if choice and (last is None or choice != replace(last, within=within)):
            choices[within] = choice
    # The stored choice has been compared to its rival, too.
    choices[max((w for w in choices if w <= stored.within), default=0.0)] = stored
    offers = []
    for within, choice in sorted(choices.items()):
        recipe = recipe_of(comparison.row(choice.chosen), comparison, folder)
        offers.append(Offer(within, choice, sentence_of(comparison, choice), recipe))
    return offers


def _choosable(comparison: Comparison) -> list[RowResult]:
    """Return the rows that the answer was chosen from."""
    rows = [row for row in comparison.rows if row.can_be_chosen]
    among = comparison.choice.rows if comparison.choice else []
    return [row for row in rows if row.name in among] if among else rows


def answer_of(comparison: Comparison) -> str:
    """Return the answer as a text: "Use gmm: 1.4% better than flat, ..."."""
    says, best = sentence_of(comparison, comparison.choice), comparison.best
    if best is None:
        return says
    lower = [
        f" The n-gram model {row.name} is lower still: {figure(row.test, 1)}."
        for row in lower_ngrams(best, comparison)
    ]
    return "".join([f"Use {best.name}: {says}.", *lower])


def lower_ngrams(chosen: RowResult, comparison: Comparison) -> list[RowResult]:
    """Return the n-gram models of lower test perplexity than a row."""
    highest = math.inf if chosen.test is None else chosen.test
    ngrams = [row for row in comparison.rows if row.kind == "ngram"]
    return [row for row in ngrams if row.test is not None and row.test < highest]


def sentence_of(comparison: Comparison, choice: Choice | None) -> str:
    """Say what the chosen row is against the flat softmax, or the others, without its name."""
    noun = noun_of(comparison)
    if choice is None:
        if any(row.kind != "ngram" for row in comparison.rows):
            return (
                "Every row has read the test part, so that none can be named: compare again with "
                "a test part that none has read."
            )
        is_done = not comparison.pending
        return (
            f"No {noun} {'was compared' if is_done else 'is finished'}, so there is none to name."
        )
    if choice.among == 1:
        return "the only row to choose from"
    alone, chosen = "the lowest perplexity", choice.chosen
    if choice.within:
        alone += ", and no faster row comes near it"
    if chosen != choice.best:
        alone = f"the fastest whose perplexity is near the lowest, that of {choice.best}"
    if not comparison.row(chosen).is_flat:
        return against_flat(comparison.row(chosen), comparison) or alone
    others = [row for row in _choosable(comparison) if row.tree is None or row.tree.nodes > 1]
    nearest = min(others, key=lambda row: row.valid, default=None)
    if nearest is None or not (against := against_flat(nearest, comparison)):
        return alone
    of_flat = f"no faster {noun} comes near it" if choice.within else "the lowest perplexity"
    return f"{of_flat}; {nearest.name} is {against}"


def against_flat(row: RowResult, comparison: Comparison) -> str:
    """Say how good and how fast a row is: "1.4% better than flat, 3.8 times as fast to train"."""
    parts = []
    if (ratio := row.to_flat) is not None:
        per_cent = round(100 * (ratio.ratio - 1), 1)
        verdict = f"{abs(per_cent):.1f}% {'worse' if per_cent > 0 else 'better'} than flat"
        parts.append(verdict if per_cent else "as good as flat")
        if comparison.stop.total_seconds and (share := row.from_text_times_flat):
            is_same = 0.8 <= share <= 1.25
            parts[0] += " in the same time" if is_same else f" in {1 / share:.2g} times its time"
        if per_cent and ratio.low is not None and ratio.high and ratio.low <= 1 <= ratio.high:
            parts[0] += " (within the noise)"
    if row.training is not None and (times := row.training.times_flat) is not None:
        digits = 2 if times < 0.995 else 1 if times < 9.95 else 0
        parts.append(f"{times:.{digits}f} times as fast to train")
    return ", ".join(parts)


def offer_markup(comparison: Comparison, offer: Offer, folder: Path) -> Markup:
    """Return an offer with its reasons as HTML, with its row's tree where `folder` has the file."""
    tree = None
    if offer.recipe is not None and offer.recipe.tree_file is not None:
        with suppress(OSError, ValueError):  # a path with a null character is a ValueError
            tree = Link.to("tree.json", (folder / offer.recipe.tree_file).read_bytes())
    noun, choosable = noun_of(comparison), _choosable(comparison)
    # How many rows the answer was chosen from; flat is no tree.
    trees = [row.tree for row in choosable if row.tree and noun == "tree"]
    flat = sum(tree.nodes <= 1 for tree in trees)
    kinds = [plural(len(choosable) - flat, noun)] if len(choosable) > flat else []
    if flat:
        kinds.append("the flat softmax" if flat == 1 else f"{flat} flat softmaxes")
    among = " and ".join(kinds)
    compared = sum(row.can_be_chosen for row in comparison.rows)
    if len(choosable) < compared:
        among += f", which trained longest of {compared} rows"
    # p value of the answer's difference from its rival over seeds
    p, choice = None, offer.choice
    if choice is not None and choice.rival is not None:
        one, other = (comparison.row(r).perplexity["test"] for r in (choice.chosen, choice.rival))
        if one.mean and one.sd and other.mean and other.sd:
            from scipy.stats import ttest_ind_from_stats  # takes half a second to import

            figures = (one.mean, one.sd, one.n, other.mean, other.sd, other.n)
            p = float(ttest_ind_from_stats(*figures, equal_var=False).pvalue)
    html = TEMPLATES.get_template("answer.html").render(
        comparison=comparison, offer=offer, tree=tree, among=among, p=p, lower_ngrams=lower_ngrams
    )
    return Markup(html)
