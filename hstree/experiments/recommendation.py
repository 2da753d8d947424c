"""The recommendation of a comparison: which candidate, and in sentences."""

import math
from collections.abc import Sequence

from hstree._text import format_number
from hstree.experiments.results import CandidateResult, Choice, Comparison

#: Greatest relative distance of a cheaper alternative to the lowest validation perplexity.
TOLERANCE = 0.03
#: Greatest relative difference of two times that count as the same.
SAME_TIME = 0.01


def eligible_candidates(candidates: Sequence[CandidateResult]) -> list[CandidateResult]:
    """Return the candidates that can be recommended.

    N-gram models, candidates whose test split was read before, candidates that failed and
    candidates without a finite perplexity are left out. So are candidates that were scored on a
    sample of the held-out tokens where others were scored on all, because their perplexities cannot
    be compared.
    """
    eligible = [
        candidate
        for candidate in candidates
        if candidate.is_trained
        and candidate.seen is None
        and candidate.failed is None
        and math.isfinite(candidate.valid)
    ]
    return [candidate for candidate in eligible if candidate.sample is None] or eligible


def rank(candidates: Sequence[CandidateResult]) -> list[CandidateResult]:
    """Return the candidates by validation perplexity, those that can be recommended first."""
    eligible = eligible_candidates(candidates)
    return sorted(candidates, key=lambda candidate: (candidate not in eligible, candidate.valid))


def choose(candidates: Sequence[CandidateResult]) -> Choice | None:
    """Recommend the candidate of the lowest validation perplexity, under every stopping rule.

    The first of equals is recommended. Of the candidates within `TOLERANCE` of it, the one that
    takes the least time from the text to the model is the cheaper alternative, where that is less
    time than the recommended candidate takes. Validation decides, so that the choice does not lower
    the test perplexity of a candidate. None without any candidate to choose. The comparison to the
    rival is left to the caller.
    """
    eligible = eligible_candidates(candidates)
    if not eligible:
        return None
    chosen = min(eligible, key=lambda candidate: candidate.valid)
    others = [candidate for candidate in eligible if candidate is not chosen]

    # an unknown time is not less than any, and none is less than an unknown one
    longest = (chosen.timings.total or 0.0) * (1 - SAME_TIME)
    near = [other for other in others if other.valid <= (1 + TOLERANCE) * chosen.valid]
    cheaper = min(near, key=_seconds, default=None)
    if cheaper is not None and _seconds(cheaper) >= longest:
        cheaper = None

    rival = min(others, key=lambda candidate: candidate.valid, default=None)
    return Choice(
        chosen=chosen.name,
        tolerance=TOLERANCE,
        candidates=[candidate.name for candidate in eligible],
        cheaper=None if cheaper is None else cheaper.name,
        rival=None if rival is None else rival.name,
    )


def _seconds(candidate: CandidateResult) -> float:
    """Return the seconds from the text to a model; infinity where they are not known."""
    return math.inf if candidate.timings.total is None else candidate.timings.total


# The recommendation in sentences, with the values of the table


def recommendation_sentences(comparison: Comparison) -> list[str]:
    """Return the recommendation, and what qualifies it, or why there is none."""
    choice = comparison.choice
    if choice is None:
        return [_why_none(comparison), *comparison.failures()]
    best = comparison.candidate(choice.chosen)
    sentences = [
        f"Recommended: {best.name} ({_cost(best)}).",
        _cheaper_alternative(comparison, choice, best),
    ]
    against_flat = _against_flat(comparison, best)
    if against_flat is not None:
        sentences.append(against_flat)
    sentences += [
        f"The n-gram model {candidate.name}, which is no output layer, has a lower validation "
        f"perplexity: {format_number(candidate.valid, 1)}."
        for candidate in comparison.candidates
        if not candidate.is_trained and candidate.valid < best.valid
    ]
    return sentences + comparison.failures()


