"""The results of `evaluate`, `bootstrap` and `compare` as tables and name-value lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from hstree._text import plural
from hstree.experiments.results import shown_columns
from hstree.experiments.significance import BLOCK, CONFIDENCE, FEWEST
from hstree.models import describe
from hstree.training.trainer import table_of
from hstree.tree.statistics import code_length_line
from hstree_cli.tables import (
    Facts,
    facts,
    figure,
    narrow,
    percent,
    table,
    vocabulary_line,
)
from hstree_cli.terminal import say

if TYPE_CHECKING:
    from hstree.experiments.compare import Evaluation
    from hstree.experiments.results import Comparison, RowResult
    from hstree.experiments.significance import Ratio
    from hstree.training.trainer import Epoch


# Evaluations


def print_evaluation(evaluation: Evaluation) -> None:
    """Print the result of `hstree evaluate`."""
    comparison, row = evaluation.comparison, evaluation.row
    epochs = row.jobs[0].epochs
    if epochs:
        say(epochs_table(epochs))
    perplexity = row.perplexity
    scored = [
        ("training sample", evaluation.train),
        ("validation", perplexity["valid"].mean),
        ("test", perplexity["test"].mean),
        ("test without OOV", perplexity["test_without_oov"].mean),
        ("unigram, test", comparison.unigram),
    ]
    filled = table("perplexity", "", text=("perplexity",))
    for name, value in scored:
        filled.add_row(name, figure(value))
    say(filled)
    rows: Facts = [("row", row.name), *_tree_facts(row), ("parameters", f"{row.parameters:,}")]
    if (log_z := row.log_normaliser) is not None:
        rows.append(("ln Z", f"{figure(log_z.mean, 3)} ± {figure(log_z.sd, 3)} on the test split"))
    ended = "interrupted" if evaluation.interrupted else _ended(epochs, comparison)
    rows += [("training", ended), *_steps(row), *_conditions(comparison)]
    say(facts(rows))


def epochs_table(epochs: Sequence[Epoch]) -> Table:
    """Return the table of the epochs of a training."""
    source = table_of(epochs)
    filled = table(*source.columns)
    for line in source.rows:
        filled.add_row(*line)
    return filled


def _ended(epochs: Sequence[Epoch], comparison: Comparison) -> str:
    scored = [epoch for epoch in epochs if epoch.valid is not None]
    if not scored:
        return plural(len(epochs), "epoch")
    best = min(scored, key=lambda epoch: epoch.valid or 0.0).epoch
    return f"{plural(len(epochs), 'epoch')} ({comparison.stop}); weights of epoch {best} kept"


def _tree_facts(row: RowResult) -> Facts:
    if (tree := row.tree) is None:
        return []
    length = tree.code_length
    return [
        ("tree", f"{row.method}, {plural(tree.nodes, 'node')}"),
        ("code length", code_length_line(length.weighted, length.uniform)),
        ("scores/target", figure(tree.scores_per_target)),
    ]


def _steps(row: RowResult) -> Facts:
    steps = row.steps
    parts = [("vectors", steps.vectors), ("tree", steps.tree), ("preparation", steps.preparation),
             ("training", steps.training)]  # fmt: skip
    spent = ", ".join(f"{name} {figure(seconds, 1)}" for name, seconds in parts if seconds != 0)
    return [("seconds", f"{figure(steps.total, 1)} from the text: {spent}")]


# Comparisons


def print_comparison(comparison: Comparison, page: Path) -> None:
    """Print the table of a comparison, what it depends on, its page, and the answer."""
    say(comparison_table(comparison))
    rows = comparison.rows
    limited = [row.name for row in rows if row.at_epoch_limit]
    blocks = next((row.to_flat.blocks for row in rows if row.to_flat), None)
    lines: Facts = []
    if limited:
        more = "stopped at the limit of epochs, before validation had stopped falling"
        lines.append(("*", f"{', '.join(limited)}: {more}"))
    if any(row.perplexity["test"].sd is not None for row in rows):
        lines.append(
            ("±", f"sample standard deviation over {plural(len(comparison.seeds), 'seed')}")
        )
    if blocks is not None and blocks < FEWEST:
        lines.append(("ratios", f"no interval: fewer than {FEWEST} blocks of {BLOCK:,} tokens"))
    elif blocks is not None:
        over = f"{CONFIDENCE:.0%} interval over {blocks:,} blocks of test tokens"
        lines.append(("ratios", f"of test perplexities, with their {over}"))
    lines += [("read before", sentence) for sentence in comparison.read_before()]
    say(facts([*lines, *_conditions(comparison), ("page", f"{page}: open it in a browser")]))
    say(f"\n{answer(comparison)}")


def comparison_table(comparison: Comparison) -> Table:
    """Return the table of the columns that rows have figures for; the chosen row is bold."""
    columns = shown_columns(comparison.rows)
    titles = [column.title for column in columns]
    filled = table(*titles, text=titles[:1])
    chosen = comparison.choice.chosen if comparison.choice else None
    for row in comparison.rows:
        cells = [column.text(row) for column in columns]
        for i, column in enumerate(columns):
            if column.key in ("valid", "test"):
                spread = row.perplexity[column.key]  # type: ignore[index]
                cells[i] += "" if spread.sd is None else f" ± {figure(spread.sd, 1)}"
                cells[i] += "*" if row.at_epoch_limit and column.key == "test" else ""
            elif column.key in ("to_flat", "to_like"):
                cells[i] = ratio_text(getattr(row, column.key))
        filled.add_row(*cells, style="bold" if row.name == chosen else None)
    return narrow(filled, *titles[1:])


def ratio_text(ratio: Ratio | None) -> str:
    """Return a ratio with its interval, if there is one."""
    if ratio is None:
        return "-"
    if ratio.low is None or ratio.low == ratio.high:
        return figure(ratio.ratio, 3)
    # No space inside the brackets, so that a narrow table puts them below the ratio.
    return f"{ratio.ratio:.3f} [{ratio.low:.3f},{ratio.high:.3f}]"


def answer(comparison: Comparison) -> str:
    """Return which row to take, and how it compares with its rival."""
    choice = comparison.choice
    if choice is None:
        return "No row is named: each has read the test split, so that its figures are too good."
    text = f"{comparison.answer()}; test perplexity {figure(comparison.row(choice.chosen).test, 1)}"
    if choice.tied:
        text += f". As fast, within the spread of the rounds: {', '.join(choice.tied)}"
    if choice.rival is not None and (ratio := choice.to_rival) is not None:
        text += f". Its ratio to {choice.rival}: {ratio_text(ratio)}"
        if ratio.low is not None and ratio.high is not None and ratio.low <= 1 <= ratio.high:
            text += ", which may be chance"
    ngrams = [row for row in comparison.rows if not row.is_trained]
    lowest = min(ngrams, key=lambda row: row.valid, default=None)
    if lowest is not None and lowest.valid < comparison.row(choice.best).valid:
        text += f". The n-gram model {lowest.name} is lower still: {figure(lowest.test, 1)}"
    return f"{text}."


def _conditions(comparison: Comparison) -> Facts:
    """Return the text, the words, the model and the rule that all figures depend on."""
    tokens, oov, words = comparison.tokens, comparison.oov, comparison.vocabulary
    model, training = describe({**comparison.options, "epochs": comparison.stop.max_epochs})
    shares = ", ".join(f"{split} {percent(oov[split], n)}" for split, n in tokens.items())
    sources = {str(source.get("name")) for source in comparison.corpus.values()}
    return [
        ("perplexity", f"of each {comparison.predicts}, <eos> and <unk> included"),
        ("text", ", ".join(sorted(sources))),
        ("tokens", ", ".join(f"{split} {n:,}" for split, n in tokens.items())),
        ("out of vocabulary", shares),
        ("vocabulary", vocabulary_line(words.size, words.sha256)),
        ("model", model),
        ("training", f"{comparison.stop}; {training.partition(', ')[2]}"),
        ("seeds", ", ".join(map(str, comparison.seeds))),
    ]
