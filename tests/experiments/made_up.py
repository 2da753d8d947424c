"""Rows and comparisons with figures that nobody measured."""

from hstree.experiments.results import (
    CodeLength,
    Comparison,
    Machine,
    Row,
    RowRun,
    Spread,
    TreeFigures,
    VocabularyFigures,
)

SPLITS = ("train", "valid", "test")
OPTIONS = {
    "seeds": [0],
    "dim": 8,
    "epochs": 1,
    "batch_size": 64,
    "context": 5,
    "full": False,
    "learning_rate": 0.1,
    "dropout": 0.3,
    "weight_decay": 0.0,
}


def a_row(*, kind="tree", **changed):
    """Return a row of a tree or a baseline."""
    is_tree = kind == "tree"
    fields = {
        "name": "made up",
        "entry": {"output": "made up"},
        "tree_file": "tree.json" if is_tree else None,
        "method": None,
        "options": {},
        "tree": a_tree() if is_tree else None,
        "code_lengths": None,
        "parameters": 3,
        "in_wordnet": None,
        "runs": [RowRun(seed=None, folder="runs", perplexity={}, seconds=1.0)],
        "perplexity": {
            part: Spread(mean=2.0, sd=None, n=1) for part in ("valid", "test", "test_without_oov")
        },
        "at_epoch_limit": 0,
        "seconds_per_epoch": None,
        "tokens_per_second": None,
        "speed_up": None,
        "from_text": None,
        "seen": None,
        "to_flat": None,
        "by_band": [],
    }
    return Row(kind=kind, **fields | changed)


def a_tree(*, nodes=2, codes_per_label=1.0, scores_per_target=1.5, uniform=1.5, weighted=None):
    return TreeFigures(
        nodes=nodes,
        codes_per_label=codes_per_label,
        code_length=CodeLength(uniform=uniform, weighted=weighted),
        scores_per_target=scores_per_target,
        sha256="ab",
    )


def a_comparison(*rows, **changed):
    """Return a comparison of rows."""
    fields = {
        "corpus": {split: {} for split in SPLITS},
        "tokens": dict.fromkeys(SPLITS, 9),
        "oov": dict.fromkeys(SPLITS, 0),
        "vocabulary": VocabularyFigures(size=3, sha256="ab"),
        "options": OPTIONS,
        "versions": {},
        "machine": Machine(cores=2, system="Linux", processor="x86_64"),
        "unigram": None,
        "bands": [],
        "rows": list(rows),
        "choice": None,
    }
    return Comparison(**fields | changed)
