"""`hstree compare`: several output layers, one model trained on each, the results in one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hstree_cli import completions
from hstree_cli.options import (
    ROW_HELP,
    BatchSize,
    CorpusName,
    Dim,
    Dropout,
    Epochs,
    LearningRate,
    Lower,
    MinCount,
    Minutes,
    Model,
    Replace,
    Seconds,
    Seed,
    Test,
    Valid,
    VocabularyFile,
    WeightDecay,
    Width,
    argument,
    model_options,
    option,
    selection,
    stopping_rule,
)
from hstree_cli.outputs import check_folder, files_of_rows
from hstree_cli.terminal import INTERRUPTED, complain, say, showing_progress

if TYPE_CHECKING:
    from hstree.data.splits import Splits
    from hstree.experiments.results import Comparison
    from hstree.experiments.row import Row


def compare(
    corpus: CorpusName,
    rows: Annotated[
        list[str] | None,
        argument(
            "ROW",
            f'{ROW_HELP}, several models ("2 x flat"), an n-gram model (kn5), or a set: trees, '
            "approximations.",
            autocompletion=completions.rows,
        ),
    ] = None,
    *,
    output: Annotated[Path, option("--output -o", "Folder for every run and the results.", "DIR")],
    plan: Annotated[
        bool, option("--plan", "List the jobs, and the seconds of finished ones, and stop.")
    ] = False,
    force: Replace = False,
    valid: Valid = None,
    test: Test = None,
    min_count: MinCount = 1,
    lower: Lower = False,
    vocabulary: VocabularyFile = None,
    minutes: Minutes = None,
    seconds: Seconds = None,
    epochs: Epochs = None,
    seeds: Annotated[int, option("--seeds", "Number of seeds, from --seed on.", "N", min=1)] = 1,
    seed: Seed = 0,
    model: Model = "lbl",
    dim: Dim = None,
    context: Width = None,
    batch_size: BatchSize = None,
    learning_rate: LearningRate = None,
    dropout: Dropout = None,
    weight_decay: WeightDecay = None,
) -> None:
    """Train the same model with several trees and output layers; compare cost and perplexity.

    Without a row it compares Huffman, mixture and class trees, each with n-gram
    features, too, sampled softmax, the flat softmax and Kneser-Ney. Without a rule
    it ends after ten minutes: all rows train equally long from the text on, vectors
    and building counted, then the better half goes on. Rows to use are chosen by
    validation perplexity.

    DIR gets results.json, results.csv, report.html and every run. What is finished
    there is not done again: an interrupted comparison goes on, and a new row only adds
    itself. With a tree file and no option that chooses words, the words are its labels.
    """
    from hstree.experiments.compare import plan_of
    from hstree.experiments.row import DEFAULT, parse_rows
    from hstree_cli.inputs import read_splits, read_vocabulary, warn_of_trees

    options = model_options(
        model, random_state=seed, dim=dim, context=context, batch_size=batch_size,
        learning_rate=learning_rate, dropout=dropout, weight_decay=weight_decay,
    )  # fmt: skip
    stop = stopping_rule(epochs, seconds, minutes)
    sources = [corpus, valid, test, vocabulary]
    named = parse_rows(rows or DEFAULT, options) if rows else None
    check_folder(output, "-o", reads=[*sources, *files_of_rows(named or ())])
    with showing_progress():
        trees = trees_of(named or ())
        choice = selection(min_count)
        words = read_vocabulary(vocabulary, **choice)
        splits = read_splits(
            corpus, valid, test, lower=lower, vocabulary=words, trees=[*trees.values()], **choice
        )
        warn_of_trees(trees, splits)
        arguments: dict[str, Any] = {"stop": stop, "seeds": seeds, "force": force, **options}
        if plan:
            _print_plan(plan_of(splits, named, output, **arguments))
            return
    run_comparison(splits, named, output, **arguments)


def trees_of(rows: Any) -> dict[str, Any]:
    """Return the trees of rows that are tree files, by their names."""
    return {row.single.name: row.single.tree for row in rows if hasattr(row.single, "tree")}


def run_comparison(
    splits: Splits, rows: list[Row] | None, output: Path, quiet: bool = False, **options: Any
) -> None:
    """Compare, print the results and write their page after each row."""
    from hstree.experiments.compare import compare as run
    from hstree.report import PAGE, write
    from hstree_cli.results import print_comparison

    def write_page(so_far: Comparison) -> None:
        write(output)

    try:
        with showing_progress(quiet):
            comparison = run(splits, rows, output, updated=write_page, **options)
    except KeyboardInterrupt:
        complain(
            f"interrupted; every finished run is kept in {output}, "
            "and the same command goes on from there"
        )
        raise typer.Exit(INTERRUPTED) from None
    print_comparison(comparison)
    say(f"A page to look at: {output / PAGE}")


def _print_plan(jobs: Any) -> None:
    from hstree_cli.tables import figure, table

    filled = table("row", "seed", "seconds", text=("row",))
    for job in jobs:
        seconds = "to do" if job.seconds is None else figure(job.seconds, 1)
        filled.add_row(job.row, str(job.seed), seconds)
    say(filled)
    done = sum(job.seconds is not None for job in jobs)
    say(f"{done} of {len(jobs)} jobs are finished; without --plan the others are done")
