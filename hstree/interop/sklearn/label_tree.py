"""Probabilistic label tree: a linear classifier for several labels a sample."""

import hashlib
import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, Self

import msgspec
import numpy as np
import scipy.sparse
from msgspec import Meta
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as tensors_to_bytes
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import normalize
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from hstree._arrays import Array, Float64, Int64, Integer, canonical_csr, segment_ids
from hstree._files import (
    current_file,
    read_json,
    read_regular,
    replacing_together,
    write_json,
)
from hstree._options import Option, checked_count
from hstree._text import brief, one_line
from hstree.builders.prune import keep_labels
from hstree.data.arrays import check_tensor
from hstree.data.multilabel import indicator
from hstree.data.vectors import WordVectors
from hstree.errors import FileFormatError, InputError
from hstree.interop.sklearn.class_tree import NARROW_ABOVE, few_dimensions, label_ids, tree_of
from hstree.interop.sklearn.features import (
    ACCEPTED,
    check_not_too_large,
    largest_magnitude,
    spread_columns,
    without_empty_columns,
)
from hstree.interop.sklearn.label_nodes import LabelNodes, Objective, fit_nodes
from hstree.layers.arithmetic import touched_rows
from hstree.tree import Tree, as_tree, load
from hstree.tree.names import class_names

#: Numbers of the labels' vectors up to which these are taken as they are.
MOST_NUMBERS = 1 << 20
#: Numbers from which on float32 has whole numbers alone, so that they need not be counts.
MOST_COUNT = 1 << 24
#: What `save` writes. The weights are safetensors: ``start`` (E + 2,), ``feature`` and ``weight``
#: of a CSR array, ``bias`` (E + 1,), and ``scale`` (n_features,), by which features are multiplied.
FORMAT, VERSION = "hstree label tree", 1
FILES = CONFIG, TREE, WEIGHTS = "config.json", "tree.json", "weights.safetensors"
_REMEDY = "give the folder of a saved classifier"

_RANGES = {
    "scaling": Literal["auto", "tfidf", "unit", "none"],
    "weight_threshold": Annotated[float, Meta(ge=0)],
    "threshold": Annotated[float, Meta(ge=0, le=1)],
    **dict.fromkeys(("C", "tol"), Annotated[float, Meta(gt=0)]),
}


class _Config(msgspec.Struct):
    """What ``config.json`` has of a classifier."""

    parameters: dict[str, Any]
    classes: list[str | int | float | bool] | None
    feature_names: list[str] | None
    has_unit_length: bool
    sparse: bool
    dtype: str


class _FeatureScale(NamedTuple):
    """Factors of features; almost all of a wide X have the same one, that of an unseen feature."""

    features: Int64  #: (K,), ascending
    factor: Float64  #: (K,)
    other: float  #: factor of the other features

    @classmethod
    def from_array(cls, scale: Float64) -> Self:
        """Return the factors of all features (n_features,)."""
        other = float(scale.max(initial=0))
        features = np.flatnonzero(scale != other)
        return cls(features, scale[features], other)

    def to_array(self, n_features: int) -> Float64:
        """Return the factors of all features (n_features,)."""
        scale = np.full(n_features, self.other)
        scale[self.features] = self.factor
        return scale

    def factors(self, feature: Integer) -> Float64 | float:
        """Return the factors of features that may repeat."""
        if not len(self.features):
            return self.other
        at = np.minimum(np.searchsorted(self.features, feature), len(self.features) - 1)
        return np.where(self.features[at] == feature, self.factor[at], self.other)


class ProbabilisticLabelTreeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Linear classifier for several labels a sample, through a probabilistic label tree.

    Each node has a logistic model of each child: whether a label below the child holds, given that
    one below the node does. It is trained on the samples that have one below the node. The
    probability of a label is the product of those on its path [1]_.

    Parameters
    ----------
    builder : str, default "kmeans"
        Method that makes the tree: one of `hstree.builders()` that takes vectors (of a label the
        sum of its samples' features, scaled to unit length) or a vocabulary (the labels' numbers
        of samples).
    builder_options : mapping, optional
        Options of the builder. By default kmeans has an `arity` of 10 and `max_leaves` of 100: up
        to 100 labels are all under the root.
    tree : Tree, str or path, optional
        The tree or its file, instead of a builder; its labels are the columns of `y`, "0" to
        "V - 1". Other labels are pruned.
    C : float, default 3.0
        Inverse strength of the penalty, as in `LogisticRegression`, of a node that all n samples
        reach; ``C * sqrt(n / m)`` for one that m reach.
    scaling : {"auto", "tfidf", "unit", "none"}, default "auto"
        "unit" scales each sample to length one, "tfidf" weights features by their inverse document
        frequency first; "none" divides all samples by one number, their root mean squared length.
        "auto" is "tfidf" for a training X of whole numbers from 0 to 2**24, "unit" for other
        numbers that are 0 or more, else "none".
    tol : float, default 0.3
        Tolerance of liblinear's dual coordinate descent, which solves each model in at most 100
        rounds.
    weight_threshold : float, default 0.15
        Weights that move the logit of no training sample by more than this are not kept.
    threshold : float, default 0.5
        `predict` has the labels of at least this probability.
    random_state : int, RandomState or None, default 0
        Seed of the builder, unless its options have one, and of liblinear.
    n_jobs : int, optional
        Number of processes in which nodes are trained; -1 for all cores, by default 1 or what an
        ambient ``joblib.parallel_config`` says.

    Attributes
    ----------
    classes_ : array (V,)
        Numbers of the columns of `y`; the classes where it has one class a sample.
    tree_ : Tree
        Its labels name the classes, whole numbers by their digits.
    weight_ : CSR array of float32 (E + 1, n_features)
        Weights of the edges' models, in the order of ``tree_.child``, and last those of the root's,
        of whether any label holds.
    bias_ : float array (E + 1,)
    scale_ : float array (n_features,)
        What features are multiplied by.
    n_features_in_ : int
    feature_names_in_ : array of str (n_features,)
        Where X has names.

    Notes
    -----
    Where a label has several codes in the tree, its highest path counts. Samples without a label
    train the root's model alone. Labels without a sample have probability 0.

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
        tree: Tree | str | os.PathLike[str] | None = None,
        C: float = 3.0,
        scaling: Literal["auto", "tfidf", "unit", "none"] = "auto",
        tol: float = 0.3,
        weight_threshold: float = 0.15,
        threshold: float = 0.5,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.builder, self.builder_options, self.tree = builder, builder_options, tree
        self.C, self.scaling, self.tol = C, scaling, tol
        self.weight_threshold, self.threshold = weight_threshold, threshold
        self.random_state, self.n_jobs = random_state, n_jobs

    def fit(self, X: Any, y: Any) -> Self:
        """Build the tree and train its nodes.

        X is array_like or sparse (n, n_features); `y` is an indicator (n, V) of the labels, 0 or 1,
        array_like or sparse, or one class for each sample (n,). Raises OptionError when a parameter
        is out of its range, InputError for other numbers in `y`, when no sample has a label, or
        when a column of `y` is not a label of the tree.
        """
        self._check_parameters()
        X, y = validate_data(self, X, y, multi_output=True, **ACCEPTED)
        Y = self._set_classes(y)
        X = canonical_csr(X)
        self._set_scale(X)
        X = self._scaled(X)
        # Time and memory follow the features that occur; the others have no weight
        n_features = X.shape[1]
        X, features = without_empty_columns(X)
        names = class_names(self.classes_, "class")
        seed = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31)
        if self.tree is not None:
            tree = keep_labels(as_tree(self.tree), names)
        else:
            tree = self._built(X, Y, names, int(seed))
        self._number(tree, names)
        objective = Objective(self.C, self.tol, self.weight_threshold, int(seed))
        Y_of_tree = Y.tocsc()[:, self._class_of_label]
        nodes = fit_nodes(tree, X, Y_of_tree, objective, self.n_jobs)
        weight = spread_columns(nodes.weight, features, n_features)
        self._model = nodes._replace(weight=weight)
        return self

    def predict_proba(self, X: Any, k: int | None = None) -> Any:
        """Return the probabilities of the labels, an array (n, V).

        With `k` those of the k likeliest labels, exactly, as a sparse array (n, V); ties by label.
        Where `y` had one class a sample, an array without `k` is scaled to a sum of one. Raises
        OptionError when `k` is neither None nor a whole number, 1 or more.
        """
        X = self._checked(X)
        if k is not None:
            return self._searched(X, checked_count("k", k))
        result = np.empty((X.shape[0], len(self.classes_)))
        for rows, log_prob in self._model.log_prob(X):
            result[rows, self._class_of_label] = np.exp(log_prob)
        if self._is_single:
            result /= np.maximum(result.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        return result

    def predict(self, X: Any) -> Any:
        """Return the labels whose probability is `threshold` or more, as an indicator (n, V).

        It is sparse where the training `y` was. Where that had one class a sample, the likeliest
        class of each sample, an array (n,).
        """
        X = self._checked(X)
        if self._is_single:
            return self.classes_[self._searched(X, 1).indices]
        searched = self._searched(X, len(self.classes_), self.threshold)
        indicator = searched.astype(self._dtype)
        indicator.data[:] = 1
        return indicator if self._is_sparse else indicator.toarray()

    @property
    def weight_(self) -> Any:
        """Weights of the edges and of the root, CSR array (E + 1, n_features)."""
        return self._model.weight

    @property
    def bias_(self) -> Float64:
        """Biases of the edges and of the root (E + 1,)."""
        return self._model.bias

    @property
    def scale_(self) -> Float64:
        """Factors of the features (n_features,)."""
        return self._scale.to_array(self.n_features_in_)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the fitted classifier as a folder, without pickles; `load` is the inverse.

        It has ``config.json``, ``tree.json`` and ``weights.safetensors``, replaced together. Raises
        InputError when classes are neither texts nor numbers.
        """
        check_is_fitted(self)
        plain = (bool, int, float, str, type(None))
        if not all(isinstance(one, plain) for one in self.classes_.tolist()):
            wrong = f"classes of type {self.classes_.dtype} cannot be saved"
            raise InputError(f"{wrong}; train with texts or numbers")
        names = getattr(self, "feature_names_in_", None)
        weight = self._model.weight
        tensors = {"start": weight.indptr, "feature": weight.indices, "weight": weight.data}
        tensors |= {"bias": self._model.bias, "scale": self.scale_}
        content = tensors_to_bytes(tensors)
        classes: Any = self.classes_.tolist() if self._is_single else None
        known = _Config(
            parameters={k: v for k, v in self.get_params().items() if isinstance(v, plain)},
            classes=classes,
            feature_names=None if names is None else names.tolist(),
            has_unit_length=self._has_unit_length,
            sparse=self._is_sparse,
            dtype=self._dtype.str,
        )
        config = {"format": FORMAT, "version": VERSION, **msgspec.structs.asdict(known)}
        config |= _hashes(self.tree_, content)
        with replacing_together(folder) as new:
            self.tree_.save(new / TREE)
            (new / WEIGHTS).write_bytes(content)
            write_json(new / CONFIG, config)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read a classifier that `save` wrote; FileFormatError when the folder does not hold it."""
        try:
            config = read_json(current_file(folder, CONFIG), dict[str, Any], _REMEDY)
            if (found := (config.get("format"), config.get("version"))) != (FORMAT, VERSION):
                raise FileFormatError(
                    f"{folder} holds {brief(found[0])}, version {brief(found[1])}, not {FORMAT!r}, "
                    f"version {VERSION}; {_REMEDY}"
                )
            content = read_regular(current_file(folder, WEIGHTS), FileFormatError, _REMEDY)
            tree, tensors = load(current_file(folder, TREE)), load_tensors(content)
            if any(config.get(name) != value for name, value in _hashes(tree, content).items()):
                raise FileFormatError(
                    f"{folder}: {TREE} and {WEIGHTS} are not those that {CONFIG} names; "
                    "save it again"
                )
            known = msgspec.convert(config, _Config)
            model = cls(**known.parameters)
            model._check_parameters()
            n_edges, n_features = len(tree.child), len(tensors.get("scale", ()))
            _check_tensors(tensors, n_edges, n_features, os.fspath(folder))
            return model._restored(tree, tensors, known)
        except (ValueError, KeyError, TypeError, OverflowError, SafetensorError) as error:
            why = one_line(error)
            raise FileFormatError(f"{folder}: no classifier can be made of it: {why}") from error

    def _restored(self, tree: Tree, tensors: dict[str, Array], config: _Config) -> Self:
        """Become what `save` wrote."""
        classes, names = config.classes, config.feature_names
        self._is_single, self._is_sparse = classes is not None, config.sparse
        self._dtype, self._has_unit_length = np.dtype(config.dtype), config.has_unit_length
        if classes is None and self._dtype.kind not in "biuf":
            raise ValueError(f"labels are of type {self._dtype}, not numbers")
        self.classes_ = np.arange(tree.n_labels) if classes is None else np.array(classes)
        self._scale = _FeatureScale.from_array(tensors["scale"])
        self.n_features_in_ = len(tensors["scale"])
        if names is not None:
            self.feature_names_in_ = np.array(names, object)
        shape = len(tree.child) + 1, self.n_features_in_
        content = tensors["weight"], tensors["feature"], tensors["start"]
        weight = scipy.sparse.csr_array(content, shape=shape)
        weight.check_format()
        if not weight.has_canonical_format:
            raise ValueError("the features of a weight row do not ascend")
        if len(self.classes_) != tree.n_labels:
            raise ValueError(f"{len(self.classes_)} classes for the {tree.n_labels} of its tree")
        if names is not None and len(names) != self.n_features_in_:
            raise ValueError(f"it has {len(names)} names of {self.n_features_in_} features")
        self._model = LabelNodes(tree, weight, tensors["bias"])
        self._number(tree, class_names(self.classes_, "class"))
        return self

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: sparse X and several labels are allowed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = tags.target_tags.multi_output = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a model."""
        return hasattr(self, "_model")

    def _check_parameters(self) -> None:
        for name, annotation in _RANGES.items():
            Option.of(name, annotation).checked(getattr(self, name))

    def _set_classes(self, y: Any) -> Any:
        """Take over the kind of `y` and its classes; return the indicator (n, V), a CSR array."""
        self._is_sparse = scipy.sparse.issparse(y)
        self._is_single = not self._is_sparse and type_of_target(y) in ("binary", "multiclass")
        self._dtype = y.dtype
        if self._is_single:
            y = column_or_1d(y)
            self.classes_, number = np.unique(y, return_inverse=True)
            ones = np.ones(len(y), np.int8), number, np.arange(len(y) + 1)
            return scipy.sparse.csr_array(ones, shape=(len(y), len(self.classes_)))
        if not self._is_sparse and type_of_target(y) != "multiclass-multioutput":
            check_classification_targets(y)
        native = y if self._is_sparse else y.astype(y.dtype.newbyteorder("="))
        Y = indicator(native, "y")
        if Y.nnz == 0:
            raise InputError("no sample has a label; y must be 1 for each label of a sample")
        self.classes_ = np.arange(Y.shape[1])
        return Y.astype(np.int8)

    def _set_scale(self, X: Any) -> None:
        """Choose how samples are scaled by those of the training, a canonical CSR array."""
        n, scaling = X.shape[0], self.scaling
        if scaling == "auto":
            # Larger numbers of the type are all whole
            is_count = (X.data == np.rint(X.data)).all() and largest_magnitude(X) < MOST_COUNT
            is_positive = (X.data > 0).all()
            scaling = "none" if not is_positive else "tfidf" if is_count else "unit"
        self._has_unit_length = scaling != "none"
        if scaling == "tfidf":
            features, index = touched_rows(X.indices, X.shape[1])
            n_samples = np.bincount(index)
            factor = np.log((1 + n) / (1 + n_samples)) + 1
            self._scale = _FeatureScale(features, factor, float(np.log(1 + n) + 1))
            return
        length = 1.0
        if scaling == "none":
            # A power of two is divided out, so that squares neither overflow nor vanish
            exponent = np.frexp(largest_magnitude(X))[1]
            data = np.ldexp(X.data.astype(np.float64), -exponent)
            with np.errstate(over="ignore"):  # the largest number is near enough
                length = float(np.ldexp(np.sqrt(np.vdot(data, data) / n) or 1, exponent))
            length = min(length, np.finfo(float).max)
        self._scale = _FeatureScale(np.empty(0, np.int64), np.empty(0), 1 / length)

    def _scaled(self, X: Any) -> Any:
        """Return the samples of a canonical CSR array as the model takes them."""
        data = X.data.astype(np.float64)
        sample = segment_ids(X.indptr)
        if self._has_unit_length:
            # Powers of two are divided out, so that squares neither overflow nor vanish
            exponent = np.frexp(abs(X).max(axis=1).toarray().ravel())[1]
            data = np.ldexp(data, -exponent[sample])
        data *= self._scale.factors(X.indices)
        if self._has_unit_length:
            data /= np.sqrt(np.bincount(sample, data**2, minlength=X.shape[0]))[sample]
        with np.errstate(over="ignore"):  # refused as too large
            data = data.astype(X.dtype)
        scaled = scipy.sparse.csr_array((data, X.indices, X.indptr), shape=X.shape)
        check_not_too_large(scaled)
        return scaled

    def _built(self, X: Any, Y: Any, names: list[str], seed: int) -> Tree:
        """Build the tree from the labels' samples, which are scaled already."""

        def counts() -> Int64:
            return np.bincount(Y.indices, minlength=len(names))

        def vectors() -> WordVectors:
            # (V, d) sums of the labels' samples; the smaller of both tables is projected if large
            sums = Y.T.astype(X.dtype)
            numbers = len(names) * X.shape[1]
            if numbers <= MOST_NUMBERS:
                table = normalize((sums @ X).toarray(), copy=False)
            elif numbers <= X.nnz:
                table = few_dimensions(normalize(sums @ X, copy=False), seed)
            else:
                table = normalize(sums @ few_dimensions(X, seed))
            return WordVectors(names, table, counts=counts(), source={"kind": "label features"})

        options = self.builder_options or {}
        if self.builder == "kmeans" and self.builder_options is None:
            options = NARROW_ABOVE
        return tree_of(self.builder, options, names, seed, counts, vectors)

    def _number(self, tree: Tree, names: list[str]) -> None:
        """Take over a tree, and the class of each of its labels."""
        self.tree_, self._class_of_label = tree, np.argsort(label_ids(tree, names))

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._scaled(canonical_csr(validate_data(self, X, reset=False, **ACCEPTED)))

    def _searched(self, X: Any, k: int, threshold: float = 0.0) -> Any:
        """Return the probabilities of the k likeliest classes from a threshold on, sparse."""
        found = self._model.search(X, k, threshold)
        found.indices = self._class_of_label[found.indices]
        return found


def _check_tensors(
    tensors: Mapping[str, Array], n_edges: int, n_features: int, folder: str
) -> None:
    """Refuse tensors that are not those of a saved classifier; FileFormatError."""
    stored = tensors.get("weight", np.empty(0)).shape[:1]
    integer = tensors.get("start", np.empty(0, np.int32)).dtype
    if integer not in (np.int32, np.int64):
        raise FileFormatError(f"{folder}: start wants int32 or int64, found {integer}")
    check_tensor(tensors.get("start"), (n_edges + 2,), f"{folder}: start", integer)
    check_tensor(tensors.get("feature"), stored, f"{folder}: feature", integer)
    check_tensor(tensors.get("weight"), stored, f"{folder}: weight")
    check_tensor(tensors.get("scale"), (n_features,), f"{folder}: scale", np.float64)
    # Of a child below which all samples of its node have a label, or none has, it is infinite
    bias = tensors.get("bias")
    check_tensor(bias, (n_edges + 1,), f"{folder}: bias", np.float64, may_be_infinite=True)


def _hashes(tree: Tree, weights: bytes) -> dict[str, str]:
    return {"tree_sha256": tree.sha256, "weights_sha256": hashlib.sha256(weights).hexdigest()}
