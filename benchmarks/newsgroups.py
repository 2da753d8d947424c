"""Twenty newsgroups: a linear model over a tree beside scikit-learn's logistic regression.

All rows have the same TF-IDF features, the same objective (`C`) and the same solver, L-BFGS run
until it converges: what differs is the tree. `LogisticRegression` is scikit-learn's
multinomial one; a flat tree is the same model. "taxonomy" is the tree of the groups' names, whose
parts between dots are its nodes. "p" is of McNemar's exact test of the accuracy against that of
`LogisticRegression`.

The data are scikit-learn's `fetch_20newsgroups`, which downloads them once, or a tar of
`train.jsonl` and `test.jsonl` with the keys `group` and `text`: by default
``$HSTREE_TEST_DATA/20news/20news-bydate.tar.xz``, where that variable is set.

    python -m benchmarks.newsgroups [--data FILE] [--rows ROW ...] [--C 10] [--json FILE]
"""

from __future__ import annotations

import json
import os
import tarfile
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from scipy.stats import binomtest
from sklearn.datasets import fetch_20newsgroups
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import hstree
from benchmarks import table
from hstree._options import parse_options
from hstree.builders.registry import BUILDERS
from hstree.formats.nested import from_nested
from hstree.interop.sklearn import HierarchicalSoftmaxClassifier

#: Trees to compare: "taxonomy" is that of the groups' names. The last takes minutes, since its
#: nodes are moved together; it is left out unless asked for.
ROWS = (
    *("flat", "taxonomy", "gmm", "kmeans", "kmeans balanced=true", "linkage", "semantic"),
    *("huffman", "random", "gmm epsilon=0.4 trees=4"),
)


def main() -> None:
    parser = table.parser(__doc__)
    folder = os.environ.get("HSTREE_TEST_DATA")
    tar = folder and os.path.join(folder, "20news", "20news-bydate.tar.xz")
    parser.add_argument("--data", default=tar, help="a tar (default: scikit-learn's data)")
    parser.add_argument("--C", type=float, default=10.0, help="inverse strength of the penalty")
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--rows", nargs="+", default=ROWS[:-1], metavar="ROW")
    options = parser.parse_args()
    solver = {"C": options.C, "tol": options.tol, "max_iter": 1000}
    table.report("newsgroups", compare(options.data, options.rows, solver), options.json)


def compare(
    data: str | None, rows: Sequence[str], solver: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Fit and score scikit-learn's model, then one on each tree."""
    train, test = read(data, "train"), read(data, "test")
    features = TfidfVectorizer(sublinear_tf=True)
    X_train, X_test = features.fit_transform(train[0]), features.transform(test[0])
    taxonomy = from_nested(nested(sorted(set(train[1]))))
    models: dict[str, Any] = {"LogisticRegression": LogisticRegression(**solver)}
    for row in rows:
        models[row] = HierarchicalSoftmaxClassifier(**tree_options(row, taxonomy), **solver)
    right_of_first: Any = None  # which test posts LogisticRegression classifies right
    for name, model in models.items():
        began = time.perf_counter()
        model.fit(X_train, train[1])
        fitted = time.perf_counter()
        proba = model.predict_proba(X_test)
        predicted = time.perf_counter()
        tree = getattr(model, "tree_", None)
        right = model.classes_[proba.argmax(axis=1)] == np.asarray(test[1])
        right_of_first = right if right_of_first is None else right_of_first
        yield {
            "model": name,
            "scores/target": 20.0 if tree is None else tree.stats().scores_per_target,
            "iterations": int(max(model.n_iter_)) if tree is None else model.n_iter_,
            "fit s": fitted - began,
            "predict s": predicted - fitted,
            "accuracy": 100 * float(right.mean()),
            "p": mcnemar(right, right_of_first),
            "log-loss": float(log_loss(test[1], proba, labels=model.classes_)),
        }


def tree_options(row: str, taxonomy: hstree.Tree) -> dict[str, Any]:
    """Return the options of a classifier that say what its tree is."""
    if row == "taxonomy":
        return {"tree": taxonomy}
    name, *pairs = row.split()
    options = parse_options(name, BUILDERS.get(name).options, pairs)
    return {"builder": name, "builder_options": options}


def nested(names: Sequence[str], depth: int = 1) -> Any:
    """Lists of sorted names that share their first parts between dots; one name is itself.

    >>> nested(["alt.atheism", "rec.autos", "rec.sport.baseball", "rec.sport.hockey"])
    ['alt.atheism', ['rec.autos', ['rec.sport.baseball', 'rec.sport.hockey']]]
    """
    if len(names) == 1:
        return names[0]
    parts = groupby(names, key=lambda name: name.split(".")[:depth])
    branches = [nested(list(part), depth + 1) for _, part in parts]
    return branches if len(branches) > 1 else branches[0]


def mcnemar(right: Any, other: Any) -> float:
    """P value of the difference of two accuracies on the same samples."""
    better, worse = int((right & ~other).sum()), int((other & ~right).sum())
    return float(binomtest(better, better + worse).pvalue) if better + worse else 1.0


def read(path: str | None, part: str) -> tuple[list[str], list[str]]:
    """Return the texts and the groups of a split."""
    if path is None:
        data: Any = fetch_20newsgroups(subset=part)
        return data.data, [data.target_names[group] for group in data.target]
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None and os.path.basename(member.name) == f"{part}.jsonl":
                records = [json.loads(line) for line in file]
                return [r["text"] for r in records], [r["group"] for r in records]
    raise SystemExit(f"{path} holds no {part}.jsonl")


if __name__ == "__main__":
    main()
