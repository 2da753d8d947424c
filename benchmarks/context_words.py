"""Thousands of classes: predict a word from the bag of the words around it.

A class is one of the most frequent words of the Penn Treebank's training split under
``$HSTREE_TEST_DATA/ptb``; a sample is one of its positions, and its features are the words within
five positions of it, sparse and binary. The samples are drawn from the training split, and scored
on others drawn from the test split. All rows "adagrad" have the same objective, optimiser, batches
and epochs; a tree's rows "lbfgs" go to its optimum, node by node. `SGDClassifier` trains one
logistic regression per class: it is fitted to a few of the classes, and its seconds are scaled up.
scikit-learn's `LogisticRegression` is not run: one of its tables of scores would take samples x
classes numbers, and L-BFGS about 25 times its weights.

    python -m benchmarks.context_words [--classes 5000] [--samples 100000] [--json FILE]
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.linear_model import SGDClassifier

import hstree
from benchmarks import table
from hstree._arrays import Array
from hstree.interop.sklearn import HierarchicalSoftmaxClassifier

#: Places on each side of a word whose words are its features.
WINDOW = 5
#: Classes that `SGDClassifier` is fitted to.
FITTED = 25
#: Samples that are scored at a time.
BLOCK = 2000

Samples = tuple[scipy.sparse.csr_array, Array]

MODELS: dict[str, dict[str, Any]] = {
    "huffman, adagrad": {"builder": "huffman", "solver": "adagrad"},
    "gmm, adagrad": {"builder": "gmm", "solver": "adagrad"},
    "semantic, adagrad": {"builder": "semantic", "solver": "adagrad"},
    "flat, adagrad": {"builder": "flat", "solver": "adagrad"},
    "huffman, lbfgs": {"builder": "huffman", "solver": "lbfgs"},
    "gmm, lbfgs": {"builder": "gmm", "solver": "lbfgs"},
}


def main() -> None:
    parser = table.parser(__doc__)
    folder = os.path.join(os.environ.get("HSTREE_TEST_DATA", ""), "ptb")
    parser.add_argument("--ptb", default=folder, metavar="FOLDER")
    parser.add_argument("--classes", type=int, default=5000)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--C", type=float, default=0.1, help="inverse strength of the penalty")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    options = parser.parse_args()
    corpus = hstree.Corpus.read(os.path.join(options.ptb, "ptb.train.txt"))
    held_out = hstree.Corpus.read(
        os.path.join(options.ptb, "ptb.test.txt"), vocabulary=corpus.vocabulary
    )
    n_classes = min(options.classes, len(corpus.vocabulary))
    train = samples(corpus, n_classes, options.samples)
    test = samples(held_out, n_classes, options.samples // 5)
    numbers = len(train[1]) * n_classes, 25 * n_classes * train[0].shape[1]
    print(
        f"LogisticRegression would hold {8e-9 * numbers[0]:.1f} GB of scores and "
        f"{8e-9 * numbers[1]:.0f} GB of weights",
        file=sys.stderr,
    )
    rows = compare(train, test, options.models, epochs=options.epochs, C=options.C)
    table.report("context_words", rows, options.json)


def compare(
    train: Samples, test: Samples, models: list[str], **options: Any
) -> Iterator[dict[str, Any]]:
    """Fit and score the models one after the other."""
    for name in models:
        model = HierarchicalSoftmaxClassifier(**MODELS[name], **options)
        began = time.perf_counter()
        model.fit(*train)
        fitted = time.perf_counter()
        right, right_of_ten, nll = scores(model, *test)
        yield {
            "model": name,
            "classes": len(model.classes_),
            "scores/target": model.tree_.stats().scores_per_target,
            "fit s": fitted - began,
            "predict s": time.perf_counter() - fitted,
            "accuracy": 100 * right,
            "in first ten": 100 * right_of_ten,
            "log-loss": nll,
        }
    yield {
        "model": f"SGDClassifier, {FITTED} classes x scale",
        "classes": len(np.unique(train[1])),
        "fit s": seconds_of_sgd(*train, options["epochs"]),
    }


def samples(corpus: hstree.Corpus, n_classes: int, n: int) -> Samples:
    """Draw occurrences of the most frequent words of a text, with the words around them.

    Returns
    -------
    X : float32 CSR array (n, words)
        1 for each word at a distance of at most `WINDOW`.
    y : array of str (n,)
    """
    words, ids = np.array(corpus.vocabulary.words), corpus.ids(slice(0, len(corpus)))
    is_class = np.zeros(len(words), bool)
    is_class[np.argsort(-corpus.vocabulary.counts, kind="stable")[:n_classes]] = True
    positions = np.flatnonzero((ids >= 0) & is_class[ids])
    positions = positions[(positions >= WINDOW) & (positions < len(ids) - WINDOW)]
    positions = np.random.default_rng(0).permutation(positions)[:n]
    around = ids[positions[:, None] + np.delete(np.arange(-WINDOW, WINDOW + 1), WINDOW)]
    positions, around = positions[(around >= 0).all(axis=1)], around[(around >= 0).all(axis=1)]
    start = np.arange(0, around.size + 1, around.shape[1], dtype=np.int32)
    X = scipy.sparse.csr_array(
        (np.ones(around.size, np.float32), around.ravel(), start),
        shape=(len(positions), len(words)),
    )
    X.sum_duplicates()
    X.data[:] = 1
    return X, words[ids[positions]]


def scores(
    model: HierarchicalSoftmaxClassifier, X: scipy.sparse.csr_array, y: Array
) -> tuple[float, float, float]:
    """Return the accuracy, that of the first ten, and the mean nll of targets that are classes."""
    known = np.isin(y, model.classes_)
    X, target = X[known], np.searchsorted(model.classes_, y[known])
    rank, nll = np.empty(len(target)), 0.0
    for a in range(0, len(target), BLOCK):
        log_proba = model.predict_log_proba(X[a : a + BLOCK])
        of_target = np.take_along_axis(log_proba, target[a : a + BLOCK, None], axis=1)
        rank[a : a + BLOCK] = (log_proba > of_target).sum(axis=1)
        nll -= float(of_target.sum())
    return float((rank < 1).mean()), float((rank < 10).mean()), nll / len(target)


def seconds_of_sgd(X: scipy.sparse.csr_array, y: Array, epochs: int) -> float:
    """Return how long `SGDClassifier` would take for all classes, by fitting a few of them."""
    classes = np.unique(y)
    few = np.random.default_rng(0).permutation(classes)[:FITTED]
    began = time.perf_counter()
    for name in few:
        SGDClassifier(loss="log_loss", max_iter=epochs, tol=None).fit(X, y == name)
    return (time.perf_counter() - began) * len(classes) / len(few)


if __name__ == "__main__":
    main()
