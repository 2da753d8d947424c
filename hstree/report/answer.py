"""The answer: which candidate to use, in sentences whose figures are those of the table."""

import math
from contextlib import suppress
from pathlib import Path

from markupsafe import Markup
from msgspec import Struct

from hstree._text import figure, plural
from hstree.experiments.results import SAME_TIME, CandidateResult, Choice, Comparison
from hstree.report.formats import TEMPLATES, Link
from hstree.report.recipe import Recipe, recipe_of


class Verdict(Struct, frozen=True):
    """The recommendation in words, the same in the program, on the page and in a notebook."""

    name: str | None  #: of the recommended candidate; None where there is none
    figures: str  #: its validation perplexity and its seconds from the text
    sentences: list[str]  #: what follows the recommendation, or why there is none

    def lines(self) -> list[str]:
        """Return all sentences, the recommendation first."""
        first = [] if self.name is None else [f"Recommended: {self.name} ({self.figures})."]
        return [*first, *self.sentences]


class Answer(Struct, frozen=True):
    """The verdict, and how to get the recommended candidate."""

    verdict: Verdict
    recipe: Recipe | None = None


def noun_of(comparison: Comparison) -> str:
    """Return what the candidates are."""
    return (
        "output layer"
        if any(candidate.kind == "layer" for candidate in comparison.candidates)
        else "tree"
    )


def answer_of(comparison: Comparison, folder: Path) -> Answer:
    """Return the verdict with the recipe of the recommended candidate, whose files `folder` has."""
    best = comparison.best
    recipe = None if best is None else recipe_of(best, comparison, folder)
    return Answer(verdict_of(comparison), recipe)


def verdict_of(comparison: Comparison) -> Verdict:
    """Return the recommendation of a comparison in words."""
    choice, chosen = comparison.choice, comparison.best
    if choice is None or chosen is None:
        return Verdict(None, "", [_why_none(comparison)])
    sentences = [
        _cheaper(comparison, choice, chosen),
        _against_flat(comparison, chosen),
        *(
            f"The n-gram model {candidate.name}, which is no output layer, has a lower validation "
            f"perplexity: {figure(candidate.valid, 1)}."
            for candidate in comparison.candidates
            if candidate.kind == "ngram" and candidate.valid < chosen.valid
        ),
    ]
    return Verdict(chosen.name, _figures(chosen), [one for one in sentences if one])


def _why_none(comparison: Comparison) -> str:
    """Say why no candidate is recommended."""
    trained = [candidate for candidate in comparison.candidates if candidate.kind != "ngram"]
    if not trained:
        is_done = not comparison.pending
        state = "was compared" if is_done else "is finished"
        return f"No {noun_of(comparison)} {state}, so that none is recommended."
    if all(candidate.seen is not None for candidate in trained):
        return (
            "No candidate is recommended: each has read lines of the test part. Compare again with "
            "a test part that none has read."
        )
    return "No candidate is recommended: none has a finite validation perplexity."


def _figures(candidate: CandidateResult) -> str:
    """Return the validation perplexity and the seconds of a candidate."""
    text = f"validation perplexity {figure(candidate.valid, 1)}"
    if candidate.sample is not None:
        text += f" on the first {candidate.sample.valid:,} tokens"
    if candidate.steps.total is None:
        return text
    return f"{text}, {_seconds(candidate.steps.total)} s from the text"


def _seconds(seconds: float) -> str:
    return figure(seconds, 0 if seconds >= 99.95 else 1)


def _cheaper(comparison: Comparison, choice: Choice, chosen: CandidateResult) -> str:
    """Name the cheaper alternative, or say that there is none."""
    within = f"within {100 * choice.tolerance:g}%"
    most = (1 + choice.tolerance) * chosen.valid
    if len(choice.candidates) == 1:
        return "It is the only candidate to choose from."
    if chosen.steps.total is None:
        return "Its time from the text is not known, so that no cheaper alternative is named."
    if choice.cheaper is None:
        # a time that counts as the same may still be a smaller figure in the table
        near = [
            candidate
            for candidate in map(comparison.candidate, choice.candidates)
            if candidate.valid <= most
        ]
        is_less = any(
            (candidate.steps.total or math.inf) < chosen.steps.total for candidate in near
        )
        less = f"at least {100 * SAME_TIME:g}% less time" if is_less else "less time"
        return f"No other candidate {within} of this perplexity takes {less} from the text."
    candidate = comparison.candidate(choice.cheaper)
    per_cent = round(100 * (candidate.valid / chosen.valid - 1), 1)
    loss = f"{per_cent:.1f}% worse" if per_cent else "as good to 0.1%"
    time = (candidate.steps.total or 0.0) / chosen.steps.total
    return (
        f"Cheaper alternative {within}: {candidate.name} ({_figures(candidate)}), "
        f"{loss} in {time:.2g} of the time."
    )


