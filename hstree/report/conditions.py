"""What the figures depend on: the text, the vocabulary, the model, the budget, the machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hstree._text import plural
from hstree.experiments.results import SPLITS, Comparison, Split
from hstree.models import describe
from hstree.report.figures import number, perplexity

_NAMES: dict[Split, str] = {"train": "training", "valid": "validation", "test": "test"}


def conditions_of(results: Comparison) -> list[tuple[str, str]]:
    """Return names and values, the same for every row of the table."""
    options, machine, words = results.options, results.machine, results.vocabulary
    tokens, oov = results.tokens, results.oov
    model, budget = describe(options)
    seeds = options["seeds"]
    return [
        *[(_NAMES[split] + " text", _text(results, split)) for split in SPLITS],
        (
            "tokens",
            ", ".join(f"{name} {number(tokens[split])}" for split, name in _NAMES.items())
            + "; <eos> at the end of every line included",
        ),
        (
            "out of vocabulary",
            ", ".join(
                f"{name} {number(oov[split])} ({_share(oov[split], tokens[split])})"
                for split, name in _NAMES.items()
            ),
        ),
        ("vocabulary", f"{number(words.size)} words, sha256 {words.sha256[:16]}"),
        ("perplexity", f"of each {results.predicts}"),
        ("model", model),
        ("budget", budget),
        *_at_epoch_limit(results),
        *(("test lines read before", said) for said in results.read_before()),
        ("seeds", ", ".join(map(str, seeds))),
        ("unigram", f"test perplexity {perplexity(results.unigram)}, for scale"),
        (
            "machine",
            f"{machine.system}, {machine.processor}, {plural(machine.cores, 'core')}",
        ),
        (
            "versions",
            ", ".join(f"{name} {version}" for name, version in results.versions.items()),
        ),
    ]


def _at_epoch_limit(results: Comparison) -> list[tuple[str, str]]:
    """Say how many rows stopped at the limit of epochs, if any did."""
    rows = [row for row in results.rows if row.kind == "tree"]
    number = sum(bool(row.at_epoch_limit) for row in rows)
    if not number:
        return []
    said = f"{number} of {plural(len(rows), 'tree')}, marked *, stopped at it"
    return [("epoch limit", f"{said}; more epochs may lower their perplexity")]


def title_of(results: Comparison) -> str:
    """Return what the text is called."""
    return str(results.corpus["train"].get("name") or "this text")


def _text(results: Comparison, split: Split) -> str:
    source: Mapping[str, Any] = results.corpus[split]
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
