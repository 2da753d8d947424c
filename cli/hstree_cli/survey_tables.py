"""The results of `hstree survey` as tables and name-value lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from hstree_cli.result_tables import at_limit_fact, computed_on, ratio_fact, ratio_text, split_facts
from hstree_cli.tables import Facts, bold_if, facts, figure, narrow, short_figure, table
from hstree_cli.terminal import say

if TYPE_CHECKING:
    from hstree.experiments.planning import Regime
    from hstree.experiments.results import Comparison, Row
    from hstree.experiments.survey import Mixture, Survey, SurveyRow

#: Titles of the regimes, as the first column of their tables.
_TITLES: dict[Regime, str] = {
    "equal_epochs": "after equal epochs",
    "equal_seconds": "after equal seconds",
}


def print_survey(found: Survey, text: str, folder: str) -> None:
    """Print the results of `hstree survey`; `text` describes the corpus."""
    for regime in found.regimes():
        say(_perplexities(found, regime))
    say(_speeds(found.rows))
    for regime in found.regimes():
        if any(row.log_normaliser for row in found.regimes()[regime].rows):
            say(_normalisers(found, regime))
    say(facts([*_answers(found), *_facts(found, text), ("written to", folder)]))


def _answers(found: Survey) -> Facts:
    """Return the best row of each regime, and the fastest of those nearly as good."""
    answers: Facts = []
    for regime, comparison in found.regimes().items():
        if (choice := comparison.choice) is None:
            continue
        tests = {row.name: figure(row.perplexity["test"].mean, 1) for row in comparison.rows}
        text = f"{_TITLES[regime]}: {choice.best} has the lowest validation perplexity, "
        text += f"test {tests[choice.best]}; "
        if choice.chosen == choice.best:
            text += f"none within {choice.within:.0%} of it trains faster"
        else:
            text += (
                f"of those within {choice.within:.0%} of it, {choice.chosen} trains fastest, "
                f"test {tests[choice.chosen]}"
            )
        answers.append(("best", text))
    return answers


def _rows(found: Survey, regime: Regime) -> list[tuple[SurveyRow, Row]]:
    """Return the rows that are trained in a regime, each with its figures there."""
    both = ((row, found.row(regime, row.name)) for row in found.rows)
    return [(row, result) for row, result in both if result is not None]


def _perplexities(found: Survey, regime: Regime) -> Table:
    """Return the table of perplexities in a regime."""
    from hstree.experiments.survey import epochs_of

    first = _TITLES[regime]
    by_epochs = regime == "equal_epochs"
    columns = ["epochs", "test", "ratio to flat", "published" if by_epochs else "s before"]
    if found.kneser_ney is not None:
        columns.append(f"+ kn{found.kneser_ney.order}")
    filled = table(first, *columns, text=(first, "ratio to flat"))
    choice = found.regimes()[regime].choice
    for row, result in _rows(found, regime):
        mark = "*" if result.at_epoch_limit else ""
        mixture = row.with_kneser_ney.get(regime)
        figures = [
            figure(epochs_of(result), 1),
            figure(result.perplexity["test"].mean, 1) + mark,
            ratio_text(result.to_flat),
            _published(row) if by_epochs else short_figure(_seconds_before(result)),
            _mixture(mixture),
        ]
        is_answer = choice is not None and row.name == choice.chosen
        filled.add_row(row.name, *figures[: len(columns)], style=bold_if(is_answer))
    return narrow(filled, *(name for name in columns if name != "ratio to flat"))


def _published(row: SurveyRow) -> str:
    return "-" if row.published is None else str(row.published)


def _seconds_before(row: Row) -> float | None:
    """Return the seconds before the first batch: for a tree and its vectors, or for the layer."""
    steps = row.from_text
    if steps is None or steps.vectors is None or steps.tree is None:
        return None
    return steps.vectors + steps.tree + (steps.preparation or 0)


def _mixture(mixture: Mixture | None) -> str:
    return "-" if mixture is None else figure(mixture.test, 1)


def _speeds(rows: Sequence[SurveyRow]) -> Table:
    """Return the table of speeds and sizes; columns "/flat" have multiples of flat's."""
    over_flat = ("train\n/flat", "1 word\n/flat", "words\n/flat", "top 10\n/flat", "size\n/flat")
    columns = ("train\ntokens/s", *over_flat)
    filled = table("\nspeed, size", *columns, text=("\nspeed, size",))
    for row in rows:
        speeds = (row.training, row.nll, row.log_prob, row.top_k)
        filled.add_row(
            row.name,
            figure(None if row.training is None else row.training.tokens_per_second, 0),
            *(_times(None if speed is None else speed.times_flat) for speed in speeds),
            "-" if row.parameters_to_flat is None else f"{100 * row.parameters_to_flat:.0f}%",
        )
    return narrow(filled, *columns)


