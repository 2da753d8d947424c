"""The figures of an evaluation as tables: perplexities, what they depend on, and the epochs.

It reads the same object that ``--json`` writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hstree_cli.console import count, facts, figure, say, share, table
from hstree_cli.treefacts import code_length

if TYPE_CHECKING:
    from rich.table import Table


def print_evaluation(figures: dict[str, Any], text: str) -> None:
    """Print everything that `hstree evaluate` found; `text` says where its text comes from."""
    if figures.get("epochs"):
        say(epochs_table(figures["epochs"]))
    say(_perplexities(figures))
    say(facts([("text", text), *_conditions(figures)]))


def epochs_table(epochs: list[dict[str, Any]]) -> Table:
    """Return a row for each epoch of a training."""
    drawn = table("epoch", "train", "valid", "seconds", "tokens/s", "learning rate")
    for epoch in epochs:
        drawn.add_row(
            str(epoch["epoch"]),
            figure(epoch["train"]),
            figure(epoch["valid"]),
            figure(epoch["seconds"], 1),
            figure(epoch["tokens_per_second"], 0),
            f"{epoch['learning_rate']:g}",
        )
    return drawn


def _perplexities(figures: dict[str, Any]) -> Table:
    drawn = table("part", "tokens", "OOV", "", "perplexity", text=("part",))
    for part, tokens in figures["tokens"].items():
        oov = figures["oov"][part]
        drawn.add_row(
            part,
            count(tokens),
            count(oov),
            share(oov, tokens),
            figure(figures["perplexity"][part]),
        )
    tokens, oov = figures["tokens"]["test"], figures["oov"]["test"]
    without = figures["perplexity"]["test_without_oov"]
    drawn.add_row("test without OOV", count(tokens - oov), "0", "", figure(without))
    if "unigram" in figures["perplexity"]:
        unigram = figure(figures["perplexity"]["unigram"])
        drawn.add_row("test by unigram", count(tokens), count(oov), "", unigram)
    return drawn


def _conditions(figures: dict[str, Any]) -> list[tuple[str, str]]:
    words, tree = figures["vocabulary"], figures["tree"]
    length = tree["code_length"]
    return [
        ("perplexity", f"of each {figures['predicts']}"),
        ("scored", "every token; <eos> at the end of each line and <unk> included"),
        ("vocabulary", f"{count(words['size'])} words, sha256 {words['sha256'][:16]}"),
        ("tree", f"{tree['method'] or '-'}, {count(tree['nodes'])} nodes"),
        ("code length", code_length(length["weighted"], length["uniform"])),
        ("scores/target", figure(tree["scores_per_target"])),
        ("seconds", figure(figures["seconds"], 1)),
    ]
