"""Classify the same data with several trees in scikit-learn; print times and accuracies.

The data are synthetic: 100 classes in 20 families. A tree over the class means can find these
families.

    python examples/sklearn_many_classes.py
"""

import time

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hstree.interop.sklearn import HierarchicalSoftmaxClassifier

CLASSES = 100
FAMILIES = 20
FEATURES = 40
SAMPLES = 5_000


def main() -> None:
    """Fit four models with the same objective, and print one line per model."""
    X, y = families()
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    models = {
        "LogisticRegression": LogisticRegression(max_iter=1000),
        "flat": HierarchicalSoftmaxClassifier("flat"),
        "gmm": HierarchicalSoftmaxClassifier("gmm"),
        "random": HierarchicalSoftmaxClassifier("random"),
    }
    print(f"{'model':<20}{'fit s':>8}{'accuracy':>10}{'in first 5':>12}")
    for name, model in models.items():
        pipeline = make_pipeline(StandardScaler(), model)
        began = time.perf_counter()
        pipeline.fit(X_train, y_train)
        seconds = time.perf_counter() - began
        proba = pipeline.predict_proba(X_test)
        first_five = model.classes_[np.argsort(-proba, axis=1)[:, :5]]
        in_first_five = (first_five == y_test[:, None]).any(axis=1).mean()
        accuracy = pipeline.score(X_test, y_test)
        print(f"{name:<20}{seconds:>8.2f}{accuracy:>10.3f}{in_first_five:>12.3f}")


def families() -> tuple[np.ndarray, np.ndarray]:
    """Return X (SAMPLES, FEATURES) and y. The centre of a class is near that of its family."""
    rng = np.random.default_rng(0)
    family_centre = 2.0 * rng.standard_normal((FAMILIES, FEATURES))
    # (CLASSES, FEATURES) the centre of each class
    centre = family_centre[np.arange(CLASSES) % FAMILIES]
    centre = centre + rng.standard_normal((CLASSES, FEATURES))
    y = rng.integers(CLASSES, size=SAMPLES)
    return centre[y] + 2.5 * rng.standard_normal((SAMPLES, FEATURES)), y


if __name__ == "__main__":
    main()
