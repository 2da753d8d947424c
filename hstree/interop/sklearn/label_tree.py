"""scikit-learn classifier for multi-label data: a probabilistic label tree."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

import msgspec
import numpy as np
import scipy.sparse
from msgspec import Meta
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import normalize
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from hstree._arrays import Array, Float64, canonical_csr
from hstree._options import checked_count, read_options
from hstree._text import one_line
from hstree.builders.prune import keep_labels
from hstree.data.multilabel import indicate_lists, indicator
from hstree.errors import FileFormatError, InputError
from hstree.interop.sklearn.class_tree import (
    NARROW_ABOVE,
    build_tree,
    draw_seed,
    in_class_order,
    label_classes,
    project,
)
from hstree.interop.sklearn.feature_scale import fit_scale, scale_samples
from hstree.interop.sklearn.features import (
    ACCEPTED,
    checked_weights,
    spread_columns,
    without_empty_columns,
)
from hstree.interop.sklearn.label_lists import distinct_labels, label_lists
from hstree.interop.sklearn.label_nodes import LabelNodes, Objective, fit_nodes
from hstree.interop.sklearn.label_tree_files import (
    Config,
    Folder,
    read_folder,
    write_folder,
)
from hstree.tree import Tree, as_tree
from hstree.tree.names import class_names

#: Maximum number of elements of a table of label vectors that is not projected.
UNPROJECTED_ELEMENTS = 1 << 20

#: Parameters that are not checked by their annotations.
UNCHECKED = frozenset({"builder_options", "tree", "random_state", "n_jobs"})


class ProbabilisticLabelTreeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Multi-label linear classifier with a probabilistic label tree.

    Each node has a logistic model per child: whether a sample has a label below the child, given
    that it has one below the node. The model is trained on the samples with a label below the node.
    The probability of a label is the product of the probabilities on its path [1]_.

    Parameters
    ----------
    builder : str, default "kmeans"
        Method that builds the tree: one of `hstree.builders()` that takes vectors or a vocabulary.
        The vector of a label is the sum of its samples' features, scaled to unit length. Its count
        is the number of its samples.
    builder_options : mapping, optional
        Options of the builder. By default kmeans has an `arity` of 10 and `max_leaves` of 100, so
        that up to 100 labels are all under the root.
    tree : Tree, str or path, optional
        The tree or its file, instead of a builder. Its labels name the classes: "0" to "V - 1" if
        `y` is an array. Other labels are pruned.
    C : float or "auto", default "auto"
        Inverse strength of the penalty, as in `LogisticRegression`, for a node that all n samples
        reach; ``C * sqrt(n / m)`` for a node that m samples reach. "auto" is 10 if each sample has
        one label, else 3.
    scaling : {"auto", "tfidf", "unit", "none"}, default "auto"
        "unit" scales each sample to length one. "tfidf" weights features by their inverse document
        frequency first. "none" divides all samples by one number, their root mean squared length.
        "auto" is "tfidf" if the training X has whole numbers from 0 to 2**24 and one feature occurs
        in over a quarter of the samples, as in texts with stop words. It is "unit" for other
        numbers that are 0 or more, else "none".
    tol : float, default 0.3
        Tolerance of liblinear's dual coordinate descent, which solves each model in at most 100
        rounds.
    weight_threshold : float, default 0.15
        Weights that change the logit of no training sample by more than this are dropped.
    threshold : float, default 0.5
        Minimum probability of the labels that `predict` returns.
    random_state : int, RandomState or None, default 0
        Random seed of the builder, unless its options have one, and of liblinear.
    n_jobs : int, optional
        Number of processes that train nodes; -1 for all cores (default: 1, or that of the active
        ``joblib.parallel_config``).

    Attributes
    ----------
    classes_ : array (V,)
        Numbers or names of the columns of `y`, or the labels in its lists; the classes if `y` has
        one class per sample.
    tree_ : Tree
        Its labels name the classes, whole numbers by their digits.
    weight_ : CSR array of float32 (E + 1, n_features)
        Weights of the edges' models, in the order of ``tree_.child``. The last row is the root's
        model of whether a sample has any label.
    bias_ : float array (E + 1,)
    C_ : float
        Inverse strength of the penalty.
    scale_ : float array (n_features,)
        Factors of the features.
    n_features_in_ : int
    feature_names_in_ : array of str (n_features,)
        Feature names, if X has them.
    words_ : array of str (n_features,) or None
        Words that the features count, if `hstree classify` read fastText files.

    Notes
    -----
    If a label has more than one code in the tree, its most probable path counts. Samples without a
    label train only the root's model. Labels without a sample have probability 0.

    References
    ----------
    .. [1] K. Jasinska et al., "Extreme F-measure maximization using sparse probability estimates",
       ICML 2016.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(random_state=0)
    >>> model = ProbabilisticLabelTreeClassifier().fit(X, Y)
    >>> model.predict(X).shape, model.predict_proba(X, k=2).nnz
    ((100, 5), 200)
    """

    def __init__(
        self,
        builder: str = "kmeans",
        *,
        builder_options: Mapping[str, Any] | None = None,
        tree: Tree | Folder | None = None,
        C: Annotated[float, Meta(gt=0)] | Literal["auto"] = "auto",
        scaling: Literal["auto", "tfidf", "unit", "none"] = "auto",
        tol: Annotated[float, Meta(gt=0)] = 0.3,
        weight_threshold: Annotated[float, Meta(ge=0)] = 0.15,
        threshold: Annotated[float, Meta(ge=0, le=1)] = 0.5,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.builder = builder
        self.builder_options = builder_options
        self.tree = tree
        self.C = C
        self.scaling = scaling
        self.tol = tol
        self.weight_threshold = weight_threshold
        self.threshold = threshold
        self.random_state = random_state
        self.n_jobs = n_jobs

    # Training.

    def fit(self, X: Any, y: Any) -> Self:
        """Build the tree and train its nodes.

        Parameters
        ----------
        X : array_like or sparse (n, n_features)
        y : array_like or sparse (n, V), or array_like (n,)
            An indicator of the labels, 0 or 1, with column names in a DataFrame; a list of labels
            per sample, such as ``[["a", "b"], ["c"]]`` or a column of lists; or one class per
            sample. A list of equally long lists of numbers is an indicator.

        Raises
        ------
        OptionError
            If a parameter is out of range.
        InputError
            If `y` has other numbers, no sample has a label, or a column of `y` is not a label of
            the tree.
        """
        self._check_parameters()
        self.words_: Array | None = None
        names = getattr(y, "columns", None)
        lists = label_lists(y)
        self._has_lists = lists is not None
        if lists is not None:
            names = distinct_labels(lists)
            if not names:
                raise InputError("no sample has a label; every list of y is empty")
            y = indicate_lists(lists, names)
        X, y = validate_data(self, X, y, multi_output=True, **ACCEPTED)
        Y = self._set_classes(y, names)
        X = canonical_csr(X)
        self.scale_, self._has_unit_length = fit_scale(X, self.scaling)
        X = scale_samples(X, self.scale_, self._has_unit_length)
        # Train only on the features that occur; the others have no weight
        n_features = X.shape[1]
        X, features = without_empty_columns(X)

        names = class_names(self.classes_, "class")
        seed = draw_seed(self.random_state)
        if self.tree is not None:
            tree = keep_labels(as_tree(self.tree), names)
        else:
            tree = self._build_tree(X, Y, names, seed)
        self.tree_ = tree
        tree = in_class_order(tree, label_classes(tree, names))

        has_one_label = (np.diff(Y.indptr) == 1).all()
        self.C_ = (10.0 if has_one_label else 3.0) if self.C == "auto" else self.C
        objective = Objective(self.C_, self.tol, self.weight_threshold, seed)
        nodes = fit_nodes(tree, X, Y, objective, self.n_jobs)
        weight = spread_columns(nodes.weight, features, n_features)
        self._model = nodes._replace(weight=weight)
        return self

    def _check_parameters(self) -> None:
        for option in read_options(ProbabilisticLabelTreeClassifier, UNCHECKED):
            option.checked(getattr(self, option.name))

    def _set_classes(self, y: Any, names: Any) -> Any:
        """Set the classes and the kind of `y`; return the indicator (n, V), a CSR array.

        `names` are those of the columns, or None.
        """
        self._is_sparse = scipy.sparse.issparse(y)
        if y.dtype == object and y.size > len(y):
            raise InputError(
                f"y has {y.shape[1]} columns that are not all numbers; give columns of 0 and 1, or "
                "one column of lists of labels"
            )
        self._is_single = not self._is_sparse and type_of_target(y) in ("binary", "multiclass")
        self._dtype = y.dtype
        if self._is_single:
            y = column_or_1d(y)
            self.classes_, number = np.unique(y, return_inverse=True)
            content = np.ones(len(y), np.int8), number, np.arange(len(y) + 1)
            return scipy.sparse.csr_array(content, shape=(len(y), len(self.classes_)))

        if not self._is_sparse:
            if type_of_target(y) != "multiclass-multioutput":
                check_classification_targets(y)
            y = y.astype(y.dtype.newbyteorder("="))
        Y = indicator(y, "y")
        if Y.nnz == 0:
            raise InputError("no sample has a label; y must be 1 for each label of a sample")
        self.classes_ = np.arange(Y.shape[1]) if names is None else np.array(list(names))
        return Y.astype(np.int8)

    def _build_tree(self, X: Any, Y: Any, names: list[str], seed: int) -> Tree:
        """Build the tree from the labels' samples, which are scaled already."""

        def vectors() -> Array:
            # (V, d) sums of the labels' samples. If they are large, the smaller table, of samples
            # or of sums, is projected
            samples = Y.T.astype(X.dtype)
            n_elements = len(names) * X.shape[1]
            if n_elements <= UNPROJECTED_ELEMENTS:
                table = normalize((samples @ X).toarray(), copy=False)
            elif n_elements <= X.nnz:
                table = project(normalize(samples @ X, copy=False), seed)
            else:
                table = normalize(samples @ project(X, seed))
            return np.asarray(table)

        options = self.builder_options or {}
        if self.builder == "kmeans" and self.builder_options is None:
            options = NARROW_ABOVE
        counts = np.bincount(Y.indices, minlength=len(names))
        return build_tree(
            self.builder, options, names, seed, counts, vectors, kind="label features"
        )

    # Prediction.

    def predict_proba(self, X: Any, k: int | None = None) -> Any:
        """Return the probabilities of the labels.

        Parameters
        ----------
        X : array_like or sparse (n, n_features)
        k : int, optional
            Return only the k most probable labels; exact, ties in label order.

        Returns
        -------
        array (n, V), or CSR array (n, V) with `k`
            If `y` had one class per sample, each row sums to one without `k`.
        """
        X = self._checked(X)
        if k is not None:
            return self._model.search(X, checked_count("k", k))
        result = np.empty((X.shape[0], len(self.classes_)))
        for rows, log_prob in self._model.log_prob(X):
            result[rows] = np.exp(log_prob)
        if self._is_single:
            result /= np.maximum(result.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        return result

    def predict(self, X: Any) -> Any:
        """Return the labels with at least the probability `threshold`, in the form of `y`.

        For an indicator, an indicator (n, V), sparse if `y` was. For lists, lists of labels, the
        most probable first. For one class per sample, the most probable class of each sample, an
        array (n,).
        """
        X = self._checked(X)
        if self._is_single:
            return self.classes_[self._model.search(X, 1).indices]
        labels = self._model.search(X, len(self.classes_), self.threshold)
        if self._has_lists:
            names = self.classes_[labels.indices].tolist()
            return [names[a:b] for a, b in pairwise(labels.indptr.tolist())]
        labels = labels.astype(self._dtype)
        labels.data[:] = 1
        return labels if self._is_sparse else labels.toarray()

    def top_k(self, X: Any, k: int = 5) -> tuple[Array, Float64]:
        """Return the k most probable labels of each sample and their log-probabilities.

        The arrays (n, min(k, V)) are exact: most probable first, ties in label order. Raises
        OptionError if `k` is not a whole number, 1 or more.
        """
        best = self.predict_proba(X, checked_count("k", k))
        shape = best.shape[0], -1
        with np.errstate(divide="ignore"):
            log_prob = np.log(best.data.reshape(shape))
        return self.classes_[best.indices.reshape(shape)], log_prob

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the fraction of the samples whose class, or whose set of labels, is predicted.

        Raises InputError if `y` is not in the form of the training `y`, or weights are not numbers.
        """
        predicted = self.predict(X)
        if sample_weight is not None:
            sample_weight = checked_weights(sample_weight, len(predicted))
        lists = label_lists(y, may_be_table=not self._has_lists)
        if (lists is not None) != self._has_lists:
            article = "no lists" if lists is None else "lists"
            raise InputError(f"y has {article} of labels, unlike that of fit; give the same form")
        if lists is not None:
            if len(lists) != len(predicted):
                raise InputError(
                    f"y has lists for {len(lists):,} samples, but X has {len(predicted):,}; give a "
                    "list for each"
                )
            distinct_labels(lists)  # refuses values that are not labels
            y = np.ones(len(lists), bool)
            pairs = zip(predicted, lists, strict=True)
            predicted = np.array([set(guess) == set(labels) for guess, labels in pairs])
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def _checked(self, X: Any) -> Any:
        """Return X as scaled samples, a CSR array of float32."""
        check_is_fitted(self, "_model")
        X = canonical_csr(validate_data(self, X, reset=False, **ACCEPTED))
        X = scale_samples(X, self.scale_, self._has_unit_length)
        return X.astype(np.float32)  # type of the weights; twice as fast as float64

    @property
    def weight_(self) -> Any:
        """Weights of the edges and of the root, CSR array (E + 1, n_features)."""
        return self._model.weight

    @property
    def bias_(self) -> Float64:
        """Biases of the edges and of the root (E + 1,)."""
        return self._model.bias

    # Files.

    def save(self, folder: Folder) -> None:
        """Write the fitted classifier to a folder, without pickles; `load` reads it.

        The folder has ``config.json``, ``tree.json`` and ``weights.safetensors``, replaced
        together. Raises TypeError if classes are neither text nor numbers.
        """
        check_is_fitted(self, "_model")
        plain = bool | int | float | str | None
        names = getattr(self, "feature_names_in_", None)
        parameters = self.get_params().items()
        is_named = not np.array_equal(self.classes_, np.arange(len(self.classes_)))
        config = Config(
            parameters={name: value for name, value in parameters if isinstance(value, plain)},
            classes=self.classes_.tolist() if self._is_single or is_named else None,
            classes_of="y" if self._is_single else "lists" if self._has_lists else "columns",
            feature_names=None if names is None else names.tolist(),
            words=None if self.words_ is None else self.words_.tolist(),
            has_unit_length=self._has_unit_length,
            sparse=self._is_sparse,
            dtype=self._dtype.str,
        )
        weight = self._model.weight
        tensors = {
            "start": weight.indptr,
            "feature": weight.indices,
            "weight": weight.data,
            "bias": self._model.bias,
            "scale": self.scale_,
        }
        write_folder(folder, self.tree_, tensors, config)

    @classmethod
    def load(cls, folder: Folder) -> Self:
        """Read a classifier that `save` wrote; raise FileFormatError if the folder has none."""
        tree, tensors, fields = read_folder(folder)
        try:
            config = msgspec.convert(fields, Config)
            model = cls(**config.parameters)
            model._check_parameters()
            model._restore(tree, tensors, config)
        except (ValueError, KeyError, TypeError) as error:
            problem = f"{folder}: no classifier can be made from it: {one_line(error)}"
            raise FileFormatError(problem) from error
        return model

    def _restore(self, tree: Tree, tensors: dict[str, Array], config: Config) -> None:
        """Set the fitted attributes from the content of a folder."""
        classes = config.classes
        self._is_single = classes is not None and config.classes_of == "y"
        self._has_lists = config.classes_of == "lists"
        self._is_sparse = config.sparse
        self._dtype = np.dtype(config.dtype)
        if not self._is_single and self._dtype.kind not in "biuf":
            raise ValueError(f"labels are of type {self._dtype}, not numbers")
        self.classes_ = np.arange(tree.n_labels) if classes is None else np.array(classes)
        if len(self.classes_) != tree.n_labels:
            raise ValueError(f"{len(self.classes_)} classes for the {tree.n_labels} of its tree")

        scale = tensors["scale"]
        self.scale_ = scale
        self._has_unit_length = config.has_unit_length
        self.n_features_in_ = len(scale)
        for names in (config.feature_names, config.words):
            if names is not None and len(names) != len(scale):
                raise ValueError(f"it has {len(names)} names of {len(scale)} features")
        if config.feature_names is not None:
            self.feature_names_in_ = np.array(config.feature_names, object)
        self.words_ = None if config.words is None else np.array(config.words, object)

        content = tensors["weight"], tensors["feature"], tensors["start"]
        weight = scipy.sparse.csr_array(content, shape=(len(tree.child) + 1, len(scale)))
        weight.check_format()
        self.tree_ = tree
        tree = in_class_order(tree, label_classes(tree, class_names(self.classes_, "class")))
        self._model = LabelNodes(tree, weight, tensors["bias"])

    # Contract of scikit-learn.

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: sparse X and multi-label y are allowed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags
