"""The results of `evaluate`, `bootstrap` and `compare` as tables and name-value lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from hstree._compiled import n_threads
from hstree._text import plural
from hstree.experiments.rows import at_epoch_limit, chosen_from, parameters_of
from hstree.experiments.runs import build_seconds
from hstree.experiments.significance import BLOCK, FEWEST
from hstree.layers.registry import LAYERS
from hstree.models import describe
from hstree.training.trainer import table_of
from hstree.tree.statistics import code_length_line
from hstree_cli.method_strings import spelled
from hstree_cli.tables import (
    Facts,
    bold_if,
    compact,
    count,
    facts,
    figure,
    narrow,
    percent,
    short_figure,
    table,
    vocabulary_line,
)
from hstree_cli.terminal import say

if TYPE_CHECKING:
    from hstree.experiments.results import (
        Choice,
        Comparison,
        LayerFigures,
        NormaliserFigures,
        Row,
        RunResult,
        Spread,
        TreeFigures,
    )
    from hstree.experiments.significance import Ratio
    from hstree.training.trainer import Epoch

# Evaluations


def print_evaluation(result: RunResult, text: str) -> None:
    """Print the result of `hstree evaluate`; `text` describes the corpus."""
    if result.epochs:
        say(epochs_table(result.epochs))
    say(_perplexity_table(result))
    words = result.vocabulary
    rows = [
        ("text", text),
        ("perplexity", f"of each {result.predicts}"),
        ("scored", "every token; <eos> at the end of each line and <unk> included"),
        ("vocabulary", vocabulary_line(words.size, words.sha256)),
        *_layer_facts(result.layer),
        *_tree_facts(result.tree),
        *training_facts(result),
        *_normaliser_facts(result.log_normaliser),
        ("seconds", figure(result.seconds, 1)),
    ]
    say(facts(rows))


def _layer_facts(layer: LayerFigures | None) -> Facts:
    if layer is None:
        return []
    return [("output layer", spelled(LAYERS.get(layer.name), layer.options))]


def _tree_facts(tree: TreeFigures | None) -> Facts:
    if tree is None:
        return []
    length = tree.code_length
    return [
        ("tree", f"{tree.method or '-'}, {plural(tree.nodes, 'node')}"),
        ("code length", code_length_line(length.weighted, length.uniform)),
        ("scores/target", figure(tree.scores_per_target)),
    ]


def training_facts(result: RunResult) -> Facts:
    """Return which epoch's weights a training kept, and why it stopped."""
    epochs = [epoch for epoch in result.epochs or [] if epoch.valid is not None]
    if not epochs:
        return []
    best = min(epochs, key=lambda epoch: epoch.valid or 0.0).epoch
    after = f"after {plural(len(epochs), 'epoch')}"
    if result.interrupted:
        stopped = f"interrupted {after}"
    elif result.out_of_time:
        stopped = f"out of time in epoch {len(epochs)}"
    elif result.converged:
        stopped = f"stopped {after}: it was no longer falling"
    else:
        stopped = f"stopped at the limit of {plural(len(epochs), 'epoch')}"
    return [("training", f"kept epoch {best}, of the lowest validation perplexity; {stopped}")]


def _normaliser_facts(log_z: NormaliserFigures | None) -> Facts:
    if log_z is None:
        return []
    return [
        ("ln Z", f"mean {figure(log_z.mean, 3)}, sd {figure(log_z.sd, 3)}, on the test split"),
        (
            "unnormalised",
            f"test perplexity {figure(log_z.unnormalised_perplexity)} if Z were 1; do not rank by "
            "it: it is below the true one where ln Z is above 0",
        ),
    ]


def epochs_table(epochs: Sequence[Epoch]) -> Table:
    """Return a table with a row per epoch of a training."""
    of_epochs = table_of(epochs)
    filled = table(*of_epochs.columns)
    for row in of_epochs.rows:
        filled.add_row(*row)
    return filled


