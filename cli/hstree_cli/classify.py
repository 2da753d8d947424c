"""Command for samples with several labels: `hstree classify`."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hstree_cli import options as opt
from hstree_cli.options import argument, option
from hstree_cli.outputs import Output, check_outputs, written
from hstree_cli.tables import facts, table
from hstree_cli.terminal import say, showing_progress

if TYPE_CHECKING:
    from hstree.data.multilabel import MultilabelData

FORM = "a line N D L, then label,label feature:value ... of each"
METHOD_HELP = (
    'Method with its options, as in "kmeans arity=16"; "kmeans arity=10 max_leaves=100" by default.'
)
#: Numbers of first labels that are scored.
KS = (1, 3, 5)


def classify(
    train: Annotated[Path, argument(metavar="TRAIN", help=f"Training samples: {FORM}")],
    test: Annotated[Path, argument(metavar="TEST", help="Test samples in the same form.")],
    *,
    method: Annotated[
        str | None, option("--method -m", METHOD_HELP, "METHOD", autocompletion=opt.builder_names)
    ] = None,
    output: Annotated[Path, option("--output -o", "Folder of the model.", "DIR")] = Path("labels"),
    json: opt.JsonFile = None,
    force: opt.Force = False,
    C: Annotated[
        float, option("--C", "Inverse strength of the penalty; more fits closer.", "C")
    ] = 3.0,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
) -> None:
    """Train a classifier of several labels a sample; print the precision of its first labels.

    The classifier is a probabilistic label tree: a tree of any method, over the
    labels' feature sums or frequencies, with a linear model for each child. In
    Python, `ProbabilisticLabelTreeClassifier.load("labels")` reads it.
    """
    from hstree._files import write_json
    from hstree._text import figure
    from hstree.data.memory import peak_memory
    from hstree.data.multilabel import read_multilabel
    from hstree.errors import InputError
    from hstree.interop.sklearn import ProbabilisticLabelTreeClassifier
    from hstree.interop.sklearn.label_files import FILES
    from hstree_cli.trees import builder_of

    chosen: dict[str, Any] = {}
    if method is not None:
        builder, options = builder_of(method, seed)
        chosen = {"builder": builder.name, "builder_options": options}
    outputs = Output("-o", output, holds=FILES), Output("--json", json)
    check_outputs(*outputs, reads=[train, test], force=force)
    with showing_progress(jobs=jobs):
        known, asked = read_multilabel(train), read_multilabel(test)
        if asked.X.shape[1:] != known.X.shape[1:] or asked.Y.shape[1:] != known.Y.shape[1:]:
            sizes = f"{asked.X.shape[1]} features and {asked.Y.shape[1]} labels"
            theirs = f"{known.X.shape[1]} and {known.Y.shape[1]}"
            raise InputError(f"{test} has {sizes}, {train} has {theirs}; both need the same")
        began = time.perf_counter()
        model = ProbabilisticLabelTreeClassifier(**chosen, C=C, random_state=seed)
        model.fit(*known)
        fitted = time.perf_counter()
        scores = model.predict_proba(asked.X, k=max(KS))
        ended = time.perf_counter()
    lines = _figures(known, asked, scores)
    times = {"fit_seconds": fitted - began, "predict_seconds": ended - fitted}
    results = {"method": method, "figures": lines, **times, "peak_bytes": peak_memory()}
    n = asked.X.shape[0]
    with written((output, model.save), (json, lambda path: write_json(path, results))):
        columns = ("k", *(name.replace("_", " ") for name in list(lines[0])[1:]))
        say(table(columns, [[str(k), *map(figure, of_k)] for k, *of_k in map(dict.values, lines)]))
        rows = [
            ("training", f"{known.X.shape[0]:,} samples, {known.Y.nnz:,} labels of them"),
            ("test", f"{n:,} samples, {asked.Y.nnz:,} labels of them"),
            ("sizes", f"{known.X.shape[1]:,} features, {known.Y.shape[1]:,} labels"),
            ("tree", f"{model.tree_.meta['method']}, {model.tree_.n_nodes:,} nodes"),
            ("weights", f"{model.weight_.nnz:,}"),
            ("fitting", f"{figure(fitted - began)} s, the tree included"),
            (
                "predicting",
                f"{figure(ended - fitted)} s, {1000 * (ended - fitted) / n:.3f} ms each",
            ),
            ("memory", f"{peak_memory() / 2**20:,.0f} MiB at most"),
            ("written", str(output)),
        ]
        say(facts(rows))


def _figures(
    known: "MultilabelData", asked: "MultilabelData", scores: Any
) -> list[dict[str, float]]:
    """Return the figures of the first labels, in percent."""
    from hstree import metrics

    weight = metrics.inverse_propensity(known.Y)
    of_k = metrics.propensity_scored_precision_at_k
    return [
        {
            "k": k,
            "P@k": 100 * metrics.precision_at_k(asked.Y, scores, k),
            "propensity-scored": 100 * of_k(asked.Y, scores, weight, k),
            "nDCG@k": 100 * metrics.ndcg_at_k(asked.Y, scores, k),
        }
        for k in KS
    ]
