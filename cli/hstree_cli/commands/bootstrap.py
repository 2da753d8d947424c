"""`hstree bootstrap`: from text alone to a tree of a model's word vectors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hstree_cli.completions import methods as methods_to_complete
from hstree_cli.options import (
    Budget,
    CorpusName,
    HeldOut,
    JsonFile,
    Quiet,
    Reading,
    Resuming,
    examples,
    option,
)
from hstree_cli.outputs import check_file, check_folder, files_of_rows, written
from hstree_cli.registered_options import BuilderOptions, ModelOptions
from hstree_cli.tables import origin
from hstree_cli.terminal import showing_progress

if TYPE_CHECKING:
    from hstree.builders import Builder
    from hstree.experiments.planning import Plan


def _example(builder: Builder) -> str:
    options = "--epsilon 0.4 --trees 4" if builder.name == "gmm" else f"--method {builder.name}"
    return f"hstree bootstrap corpus.txt -o runs {options} --rounds 2"


@examples(
    "hstree bootstrap corpus.txt -o runs --epsilon 0.4 --trees 4 --rounds 2",
    'hstree bootstrap corpus.txt -o runs --then "classes --cluster-by vectors --short-list 1000"',
)
def bootstrap(
    corpus: CorpusName,
    *,
    output: Annotated[Path, option("--output -o", "Folder for every round.", "DIR")],
    rounds: Annotated[
        int | None,
        option(
            "--rounds",
            "Number of trees after the first, each from the best model before it (default: one "
            "for --method and each --then).",
            "N",
            min=1,
        ),
    ] = None,
    method: Annotated[
        str,
        option(
            "--method -m",
            "Method of the rounds after the first, whose options follow.",
            autocompletion=methods_to_complete,
        ),
    ] = "gmm",
    then: Annotated[
        list[str] | None,
        option(
            "--then",
            'Another method from the next round on, with its options as in "classes --cluster-by '
            'vectors"; repeatable.',
            "METHOD",
            autocompletion=methods_to_complete,
        ),
    ] = None,
    first: Annotated[
        str,
        option(
            "--first",
            "Method of the first tree, with its options; it needs no vectors.",
            "METHOD",
            autocompletion=methods_to_complete,
        ),
    ] = "random",
    warm_start: Annotated[
        bool,
        option(
            "--warm-start",
            "Begin every later round with the word vectors of the best model so far.",
        ),
    ] = False,
    held_out: HeldOut,
    options: Annotated[dict[str, Any], BuilderOptions(_example, "gmm")],
    training: Annotated[dict[str, Any], ModelOptions(fixed=True)],
    reading: Reading,
    limit: Budget,
    resuming: Resuming,
    json: JsonFile = None,
    force: Annotated[
        bool,
        option("--force", "Replace existing files and rounds of another text, budget or start."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Grow trees from the word vectors of a model that was trained on a tree before.

    A random tree is trained first; its words' mean predicted vectors make the next
    tree, which is trained in turn. The vectors are those of the best model so far.
    DIR gets round-0, round-1, ...: tree.json, vectors.npy, the model and result.json.
    Finished rounds are not done again.
    """
    from hstree._files import write_json
    from hstree.experiments.bootstrap import bootstrap as rounds_of
    from hstree.experiments.bootstrap import plan_of
    from hstree.experiments.entries import Method
    from hstree_cli.arguments import find_builder
    from hstree_cli.inputs import read_splits, read_vocabulary, warn_of_seen_lines
    from hstree_cli.method_strings import parse_method, spelled
    from hstree_cli.plan_tables import announce, print_plan
    from hstree_cli.result_tables import print_rounds

    sources = [corpus, held_out.valid, held_out.test, reading.vocabulary]
    grown = Method(method, options, name=spelled(find_builder(method), options))
    methods = [grown, *(parse_method(text) for text in then or ())]
    sources += files_of_rows([*methods, parse_method(first)])
    folders = [f"round-{number}" for number in range((rounds or len(methods)) + 1)]
    check_folder(output, "-o", folders, reads=sources, beside=[json])
    check_file(json, "--json", force=force, reads=sources)
    with showing_progress(quiet):
        splits = read_splits(corpus, held_out, reading, read_vocabulary(reading))
        warn_of_seen_lines(splits, {})
        arguments: dict[str, Any] = {
            "rounds": rounds,
            "first": parse_method(first),
            "warm_start": warm_start,
            "minutes": limit.minutes,
            "force": force or resuming.fresh,
            **training,
        }
        if limit.plan:
            print_plan(plan_of(splits, output, methods, **arguments), [], splits.train)
            return

        def show(plan: Plan) -> None:
            announce(plan, [], splits.train)

        with resuming.applied(output / name for name in folders):
            results = dict(rounds_of(splits, output, methods, planned=show, **arguments))
    document = {name: result.as_dict() for name, result in results.items()}
    with written((json, lambda path: write_json(path, document))):
        print_rounds(results, output, origin(splits.train))
