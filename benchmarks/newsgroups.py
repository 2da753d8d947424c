"""Twenty newsgroups: a linear model over a tree beside scikit-learn's logistic regression.

All rows have the same TF-IDF features, the same objective (`C`) and the same solver, L-BFGS run
until it converges: what differs is the tree. `LogisticRegression` is scikit-learn's
multinomial one; a flat tree is the same model. The data are `20news-bydate.tar.xz` under
``$HSTREE_TEST_DATA/20news``: `train.jsonl` and `test.jsonl`, with the keys `group` and `text`.

    python -m benchmarks.newsgroups [--data FILE] [--C 10] [--json FILE]
"""

from __future__ import annotations

import json
import os
import tarfile
import time
from collections.abc import Iterator
from typing import Any

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from benchmarks import table
from hstree.interop.sklearn import HierarchicalSoftmaxClassifier

#: Classifiers to compare: a name, and the parameters. The last takes minutes, since its
#: nodes are moved together; it is left out unless asked for.
TREES: dict[str, dict[str, Any]] = {
    "flat": {"builder": "flat"},
    "gmm": {"builder": "gmm"},
    "kmeans": {"builder": "kmeans"},
    "kmeans, balanced": {"builder": "kmeans", "builder_options": {"balanced": True}},
    "linkage": {"builder": "linkage"},
    "semantic": {"builder": "semantic"},
    "huffman": {"builder": "huffman"},
    "random": {"builder": "random"},
    "gmm, epsilon 0.4, 4 trees": {
        "builder": "gmm",
        "builder_options": {"epsilon": 0.4, "trees": 4},
    },
}


def main() -> None:
    parser = table.parser(__doc__)
    folder = os.path.join(os.environ.get("HSTREE_TEST_DATA", ""), "20news")
    parser.add_argument("--data", default=os.path.join(folder, "20news-bydate.tar.xz"))
    parser.add_argument("--C", type=float, default=10.0, help="inverse strength of the penalty")
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--trees", nargs="+", choices=list(TREES), default=list(TREES)[:-1])
    options = parser.parse_args()
    table.report(
        "newsgroups", compare(options.data, options.C, options.tol, options.trees), options.json
    )


def compare(data: str, C: float, tol: float, trees: list[str]) -> Iterator[dict[str, Any]]:
    """Fit and score scikit-learn's model, then one on each tree."""
    train, test = read(data, "train"), read(data, "test")
    features = TfidfVectorizer(sublinear_tf=True)
    X_train, X_test = features.fit_transform(train[0]), features.transform(test[0])
    models: dict[str, Any] = {
        "LogisticRegression": LogisticRegression(C=C, tol=tol, max_iter=1000),
        **{
            name: HierarchicalSoftmaxClassifier(**TREES[name], C=C, tol=tol, max_iter=1000)
            for name in trees
        },
    }
    for name, model in models.items():
        began = time.perf_counter()
        model.fit(X_train, train[1])
        fitted = time.perf_counter()
        proba = model.predict_proba(X_test)
        predicted = time.perf_counter()
        tree = getattr(model, "tree_", None)
        yield {
            "model": name,
            "scores/target": 20.0 if tree is None else tree.stats().scores_per_target,
            "iterations": int(max(model.n_iter_)) if tree is None else model.n_iter_,
            "fit s": fitted - began,
            "predict s": predicted - fitted,
            "accuracy": 100 * float((model.classes_[proba.argmax(axis=1)] == test[1]).mean()),
            "log-loss": float(log_loss(test[1], proba, labels=model.classes_)),
        }


def read(path: str, part: str) -> tuple[list[str], list[str]]:
    """Return the texts and the groups of a split."""
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None and os.path.basename(member.name) == f"{part}.jsonl":
                records = [json.loads(line) for line in file]
                return [r["text"] for r in records], [r["group"] for r in records]
    raise SystemExit(f"{path} holds no {part}.jsonl")


if __name__ == "__main__":
    main()
