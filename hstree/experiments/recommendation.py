"""The recommendation of a comparison, and the sentences that state it."""

import math
from collections.abc import Sequence

from hstree._text import format_number
from hstree.experiments.results import CandidateResult, Choice, Comparison

#: Maximum relative difference of a cheaper alternative from the lowest validation perplexity.
TOLERANCE = 0.03
#: Maximum relative difference between two times that count as equal.
SAME_TIME = 0.01


def eligible_candidates(candidates: Sequence[CandidateResult]) -> list[CandidateResult]:
    """Return the candidates that can be recommended.

    N-gram models, candidates that have seen test lines, candidates that failed and
    candidates without a finite perplexity are excluded. If some candidates were scored on all
    held-out tokens, candidates that were scored on a sample are excluded too, because their
    perplexities cannot be compared.
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
    """Sort candidates by validation perplexity, with those that can be recommended first."""
    eligible = eligible_candidates(candidates)
    return sorted(candidates, key=lambda candidate: (candidate not in eligible, candidate.valid))


def choose(candidates: Sequence[CandidateResult]) -> Choice | None:
    """Recommend the candidate with the lowest validation perplexity, under every stopping rule.

    If several are equal, the first is recommended. The cheaper alternative is the candidate within
    `TOLERANCE` that takes the least total time, if it takes less than the recommended candidate.
    The choice uses validation perplexity, so that test perplexities remain unbiased. Returns None
    if no candidate can be recommended. The caller adds the comparison with the rival.
    """
    eligible = eligible_candidates(candidates)
    if not eligible:
        return None
    chosen = min(eligible, key=lambda candidate: candidate.valid)
    others = [candidate for candidate in eligible if candidate is not chosen]

    # An unknown time is neither less nor greater than another time
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
    """Return the total seconds of a candidate; infinity if they are unknown."""
    return math.inf if candidate.timings.total is None else candidate.timings.total


# Sentences


def recommendation_sentences(comparison: Comparison) -> list[str]:
    """Return the recommendation with its qualifications, or the reason why there is none."""
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
        f"The n-gram model {candidate.name} has a lower validation perplexity "
        f"({format_number(candidate.valid, 1)}), but it is not an output layer."
        for candidate in comparison.candidates
        if not candidate.is_trained and candidate.valid < best.valid
    ]
    return sentences + comparison.failures()


def _why_none(comparison: Comparison) -> str:
    """Return why no candidate is recommended."""
    trained = [candidate for candidate in comparison.candidates if candidate.is_trained]
    if not trained and comparison.pending:
        return "No candidate is recommended: no candidate is finished."
    if not trained:
        return "No candidate is recommended: no output layer was compared."
    if all(candidate.seen is not None for candidate in trained):
        return (
            "No candidate is recommended: all have seen lines of the test split. Compare again "
            "with a test split that no candidate has seen."
        )
    if all(candidate.failed is not None for candidate in trained):
        return "No candidate is recommended: every candidate failed."
    return "No candidate is recommended: no validation perplexity is finite."


def _cost(candidate: CandidateResult) -> str:
    """Return the validation perplexity and the total time of a candidate."""
    text = f"validation perplexity {format_number(candidate.valid, 1)}"
    if candidate.sample is not None:
        text += f" on the first {candidate.sample.valid:,} tokens"
    if candidate.timings.total is None:
        return text
    return f"{text}, {_format_seconds(candidate.timings.total)} s in total"


def _format_seconds(seconds: float) -> str:
    return format_number(seconds, 0 if seconds >= 99.95 else 1)


def _cheaper_alternative(comparison: Comparison, choice: Choice, best: CandidateResult) -> str:
    """Return a sentence that names the cheaper alternative, or states that there is none."""
    tolerance = f"within {100 * choice.tolerance:g}%"
    if len(choice.candidates) == 1:
        return "It is the only candidate that can be recommended."
    if best.timings.total is None:
        return "Its total time is unknown, so no cheaper alternative is named."
    if choice.cheaper is None:
        saved = f"at least {100 * SAME_TIME:g}% less total time"
        return f"No other candidate {tolerance} of this perplexity takes {saved}."
    # The differences in perplexity and in time
    cheaper = comparison.candidate(choice.cheaper)
    percent = round(100 * (cheaper.valid / best.valid - 1), 1)
    loss = f"{percent:.1f}% higher perplexity" if percent else "the same perplexity to 0.1%"
    fraction = (cheaper.timings.total or 0.0) / best.timings.total
    return (
        f"Cheaper alternative {tolerance}: {cheaper.name} ({_cost(cheaper)}), with {loss} in "
        f"{fraction:.2g} of the time."
    )


def _against_flat(comparison: Comparison, candidate: CandidateResult) -> str | None:
    """Return a sentence that compares a candidate with the flat softmax with the same layer.

    Returns None if there is no such candidate, or if both its epochs and its seconds differ.
    """
    # A candidate with a layer is compared with flat with this layer: only the tree differs
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

    # The difference in words; it is noise if the interval contains 1
    percent = round(100 * (ratio.ratio - 1), 1)
    direction = "higher" if percent > 0 else "lower"
    difference = f"{abs(percent):.1f}% {direction} than" if percent else "within 0.1% of"
    noise = ""
    if percent and ratio.low is not None and ratio.high is not None:
        noise = " (not significant)" if ratio.low <= 1 <= ratio.high else ""
    tokens = "" if sample is None else f" on the first {sample.test:,} tokens"
    return (
        f"Its test perplexity{tokens} is {difference} that of {flat.name}{noise}. Both trained for "
        f"{training}."
    )


def _common_training(candidate: CandidateResult, other: CandidateResult) -> str | None:
    """Return the epochs or the seconds for which both candidates trained; None if they differ."""
    if candidate.models != other.models:
        return None
    if candidate.trained_epochs == other.trained_epochs > 0:
        plural_s = "" if candidate.trained_epochs == 1 else "s"
        return f"{candidate.trained_epochs:g} epoch{plural_s}"
    # With a time limit, epochs may differ while seconds are equal
    seconds = candidate.timings.total
    other_seconds = other.timings.total
    if not seconds or not other_seconds or abs(other_seconds / seconds - 1) > SAME_TIME:
        return None
    return f"{_format_seconds(seconds)} seconds"