def _perplexity_table(result: RunResult) -> Table:
    perplexity, oov = result.perplexity, result.oov
    filled = table("split", "tokens", "OOV", "", "perplexity", text=("split",))
    for split, tokens in result.tokens.items():
        share = percent(oov[split], tokens)
        filled.add_row(split, count(tokens), count(oov[split]), share, figure(perplexity[split]))
    tokens, unknown = result.tokens["test"], oov["test"]
    known = figure(perplexity["test_without_oov"])
    filled.add_row("test without OOV", count(tokens - unknown), "0", "", known)
    if "unigram" in perplexity:
        unigram = figure(perplexity["unigram"])
        filled.add_row("test by unigram", count(tokens), count(unknown), "", unigram)
    return filled


# Bootstraps


def print_rounds(results: Mapping[str, RunResult], folder: Path, text: str) -> None:
    """Print the rounds of a bootstrap in two tables: size and perplexity, and time.

    `folder` has the rounds' folders, for the size of models and the seconds to build trees;
    `text` describes the corpus.
    """
    sizes = ("code\nlength", "scores\n/target", "para-\nmeters", "\nvalid", "\ntest")
    times = ("tokens/s", "s/epoch", "s from text")
    quality = table("\nround", *sizes, text=("\nround",))
    speed = table("round", *times, text=("round",))
    from_text: float | None = 0.0
    best = _best_round(results)
    for name, result in results.items():
        style = bold_if(name == best)
        tree, perplexity, epochs = result.tree, result.perplexity, result.epochs or []
        seconds = [epoch.seconds for epoch in epochs]
        speeds = [epoch.tokens_per_second for epoch in epochs]
        built = build_seconds(folder / name, tree.sha256) if tree else None
        from_text = None if built is None or from_text is None else from_text + built + sum(seconds)
        quality.add_row(
            name,
            figure(tree.code_length.weighted if tree else None),
            short_figure(tree.scores_per_target if tree else None),
            compact(parameters_of(folder / name / "model")),
            figure(perplexity["valid"], 1),
            figure(perplexity["test"], 1) + ("*" if at_epoch_limit([result]) else ""),
            style=style,
        )
        figures = [figure(_mean(speeds), 0), figure(_mean(seconds), 1), figure(from_text, 1)]
        speed.add_row(name, *figures, style=style)
    say(narrow(quality, *sizes))
    say(narrow(speed, *times))
    limited = any(at_epoch_limit([result]) for result in results.values())
    say(facts([*_round_facts(results, text, limited), ("written to", f"{folder}/")]))


def _best_round(results: Mapping[str, RunResult]) -> str:
    return min(results, key=lambda name: results[name].valid)


def _round_facts(results: Mapping[str, RunResult], text: str, limited: bool) -> Facts:
    """Return the best round and the conditions that all rounds share."""
    first = next(iter(results.values()))
    best = _best_round(results)
    perplexity = results[best].perplexity
    model, budget = describe(first.options)
    methods = (f"{name} {result.tree.method}" for name, result in results.items() if result.tree)
    start = "later rounds began with the word vectors of the best round before them"
    return [
        (
            "best round",
            f"{best}, by validation perplexity, {figure(perplexity['valid'], 1)}, of "
            f"{plural(len(results), 'round')}; test perplexity {figure(perplexity['test'], 1)}",
        ),
        ("trees", ", ".join(methods)),
        ("perplexity", "of every token, <eos> and <unk> included; lower is better"),
        *([at_limit_fact(first.options["epochs"])] if limited else []),
        (
            "s from text",
            "seconds to build the tree and to train all epochs on it, including all rounds before "
            "it, excluding validation",
        ),
        ("unigram", f"{figure(first.perplexity['unigram'], 1)} on the test split"),
        ("text", text),
        *split_facts(first),
        ("model", model),
        ("budget", budget),
        *([("start", start)] if any(result.warm_start for result in results.values()) else []),
    ]


