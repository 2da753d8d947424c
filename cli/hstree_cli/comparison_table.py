"""A comparison as people read it: what each tree buys, what it costs, and which one to take.

It reads the same object that ``results.json`` holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hstree.modelkinds import described, predicts
from hstree_cli.console import count, facts, figure, say, share, table

if TYPE_CHECKING:
    from rich.table import Table

Row = Mapping[str, Any]


def print_comparison(found: Mapping[str, Any], text: str, left_in: str) -> None:
    """Print everything that `hstree compare` found.

    `text` says what was read, `left_in` where the files are.
    """
    rows = found["rows"]
    say(bought(rows))
    if any(row["kind"] == "tree" for row in rows):
        say(cost(rows))
    say(facts([*_conditions(found, text), ("left in", left_in)]))
    if found["choice"] is not None:
        say(f"\n{advice(rows, found['choice'])}")


def bought(rows: Sequence[Row]) -> Table:
    """Return the table of perplexities."""
    drawn = table(
        "method", "test perplexity", "ratio to flat", "p", text=("method", "ratio to flat")
    )
    for row in rows:
        ratio = row["to_flat"]
        drawn.add_row(
            row["name"],
            _spread(row["perplexity"]["test"]),
            _ratio(ratio),
            "-" if ratio is None or ratio["p"] is None else _chance(ratio["p"]),
        )
    return _only_names_wrap(drawn)


def cost(rows: Sequence[Row]) -> Table:
    """Return the table of what trees cost."""
    drawn = table(
        "\nmethod",
        "codes\na word",
        "code\nlength",
        "scores\na target",
        "para-\nmeters",
        "\ns/epoch",
        "\ntokens/s",
        "times\nflat",
        text=("\nmethod",),
    )
    for row in rows:
        tree = row["tree"]
        if tree is None:
            continue
        drawn.add_row(
            row["name"],
            figure(tree["codes_per_label"]),
            figure(tree["code_length"]["weighted"]),
            figure(tree["scores_per_target"], 1 if tree["scores_per_target"] < 1000 else 0),
            _large(row["parameters"]),
            figure(row["seconds_per_epoch"], 1),
            figure(row["tokens_per_second"], 0),
            figure(row["speed_up"], 1),
        )
    return _only_names_wrap(drawn)


def _only_names_wrap(drawn: Table) -> Table:
    """Keep every figure in one piece, however long the names of methods are."""
    drawn.collapse_padding = True
    for column in drawn.columns[1:]:
        column.no_wrap = True
    return drawn


def advice(rows: Sequence[Row], choice: Mapping[str, Any]) -> str:
    """Say which tree to take, by the rule that `hstree.comparison.choice` states."""
    by_name = {row["name"]: row for row in rows}
    best, fastest = by_name[choice["best"]], by_name[choice["fastest"]]
    within = f"within {100 * choice['within']:g}% of it"
    said = f"Which tree? {best['name']} has the lowest test perplexity, {_test(best)}"
    if fastest is best:
        said += f"; of the trees {within} none trains faster."
    else:
        times = fastest["tokens_per_second"] / best["tokens_per_second"]
        said += f". Of the trees {within}, {fastest['name']} ({_test(fastest)}) trains fastest: "
        said += f"{figure(times, 1)} times as fast as {best['name']}."
    lower = [row for row in rows if row["tree"] is None and _mean(row) < _mean(best)]
    if lower:
        least = min(lower, key=_mean)
        said += f" The baseline {least['name']} is lower still: {_test(least)}."
    return said


def _conditions(found: Mapping[str, Any], text: str) -> list[tuple[str, str]]:
    """Return what the figures depend on, and what their signs mean."""
    tokens, oov, words = found["tokens"], found["oov"], found["vocabulary"]
    options, rows = found["options"], found["rows"]
    model, budget = described(options)
    lines = [
        (
            "perplexity",
            f"of every {predicts(options)}, <eos> and <unk> included; lower is better; the unigram "
            f"distribution has {figure(found['unigram'], 1)} on the test part",
        )
    ]
    n_seeds = len(options["seeds"])
    if n_seeds > 1:
        lines.append(("±", f"sample standard deviation over {n_seeds} random states"))
    blocks = next((row["to_flat"]["blocks"] for row in rows if row["to_flat"]), None)
    if blocks is not None:
        lines.append(
            (
                "ratio to flat",
                "of test perplexities, and its 95% interval over texts of this kind; p, the chance "
                f"of such a ratio if it were 1: paired t-test over {count(blocks)} test blocks of "
                f"{count(tokens['test'] // blocks)} tokens; neither covers other random states",
            )
        )
    lines += [
        (
            "speeds",
            "of whole training steps, all trees in turns in one process, "
            f"{found['machine']['cores']} cores",
        ),
        ("text", text),
        ("tokens", ", ".join(f"{part} {count(n)}" for part, n in tokens.items())),
        ("out of vocabulary", ", ".join(f"{p} {share(oov[p], n)}" for p, n in tokens.items())),
        ("vocabulary", f"{count(words['size'])} words, sha256 {words['sha256'][:16]}"),
        ("model", model),
        ("budget", budget),
    ]
    return lines


def _spread(figures: Mapping[str, Any]) -> str:
    mean = figure(figures["mean"], 1)
    return mean if figures["sd"] is None else f"{mean} ± {figure(figures['sd'], 1)}"


def _ratio(ratio: Mapping[str, Any] | None) -> str:
    if ratio is None:
        return "-"
    if ratio["low"] == ratio["high"]:
        return figure(ratio["ratio"], 3)
    return f"{ratio['ratio']:.3f} [{ratio['low']:.3f}, {ratio['high']:.3f}]"


def _chance(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _large(number: int | None) -> str:
    """Return a large number in three figures: 51.6k, 2.01M."""
    if number is None:
        return "-"
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:#.3g}".rstrip(".") + unit
    return str(number)


def _mean(row: Row) -> float:
    return float(row["perplexity"]["test"]["mean"])


def _test(row: Row) -> str:
    return figure(_mean(row), 1)
