"""`hstree bootstrap`: from text alone to a tree of a model's word vectors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hstree_cli import completions
from hstree_cli.options import (
    BatchSize,
    CorpusName,
    Dim,
    Dropout,
    Epochs,
    LearningRate,
    Lower,
    MinCount,
    Model,
    Replace,
    Seconds,
    Seed,
    Test,
    Valid,
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
    from hstree.experiments.results import Comparison


def bootstrap(
    corpus: CorpusName,
    rows: Annotated[
        list[str] | None,
        argument(
            "ROW",
            'Rows of the rounds after the first, built from vectors: gmm, "classes '
            'cluster_by=vectors" (default: gmm); the last is that of all later rounds.',
            autocompletion=completions.methods,
        ),
    ] = None,
    *,
    output: Annotated[Path, option("--output -o", "Folder for every round.", "DIR")],
    rounds: Annotated[
        int | None,
        option(
            "--rounds", "Number of trees after the first (default: one for each ROW).", "N", min=1
        ),
    ] = None,
    first: Annotated[
        str,
        option(
            "--first",
            "Row of the first tree, which needs no vectors.",
            "ROW",
            autocompletion=completions.methods,
        ),
    ] = "random",
    warm_start: Annotated[
        bool,
        option(
            "--warm-start",
            "Begin every later round with the word vectors of the best model so far.",
        ),
    ] = False,
    force: Replace = False,
    valid: Valid = None,
    test: Test = None,
    min_count: MinCount = 1,
    lower: Lower = False,
    epochs: Epochs = None,
    seconds: Seconds = None,
    seed: Seed = 0,
    model: Model = "lbl",
    dim: Dim = None,
    context: Width = None,
    batch_size: BatchSize = None,
    learning_rate: LearningRate = None,
    dropout: Dropout = None,
    weight_decay: WeightDecay = None,
) -> None:
    """Grow trees from the word vectors of a model that was trained on a tree before.

    A random tree is trained first; its words' mean predicted vectors make the next
    tree, which is trained in turn. The vectors are those of the best model so far.
    The rounds are rows of an ordinary comparison in DIR, whose page `hstree report`
    writes. Finished rounds are not done again.
    """
    from hstree.experiments.bootstrap import bootstrap as rounds_of
    from hstree.experiments.row import Row
    from hstree.report import PAGE, write
    from hstree_cli.inputs import read_splits
    from hstree_cli.results import print_comparison

    options = model_options(
        model, random_state=seed, dim=dim, context=context, batch_size=batch_size,
        learning_rate=learning_rate, dropout=dropout, weight_decay=weight_decay,
    )  # fmt: skip
    named = [Row.parse(text) for text in rows or ["gmm"]]
    check_folder(output, "-o", reads=[corpus, valid, test, *files_of_rows(named)])
    last: list[Comparison] = []
    try:
        with showing_progress():
            splits = read_splits(corpus, valid, test, lower=lower, **selection(min_count))
            for _ in rounds_of(
                splits, output, named, rounds=rounds, first=first, warm_start=warm_start,
                stop=stopping_rule(epochs, seconds), force=force, updated=last.append, **options,
            ):  # fmt: skip
                write(output)
    except KeyboardInterrupt:
        complain(f"interrupted; finished rounds are kept in {output}; the same command goes on")
        raise typer.Exit(INTERRUPTED) from None
    print_comparison(last[-1])
    say(f"A page to look at: {output / PAGE}")