def at_limit_fact(epochs: int) -> tuple[str, str]:
    """Return the mark of rows that stopped at the limit of epochs, and its meaning."""
    return (
        "*",
        f"stopped at the limit of {plural(epochs, 'epoch')}, before the validation perplexity "
        "had stopped falling: more may lower it",
    )


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def split_facts(results: RunResult | Comparison) -> Facts:
    """Return token and OOV counts of the splits, and the vocabulary."""
    tokens, words = results.tokens, results.vocabulary
    by_split = zip(tokens.items(), results.oov.values(), strict=True)
    shares = ", ".join(f"{split} {percent(oov, n)}" for (split, n), oov in by_split)
    return [
        ("tokens", ", ".join(f"{split} {count(n)}" for split, n in tokens.items())),
        ("out of vocabulary", shares),
        ("vocabulary", vocabulary_line(words.size, words.sha256)),
    ]


# Comparisons


def print_comparison(results: Comparison, text: str, folder: str) -> None:
    """Print the results of `hstree compare`; `text` describes the corpus."""
    rows = results.rows
    answer = results.choice.chosen if results.choice else None
    say(perplexity_comparison(rows, answer))
    trained = [row for row in rows if row.kind != "baseline"]
    if trained:
        say(_size_comparison(trained, answer))
        say(_speed_comparison(trained, answer))
    if any(row.log_normaliser for row in rows):
        say(_normaliser_comparison(rows))
    say(facts([*_comparison_facts(results, text), ("written to", folder)]))
    if results.choice is not None:
        say(f"\n{_advice(rows, results.choice)}")
    elif trained:
        say("\nNo row is named: each has read the test split, so that its figures are too good.")


def perplexity_comparison(rows: Sequence[Row], answer: str | None = None) -> Table:
    """Return the table of perplexities; the row named `answer` is bold, as in all tables."""
    columns = ("valid", "test", "n", "ratio to flat", "p")
    filled = table("method", *columns, text=("method", "ratio to flat"))
    for row in rows:
        ratio, perplexity = row.to_flat, row.perplexity
        filled.add_row(
            row.name,
            figure(perplexity["valid"].mean, 1),
            _mean_and_sd(perplexity["test"]) + ("*" if row.at_epoch_limit else ""),
            count(perplexity["test"].n),
            ratio_text(ratio),
            "-" if ratio is None or ratio.p is None else _p_value(ratio.p),
            style=bold_if(row.name == answer),
        )
    return narrow(filled, "valid", "test", "n", "p")


def wordnet_fact(rows: Sequence[Row]) -> Facts:
    """Return what WordNet has, and the perplexities there; nothing without a tree of it."""
    covered = ", ".join(f"{row.name} {figure(row.covered, 1)}" for row in rows if row.covered)
    if all(row.in_wordnet is None for row in rows):
        return []
    there = f"; test perplexity over the tokens of its words: {covered}" if covered else ""
    return [("in WordNet", f"share of the training tokens that WordNet has{there}")]


def _size_comparison(rows: Sequence[Row], answer: str | None) -> Table:
    """Return the table of the sizes of trees and models."""
    columns = ["codes\n/word", "code\nlength", "scores\n/target", "para-\nmeters"]
    if any(row.in_wordnet is not None for row in rows):
        columns.append("in\nWordNet")
    filled = table("\nmethod", *columns, text=("\nmethod",))
    for row in rows:
        tree, in_wordnet = row.tree, row.in_wordnet
        figures = [
            figure(tree.codes_per_label if tree else None),
            figure(tree.code_length.weighted if tree else None),
            short_figure(tree.scores_per_target if tree else None),
            compact(row.parameters),
            "-" if in_wordnet is None else f"{100 * in_wordnet:.0f}%",
        ]
        filled.add_row(row.name, *figures[: len(columns)], style=bold_if(row.name == answer))
    return narrow(filled, *columns)


