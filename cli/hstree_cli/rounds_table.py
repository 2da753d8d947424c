"""The rounds of a bootstrap side by side: what each tree costs, and what it buys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hstree_cli.console import count, figure, share, table

if TYPE_CHECKING:
    from rich.table import Table

Results = Mapping[str, dict[str, Any]]


def table_of(results: Results) -> Table:
    """Return a row for each tree; the figures are those of `hstree evaluate --json`."""
    drawn = table(
        "round",
        "code length",
        "scores per target",
        "valid",
        "test",
        "seconds an epoch",
        "tokens/s",
        text=("round",),
    )
    for name, result in results.items():
        tree, epochs = result["tree"], result["epochs"]
        seconds = [epoch["seconds"] for epoch in epochs]
        speeds = [epoch["tokens_per_second"] for epoch in epochs]
        drawn.add_row(
            name,
            figure(tree["code_length"]["weighted"]),
            figure(tree["scores_per_target"], 1),
            figure(result["perplexity"]["valid"], 1),
            figure(result["perplexity"]["test"], 1),
            figure(_mean(seconds)),
            figure(_mean(speeds), 0),
        )
    return drawn


def conditions(results: Results, text: str) -> list[tuple[str, str]]:
    """Return what the figures depend on, the same for every row; `text` says what was read."""
    result = next(iter(results.values()))
    tokens, oov, words = result["tokens"], result["oov"], result["vocabulary"]
    options = result["options"]
    return [
        ("perplexity", "of every token, <eos> and <unk> included; lower is better"),
        ("unigram", f"{figure(result['perplexity']['unigram'], 1)} on the test part"),
        ("text", text),
        ("tokens", ", ".join(f"{part} {count(n)}" for part, n in tokens.items())),
        ("out of vocabulary", ", ".join(f"{p} {share(oov[p], n)}" for p, n in tokens.items())),
        ("vocabulary", f"{count(words['size'])} words, sha256 {words['sha256'][:16]}"),
        (
            "model",
            f"log-bilinear, {options['context']} words of context, {options['dim']} numbers a "
            f"word, {options['epochs']} epochs, {options['batch_size']} positions a batch",
        ),
    ]


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
