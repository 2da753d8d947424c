"""Prediction over many classes: best-first search beside the pass over all nodes, in one process.

Texts are drawn from a topic of words for each class, which shares most of its words with the
classes beside it, so that probabilities are spread as those of real texts are. The features are
TF-IDF (sparse), or their projection to a hundred numbers (dense); the model is trained by
Adagrad. Both methods predict the same samples in turns; figures are medians over the turns.

    python -m benchmarks.class_search [--classes 10000] [--samples 2048] [--json FILE]
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.random_projection import GaussianRandomProjection

from benchmarks import table
from benchmarks.classifiers import texts
from hstree.interop.sklearn import HierarchicalSoftmaxClassifier

#: Words of a text, and words that a class has of its own.
TEXT, TOPIC = 60, 20


def main() -> None:
    parser = table.parser(__doc__)
    parser.add_argument("--classes", type=int, default=10_000)
    parser.add_argument("--words", type=int, default=5_000)
    parser.add_argument("--samples", type=int, default=2_048)
    parser.add_argument("--train", type=int, default=40_000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--builders", nargs="+", default=["huffman", "gmm"])
    parser.add_argument("--features", nargs="+", default=["sparse", "dense"])
    options = parser.parse_args()
    table.report("class_search", compare(options), options.json)


def compare(options: Any) -> Iterator[dict[str, Any]]:
    """Train a classifier on each tree, then time `predict` and `top_k`."""
    rng = np.random.default_rng(0)
    topics = rng.integers(options.words, size=(options.classes, TOPIC))
    near = np.arange(options.classes) // 10 * 10  # ten classes share half of their words
    topics[:, : TOPIC // 2] = topics[near, : TOPIC // 2]
    share = 1 / np.arange(1, options.classes + 1)
    y = rng.choice(options.classes, options.train + options.samples, p=share / share.sum())
    y[: options.classes] = np.arange(options.classes)
    X = texts(y, topics, options.words, rng, length=TEXT, topical=0.5)
    parts = {"sparse": X, "dense": GaussianRandomProjection(100, random_state=0).fit_transform(X)}
    for features in options.features:
        X_train, X_test = parts[features][: options.train], parts[features][options.train :]
        for builder in options.builders:
            model = HierarchicalSoftmaxClassifier(
                builder, solver="adagrad", epochs=options.epochs, learning_rate=0.3
            )
            model.fit(X_train.astype(np.float32), y[: options.train])
            for k in (1, 5):
                yield {
                    "features": features,
                    "tree": builder,
                    "method": "predict" if k == 1 else f"top_k({k})",
                    "accuracy": 100 * model.score(X_test, y[options.train :]),
                    **timed(model, X_test.astype(np.float32), k, options.turns),
                }


def timed(model: HierarchicalSoftmaxClassifier, X: Any, k: int, turns: int) -> dict[str, Any]:
    """Time both methods in turns, and count the answers that differ."""

    def search() -> Any:
        return model.predict(X)[:, None] if k == 1 else model.top_k(X, k)[0]

    def all_nodes() -> Any:
        log_prob = model.predict_log_proba(X)
        if k == 1:
            return model.classes_[np.exp(log_prob).argmax(axis=1)][:, None]
        return model.classes_[np.argsort(-log_prob, axis=1, kind="stable")[:, :k]]

    seconds: dict[str, list[float]] = {"search": [], "all nodes": []}
    answers = {}
    for _ in range(turns):
        for name, method in (("search", search), ("all nodes", all_nodes)):
            began = time.process_time()
            answers[name] = method()
            seconds[name].append(time.process_time() - began)
    by_search, by_all = (
        1e3 * statistics.median(seconds[name]) / X.shape[0] for name in ("search", "all nodes")
    )
    return {
        "search ms": by_search,
        "all nodes ms": by_all,
        "ratio": by_all / by_search,
        "differ": int((answers["search"] != answers["all nodes"]).any(axis=1).sum()),
    }


if __name__ == "__main__":
    main()