def _speed_comparison(rows: Sequence[Row], answer: str | None) -> Table:
    """Return the table of training speeds."""
    columns = ["\ntokens/s", "\n±", "times\nflat", "s from\ntext", "times\nflat"]
    filled = table("\nmethod", *columns, text=("\nmethod",))
    for row in rows:
        from_text = row.from_text
        filled.add_row(
            row.name,
            figure(row.tokens_per_second, 0),
            _speed_spread(row),
            _times(row.speed_up),
            short_figure(from_text.seconds if from_text else None),
            _times(from_text.speed_up if from_text else None),
            style=bold_if(row.name == answer),
        )
    return narrow(filled, *columns)


def _speed_spread(row: Row) -> str:
    """Return half of the range of the rounds' speeds, in percent of the median."""
    if not row.speed_rounds or not row.tokens_per_second:
        return "-"
    half = (max(row.speed_rounds) - min(row.speed_rounds)) / 2
    return f"{100 * half / row.tokens_per_second:.0f}%"


def _normaliser_comparison(rows: Sequence[Row]) -> Table:
    """Return the table of the layers that are trained towards Z = 1."""
    columns = ("mean ln Z", "sd of ln Z", "unnormalised")
    filled = table("method", *columns, text=("method",))
    for row in rows:
        if (log_z := row.log_normaliser) is not None:
            unnormalised = figure(log_z.unnormalised_perplexity, 1)
            filled.add_row(row.name, figure(log_z.mean, 3), figure(log_z.sd, 3), unnormalised)
    return narrow(filled, *columns)


def _comparison_facts(results: Comparison, text: str) -> Facts:
    """Return the conditions of a comparison and the meaning of its signs."""
    options, rows = results.options, results.rows
    model, budget = describe(options)
    n_seeds = len(options["seeds"])
    blocks = next((row.to_flat.blocks for row in rows if row.to_flat), None)
    rounds = max((len(row.speed_rounds or ()) for row in rows), default=0)
    return [
        (
            "perplexity",
            f"of every {results.predicts}, <eos> and <unk> included; lower is better; the unigram "
            f"distribution has {figure(results.unigram, 1)} on the test split",
        ),
        *([("±", f"sample standard deviation over n = {n_seeds} seeds")] if n_seeds > 1 else []),
        *([at_limit_fact(options["epochs"])] if any(row.at_epoch_limit for row in rows) else []),
        *(("read before", line) for line in results.read_before()),
        *([] if blocks is None else [ratio_fact(blocks, results.tokens["test"])]),
        *wordnet_fact(rows),
        *(
            [("unnormalised", "test perplexity if every score were read as a log-probability")]
            if any(row.log_normaliser for row in rows)
            else []
        ),
        (
            "speeds",
            f"of training with its batches: median and half the range (±) over "
            f"{plural(rounds, 'round')}, all rows in turns in one process, {computed_on(results)}",
        ),
        (
            "s from text",
            "seconds to build the tree and to train all epochs on it, including the model that "
            "learned its vectors, excluding validation",
        ),
        ("text", text),
        *split_facts(results),
        ("model", model),
        ("budget", budget),
        *((f"left out: {name}", reason) for name, reason in results.left_out.items()),
    ]


def computed_on(results: Comparison) -> str:
    """Return the cores of the machine, and the threads if fewer may compute."""
    cores = plural(results.machine.cores, "core")
    is_limited = n_threads() < results.machine.cores
    return f"{cores}, {plural(n_threads(), 'thread')}" if is_limited else cores


