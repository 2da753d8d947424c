"""Commands to start with: `hstree demo`, `hstree compare` and `hstree report`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hstree_cli import options as opt
from hstree_cli.options import argument, option
from hstree_cli.outputs import Output, check_outputs
from hstree_cli.tables import facts, figure, table
from hstree_cli.terminal import going_on_in, say, showing_progress

if TYPE_CHECKING:
    from hstree.data.splits import Splits
    from hstree.experiments.results import Comparison
    from hstree.experiments.row import Row

ROWS_HELP = (
    f'{opt.ROW_HELP}, several models ("2 x flat"), an n-gram model (kn5), or a set: trees, '
    "approximations."
)
DEMO_CORPUS, DEMO_MIN_COUNT = "builtin:python", 5
DEMO_ROWS = ("huffman", "gmm", "classes", "flat", "kn3")
#: Seconds between two looks at a comparison's file.
POLL = 1.0


def demo(
    output: Annotated[Path, option("--output -o", "Folder of results.", "DIR")] = Path("demo"),
) -> None:
    """Train the same model on three trees and the flat softmax, of built-in text; compare.

    The text is the English of Python's own documentation; nothing is downloaded. Use
    `hstree compare` for a text of your own.
    """
    check_outputs(Output("-o", output, holds=()), reads=[])
    say(f"Comparing {', '.join(DEMO_ROWS)} on the text {DEMO_CORPUS}.")
    from hstree.experiments.results import Epochs
    from hstree.experiments.row import Row
    from hstree_cli.inputs import read_splits

    rows = [Row.parse(text) for text in DEMO_ROWS]
    with going_on_in(output):
        splits = read_splits(DEMO_CORPUS, min_count=DEMO_MIN_COUNT)
        results = _compared(splits, rows, output, stop=Epochs(2), speed_rounds=1, batch_size=1024)
    _print(results, output)


def compare(
    corpus: opt.CorpusName,
    rows: Annotated[
        list[str] | None, argument("ROW", ROWS_HELP, autocompletion=opt.row_names)
    ] = None,
    *,
    output: Annotated[Path, option("--output -o", "Folder for every run and the results.", "DIR")],
    plan: Annotated[bool, option("--plan", "List the jobs, done or to do, and stop.")] = False,
    force: opt.Replace = False,
    valid: opt.Valid = None, test: opt.Test = None, min_count: opt.MinCount = 1,
    lower: opt.Lower = False, text: opt.AsText = False, vocabulary: opt.VocabularyFile = None,
    minutes: opt.Minutes = None, seconds: opt.Seconds = None, epochs: opt.Epochs = None,
    seeds: Annotated[int, option("--seeds", "Number of seeds, from --seed on.", "N", min=1)] = 1,
    seed: opt.Seed = 0,
    model: opt.Model = "lbl", dim: opt.Dim = None, context: opt.Width = None,
    batch_size: opt.BatchSize = None, learning_rate: opt.Rate = None, dropout: opt.Dropout = None,
) -> None:  # fmt: skip
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
    from hstree.experiments.row import parse_rows
    from hstree_cli.inputs import read_splits, trees_of

    options = opt.model_options(
        model, random_state=seed, dim=dim, context=context, batch_size=batch_size,
        learning_rate=learning_rate, dropout=dropout,
    )  # fmt: skip
    stop = opt.stopping_rule(epochs, seconds, minutes)
    named = parse_rows(rows, options) if rows else None
    reads = [corpus, valid, test, vocabulary, *(file for row in named or () for file in row.files)]
    check_outputs(Output("-o", output, holds=()), reads=reads)
    arguments: dict[str, Any] = {"stop": stop, "seeds": seeds, "force": force, **options}
    with going_on_in(output):
        splits = read_splits(
            corpus, valid, test, lower=lower, text=text, vocabulary=vocabulary,
            trees=trees_of(named or ()), **opt.selection(min_count),
        )  # fmt: skip
        if plan:
            _print_plan(splits, named, output, arguments)
            return
        results = _compared(splits, named, output, **arguments)
    _print(results, output)


def _compared(splits: Splits, rows: list[Row] | None, output: Path, **options: Any) -> Comparison:
    """Compare rows, and write the page after each."""
    from hstree.experiments.compare import compare as run
    from hstree.report import write

    def write_page(_: Comparison) -> None:
        write(output)

    return run(splits, rows, output, updated=write_page, **options)


def _print(comparison: Comparison, output: Path) -> None:
    from hstree.report import PAGE
    from hstree_cli.results import print_comparison

    print_comparison(comparison, output / PAGE)


def _print_plan(
    splits: Splits, rows: list[Row] | None, output: Path, options: dict[str, Any]
) -> None:
    from hstree.experiments.compare import plan_of

    jobs = plan_of(splits, rows, output, **options)
    seconds = ["to do" if job.seconds is None else figure(job.seconds, 1) for job in jobs]
    lines = [(job.row, str(job.seed), spent) for job, spent in zip(jobs, seconds, strict=True)]
    say(table(("row", "seed", "seconds"), lines, ("row",)))
    done = sum(job.seconds is not None for job in jobs)
    say(f"{done} of {len(jobs)} jobs are finished; without --plan the others are done")


def report(
    ctx: typer.Context,
    folder: Annotated[Path, argument("DIR", "Folder of `hstree compare`, or results.json in it.")],
    output: Annotated[Path | None, option("--output -o", "Page (DIR/report.html).", "FILE")] = None,
    follow: Annotated[bool, option("--follow", "Write the page again after each row.")] = False,
) -> None:
    """Write one self-contained page with a comparison's table, plots and trees.

    It opens in any browser and needs no network. A comparison that still runs has a
    page, too, which names the rows that are pending.
    """
    from hstree.experiments import results
    from hstree.report import write

    if folder.is_file():
        if folder.name != results.JSON:
            wanted = f"the folder that `hstree compare` wrote, or {results.JSON} in it"
            raise opt.UsageError(f"{folder} is a file; give {wanted}", ctx)
        folder = folder.parent
    reads = [folder / name for name in (results.JSON, "runs", "trees")]
    check_outputs(Output("-o", output, (".html", ".htm")), reads=reads)

    def write_page() -> None:
        with showing_progress():
            page = write(folder, output)
        size = page.stat().st_size / 1e6
        say(facts([("written", f"{page}, {size:.1f} MB: open it in a browser")]))

    write_page()
    for pending in _rows_ended(folder / results.JSON) if follow else ():
        write_page()
        say(facts([("pending", ", ".join(pending) or "none")]))


def _rows_ended(file: Path) -> Iterator[list[str]]:
    """Yield the names of the pending rows whenever the results change, until none is."""
    from hstree.experiments import results

    def changed() -> tuple[int, int]:  # a new version is renamed
        status = file.stat()
        return status.st_mtime_ns, status.st_ino

    pending, last = results.load(file).pending, changed()
    while pending:
        time.sleep(POLL)
        if (now := changed()) != last:
            pending, last = results.load(file).pending, now
            yield pending
