"""Classifier: a linear model over the tree of its classes, as a scikit-learn estimator."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, Self

import numpy as np
from msgspec import Meta
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from hstree import progress
from hstree._arrays import Array, Float64, Int64
from hstree._options import Option, checked_count
from hstree._text import brief
from hstree.builders.prune import keep_labels
from hstree.errors import InputError, OptionError
from hstree.interop.sklearn.adagrad import Adagrad
from hstree.interop.sklearn.class_tree import (
    AUTO,
    MOST_FLAT,
    build_class_tree,
    check_builder_options,
    class_counts,
    draw_seed,
    label_ids,
)
from hstree.interop.sklearn.features import (
    ACCEPTED,
    FeatureColumns,
    Samples,
    canonical_samples,
    check_not_too_large,
    check_not_too_small,
    is_sparse,
    lengthened,
    without_empty_columns,
)
from hstree.interop.sklearn.linear import LinearTree
from hstree.interop.sklearn.solvers import solve, solve_by_child
from hstree.tree import Tree, as_tree
from hstree.tree.bit_paths import check_single_codes
from hstree.tree.hierarchy import Hierarchy
from hstree.tree.names import class_names

#: A weight for some classes, 1 for the others; or the same total weight for all classes.
ClassWeight = Mapping[Any, float] | Literal["balanced"] | None

#: Largest number of weights of a node for which ``solver="auto"`` chooses L-BFGS, which keeps about
#: twenty-five numbers of eight bytes for each.
MOST_WEIGHTS = 5_000_000

_AT_LEAST_ONE = Annotated[int, Meta(ge=1)]
_ABOVE_ZERO = Annotated[float, Meta(gt=0)]
_RANGES = {
    "solver": Literal["auto", "lbfgs", "liblinear", "adagrad"],
    "weight_threshold": Annotated[float, Meta(ge=0)],
    "max_iter": _AT_LEAST_ONE,
    "epochs": _AT_LEAST_ONE,
    "batch_size": _AT_LEAST_ONE,
    "C": _ABOVE_ZERO,
    "tol": _ABOVE_ZERO,
    "learning_rate": _ABOVE_ZERO,
}


class HierarchicalSoftmaxClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Linear classifier through a hierarchical softmax.

    With up to 256 classes or ``builder="flat"`` it is multinomial logistic regression, with the
    objective and thus the optimum of scikit-learn's own. With any other tree it has the same
    objective over that tree.

    Parameters
    ----------
    builder : str, default "auto"
        Method that builds the tree. "auto" is "flat", all classes under the root, for up to 256
        classes. For more it is "kmeans", balanced, with an arity of 10 and up to 100 classes under
        the lowest nodes. Otherwise one of `hstree.builders()` that takes vectors (the centroids of
        the classes; see `class_tree.class_vectors`) or a vocabulary (their frequencies), or
        "classes", which clusters the centroids, too. Classes have one code each in the tree.
    builder_options : mapping, optional
        Options of the builder; none for "auto".
    tree : Tree, str or path, optional
        The tree or its file, instead of a builder. Its labels name the classes: 10 and 10.0 are
        "10". Labels that are not classes of the data are pruned, so that `tree_` has only the
        classes.
    C : float, default 1.0
        Inverse strength of the penalty, as in `LogisticRegression`: the objective is ``C`` times
        the summed negative log-likelihood, plus half the squared norm of the weights. This holds
        for the root; a node that m of the n samples reach has ``C * sqrt(n / m)``. A sample whose
        `y` is the name of a node reaches that node. A sample whose `y` is the root's name counts in
        neither number.
    fit_intercept : bool, default True
        Whether nodes have biases.
    class_weight : mapping or "balanced", optional
        Weight of the samples of each class in the objective, 1 for a class without one.
        "balanced" gives all classes the same total weight and keeps the total of all samples, in
        each call.
    solver : {"auto", "lbfgs", "liblinear", "adagrad"}, default "auto"
        "lbfgs" goes to the optimum over all samples, node by node. "liblinear" trains each child of
        a node against its siblings, as `OneVsRestClassifier` does, and takes the softmax of their
        logits: it is fast where there are many classes, and keeps few weights. "adagrad" takes
        minibatches. "auto" is "liblinear" for a sparse X with more than 256 classes, else "lbfgs".
        Where a node has more than five million weights, "auto" is "liblinear" for a sparse X and
        "adagrad" for a dense X.
    weight_threshold : float, default 0.05
        With "liblinear", weights that move the logit of no training sample by more than this are
        not kept.
    max_iter : int, default 1000
        Maximum number of iterations of L-BFGS for each node.
    tol : float, default 1e-4
        L-BFGS stops when no element of the gradient of the mean objective is larger.
    epochs : int, default 10
        Number of passes of Adagrad over the samples.
    batch_size : int, default 256
        Samples per minibatch of Adagrad.
    learning_rate : float, default 0.1
        Learning rate of Adagrad.
    warm_start : bool, default False
        Start `fit` from the tree and the weights of the previous call, where the features and the
        classes are the same.
    random_state : int, RandomState or None, default 0
        Random seed of the builder, unless its options have one, and of the order of the samples.
    n_jobs : int, optional
        Number of processes in which L-BFGS solves nodes; -1 for all cores. By default 1, or that of
        the active ``joblib.parallel_config``.

    Attributes
    ----------
    classes_ : array (V,)
    tree_ : Tree
        Its labels name the classes, whole numbers by their digits.
    weight_ : float array or CSR array (R, n_features)
        Rows as described in ``docs/tree-format.md``; float32 where X is. CSR, of float32, after
        "liblinear", until `partial_fit`. CSR where most features of a wide sparse X do not occur in
        the first training.
    bias_ : float array (R,)
    coef_ : float array (V, n_features)
        Weights of the classes, as those of `LogisticRegression`, (1, n_features) for two classes;
        where the tree is not flat, `weight_`.
    intercept_ : float array (V,)
        Biases of the classes; where the tree is not flat, `bias_`.
    n_features_in_ : int
    feature_names_in_ : array of str (n_features,)
        Where X has names.
    n_iter_ : int
        Iterations of the slowest node, or epochs; 1 for liblinear.
    loss_curve_ : list of float
        Mean objective after each iteration of L-BFGS, or mean negative log-likelihood of each
        epoch of Adagrad during training; empty for liblinear.

    Notes
    -----
    In training, a sample needs about ``log2(V)`` logits in a binary tree of V classes instead of V.
    `predict` and `top_k` search a large tree, the most probable branches first; `predict_proba`
    computes the logits of all nodes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HierarchicalSoftmaxClassifier("huffman").fit(X, y)
    >>> model.tree_.labels, round(model.score(X, y), 2)
    (('0', '1', '2'), 0.97)
    """

    _seen: Float64 | None  # `Adagrad` has these samples as `seen`
    _columns: FeatureColumns | None  # features that the model has; None for all

    def __init__(
        self,
        builder: str = AUTO,
        *,
        builder_options: Mapping[str, Any] | None = None,
        tree: Tree | str | os.PathLike[str] | None = None,
        C: float = 1.0,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        solver: Literal["auto", "lbfgs", "liblinear", "adagrad"] = "auto",
        weight_threshold: float = 0.05,
        max_iter: int = 1000,
        tol: float = 1e-4,
        epochs: int = 10,
        batch_size: int = 256,
        learning_rate: float = 0.1,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.builder = builder
        self.builder_options = builder_options
        self.tree = tree
        self.C = C
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.weight_threshold = weight_threshold
        self.max_iter = max_iter
        self.tol = tol
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs

    # Training.

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Build the tree and train on it.

        Parameters
        ----------
        X : array_like or sparse (n, n_features)
        y : array_like (n,)
            Classes. The name of an inner node of `tree`, and of no label, says that the class is
            one of those below: its likelihood is the probability of reaching that node.
        sample_weight : array_like (n,), optional

        Raises
        ------
        OptionError
            When a parameter is out of its range.
        InputError
            When a class is not a label of the tree or has several codes in it, the builder takes
            running text, or the largest magnitude in X is above 2**62 or below 2**-62.
        """
        self._check_parameters()
        X, y, weight = self._validated(X, y, sample_weight, reset=True)
        tree = None if self.tree is None else as_tree(self.tree)
        classes = _without_nodes(tree, np.unique(y))
        if self.warm_start and self._can_continue(X, classes, tree):
            X = self._with_columns(X)
            self._model.target_counts = self._target_counts(y, weight)
            self._reset_training()
        else:
            X = self._start(X, y, weight, classes, tree)

        targets, weight = self._weighted_targets(y, weight)
        solver = self._choose_solver(X)
        if solver == "adagrad":
            return self._train(X, targets, weight, self.epochs)
        self._samples_seen = len(targets)
        self._seen = np.append(weight @ X**2, weight.sum())
        if solver == "liblinear":
            solve_by_child(
                self._model,
                X,
                targets,
                weight,
                self.C,
                self.weight_threshold,
                int(self._rng.integers(2**31)),
                self.n_jobs,
            )
            self.n_iter_ = 1
            return self
        self.loss_curve_, is_converged = solve(
            self._model, X, targets, weight, self.C, self.tol, self.max_iter, self.n_jobs
        )
        self.n_iter_ = len(self.loss_curve_)
        if not is_converged:
            warnings.warn(
                f"L-BFGS did not come within tol={self.tol:g} of the optimum in "
                f"max_iter={self.max_iter} iterations; scale the features, or raise max_iter",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def partial_fit(
        self, X: Any, y: ArrayLike, classes: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Train on more samples, for one epoch of Adagrad.

        The first call builds the tree from its samples, which should represent the classes unless
        `tree` is set. The penalty is that of a training set of as many samples as all calls had.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        classes : array_like (V,), optional
            All classes, for the first call.
        """
        is_first = not hasattr(self, "classes_")
        if is_first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit")
        self._check_parameters()
        X, y, weight = self._validated(X, y, sample_weight, reset=is_first)
        known = np.unique(np.asarray(classes)) if classes is not None else self.classes_
        if not is_first and not np.array_equal(known, self.classes_):
            raise ValueError("classes are not the same as at the first call to partial_fit")

        source = self.tree if is_first else self.tree_
        tree = None if source is None else as_tree(source)
        new = _without_nodes(tree, np.setdiff1d(y, known))
        if new.size:
            raise ValueError(f"y has the class {new.tolist()[0]!r}, which is not among classes")
        X = self._start(X, y, weight, known, tree) if is_first else self._with_columns(X)
        targets, weight = self._weighted_targets(y, weight)
        return self._train(X, targets, weight, 1)

    def _validated(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, *, reset: bool
    ) -> tuple[Samples, Array, Float64]:
        """Check the samples, their classes and their weights (n,)."""
        X, y = validate_data(self, X, y, reset=reset, **ACCEPTED)
        check_classification_targets(y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        X = canonical_samples(X)
        check_not_too_large(X)
        check_not_too_small(X)
        return X, y, weight

    def _with_columns(self, X: Samples) -> Samples:
        """Return X with the columns of the model, after adding those for new features of X."""
        if self._columns is None:
            return X
        self._columns.add(X)
        if (width := self._columns.width) > self._model.shape[1]:
            self._model.widen(width)
            if self._optimiser is not None:
                self._optimiser.widen(width)
            if self._seen is not None:
                self._seen = np.append(lengthened(self._seen[:-1], width), self._seen[-1])
        return self._columns.select(X)

    def _start(
        self, X: Samples, y: Array, weight: Float64, classes: Array, tree: Tree | None
    ) -> Samples:
        """Build the tree, unless it is given, and the model; return X with its columns."""
        columns = FeatureColumns.create_if_wide(X, len(classes))
        if columns is not None:
            X = columns.select(X)
        names = class_names(classes, "class")
        seed = draw_seed(self.random_state)
        self._rng = np.random.default_rng(seed)

        if tree is not None:
            tree = keep_labels(tree, names)
        else:
            options = self.builder_options or {}
            number = np.searchsorted(classes, y)
            tree = build_class_tree(self.builder, options, X, number, weight, names, seed)
        check_single_codes(tree, "a classifier", "build it without epsilon, trees and senses")
        self.tree_ = tree
        self.classes_ = classes
        self._class_labels = label_ids(tree, names)

        self._n_features = self.n_features_in_
        self._columns = columns
        self._model = LinearTree(
            tree,
            X.shape[1],
            counts=self._target_counts(y, weight),
            sparse=is_sparse(X),
            dtype=X.dtype,
            fit_intercept=self.fit_intercept,
        )
        self._reset_training()
        return X

    def _choose_solver(self, X: Samples) -> str:
        """Return the name of the solver."""
        if self.solver != "auto":
            return self.solver
        n_features = without_empty_columns(X)[0].shape[1] if is_sparse(X) else X.shape[1]
        is_small = np.diff(self.tree_.row_start).max(initial=0) * n_features <= MOST_WEIGHTS
        if is_sparse(X):
            return "lbfgs" if is_small and len(self.classes_) <= MOST_FLAT else "liblinear"
        return "lbfgs" if is_small else "adagrad"

    def _can_continue(self, X: Samples, classes: Array, tree: Tree | None) -> bool:
        """Return whether there is a model that fits these samples."""
        if not hasattr(self, "_model") or not np.array_equal(classes, self.classes_):
            return False
        if tree is not None and keep_labels(tree, self.tree_.labels) != self.tree_:
            return False
        has_same_features = self._n_features == X.shape[1]
        return has_same_features and self._model.fit_intercept == self.fit_intercept

    def _reset_training(self) -> None:
        """Reset all state of training, except for the weights."""
        self._optimiser: Adagrad | None = None
        self._seen = None
        self._samples_seen = 0
        self.loss_curve_ = []
        self.n_iter_ = 0

    def _weighted_targets(self, y: Array, sample_weight: Float64) -> tuple[Int64, Float64]:
        """Return the targets (n,) of samples, and their weights times those of their classes.

        A target is a label id, or ``V + n`` for node n.
        """
        known, target = self._known_targets(y)
        number = np.searchsorted(known, y)
        return target[number], self._weighted(known, number, sample_weight)

    def _target_counts(self, y: Array, sample_weight: Float64) -> Int64:
        """Return the weights (V + N,) of the labels and of the nodes as counts."""
        n_targets = self.tree_.n_labels + self.tree_.n_nodes
        targets, weight = self._weighted_targets(y, sample_weight)
        return class_counts(targets, weight, n_targets)

    def _known_targets(self, y: Array) -> tuple[Array, Int64]:
        """Return the classes and the other values of y, ascending, and the target of each.

        Raises InputError for a name that the tree does not have, or no longer has without the
        classes that are not in the data.
        """
        others = np.setdiff1d(y, self.classes_)
        if not others.size:
            return self.classes_, self._class_labels
        if not len(self.classes_):
            raise InputError("y has names of inner nodes alone; give samples of classes, too")
        levels = Hierarchy(self.tree_)
        names = class_names(others, "class")
        if missing := [name for name in names if not levels.has_name(name)]:
            raise InputError(f"y has {missing[0]!r}, and no class of the data is below that node")
        known = np.union1d(self.classes_, others)
        target = np.empty(len(known), np.int64)
        target[np.searchsorted(known, self.classes_)] = self._class_labels
        target[np.searchsorted(known, others)] = levels.target[levels.find(names)]
        return known, target

    def _weighted(self, classes: Array, number: Int64, sample_weight: Float64) -> Float64:
        """Return the weights (n,) of the samples times those of their classes `number` (n,).

        A mapping is refused when it has a class that does not occur while a class that occurs has
        no weight: as in scikit-learn, more likely a typing error than samples left out.
        """
        if self.class_weight is None:
            return sample_weight
        if isinstance(self.class_weight, str):
            total = np.bincount(number, sample_weight, minlength=len(classes))
            balanced = total.sum() / (np.count_nonzero(total) * np.where(total > 0, total, 1))
            return np.asarray(sample_weight * balanced[number])
        names = dict.fromkeys(classes.tolist())
        without = [name for name in names if name not in self.class_weight]
        unknown = [name for name in self.class_weight if name not in names]
        if without and unknown:
            raise OptionError(
                f"class_weight has a weight for {unknown[0]!r}, which is not a class, and none for "
                f"{without[0]!r}, which is one; its keys are classes"
            )
        weights = np.array([self.class_weight.get(name, 1.0) for name in names], np.float64)
        return np.asarray(sample_weight * weights[number])

    def _train(self, X: Samples, targets: Int64, weight: Float64, epochs: int) -> Self:
        """Train by Adagrad."""
        if self._optimiser is None:
            self._optimiser = Adagrad(self._model, self._seen)
        self._samples_seen += len(targets)
        with progress.task("training", epochs * len(targets), "samples") as task:
            for _ in range(epochs):
                nll = self._optimiser.epoch(
                    X,
                    targets,
                    weight,
                    learning_rate=self.learning_rate,
                    penalty=1 / (self.C * self._samples_seen),
                    batch_size=self.batch_size,
                    rng=self._rng,
                )
                self.loss_curve_.append(nll)
                self.n_iter_ += 1
                task.advance(len(targets))
        return self

    def _check_parameters(self) -> None:
        for name, annotation in _RANGES.items():
            Option.of(name, annotation).checked(getattr(self, name))
        check_builder_options(self.builder_options)
        # 0 and 1 are accepted as False and True
        if not isinstance(self.fit_intercept, int | np.bool_) or self.fit_intercept not in (0, 1):
            reason = f"is {brief(self.fit_intercept)}; it must be true or false"
            raise OptionError.about("fit_intercept", reason)
        if not isinstance(self.tree, Tree | str | os.PathLike | None):
            raise OptionError(f"tree is {self.tree!r}; it is a Tree, the path of its file or None")
        if self.class_weight is None or isinstance(self.class_weight, Mapping):
            for name, weight in (self.class_weight or {}).items():
                if not isinstance(weight, int | float | np.number) or not 0 <= weight < np.inf:
                    raise OptionError(
                        f"class_weight of {name!r} is {weight!r}; a weight is a number, 0 or more"
                    )
        elif not isinstance(self.class_weight, str) or self.class_weight != "balanced":
            raise OptionError(
                f"class_weight is {self.class_weight!r}; it is 'balanced', None or a mapping of "
                "classes to weights"
            )

    # Prediction.

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each sample, an array (n,); ties by class order."""
        best, _ = self._best(self._checked(X), 1, lambda log_prob: -np.exp(log_prob))
        return np.asarray(self.classes_[best[:, 0]])

    def decision_function(self, X: Any) -> Float64:
        """Return the log-probabilities of all classes (n, V).

        For two classes, the log-odds of the second class, (n,).
        """
        log_proba = self.predict_log_proba(X)
        return log_proba[:, 1] - log_proba[:, 0] if log_proba.shape[1] == 2 else log_proba

    def predict_log_proba(self, X: Any) -> Float64:
        """Return the log-probabilities of all classes, a float64 array (n, V)."""
        X = self._checked(X)
        result = np.empty((X.shape[0], len(self.classes_)))
        for rows, log_prob in self._model.log_prob(X):
            result[rows] = log_prob[:, self._class_labels]
        return result

    def predict_proba(self, X: Any) -> Float64:
        """Return the probabilities of all classes, a float64 array (n, V)."""
        return np.exp(self.predict_log_proba(X))

    def top_k(self, X: Any, k: int = 5) -> tuple[Array, Float64]:
        """Return the k most probable classes of each sample, exactly, and their log-probabilities.

        Arrays (n, min(k, V)); most probable first, ties by class order. Raises OptionError when
        `k` is not a whole number, 1 or more.
        """
        k = min(checked_count("k", k), len(self.classes_))
        best, log_proba = self._best(self._checked(X), k, np.negative)
        return self.classes_[best], log_proba

    @property
    def nodes_(self) -> Array:
        """Names of inner nodes, including those with one child, an array of str (M,).

        A node without a name is called by its number, "node 0" for the root. Samples may have the
        other names in `y`, where the tree was given.
        """
        levels = Hierarchy(self.tree_)
        return np.array([levels.names[item] for item in levels.inner], str)

    def predict_node_proba(self, X: Any) -> Float64:
        """Return the probabilities of `nodes_`, a float64 array (n, M).

        That of a node is the sum over the classes below it.
        """
        X = self._checked(X)
        levels = Hierarchy(self.tree_)
        return np.concatenate([prob[:, levels.inner] for prob in self._item_proba(X, levels)])

    def predict_nodes(
        self, X: Any, *, depth: int | None = None, confidence: float | None = None
    ) -> Array:
        """Return the name of the node or class predicted at a level, an array of str (n,).

        Parameters
        ----------
        X : array_like or sparse, shape (n, n_features)
        depth : int, optional
            Depth of the answers, 0 for the root: the most probable node at that depth, or class
            above it. By default the classes.
        confidence : float, optional
            Return the deepest node or class whose probability is at least this, down to `depth`; of
            several, the most probable. Above 0 and at most 1.

        Returns
        -------
        array of str (n,)
            Names of `nodes_`, or of classes.
        """
        X = self._checked(X)
        levels = Hierarchy(self.tree_)
        items = levels.candidates(depth, confidence)
        chosen = [
            levels.choose(prob[:, items], items, confidence) for prob in self._item_proba(X, levels)
        ]
        return np.array(levels.names, str)[np.concatenate(chosen)]

    def _best(
        self, X: Samples, k: int, cost: Callable[[Float64], Float64]
    ) -> tuple[Int64, Float64]:
        """Return the numbers of the k most probable classes and their log-probabilities, (n, k).

        Where the search has no answer, classes are ordered by the `cost` of log-probabilities.
        """
        labels, values, certain = self._model.top_k(X, k)
        best = np.argsort(self._class_labels)[labels]
        others = np.flatnonzero(~certain)
        for rows, log_prob in self._model.log_prob(X[others]) if others.size else ():
            log_prob = log_prob[:, self._class_labels]
            first = np.argsort(cost(log_prob), axis=1, kind="stable")[:, :k]
            best[others[rows]] = first
            values[others[rows]] = np.take_along_axis(log_prob, first, axis=1)
        return best, values

    @property
    def weight_(self) -> Any:
        """Node vectors, a float array or a CSR array (R, n_features)."""
        weight = self._model.weight
        return weight if self._columns is None else self._columns.spread(weight)

    @property
    def bias_(self) -> Array:
        """Biases, a float array (R,)."""
        return self._model.bias

    @property
    def coef_(self) -> Any:
        """Weights of the classes where the tree is flat, else of all rows."""
        return self._by_class(self.weight_)

    @property
    def intercept_(self) -> Array:
        """Biases of the classes where the tree is flat, else of all rows."""
        return np.asarray(self._by_class(self.bias_))

    def _by_class(self, values: Any) -> Any:
        """Return values (R, ...) of the rows of a flat tree in the order of the classes."""
        if self.tree_.n_nodes != 1 or len(self.tree_.child) != len(self.classes_):
            return values
        row = np.argsort(~self.tree_.child)[self._class_labels]  # (V,) child of each class
        if len(row) != 2:
            return values[row]
        # The row of two children has the logit of the first
        return values * (1 if row[1] == 0 else -1)

    def _checked(self, X: Any) -> Samples:
        """Return X with the columns of the model."""
        check_is_fitted(self)
        X = canonical_samples(validate_data(self, X, reset=False, **ACCEPTED))
        check_not_too_large(X)
        return X if self._columns is None else self._columns.select(X)

    def _item_proba(self, X: Samples, levels: Hierarchy) -> Iterator[Float64]:
        """Yield the probabilities (b, I) of all items of the hierarchy, for b samples at a time."""
        for _, log_prob in self._model.log_prob(X):
            yield levels.probabilities(np.exp(log_prob))

    # Contract of scikit-learn.

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags, with sparse X allowed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there is a model."""
        return hasattr(self, "_model")


def _without_nodes(tree: Tree | None, values: Array) -> Array:
    """Return the values of y that are classes, not names of inner nodes of a tree.

    A label takes precedence over a node of the same name.
    """
    names = class_names(values, "class")
    if tree is None or not tree.has_single_codes or not (others := set(names) - set(tree.labels)):
        return values
    levels = Hierarchy(tree)
    is_class = np.array([name not in others or not levels.has_name(name) for name in names])
    return np.asarray(values[is_class])