def _why_none(comparison: Comparison) -> str:
    """Return why no candidate is recommended."""
    trained = [candidate for candidate in comparison.candidates if candidate.is_trained]
    if not trained and comparison.pending:
        return "No candidate is recommended: none is finished."
    if not trained:
        return "No candidate is recommended: no output layer was compared."
    if all(candidate.seen is not None for candidate in trained):
        return (
            "No candidate is recommended: each has read lines of the test part. Compare again with "
            "a test part that none has read."
        )
    if all(candidate.failed is not None for candidate in trained):
        return "No candidate is recommended: every candidate failed."
    return "No candidate is recommended: none has a finite validation perplexity."


def _cost(candidate: CandidateResult) -> str:
    """Return the validation perplexity and the seconds of a candidate."""
    text = f"validation perplexity {format_number(candidate.valid, 1)}"
    if candidate.sample is not None:
        text += f" on the first {candidate.sample.valid:,} tokens"
    if candidate.timings.total is None:
        return text
    return f"{text}, {_format_seconds(candidate.timings.total)} s from the text"


def _format_seconds(seconds: float) -> str:
    return format_number(seconds, 0 if seconds >= 99.95 else 1)


def _cheaper_alternative(comparison: Comparison, choice: Choice, best: CandidateResult) -> str:
    """Name the cheaper alternative, or say that there is none."""
    tolerance = f"within {100 * choice.tolerance:g}%"
    if len(choice.candidates) == 1:
        return "It is the only candidate to choose from."
    if best.timings.total is None:
        return "Its time from the text is not known, so that no cheaper alternative is named."
    if choice.cheaper is None:
        saved = f"at least {100 * SAME_TIME:g}% less time from the text"
        return f"No other candidate {tolerance} of this perplexity takes {saved}."
    # how much worse and how much faster it is
    cheaper = comparison.candidate(choice.cheaper)
    percent = round(100 * (cheaper.valid / best.valid - 1), 1)
    loss = f"{percent:.1f}% worse" if percent else "as good to 0.1%"
    fraction = (cheaper.timings.total or 0.0) / best.timings.total
    return (
        f"Cheaper alternative {tolerance}: {cheaper.name} ({_cost(cheaper)}), {loss} in "
        f"{fraction:.2g} of the time."
    )


def _against_flat(comparison: Comparison, candidate: CandidateResult) -> str | None:
    """Compare a candidate with the flat softmax that has the same layer.

    Return None if there is none, or if it trained for other epochs and other seconds.
    """
    # a candidate with a layer beside flat with this layer, so that they differ in the tree alone
    if candidate.layer is None:
        flat = next((other for other in comparison.candidates if other.is_flat), None)
        ratio = candidate.to_flat
        sample = comparison.sample("to_flat", candidate)
    else:
        flat = None if candidate.like is None else comparison.candidate(candidate.like)
        ratio = candidate.to_like
        sample = comparison.sample("to_like", candidate)
    if flat is None or ratio is None or flat is candidate:
        return None
    training = _common_training(candidate, flat)
    if training is None:
        return None

    # the difference in words, and whether the interval has 1 in it
    percent = round(100 * (ratio.ratio - 1), 1)
    direction = "higher" if percent > 0 else "lower"
    difference = f"{abs(percent):.1f}% {direction} than" if percent else "within 0.1% of"
    noise = ""
    if percent and ratio.low is not None and ratio.high is not None:
        noise = " (within the noise)" if ratio.low <= 1 <= ratio.high else ""
    tokens = "" if sample is None else f" on the first {sample.test:,} tokens"
    return (
        f"Its test perplexity{tokens} is {difference} that of {flat.name}{noise}, after the same "
        f"{training}."
    )


def _common_training(candidate: CandidateResult, other: CandidateResult) -> str | None:
    """Return the epochs or the seconds that both candidates trained for; None if they differ."""
    if candidate.models != other.models:
        return None
    if candidate.trained_epochs == other.trained_epochs > 0:
        plural_s = "" if candidate.trained_epochs == 1 else "s"
        return f"{candidate.trained_epochs:g} epoch{plural_s}"
    # epochs may differ where seconds are the same, as by halving
    seconds = candidate.timings.total
    other_seconds = other.timings.total
    if not seconds or not other_seconds or abs(other_seconds / seconds - 1) > SAME_TIME:
        return None
    return f"{_format_seconds(seconds)} seconds"
