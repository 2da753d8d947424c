"""`hstree compare`: several output layers, one model trained on each, the results in one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hstree_cli.arguments import refuse_lists
from hstree_cli.completions import layers, methods
from hstree_cli.options import (
    Budget,
    CorpusName,
    HeldOut,
    Only,
    Quiet,
    Reading,
    Replace,
    Resuming,
    Within,
    examples,
    option,
)
from hstree_cli.outputs import check_folder, files_of_rows, show_kept
from hstree_cli.registered_options import ModelOptions
from hstree_cli.tables import origin
from hstree_cli.terminal import showing_progress

if TYPE_CHECKING:
    from hstree.data.vocabulary import Vocabulary
    from hstree.experiments.entries import Entry
    from hstree.experiments.evaluation import Splits
    from hstree.experiments.results import Comparison
    from hstree.tree import Tree

#: Methods and baselines of a comparison by default.
METHODS = ["random", "huffman", "semantic", "gmm", "gmm --epsilon 0.4 --trees 4", "classes", "flat"]
BASELINES = ("kn5",)
#: Files and folders in the folder of a comparison.
ARTEFACTS = ("results.json", "results.csv", "words.json", "report.html", "runs")


@examples(
    'hstree compare corpus.txt -m huffman -m "gmm --epsilon 0.4" -m flat -o runs',
    'hstree compare corpus.txt -m huffman -m flat --layer "sampled --samples 500" -o runs',
    "hstree compare corpus.txt --tree mine.json -m flat --baseline kn5 --seeds 3 -o runs",
)
def compare(
    corpus: CorpusName,
    *,
    output: Annotated[Path, option("--output -o", "Folder for every run and the results.", "DIR")],
    method: Annotated[
        list[str] | None,
        option(
            "--method -m",
            'Method with its options, as in "gmm --epsilon 0.4" or "gmm + ngrams", or several '
            'models of one, "3 x gmm"; repeatable.',
            "METHOD",
            autocompletion=methods,
        ),
    ] = None,
    tree: Annotated[
        list[Path] | None, option("--tree", "File of a tree; repeatable.", "TREE")
    ] = None,
    layer: Annotated[
        list[str] | None,
        option(
            "--layer",
            'Output layer with its options, as in "sampled --samples 500"; repeatable.',
            "LAYER",
            autocompletion=layers,
        ),
    ] = None,
    baseline: Annotated[
        list[str] | None,
        option("--baseline", "Kneser-Ney model of order N, kn2 to kn7; repeatable.", "knN"),
    ] = None,
    seeds: Annotated[int, option("--seeds", "Number of seeds, from --seed on.", "N", min=1)] = 1,
    limit: Budget,
    equal_seconds: Annotated[
        bool,
        option(
            "--equal-seconds",
            "With --minutes, train every row for the same time, not for the same epochs.",
        ),
    ] = False,
    within: Within = 0.03,
    only: Only = False,
    force: Replace = False,
    held_out: HeldOut,
    training: Annotated[dict[str, Any], ModelOptions(without=frozenset(["online"]))],
    reading: Reading,
    resuming: Resuming,
    quiet: Quiet = False,
) -> None:
    """Train the same model with several trees and output layers; compare cost and perplexity.

    Trees are built from the training split alone; those built from vectors take
    them from a model that was trained on a random tree. Rows are in the order
    methods, trees, layers, baselines; the row named below them is chosen by
    validation perplexity. With --tree and no option that chooses words, the words are those
    of the first tree; all trees must have the same words. "3 x gmm" trains three models,
    each with a seed and a tree of its own, and scores by the mean of their probabilities;
    "3 x" may precede a layer, too.

    By default it compares random, huffman, semantic, gmm, gmm --epsilon 0.4 --trees
    4, classes, flat and, with --model lbl, kn5. The time of the flat softmax grows
    with the vocabulary.

    DIR gets results.json, results.csv and every run. Finished runs in DIR are not
    done again: an interrupted comparison continues, and a new method only adds its
    row to those in DIR. DIR may be that of a survey: they share the runs after equal
    epochs. Measured speeds are kept, too: asked again, the answer is the same.

    It begins with a plan from a few measured batches of each row. With --minutes, the
    same epochs for every row are fitted to the time; the slowest rows are left out,
    flat too, until three epochs fit, and "sampled" stands in for flat. results.json
    and the page are written after each row.
    """
    from hstree._files import recorded_name
    from hstree.experiments.comparison import plan_of
    from hstree.experiments.entries import Baseline, NamedOutput
    from hstree.models import kind_of
    from hstree.tree import load
    from hstree_cli.inputs import read_splits, read_vocabulary, warn_of_seen_lines
    from hstree_cli.method_strings import parse_entries
    from hstree_cli.plan_tables import print_plan

    if not (method or tree or layer or baseline):
        is_language_model = kind_of(training).model.is_language_model
        method, baseline = METHODS, list(BASELINES if is_language_model else ())
    for typed, values in (
        *(("-m", method), ("--layer", layer)),
        *(("--baseline", baseline), ("--tree", tree)),
    ):
        refuse_lists(typed, values)
    entries, layers_of_rows = parse_entries(method or (), layer or ())
    sources = [corpus, held_out.valid, held_out.test, reading.vocabulary, *(tree or ())]
    sources += files_of_rows(entries + layers_of_rows)
    check_folder(output, "-o", ARTEFACTS, reads=sources)
    with showing_progress(quiet):
        trees = {recorded_name(path): load(path) for path in tree or ()}
        words = read_vocabulary(reading)
        if trees and words is None and not reading.selection:
            words = _words_of(next(iter(trees.values())), corpus, held_out, reading)
        splits = read_splits(corpus, held_out, reading, words)
    warn_of_seen_lines(splits, trees)
    entries += [NamedOutput(name, tree) for name, tree in trees.items()]
    entries += layers_of_rows
    entries += map(Baseline.named, baseline or ())
    with resuming.applied([output / "runs"]):
        budget: dict[str, Any] = {
            "seeds": seeds,
            "minutes": limit.minutes,
            "equal_seconds": equal_seconds,
        }
        folder: dict[str, Any] = {"only": only, "force": force or resuming.fresh}
        if limit.plan:
            with showing_progress(quiet):
                planned = plan_of(splits, entries, output, **budget, **folder, **training)
            print_plan(planned, entries, splits.train)
            return
        run_comparison(
            splits, entries, output, quiet, within=within, **budget, **folder, **training
        )


def run_comparison(
    splits: Splits, entries: Sequence[Entry], output: Path, quiet: bool, **options: Any
) -> None:
    """Compare, print the results and write their page; `options` are those of `compare`."""
    from hstree.experiments import compare
    from hstree.report import PAGE, write
    from hstree_cli.plan_tables import announce
    from hstree_cli.result_tables import print_comparison

    def show(results: Comparison) -> None:
        print_comparison(results, origin(splits.train), f"{output}/")

    show_kept(
        lambda keep: compare(
            splits,
            entries,
            output,
            planned=lambda plan: announce(plan, entries, splits.train),
            updated=write,
            compared=keep,
            **options,
        ),
        show,
        output / PAGE,
        write,
        runs=output / "runs",
        quiet=quiet,
    )


def _words_of(tree: Tree, corpus: str, held_out: HeldOut, reading: Reading) -> Vocabulary:
    """Return a tree's labels in the order that the training split itself would give them."""
    from hstree.data.provenance import texts
    from hstree.data.vocabulary import Vocabulary
    from hstree_cli.inputs import read_splits

    labels = Vocabulary(tree.labels, [0] * tree.n_labels)
    counts = read_splits(corpus, held_out, reading, labels).train.counts
    order = sorted(range(tree.n_labels), key=lambda i: (-counts[i], tree.labels[i]))
    source: dict[str, object] = {
        "kind": "tree",
        "sha256": tree.sha256,
        "texts": texts(tree.meta.get("input")),
    }
    return Vocabulary([tree.labels[i] for i in order], counts[order], source=source)
