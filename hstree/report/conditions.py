"""What the figures depend on: the text, the vocabulary, the model, the budget, the machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hstree._text import plural
from hstree.experiments.results import read_before
from hstree.models import describe, predicts
from hstree.report.figures import number, perplexity
from hstree.report.rows import Results

_PARTS = {"train": "training", "valid": "validation", "test": "test"}


def conditions_of(results: Results) -> list[tuple[str, str]]:
    """Return names and values, the same for every row of the table."""
    options, machine, words = results["options"], results["machine"], results["vocabulary"]
    tokens, oov = results["tokens"], results["oov"]
    model, budget = describe(options)
    seeds = options["seeds"]
    return [
        *[(_PARTS[part] + " text", _text(results, part)) for part in _PARTS],
        (
            "tokens",
            ", ".join(f"{name} {number(tokens[part])}" for part, name in _PARTS.items())
            + "; <eos> at the end of every line included",
        ),
        (
            "out of vocabulary",
            ", ".join(
                f"{name} {number(oov[part])} ({_share(oov[part], tokens[part])})"
                for part, name in _PARTS.items()
            ),
        ),
        ("vocabulary", f"{number(words['size'])} words, sha256 {words['sha256'][:16]}"),
        ("perplexity", f"of each {predicts(options)}"),
        ("model", model),
        ("budget", budget),
        *_at_epoch_limit(results),
        *(("test lines read before", said) for said in read_before(results)),
        ("seeds", ", ".join(map(str, seeds))),
        ("unigram", f"test perplexity {perplexity(results['unigram'])}, for scale"),
        (
            "machine",
            f"{machine['system']}, {machine['processor']}, {plural(machine['cores'], 'core')}",
        ),
        (
            "versions",
            ", ".join(f"{name} {version}" for name, version in results["versions"].items()),
        ),
    ]


def _at_epoch_limit(results: Results) -> list[tuple[str, str]]:
    """Say how many rows stopped at the limit of epochs, if any did."""
    rows = [row for row in results["rows"] if row["kind"] == "tree"]
    number = sum(bool(row["at_epoch_limit"]) for row in rows)
    if not number:
        return []
    said = f"{number} of {plural(len(rows), 'tree')}, marked *, stopped at it"
    return [("epoch limit", f"{said}; more epochs may lower their perplexity")]


def title_of(results: Results) -> str:
    """Return what the text is called."""
    return str(results["corpus"]["train"].get("name") or "this text")


def _text(results: Results, part: str) -> str:
    source: Mapping[str, Any] = results["corpus"][part]
    lines = source.get("lines")
    said = str(source.get("name") or "unnamed")
    if lines:
        said += f", lines {number(lines[0] + 1)} to {number(lines[1])}"
    if source.get("lower"):
        said += ", lower-cased"
    if source.get("sha256"):
        said += f", sha256 {source['sha256'][:16]}"
    return said


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.2%}" if whole else "none"
