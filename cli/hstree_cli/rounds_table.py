"""The rounds of a bootstrap side by side: what each tree costs, and what it buys."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group

from hstree.experiments.bootstrap import build_seconds
from hstree.experiments.rows import at_epoch_limit, parameters_of
from hstree_cli.console import at_limit, count, figure, large, no_wrap, share, table

if TYPE_CHECKING:
    from rich.console import RenderableType

Results = Mapping[str, dict[str, Any]]


def table_of(results: Results, folder: Path) -> RenderableType:
    """Return a row for each tree in two tables: what it is and buys, what it takes.

    Parameters
    ----------
    results : mapping
        The rounds, in their order; the figures are those of `hstree evaluate --json`.
    folder : Path
        Where the rounds are kept: the parameters of their models, the seconds to build their trees.
    """
    sizes = ("code\nlength", "scores\na target", "para-\nmeters", "\nvalid", "\ntest")
    times = ("tokens/s", "s/epoch", "s from text")
    bought = table("\nround", *sizes, text=("\nround",))
    taken = table("round", *times, text=("round",))
    from_text: float | None = 0.0
    for name, result in results.items():
        tree, epochs = result["tree"], result["epochs"]
        seconds = [epoch["seconds"] for epoch in epochs]
        speeds = [epoch["tokens_per_second"] for epoch in epochs]
        built = build_seconds(folder / name, tree["sha256"])
        from_text = None if built is None or from_text is None else from_text + built + sum(seconds)
        bought.add_row(
            name,
            figure(tree["code_length"]["weighted"]),
            figure(tree["scores_per_target"], 1 if tree["scores_per_target"] < 1000 else 0),
            large(parameters_of(folder / name / "model")),
            figure(result["perplexity"]["valid"], 1),
            figure(result["perplexity"]["test"], 1) + ("*" if at_epoch_limit([result]) else ""),
        )
        taken.add_row(
            name, figure(_mean(speeds), 0), figure(_mean(seconds), 1), figure(from_text, 1)
        )
    return Group(no_wrap(bought, *sizes), no_wrap(taken, *times))


def conditions(results: Results, text: str) -> list[tuple[str, str]]:
    """Return what the figures depend on, the same for every row; `text` says what was read."""
    result = next(iter(results.values()))
    tokens, oov, words = result["tokens"], result["oov"], result["vocabulary"]
    options = result["options"]
    best = min(results, key=lambda name: float(results[name]["perplexity"]["valid"]))
    chosen = results[best]["perplexity"]
    lines = [
        (
            "best round",
            f"{best}, by validation perplexity, {figure(chosen['valid'], 1)}, of {len(results)} "
            f"rounds; test perplexity {figure(chosen['test'], 1)}",
        ),
        ("perplexity", "of every token, <eos> and <unk> included; lower is better"),
    ]
    if any(at_epoch_limit([one]) for one in results.values()):
        lines.append(at_limit(options["epochs"]))
    return [
        *lines,
        (
            "s from text",
            "seconds to build the tree and to train all epochs on it, those of all rounds before "
            "it included; validation is not counted",
        ),
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
