"""A comparison as people read it: what each tree buys, what it costs, and which one to take.

It reads the same object that ``results.json`` holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hstree.experiments.results import read_before
from hstree.experiments.significance import BLOCK, FEWEST
from hstree.models.base import describe, predicts
from hstree_cli.console import at_limit, count, facts, figure, large, no_wrap, say, share, table

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
        say(size(rows))
        say(time(rows))
    say(facts([*_conditions(found, text), ("left in", left_in)]))
    if found["choice"] is not None:
        say(f"\n{advice(rows, found['choice'])}")


def bought(rows: Sequence[Row]) -> Table:
    """Return the table of perplexities."""
    drawn = table(
        "method", "valid", "test", "n", "ratio to flat", "p", text=("method", "ratio to flat")
    )
    for row in rows:
        ratio, perplexity = row["to_flat"], row["perplexity"]
        drawn.add_row(
            row["name"],
            figure(perplexity["valid"]["mean"], 1),
            _spread(perplexity["test"]) + ("*" if row["at_epoch_limit"] else ""),
            count(perplexity["test"]["n"]),
            _ratio(ratio),
            "-" if ratio is None or ratio["p"] is None else _chance(ratio["p"]),
        )
    return no_wrap(drawn, "valid", "test", "n", "p")


def size(rows: Sequence[Row]) -> Table:
    """Return the table of how large trees and their models are."""
    rows = [row for row in rows if row["tree"] is not None]
    columns = ["codes\na word", "code\nlength", "scores\na target", "para-\nmeters"]
    if any(row["in_wordnet"] is not None for row in rows):
        columns.append("in\nWordNet")
    drawn = table("\nmethod", *columns, text=("\nmethod",))
    for row in rows:
        tree = row["tree"]
        figures = [
            figure(tree["codes_per_label"]),
            figure(tree["code_length"]["weighted"]),
            figure(tree["scores_per_target"], 1 if tree["scores_per_target"] < 1000 else 0),
            large(row["parameters"]),
            "-" if row["in_wordnet"] is None else f"{100 * row['in_wordnet']:.0f}%",
        ]
        drawn.add_row(row["name"], *figures[: len(columns)])
    return no_wrap(drawn, *columns)


def time(rows: Sequence[Row]) -> Table:
    """Return the table of how long models take to train."""
    columns = ["\ntokens/s", "times\nflat", "\ns/epoch", "s from\ntext", "times\nflat"]
    drawn = table("\nmethod", *columns, text=("\nmethod",))
    for row in rows:
        if row["tree"] is None:
            continue
        from_text = row["from_text"] or {"seconds": None, "speed_up": None}
        drawn.add_row(
            row["name"],
            figure(row["tokens_per_second"], 0),
            _times(row["speed_up"]),
            figure(row["seconds_per_epoch"], 1),
            figure(from_text["seconds"], 1 if (from_text["seconds"] or 0) < 1000 else 0),
            _times(from_text["speed_up"]),
        )
    return no_wrap(drawn, *columns)


def advice(rows: Sequence[Row], choice: Mapping[str, Any]) -> str:
    """Say which tree to take, by the rule that `hstree.experiments.choice` states."""
    by_name = {row["name"]: row for row in rows}
    best, fastest = by_name[choice["best"]], by_name[choice["fastest"]]
    within = f"within {100 * choice['within']:g}% of it"
    said = f"Which tree? Of {_trees(choice['among'])}, {best['name']} has the lowest validation "
    said += f"perplexity, {_figures(best)}"
    if fastest is best:
        said += f"; of the trees {within} none trains faster."
    else:
        times = fastest["tokens_per_second"] / best["tokens_per_second"]
        said += f". Of the trees {within}, {fastest['name']}, {_figures(fastest)}, trains fastest: "
        said += f"{figure(times, 1)} times as fast as {best['name']}."
    lower = [row for row in rows if row["tree"] is None and _valid(row) < _valid(best)]
    if lower:
        least = min(lower, key=_valid)
        said += f" The baseline {least['name']} is lower still: {_figures(least)}."
    return said


def _conditions(found: Mapping[str, Any], text: str) -> list[tuple[str, str]]:
    """Return what the figures depend on, and what their signs mean."""
    tokens, oov, words = found["tokens"], found["oov"], found["vocabulary"]
    options, rows = found["options"], found["rows"]
    model, budget = describe(options)
    lines = [
        (
            "perplexity",
            f"of every {predicts(options)}, <eos> and <unk> included; lower is better; the unigram "
            f"distribution has {figure(found['unigram'], 1)} on the test part",
        )
    ]
    n_seeds = len(options["seeds"])
    if n_seeds > 1:
        lines.append(("±", f"sample standard deviation over n = {n_seeds} random states"))
    if any(row["at_epoch_limit"] for row in rows):
        lines.append(at_limit(options["epochs"]))
    lines += [("read before", said) for said in read_before(found)]
    blocks = next((row["to_flat"]["blocks"] for row in rows if row["to_flat"]), None)
    if blocks is not None:
        lines.append(("ratio to flat", _of_blocks(blocks, tokens["test"])))
    if any(row["in_wordnet"] is not None for row in rows):
        lines.append(("in WordNet", "share of the training tokens that WordNet has"))
    lines += [
        (
            "speeds",
            "of whole training steps, all trees in turns in one process, "
            f"{found['machine']['cores']} cores",
        ),
        (
            "s from text",
            "seconds to build the tree and to train all epochs on it, those of the model that "
            "learned its vectors included; validation is not counted",
        ),
        ("text", text),
        ("tokens", ", ".join(f"{part} {count(n)}" for part, n in tokens.items())),
        ("out of vocabulary", ", ".join(f"{p} {share(oov[p], n)}" for p, n in tokens.items())),
        ("vocabulary", f"{count(words['size'])} words, sha256 {words['sha256'][:16]}"),
        ("model", model),
        ("budget", budget),
    ]
    return lines


def _of_blocks(blocks: int, tokens: int) -> str:
    """Say what an interval and a p value are of, or why there are none."""
    if blocks < FEWEST:
        return (
            f"of test perplexities; the {count(tokens)} test tokens are too short to tell it from "
            f"1: an interval takes {FEWEST} blocks of {count(BLOCK)} tokens"
        )
    return (
        "of test perplexities, and its 95% interval over texts of this kind; p, the chance "
        f"of such a ratio if it were 1: paired t-test over {count(blocks)} test blocks of "
        f"{count(tokens // blocks)} tokens; neither covers other random states"
    )


def _spread(figures: Mapping[str, Any]) -> str:
    mean = figure(figures["mean"], 1)
    return mean if figures["sd"] is None else f"{mean} ± {figure(figures['sd'], 1)}"


def _ratio(ratio: Mapping[str, Any] | None) -> str:
    if ratio is None:
        return "-"
    if ratio["low"] is None:
        return f"{ratio['ratio']:.3f} too short to tell"
    if ratio["low"] == ratio["high"]:
        return figure(ratio["ratio"], 3)
    # Without a space inside the brackets, so that a narrow table puts them below the ratio.
    return f"{ratio['ratio']:.3f} [{ratio['low']:.3f},{ratio['high']:.3f}]"


def _chance(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _times(value: float | None) -> str:
    """Return how many times as fast; two decimals below 1, where one would say little."""
    return figure(value, 2 if value is not None and value < 0.95 else 1)


def _trees(number: int) -> str:
    return "1 tree" if number == 1 else f"{count(number)} trees"


def _valid(row: Row) -> float:
    return float(row["perplexity"]["valid"]["mean"])


def _figures(row: Row) -> str:
    """Return the perplexity that a row was chosen by, and the one that is reported of it."""
    return f"{figure(_valid(row), 1)} (test {figure(row['perplexity']['test']['mean'], 1)})"
