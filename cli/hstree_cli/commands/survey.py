"""`hstree survey`: trees and every approximation of the softmax in one measured table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hstree_cli.completions import rows as rows_to_complete
from hstree_cli.options import (
    Budget,
    CorpusName,
    HeldOut,
    Only,
    Quiet,
    Reading,
    Replace,
    Resuming,
    UsageError,
    examples,
    option,
)
from hstree_cli.outputs import check_folder, files_of_rows, show_kept
from hstree_cli.registered_options import ModelOptions
from hstree_cli.tables import origin
from hstree_cli.terminal import showing_progress

if TYPE_CHECKING:
    from hstree.experiments.survey import Survey

#: Files in the folder of a survey.
ARTEFACTS = ("survey.json", "survey.csv", "survey.html", "runs")


@examples(
    "hstree survey corpus.txt -o survey --budget 600",
    'hstree survey corpus.txt -o survey --rows "huffman, nce --samples 100, flat" --epochs 3',
)
def survey(
    ctx: typer.Context,
    corpus: CorpusName,
    *,
    output: Annotated[Path, option("--output -o", "Folder for every run and the results.", "DIR")],
    rows: Annotated[
        list[str] | None,
        option(
            "--rows -r",
            "Output layers, methods and tree files, separated by commas, with their options as in "
            '"gmm --trees 4, nce --samples 100, mine.json"; repeatable.',
            "ROWS",
            autocompletion=rows_to_complete,
        ),
    ] = None,
    budget: Annotated[
        float | None,
        option("--budget", "Also train every row for this many seconds.", "SECONDS"),
    ] = None,
    equal_epochs: Annotated[
        bool,
        option(
            "--equal-epochs/--no-equal-epochs",
            "Train every row for the same number of epochs, or only for the budget.",
        ),
    ] = True,
    kneser_ney: Annotated[
        int | None,
        option("--kneser-ney", "Mix every row with a Kneser-Ney model of this order.", "N"),
    ] = None,
    seeds: Annotated[int, option("--seeds", "Number of seeds, from --seed on.", "N", min=1)] = 1,
    limit: Budget,
    only: Only = False,
    force: Replace = False,
    held_out: HeldOut,
    training: Annotated[dict[str, Any], ModelOptions(without=frozenset(["seconds", "online"]))],
    reading: Reading,
    resuming: Resuming,
    quiet: Quiet = False,
) -> None:
    """Measure every output layer: trees, sampled losses, adaptive softmaxes, flat.

    Each row trains the same model, for the same number of epochs and, with --budget,
    for the same number of seconds. The tables give perplexities with their ratio to
    the flat softmax, speeds in training and in testing, parameters and, for layers
    that are trained towards it, how far their scores are normalised.

    By default the rows are huffman, gmm, gmm --epsilon 0.4 --trees 4, classes and
    every layer without a tree; flat is always one. The program first prints how
    long it will take, from some batches of each row. On a large vocabulary flat is
    slow: --no-equal-epochs with a budget, or with --minutes, bounds the time.

    DIR gets survey.json, survey.csv and a page after each row, and every run. Finished
    runs in DIR are not done again: an interrupted survey continues, and a new row is
    added to those in DIR. A comparison in DIR shares the runs after equal epochs.
    """
    from hstree.experiments.survey import plan_of
    from hstree.experiments.survey import survey as measure
    from hstree.report import SURVEY_PAGE, write_survey
    from hstree_cli.inputs import read_splits, read_vocabulary, warn_of_seen_lines
    from hstree_cli.method_strings import default_entries, parse_rows
    from hstree_cli.plan_tables import announce, print_plan
    from hstree_cli.survey_tables import print_survey

    if budget is None and limit.minutes is None and not equal_epochs:
        raise UsageError(
            "--no-equal-epochs leaves nothing to survey without --budget SECONDS or --minutes N",
            ctx,
        )
    entries = (
        default_entries(training)
        if rows is None
        else [entry for text in rows for entry in parse_rows(text)]
    )
    sources = [corpus, held_out.valid, held_out.test, reading.vocabulary, *files_of_rows(entries)]
    check_folder(output, "-o", ARTEFACTS, reads=sources)
    with showing_progress(quiet):
        splits = read_splits(corpus, held_out, reading, read_vocabulary(reading))
    warn_of_seen_lines(splits, {})

    def show(found: Survey) -> None:
        print_survey(found, origin(splits.train), f"{output}/")

    kept = [output / "runs", *output.glob("runs-*s")]
    arguments: dict[str, Any] = {
        "budget": budget,
        "equal_epochs": equal_epochs,
        "seeds": seeds,
        "minutes": limit.minutes,
        "only": only,
        "force": force or resuming.fresh,
        **training,
    }
    with resuming.applied(kept):
        if limit.plan:
            with showing_progress(quiet):
                planned = plan_of(splits, entries, output, **arguments)
            print_plan(planned, entries, splits.train)
            return
        show_kept(
            lambda keep: measure(
                splits,
                entries,
                output,
                kneser_ney=kneser_ney,
                planned=lambda plan: announce(plan, entries, splits.train),
                updated=write_survey,
                surveyed=keep,
                **arguments,
            ),
            show,
            output / SURVEY_PAGE,
            write_survey,
            runs=output,
            quiet=quiet,
        )