def _times(value: float | None) -> str:
    """Return a multiple in two or three digits."""
    if value is None or value >= 100:
        return figure(value, 0)
    return figure(value, 1 if value >= 9.95 else 2)


def _normalisers(found: Survey, regime: Regime) -> Table:
    """Return the table of ln Z in a regime."""
    columns = ("mean\nln Z", "sd of\nln Z", "unnor-\nmalised", "\ntest", "one\nscore")
    first = f"\n{_TITLES[regime]}"
    filled = table(first, *columns, text=(first,))
    for row, result in _rows(found, regime):
        if (log_z := result.log_normaliser) is not None:
            filled.add_row(
                row.name,
                figure(log_z.mean, 3),
                figure(log_z.sd, 3),
                figure(log_z.unnormalised_perplexity, 1),
                figure(result.perplexity["test"].mean, 1),
                "-" if row.unnormalised is None else _times(row.unnormalised.times_flat),
            )
    return narrow(filled, *columns)


def _facts(found: Survey, text: str) -> Facts:
    """Return the conditions of a survey and the meaning of its signs."""
    from hstree.models import describe

    first = next(iter(found.regimes().values()))
    model, budget = describe(first.options)
    epochs, seconds = found.equal_epochs, found.equal_seconds
    limited = epochs is not None and any(row.at_epoch_limit for row in epochs.rows)
    flat = next(row.to_flat for row in first.rows if row.to_flat is not None)
    lines: Facts = [
        (
            "test",
            f"test perplexity of every {first.predicts}, <eos> and <unk> included, normalised; "
            f"the unigram distribution has {figure(first.unigram, 1)}",
        ),
        ratio_fact(flat.blocks, first.tokens["test"], with_p=False),
        *_published_facts(found.rows),
    ]
    if limited and epochs is not None:
        lines.append(at_limit_fact(epochs.options["epochs"]))
    if seconds is not None:
        lines.append(("equal seconds", _seconds_meaning(seconds, found.budget or 0)))
        lines.append(
            ("s before", "seconds to build a tree and learn its vectors, or to count n-grams")
        )
    if (ngram := found.kneser_ney) is not None:
        alone = figure(ngram.perplexity["test"], 1)
        meaning = f"test perplexity of the mixture with a Kneser-Ney {ngram.order}-gram model "
        meaning += f"({alone} alone), its weight fitted on the validation split"
        lines.append((f"+ kn{ngram.order}", meaning))
    if any(row.log_normaliser for one in found.regimes().values() for row in one.rows):
        lines += [
            ("unnormalised", "test perplexity if every score were read as a log-probability"),
            (
                "one score",
                "speed of one word's score, over that of the probability of one word under flat",
            ),
        ]
    return [
        *lines,
        *(("read before", line) for line in first.read_before()),
        (
            "/flat",
            "speed over flat's: of training; in testing, of the probability of one word, of "
            "all words, of the 10 most probable; all rows in turns in one process, "
            f"{computed_on(first)}; size: parameters of the whole model in % of the model's with "
            "flat",
        ),
        ("text", text),
        *split_facts(first),
        ("model", model),
        ("budget", budget),
    ]


def _published_facts(rows: Sequence[SurveyRow]) -> Facts:
    """Return the sources of the published ratios."""
    sources: dict[str, list[str]] = {}
    for row in rows:
        if row.published is not None:
            remark = f" ({row.published.remark})" if row.published.remark else ""
            sources.setdefault(row.published.source + remark, []).append(row.name)
    if not sources:
        return []
    text = "; ".join(f"{', '.join(names)}: {source}" for source, names in sources.items())
    return [("published", f"ratios to flat on other texts, models and budgets: {text}")]


def _seconds_meaning(comparison: Comparison, budget: float) -> str:
    """Return what the budget of seconds counts, and which rows it did not end."""
    text = f"{budget:,g} s of training for each row, without validations or counting n-grams"
    ended = [row.name for row in comparison.rows if not _all_out_of_time(row)]
    if ended:
        text += f"; converged before it ended: {', '.join(ended)}"
    return text


def _all_out_of_time(row: Row) -> bool:
    return row.out_of_time == len(row.runs)