def _against_flat(comparison: Comparison, candidate: CandidateResult) -> str:
    """Compare a candidate to the flat softmax with the same layer, where both trained equally long.

    Nothing is said of a flat softmax that trained for other epochs and other seconds.
    """
    other = next((one for one in comparison.candidates if one.is_flat), None)
    ratio, sample = candidate.to_flat, comparison.sample("to_flat", candidate)
    if candidate.layer is not None:
        other = None if candidate.like is None else comparison.candidate(candidate.like)
        ratio, sample = candidate.to_like, comparison.sample("to_like", candidate)
    if other is None or ratio is None or other is candidate:
        return ""
    training = _same_training(candidate, other)
    if training is None:
        return ""
    per_cent = round(100 * (ratio.ratio - 1), 1)
    direction = "higher" if per_cent > 0 else "lower"
    difference = f"{abs(per_cent):.1f}% {direction} than" if per_cent else "within 0.1% of"
    noise = ""
    if per_cent and ratio.low is not None and ratio.high is not None:
        noise = " (within the noise)" if ratio.low <= 1 <= ratio.high else ""
    tokens = "" if sample is None else f" on the first {sample.test:,} tokens"
    return (
        f"Its test perplexity{tokens} is {difference} that of {other.name}{noise}, after the same "
        f"{training}."
    )


def _same_training(candidate: CandidateResult, other: CandidateResult) -> str | None:
    """Return the epochs or the seconds that both candidates trained for; None if they differ."""
    if candidate.models != other.models:
        return None
    if candidate.trained_epochs == other.trained_epochs > 0:
        return f"{candidate.trained_epochs:g} epoch{'' if candidate.trained_epochs == 1 else 's'}"
    seconds, others = candidate.steps.total, other.steps.total
    if not seconds or not others or abs(others / seconds - 1) > SAME_TIME:
        return None
    return f"{_seconds(seconds)} seconds"


def answer_markup(comparison: Comparison, answer: Answer, folder: Path) -> Markup:
    """Return the answer with its reasons as HTML, with the tree where `folder` has the file."""
    tree = None
    if answer.recipe is not None and answer.recipe.tree_file is not None:
        with suppress(OSError, ValueError):  # a path with a null character is a ValueError
            tree = Link.to("tree.json", (folder / answer.recipe.tree_file).read_bytes())
    choice = comparison.choice
    # How many candidates the answer was chosen from; flat is no tree.
    noun, named = noun_of(comparison), set() if choice is None else set(choice.candidates)
    choosable = [candidate for candidate in comparison.candidates if candidate.name in named]
    trees = [candidate.tree for candidate in choosable if candidate.tree and noun == "tree"]
    flat = sum(tree.nodes <= 1 for tree in trees)
    kinds = [plural(len(choosable) - flat, noun)] if len(choosable) > flat else []
    if flat:
        kinds.append("the flat softmax" if flat == 1 else f"{flat} flat softmaxes")
    # p value of the answer's difference from its rival over seeds
    p = None
    if choice is not None and choice.rival is not None:
        one, other = (
            comparison.candidate(r).perplexity["test"] for r in (choice.chosen, choice.rival)
        )
        if one.mean and one.sd and other.mean and other.sd:
            from scipy.stats import ttest_ind_from_stats  # takes half a second to import

            figures = (one.mean, one.sd, one.n, other.mean, other.sd, other.n)
            p = float(ttest_ind_from_stats(*figures, equal_var=False).pvalue)
    timed = [candidate for candidate in choosable if candidate.steps.total]
    quickest = min(timed, key=lambda candidate: candidate.steps.total or math.inf, default=None)
    html = TEMPLATES.get_template("answer.html").render(
        comparison=comparison,
        answer=answer,
        tree=tree,
        among=" and ".join(kinds),
        p=p,
        quickest=quickest,
    )
    return Markup(html)