def ratio_fact(blocks: int, tokens: int, *, with_p: bool = True) -> tuple[str, str]:
    """Return the meaning of the intervals and p values, or why there are none."""
    if blocks < FEWEST:
        meaning = (
            f"of test perplexities; [-], no interval: the test text, {count(tokens)} tokens, has "
            f"fewer than {FEWEST} blocks of {count(BLOCK)} tokens"
        )
    else:
        p = "; p, the chance of such a ratio if it were 1" if with_p else ""
        meaning = (
            f"of test perplexities, with its 95% interval over texts of this kind{p}: paired "
            f"t-test over {count(blocks)} test blocks of {count(tokens // blocks)} tokens; "
            f"{'neither covers' if with_p else 'it does not cover'} other seeds"
        )
    return ("ratio to flat", meaning)


def _advice(rows: Sequence[Row], choice: Choice) -> str:
    """Return which row to take, by the rule in `hstree.experiments.rows.choice`, and how sure."""
    noun = "tree" if all(row.kind != "layer" for row in rows) else "output layer"
    by_name = {row.name: row for row in rows}
    best, chosen = by_name[choice.best], by_name[choice.chosen]
    within = f"within {100 * choice.within:g}% of it"
    text = f"Which {noun}? Of {chosen_from(rows, choice, noun)}, {best.name} has the lowest "
    text += f"validation perplexity, {_valid_and_test(best)}"
    tied = [name for name in choice.tied if name != best.name]
    if chosen is best:
        if choice.tied:
            are = "is" if len(choice.tied) == 1 else "are"
            text += f"; {', '.join(choice.tied)} {are} {within} and as fast, within the spread of "
            text += "the rounds."
        else:
            text += f"; no {noun} {within} trains faster."
    else:
        times = (chosen.tokens_per_second or 0.0) / (best.tokens_per_second or math.nan)
        text += f". Of the {noun}s {within}, {chosen.name}, {_valid_and_test(chosen)}, trains "
        text += f"fastest: {figure(times, 1)} times as fast as {best.name}"
        if tied:
            text += f" (as fast within the spread of the rounds: {', '.join(tied)})"
        text += "."
    text += _against_rival(choice)
    baselines = [row for row in rows if row.kind == "baseline"]
    lowest = min(baselines, key=lambda row: row.validation_perplexity, default=best)
    if lowest.validation_perplexity < best.validation_perplexity:
        text += f" The baseline {lowest.name} is lower still: {_valid_and_test(lowest)}."
    return text


def _against_rival(choice: Choice) -> str:
    """Return the test perplexity of the chosen row divided by that of its rival."""
    ratio = choice.to_rival
    if ratio is None:
        return ""
    text = f" Test perplexity of {choice.chosen} divided by that of {choice.rival}: "
    if ratio.low is None or ratio.high is None:
        return f"{text}{ratio.ratio:.3f}; the text is too short for an interval."
    text += f"{ratio_text(ratio)}"
    if ratio.low <= 1 <= ratio.high:
        return f"{text}, which may be chance."
    return f"{text}."


def _mean_and_sd(statistics: Spread) -> str:
    mean = figure(statistics.mean, 1)
    return mean if statistics.sd is None else f"{mean} ± {figure(statistics.sd, 1)}"


def ratio_text(ratio: Ratio | None) -> str:
    """Return a ratio to flat with its interval, [-] if the text is too short for one."""
    if ratio is None:
        return "-"
    if ratio.low is None:
        return f"{ratio.ratio:.3f} [-]"
    if ratio.low == ratio.high:
        return figure(ratio.ratio, 3)
    # No space inside the brackets, so that a narrow table puts them below the ratio.
    return f"{ratio.ratio:.3f} [{ratio.low:.3f},{ratio.high:.3f}]"


def _p_value(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _times(value: float | None) -> str:
    """Return a speed-up; with two decimals below 1, where one would say little."""
    return figure(value, 2 if value is not None and value < 0.95 else 1)


def _valid_and_test(row: Row) -> str:
    """Return the perplexity that a row is chosen by, and the one that is reported."""
    return f"{figure(row.validation_perplexity, 1)} (test {figure(row.perplexity['test'].mean, 1)})"
