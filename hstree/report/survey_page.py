"""The page of a survey: perplexity against training seconds, and the table of all rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from markupsafe import Markup

from hstree.experiments.planning import Regime
from hstree.experiments.results import Comparison, RowRun
from hstree.experiments.survey import Speed, Survey, SurveyRow, epochs_of
from hstree.report.answer import Answer, conditions_of, within
from hstree.report.page import Offer, render
from hstree.report.plots import plots_of_survey
from hstree.report.table import (
    DASH,
    Cell,
    Column,
    PageRow,
    change,
    number,
    of_to_flat,
    perplexity,
    row_named,
    rows_of,
    signed,
    three_digits,
    times,
)

_TITLES: dict[Regime, str] = {
    "equal_epochs": "after equal epochs",
    "equal_seconds": "after equal seconds",
}
_SPEEDS: tuple[tuple[str, str, Callable[[SurveyRow], Speed | None]], ...] = (
    ("training", "of training, batches included", lambda row: row.training),
    ("one word", "of the probability of one word in its context", lambda row: row.nll),
    ("all words", "of the probabilities of all words", lambda row: row.log_prob),
    ("top 10", "of the 10 most probable words", lambda row: row.top_k),
)


def survey_page_of(found: Survey) -> str:
    """Return the page of a survey."""
    regimes = found.regimes()
    first = next(iter(regimes.values()))
    compared = rows_of(first)
    # The rows with the runs of all regimes, for the plot over time
    merged = [
        replace(row, result=replace(row.result, runs=_runs(found, row.name))) for row in compared
    ]
    return render(
        title=str(first.corpus["train"].get("name") or "this text"),
        question="Which output layer",
        caption="Every row was trained on the same text with the same starting vectors and "
        "batches. Perplexities are of the normalised distribution.",
        pending=found.pending,
        warnings=first.read_before(),
        offers=[Offer(0.0, None, _answers(found))],
        within=None,
        rows=compared,
        columns=_columns(found),
        words=[],
        conditions=_conditions(found, first),
        plots=plots_of_survey(merged, compared, first.bands),
        explorer=None,
    )


def _runs(found: Survey, name: str) -> list[RowRun]:
    of_regimes = [found.row(regime, name) for regime in found.regimes()]
    return [run for row in of_regimes if row is not None for run in row.runs]


def _answers(found: Survey) -> list[Answer]:
    """Return the best rows of each regime, and the fastest."""
    answers = []
    for regime, comparison in found.regimes().items():
        if (choice := comparison.choice) is None:
            continue
        rows = rows_of(comparison)
        best, fastest = row_named(rows, choice.best), row_named(rows, choice.chosen)
        text = _html(
            "<strong>{}</strong> has the lowest validation perplexity; its test perplexity is {}{}",
            best.name, perplexity(best.perplexity()), _than_flat(best),
        )  # fmt: skip
        if best.index == fastest.index:
            text += _html("; none within {} of it trains faster.", within(choice.within))
        else:
            text += _html(
                ". Of the rows within {} of it, <strong>{}</strong> trains fastest: test "
                "perplexity {}{}.", within(choice.within), fastest.name,
                perplexity(fastest.perplexity()), _than_flat(fastest),
            )  # fmt: skip
        answers.append(Answer(f"Which is best {_TITLES[regime]}?", text))
    for title, _, speed in _SPEEDS:
        measured = [(row, of_row) for row in found.rows if (of_row := speed(row)) is not None]
        if measured:
            text = _fastest(*max(measured, key=lambda each: each[1].tokens_per_second))
            answers.append(Answer(f"Which is fastest: {title}?", text))
    return answers


def _fastest(row: SurveyRow, speed: Speed) -> Markup:
    """Return which row is fastest, if it is faster than flat in every round."""
    if row.is_flat or speed.low <= 1:
        return Markup("None is faster than flat in every round of the measurement.")
    return _html(
        "<strong>{}</strong>: {} tokens/s, {} flat ({} to {} in single rounds).", row.name,
        number(speed.tokens_per_second), times(speed.times_flat), times(speed.low),
        times(speed.high),
    )  # fmt: skip


def _than_flat(row: PageRow) -> str:
    ratio = row.result.to_flat
    return "" if ratio is None or row.is_flat else f", {change(ratio.ratio, 'flat')}"


def _html(text: str, *values: object) -> Markup:
    return Markup(text).format(*values)


def _columns(found: Survey) -> list[Column]:
    """Return the columns of the table."""
    by_name = {row.name: row for row in found.rows}
    columns = [
        Column(title, "times flat", f"speed {meaning}, over that of the flat softmax; and in "
               "tokens per second", partial(_speed, by_name, speed))
        for title, meaning, speed in _SPEEDS
    ]  # fmt: skip
    if any(row.unnormalised for row in found.rows):
        columns.append(
            Column("one score", "times flat", "speed of the unnormalised score of one word, for "
                   "layers that are trained to have ln Z at 0, over that of the probability of "
                   "one word under flat; and in tokens per second",
                   partial(_speed, by_name, lambda row: row.unnormalised))
        )  # fmt: skip
    columns.append(
        Column("parameters", "% of flat", "trained numbers",
               lambda row: _parameters(by_name[row.name]))
    )  # fmt: skip
    first, *others = (
        column for regime in found.regimes() for column in _columns_of(found, regime, by_name)
    )
    columns = [first, *columns, *others]
    columns.append(
        Column("published", "ratio to flat", "of perplexities, on other texts, models and budgets",
               lambda row: _published(by_name[row.name]))
    )  # fmt: skip
    return columns


def _columns_of(found: Survey, regime: Regime, by_name: dict[str, SurveyRow]) -> list[Column]:
    """Return the columns of a regime."""

    def of_regime(cell: Callable[[PageRow], Cell]) -> Callable[[PageRow], Cell]:
        """Return what makes the cell of a row from its figures in the regime."""

        def made(row: PageRow) -> Cell:
            result = found.row(regime, row.name)
            return Cell(DASH, None) if result is None else cell(PageRow(row.index, result))

        return made

    title = _TITLES[regime]
    columns = [
        Column("test", title, f"test perplexity {title}; * stopped at the limit of epochs; and the "
               "number of epochs", of_regime(_test)),
        Column("to flat", title, "difference of the test perplexity from flat\u2019s, with its 95% "
               "interval over blocks of test tokens", of_regime(of_to_flat)),
    ]  # fmt: skip
    if found.kneser_ney is not None:
        order = found.kneser_ney.order
        columns.append(
            Column(f"+ kn{order}", title, f"test perplexity of the mixture with a Kneser-Ney "
                   f"{order}-gram model, and the weight of the row in it, fitted on the validation "
                   "split", lambda row: _mixture(by_name[row.name], regime))
        )  # fmt: skip
    if any(row.log_normaliser for row in found.regimes()[regime].rows):
        columns.append(
            Column("ln Z", title, "mean and standard deviation of the log-normaliser over the test "
                   "tokens, for layers that are trained to have it at 0; and the perplexity "
                   "without normalising", of_regime(_log_z))
        )  # fmt: skip
    return columns


def _speed(
    by_name: Mapping[str, SurveyRow], of: Callable[[SurveyRow], Speed | None], row: PageRow
) -> Cell:
    if (speed := of(by_name[row.name])) is None:
        return Cell(DASH, None)
    note = f"{number(speed.tokens_per_second)}/s"
    return Cell(times(speed.times_flat), speed.times_flat, note)


def _parameters(row: SurveyRow) -> Cell:
    if row.parameters_to_flat is None:
        return Cell(DASH, None, number(row.parameters))
    share = 100 * row.parameters_to_flat
    return Cell(f"{three_digits(share)}%", share, number(row.parameters))


def _test(row: PageRow) -> Cell:
    test = row.result.perplexity["test"]
    mark = "*" if row.result.at_epoch_limit else ""
    spread = "" if test.sd is None else f"± {test.sd:.2f}, "
    note = f"{spread}{three_digits(epochs_of(row.result))} epochs"
    return Cell(perplexity(test.mean) + mark, test.mean, note)


def _mixture(row: SurveyRow, regime: Regime) -> Cell:
    mixture = row.with_kneser_ney.get(regime)
    if mixture is None:
        return Cell(DASH, None)
    return Cell(perplexity(mixture.test), mixture.test, f"weight {mixture.weight:.2f}")


def _log_z(row: PageRow) -> Cell:
    log_z = row.result.log_normaliser
    if log_z is None or log_z.mean is None:
        return Cell(DASH, None)
    text = f"{log_z.mean:.3f} ± {three_digits(log_z.sd)}".replace("-", "\N{MINUS SIGN}")
    return Cell(text, log_z.mean, f"unnormalised {perplexity(log_z.unnormalised_perplexity)}")


def _published(row: SurveyRow) -> Cell:
    if row.published is None:
        return Cell(DASH, None)
    low, high = signed(row.published.low), signed(row.published.high)
    return Cell(low if low == high else f"{low} to {high}", row.published.low, row.published.source)


def _conditions(found: Survey, first: Comparison) -> Sequence[tuple[str, str]]:
    """Return what all figures depend on."""
    conditions = conditions_of(first)
    if found.budget is not None:
        meaning = f"{found.budget:,g} seconds of training for each row, without validation"
        conditions.append(("equal seconds", meaning))
    if (ngram := found.kneser_ney) is not None:
        alone = f"test perplexity {perplexity(ngram.perplexity['test'])} alone"
        conditions.append((f"kn{ngram.order}", alone))
    for row in found.rows:
        if row.published is not None and row.published.remark:
            conditions.append((f"published, {row.name}", row.published.remark))
    return conditions
