"""scikit-learn classifier: a linear model over a tree of the classes."""

import os
import warnings
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

import numpy as np
from msgspec import Meta
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import _check_partial_fit_first_call, check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from hstree import progress
from hstree._arrays import Array, Float64, Int64, canonical_csr
from hstree._options import checked_count, read_options
from hstree.builders.prune import keep_labels
from hstree.errors import InputError, OptionError
from hstree.interop.sklearn.adagrad import Adagrad
from hstree.interop.sklearn.class_tree import (
    NARROW_ABOVE,
    build_tree,
    class_centroids,
    class_counts,
    draw_seed,
    in_class_order,
    label_classes,
)
from hstree.interop.sklearn.features import (
    ACCEPTED,
    FeatureColumns,
    Samples,
    check_not_too_large,
    is_sparse,
    lengthened,
    without_empty_columns,
)
from hstree.interop.sklearn.linear import LinearTree
from hstree.interop.sklearn.solvers import solve, solve_by_child
from hstree.training.adagrad import TINY
from hstree.tree import Tree, as_tree
from hstree.tree.bit_paths import check_single_codes
from hstree.tree.hierarchy import Hierarchy
from hstree.tree.names import class_names

#: Weights of some classes (1 for the others), or the same total weight for all classes.
ClassWeight = dict[Any, float] | Literal["balanced"] | None

#: Maximum number of weights of a node for which ``solver="auto"`` chooses L-BFGS. It stores about
#: 25 float64 numbers per weight.
MOST_WEIGHTS = 5_000_000

#: Value of ``C="auto"`` for samples of unit length.
C_OF_UNIT_LENGTH = 10
#: Largest number of classes that the default builder leaves under the root.
MOST_FLAT = 256
#: Parameters that are not checked by their annotations.
UNCHECKED = frozenset({"builder_options", "tree", "class_weight", "random_state", "n_jobs"})


class HierarchicalSoftmaxClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Linear classifier with a hierarchical softmax over a tree of the classes.

    With up to 256 classes or ``builder="flat"``, it is multinomial logistic regression, with the
    objective and the optimum of scikit-learn's `LogisticRegression`. With any other tree, it has
    the same objective over that tree.

    Parameters
    ----------
    builder : str, default "auto"
        Method that builds the tree: "auto", or one of `hstree.builders()` that takes vectors (the
        centroids of the classes; see `class_tree.class_centroids`) or a vocabulary (their
        frequencies). "auto" is "flat", with all classes under the root, for up to 256 classes. For
        more, it is "kmeans", balanced, with an arity of 10 and up to 100 classes under the lowest
        nodes. Each class has one code in the tree.
    builder_options : mapping, optional
        Options of the builder; "auto" has none.
    tree : Tree, str or path, optional
        The tree or its file, instead of a builder. Its labels name the classes: 10 and 10.0 are
        "10". Labels that are not classes of the data are pruned, so that `tree_` has only the
        classes.
    C : float or "auto", default "auto"
        Inverse strength of the penalty, as in `LogisticRegression`: the objective is ``C`` times
        the summed negative log-likelihood, plus half the squared norm of the weights. "auto" is 10
        divided by the mean squared length of the samples, from 1 to 100: 10 for TF-IDF. This holds
        for the root; a node that m of the n samples reach has ``C * sqrt(n / m)``. A sample whose
        `y` is the name of a node reaches that node. A sample whose `y` is the root's name is not
        counted in m or n.
    fit_intercept : bool, default True
        Whether nodes have biases.
    class_weight : dict or "balanced", optional
        Weight of the samples of each class in the objective, 1 for a class without one.
        "balanced" gives all classes the same total weight and keeps the total of all samples, in
        each call.
    solver : {"auto", "lbfgs", "liblinear", "adagrad"}, default "auto"
        "lbfgs" finds the optimum over all samples, node by node. "liblinear" trains each child of a
        node against its siblings, as `OneVsRestClassifier` does, and takes the softmax of their
        logits: it is fast for many classes and keeps few weights. "adagrad" trains on minibatches.
        "auto" is "liblinear" for a sparse X with more than 256 classes, else "lbfgs". If a node has
        more than five million weights, "auto" is "liblinear" for a sparse X and "adagrad" for a
        dense X.
    weight_threshold : float, default 0.05
        "liblinear" drops the weights that change the logit of no training sample by more than this.
    max_iter : int, default 1000
        Maximum number of iterations of L-BFGS for each node.
    tol : float, default 1e-4
        L-BFGS stops when no element of the gradient of the mean objective exceeds this.
    epochs : int, default 10
        Number of passes of Adagrad over the samples.
    batch_size : int, default 256
        Samples per minibatch of Adagrad.
    learning_rate : float, default 0.1
        Learning rate of Adagrad.
    warm_start : bool, default False
        Start `fit` from the tree and the weights of the previous call, if the features and the
        classes are the same.
    random_state : int, RandomState or None, default 0
        Random seed of the builder, unless its options have one, and of the order of the samples.
    n_jobs : int, optional
        Number of processes that train nodes with L-BFGS or liblinear; -1 for all cores (default: 1,
        or that of the active ``joblib.parallel_config``).

    Attributes
    ----------
    classes_ : array (V,)
    tree_ : Tree
        Its labels name the classes, whole numbers by their digits.
    weight_ : float array or CSR array (R, n_features)
        Weight rows in the order of ``docs/tree-format.md``; float32 if X is. CSR, with float32,
        after "liblinear", until `partial_fit`. CSR if most features of a wide sparse X do not occur
        in the first training set.
    bias_ : float array (R,)
    coef_ : float array (V, n_features)
        Weights of the classes as in `LogisticRegression`, (1, n_features) for two classes;
        `weight_` if the tree is not flat.
    intercept_ : float array (V,)
        Biases of the classes; `bias_` if the tree is not flat.
    C_ : float
        Inverse strength of the penalty.
    n_features_in_ : int
    feature_names_in_ : array of str (n_features,)
        Feature names, if X has them.
    n_iter_ : int
        Largest number of iterations of a node, or number of epochs; 1 for liblinear.
    loss_curve_ : list of float
        Mean objective after each iteration of L-BFGS, or mean negative log-likelihood of each
        epoch of Adagrad during training; empty for liblinear.

    Notes
    -----
    In a binary tree of V classes, training computes about ``log2(V)`` logits per sample instead of
    V. `predict` and `top_k` search large trees, the most probable branches first; `predict_proba`
    computes the logits of all nodes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HierarchicalSoftmaxClassifier("huffman").fit(X, y)
    >>> model.tree_.labels, round(model.score(X, y), 2)
    (('0', '1', '2'), 0.97)
    """

    _seen: Float64 | None  # argument `seen` of `Adagrad`
    _columns: FeatureColumns | None  # features that the model has; None for all

    def __init__(
        self,
        builder: str = "auto",
        *,
        builder_options: Mapping[str, Any] | None = None,
        tree: Tree | str | os.PathLike[str] | None = None,
        C: Annotated[float, Meta(gt=0)] | Literal["auto"] = "auto",
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        solver: Literal["auto", "lbfgs", "liblinear", "adagrad"] = "auto",
        weight_threshold: Annotated[float, Meta(ge=0)] = 0.05,
        max_iter: Annotated[int, Meta(ge=1)] = 1000,
        tol: Annotated[float, Meta(gt=0)] = 1e-4,
        epochs: Annotated[int, Meta(ge=1)] = 10,
        batch_size: Annotated[int, Meta(ge=1)] = 256,
        learning_rate: Annotated[float, Meta(gt=0)] = 0.1,
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
            Classes. The name of an inner node of `tree`, unless a label has the same name, means
            one of the classes below the node: its likelihood is the probability of reaching that
            node.
        sample_weight : array_like (n,), optional

        Raises
        ------
        OptionError
            If a parameter is out of range.
        InputError
            If a class is not a label of the tree or has more than one code, the builder takes
            running text, or the largest magnitude in X is above 2**62 or below 2**-62.
        """
        self._check_parameters()
        X, y, weight = self._validated(X, y, sample_weight, reset=True)
        tree = None if self.tree is None else as_tree(self.tree)

        # y may contain names of nodes, which are not classes
        classes = _without_nodes(tree, np.unique(y))

        # The tree and the weights of the previous call, or new ones
        if self.warm_start and self._can_continue(X, classes, tree):
            X = self._with_columns(X)
            self._model.target_counts = self._target_counts(y, weight)
            self._reset_training()
        else:
            X = self._start(X, y, weight, classes, tree)

        # Adagrad trains as in `partial_fit`, for more epochs
        targets, weight = self._weighted_targets(y, weight)
        self.C_ = self._choose_penalty(X, weight)
        solver = self._choose_solver(X)
        if solver == "adagrad":
            return self._train(X, targets, weight, self.epochs)

        # Summed squares of features and biases, from which `partial_fit` continues
        self._samples_seen = len(targets)
        self._seen = np.append(weight @ X**2, weight.sum())

        # Find the optimum with one of the other solvers
        if solver == "liblinear":
            seed = int(self._rng.integers(2**31))
            threshold = self.weight_threshold
            solve_by_child(self._model, X, targets, weight, self.C_, threshold, seed, self.n_jobs)
            self.n_iter_ = 1
            return self
        self.loss_curve_, is_converged = solve(
            self._model, X, targets, weight, self.C_, self.tol, self.max_iter, self.n_jobs
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
        `tree` is set. The penalty is that for a training set of all samples so far.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        classes : array_like (V,), optional
            All classes, for the first call.
        """
        _check_partial_fit_first_call(self, classes)
        known = self.classes_
        is_first = not hasattr(self, "_model")
        self._check_parameters()
        X, y, weight = self._validated(X, y, sample_weight, reset=is_first)

        # Names of nodes come from the given tree, or from the tree built in the first call
        source = self.tree if is_first else self.tree_
        tree = None if source is None else as_tree(source)
        new = _without_nodes(tree, np.setdiff1d(y, known))
        if new.size:
            raise ValueError(f"y has the class {new.tolist()[0]!r}, which is not among classes")

        X = self._start(X, y, weight, known, tree) if is_first else self._with_columns(X)
        targets, weight = self._weighted_targets(y, weight)
        # "auto" is chosen for the first samples; a number may be set between calls
        if is_first or self.C != "auto":
            self.C_ = self._choose_penalty(X, weight)
        return self._train(X, targets, weight, 1)

    def _validated(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, *, reset: bool
    ) -> tuple[Samples, Array, Float64]:
        """Check the samples, their classes and their weights (n,)."""
        X, y = validate_data(self, X, y, reset=reset, **ACCEPTED)
        check_classification_targets(y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        X = canonical_csr(X) if is_sparse(X) else X
        check_not_too_large(X)
        return X, y, weight

    def _with_columns(self, X: Samples) -> Samples:
        """Return X with the columns of the model, after adding those for new features of X."""
        if self._columns is None:
            return X
        X = canonical_csr(X)
        self._columns.add(X)
        # New columns begin with zeros: in the weights, in Adagrad's sums and in `_seen`
        if (width := self._columns.width) > self._model.weight.shape[1]:
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
        if not len(classes):
            raise InputError("y has names of inner nodes alone; give samples of classes, too")

        # The model of a wide sparse X has only the features that occur in it
        columns = FeatureColumns.create_if_wide(X, len(classes))
        if columns is not None:
            X = columns.select(X)

        # A tree whose labels are the names of the classes
        names = class_names(classes, "class")
        seed = draw_seed(self.random_state)
        if tree is None:
            tree = self._build_tree(X, np.searchsorted(classes, y), weight, names, seed)
        else:
            tree = keep_labels(tree, names)
        check_single_codes(tree, "a classifier", "build it without epsilon, trees and senses")
        self.tree_ = tree
        self.classes_ = classes
        self._label_class = label_classes(tree, names)

        # The model, over the tree with its labels in the order of the classes
        self._rng = np.random.default_rng(seed)
        self._n_features = self.n_features_in_
        self._columns = columns
        self._model = LinearTree(
            in_class_order(tree, self._label_class),
            X.shape[1],
            self._target_counts(y, weight),
            sparse=is_sparse(X),
            dtype=X.dtype,
            fit_intercept=self.fit_intercept,
        )
        self._reset_training()
        return X

    def _build_tree(
        self, X: Samples, y: Int64, weight: Float64, names: list[str], seed: int
    ) -> Tree:
        """Build the tree from samples with the classes `y` (n,), positions in `names`."""
        n_classes = len(names)
        method = self.builder
        options = self.builder_options or {}
        if method == "auto":
            if options:
                raise OptionError(
                    "builder_options are those of a builder; name one, such as kmeans"
                )
            method = "flat" if n_classes <= MOST_FLAT else "kmeans"
            options = {} if method == "flat" else NARROW_ABOVE | {"balanced": True}
        counts = class_counts(y, weight, n_classes)
        return build_tree(
            method,
            options,
            names,
            seed,
            counts,
            lambda: class_centroids(X, y, weight, n_classes, seed),
            kind="class centroids",
        )

    def _choose_penalty(self, X: Samples, weight: Float64) -> float:
        """Return the inverse strength of the penalty for samples with these weights (n,)."""
        if not isinstance(self.C, str):
            return self.C
        mean_square = (weight @ X**2).sum() / max(weight.sum(), TINY)
        return float(C_OF_UNIT_LENGTH / np.clip(mean_square, 0.1, 10))

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
        """Return whether the model has the features, the classes and the tree of this call."""
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
        """Return the targets (n,) of samples, and their weights times the weights of their classes.

        A target is the number of a class, or ``V + n`` for node n.
        """
        known, target = self._known_targets(y)
        number = np.searchsorted(known, y)
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            # A class whose samples have no weight counts as absent
            total = np.bincount(number, sample_weight, minlength=len(known))
            class_weight = total.sum() / (np.count_nonzero(total) * np.where(total > 0, total, 1))
        else:
            class_weight = compute_class_weight(self.class_weight, classes=known, y=known)
            if not ((class_weight >= 0) & (class_weight < np.inf)).all():
                raise OptionError("class_weight has a weight that is no number, 0 or more")
        return target[number], sample_weight * class_weight[number]

    def _target_counts(self, y: Array, sample_weight: Float64) -> Int64:
        """Return the total weights (V + N,) of classes and nodes as integer counts."""
        n_targets = self.tree_.n_labels + self.tree_.n_nodes
        return class_counts(*self._weighted_targets(y, sample_weight), n_targets)

    def _known_targets(self, y: Array) -> tuple[Array, Int64]:
        """Return the classes and the other values of y, ascending, and the target of each.

        Raises InputError for a name that the tree does not have, or no longer has without the
        classes that are not in the data.
        """
        n_classes = len(self.classes_)
        others = np.setdiff1d(y, self.classes_)
        if not others.size:
            return self.classes_, np.arange(n_classes)

        # Values that are not classes are names of nodes
        levels = Hierarchy(self.tree_)
        names = class_names(others, "class")
        if missing := [name for name in names if not levels.has_name(name)]:
            raise InputError(f"y has {missing[0]!r}, and no class of the data is below that node")
        # A node with one child has the target of this child, which may be a label
        node_target = levels.target[levels.find(names)]
        is_label = node_target < n_classes
        node_target[is_label] = self._label_class[node_target[is_label]]

        # Classes and nodes together, in ascending order
        known = np.concatenate([self.classes_, others])
        order = np.argsort(known)
        return known[order], np.r_[np.arange(n_classes), node_target][order]

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
                    penalty=1 / (self.C_ * self._samples_seen),
                    batch_size=self.batch_size,
                    rng=self._rng,
                )
                self.loss_curve_.append(nll)
                self.n_iter_ += 1
                task.advance(len(targets))
        return self

    def _check_parameters(self) -> None:
        for option in read_options(HierarchicalSoftmaxClassifier, UNCHECKED):
            option.checked(getattr(self, option.name))

    # Prediction.

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each sample, an array (n,); ties by class order."""
        X = self._checked(X)
        best = self._model.top_k(X, 1).labels[:, 0]
        return np.asarray(self.classes_[best])

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
            result[rows] = log_prob
        return result

    def predict_proba(self, X: Any) -> Float64:
        """Return the probabilities of all classes, a float64 array (n, V)."""
        return np.exp(self.predict_log_proba(X))

    def top_k(self, X: Any, k: int = 5) -> tuple[Array, Float64]:
        """Return the k most probable classes of each sample and their log-probabilities.

        The arrays (n, min(k, V)) are exact: most probable first, ties in class order. Raises
        OptionError if `k` is not a whole number, 1 or more.
        """
        X = self._checked(X)
        best = self._model.top_k(X, min(checked_count("k", k), len(self.classes_)))
        return self.classes_[best.labels], best.log_prob

    @property
    def nodes_(self) -> Array:
        """Names of inner nodes, including those with one child, an array of str (M,).

        A node without a name is called by its number, "node 0" for the root. If `tree` was given,
        `y` can contain the other names.
        """
        levels = Hierarchy(self.tree_)
        return np.array([levels.names[item] for item in levels.inner], str)

    def predict_node_proba(self, X: Any) -> Float64:
        """Return the probabilities of `nodes_`, a float64 array (n, M).

        The probability of a node is the sum over the classes below it.
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
            Return the most probable node at this depth (0 is the root), or a class above it
            (default: the classes).
        confidence : float, optional
            Return the deepest node or class whose probability is at least this, down to `depth`; of
            more than one, the most probable. Above 0 and at most 1.

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
        """Weights of the classes if the tree is flat, otherwise of all rows."""
        return self._by_class(self.weight_)

    @property
    def intercept_(self) -> Array:
        """Biases of the classes if the tree is flat, otherwise of all rows."""
        return np.asarray(self._by_class(self.bias_))

    def _by_class(self, values: Any) -> Any:
        """Return values (R, ...) of the weight rows of a flat tree, in class order."""
        if self.tree_.n_nodes != 1 or len(self.tree_.child) != len(self.classes_):
            return values
        # (V,) row of each class
        row = np.argsort(~self._model.tree.child)
        if len(row) != 2:
            return values[row]
        # The only row of a binary node has the logit of its first child
        return values * (1 if row[1] == 0 else -1)

    def _checked(self, X: Any) -> Samples:
        """Return X with the columns of the model."""
        check_is_fitted(self, "_model")
        X = validate_data(self, X, reset=False, **ACCEPTED)
        X = canonical_csr(X) if is_sparse(X) else X
        check_not_too_large(X)
        return X if self._columns is None else self._columns.select(X)

    def _item_proba(self, X: Samples, levels: Hierarchy) -> Iterator[Float64]:
        """Yield the probabilities (b, I) of all items of the hierarchy, for batches of samples."""
        for _, log_prob in self._model.log_prob(X):
            yield levels.probabilities(np.exp(log_prob[:, self._label_class]))

    # Contract of scikit-learn.

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags, with sparse X allowed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


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
