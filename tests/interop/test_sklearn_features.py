"""Features of the scikit-learn estimators: almost all of them empty, very large or very small."""

import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse

from hstree.errors import HstreeError, InputError
from hstree.interop.sklearn import HierarchicalSoftmaxClassifier, ProbabilisticLabelTreeClassifier
from hstree.interop.sklearn import label_tree as label_tree_module

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N, N_FEATURES, N_CLASSES = 300, 200, 12
WIDE = 1 << 17
MODELS = {
    "label tree": ProbabilisticLabelTreeClassifier(),
    "label tree, tf-idf": ProbabilisticLabelTreeClassifier(scaling="tfidf"),
    "label tree, narrow": ProbabilisticLabelTreeClassifier("kmeans", builder_options={"arity": 3}),
    "L-BFGS": HierarchicalSoftmaxClassifier(),
    "L-BFGS, gmm": HierarchicalSoftmaxClassifier("gmm"),
    "liblinear": HierarchicalSoftmaxClassifier(solver="liblinear"),
    "Adagrad": HierarchicalSoftmaxClassifier("kmeans", solver="adagrad"),
}


def problem(seed=0, signed=True):
    """Return a sparse X (N, N_FEATURES), and y; classes are well apart."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, N_CLASSES, N)
    centres = np.random.default_rng(9).normal(size=(N_CLASSES, N_FEATURES))
    X = (centres[y] * 2 + rng.normal(size=(N, N_FEATURES))) * (rng.random((N, N_FEATURES)) < 0.3)
    return scipy.sparse.csr_array(X if signed else np.abs(X)), y


def widened(X, n_features, seed=1):
    """Return X with its columns spread, in order, over more columns, and their numbers."""
    rng = np.random.default_rng(seed)
    columns = np.sort(rng.choice(n_features, X.shape[1], replace=False))
    content = X.data, columns[X.indices], X.indptr
    return scipy.sparse.csr_array(content, shape=(X.shape[0], n_features)), columns


def new_model(name, **parameters):
    model = MODELS[name]
    return type(model)(**(model.get_params() | parameters))


every_model = pytest.mark.parametrize("name", MODELS)
softmaxes = pytest.mark.parametrize("name", [n for n in MODELS if "label" not in n])


@every_model
@pytest.mark.parametrize("signed", [True, False])
def test_empty_columns_change_nothing(name, signed):
    X, y = problem(signed=signed)
    wide, columns = widened(X, WIDE)
    model = new_model(name).fit(X, y)
    other = new_model(name).fit(wide, y)
    assert other.tree_ == model.tree_
    assert other.weight_.shape[1] == WIDE
    np.testing.assert_allclose(other.weight_[:, columns].toarray(), dense(model.weight_), rtol=1e-9)
    expected = model.predict_proba(X)
    np.testing.assert_allclose(other.predict_proba(wide), expected, rtol=1e-9)
    np.testing.assert_array_equal(other.predict(wide), model.predict(X))
    np.testing.assert_allclose(other.predict_proba(wide[:3]), expected[:3], rtol=1e-9)
    again = pickle.loads(pickle.dumps(other))
    np.testing.assert_array_equal(again.predict(wide), model.predict(X))


def dense(weight):
    return weight.toarray() if scipy.sparse.issparse(weight) else weight


@every_model
def test_features_that_did_not_occur_in_training_count_for_nothing(name):
    X, y = problem()
    wide, columns = widened(X, WIDE)
    model = new_model(name, **({"scaling": "none"} if "label" in name else {})).fit(wide, y)
    unseen = scipy.sparse.csr_array(
        (np.full(N, 3.0), (np.arange(N), np.full(N, np.setdiff1d(range(999), columns)[7]))),
        shape=wide.shape,
    )
    expected = model.predict_proba(wide)
    np.testing.assert_allclose(model.predict_proba(wide + unseen), expected, rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba((wide + unseen)[:2].toarray()), expected[:2])


@softmaxes
@pytest.mark.parametrize("methods", [("fit", "partial_fit"), ("partial_fit",) * 2, ("fit",) * 2])
def test_features_that_occur_later_are_learned(name, methods):
    """As where all columns are there from the first call on; twice `fit` is a warm start."""
    X, y = problem()
    half = scipy.sparse.csr_array(X * (np.arange(N_FEATURES) < 100))
    wide, columns = widened(X, WIDE)
    narrow_half, _ = widened(half, WIDE)
    models = []
    for early, late in ((half, X), (narrow_half, wide)):
        model = new_model(name, warm_start=True)
        first, second = methods
        for method, samples in ((first, early), (second, late), (second, late)):
            classes = {"classes": range(N_CLASSES)} if method == "partial_fit" else {}
            getattr(model, method)(samples, y, **classes)
        models.append(model)
    model, other = models
    np.testing.assert_allclose(other.predict_proba(wide), model.predict_proba(X), rtol=1e-4)
    np.testing.assert_allclose(
        dense(other.weight_)[:, columns], dense(model.weight_), rtol=1e-4, atol=1e-6
    )


def peak_memory(name, n_features):
    """Return the bytes for training, two predictions and, if possible, training on another part."""
    X, y = problem(signed=False)
    wide, _ = widened(X, n_features)
    model = new_model(name)
    tracemalloc.start()
    model.fit(wide, y)
    model.predict(wide[:5])
    model.predict_proba(wide)
    if hasattr(model, "partial_fit"):
        model.partial_fit(wide, y)
        model.predict(wide)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


@every_model
def test_memory_follows_the_features_that_occur(name):
    """An empty column takes two or three numbers, not one for each class."""
    peak_memory(name, 1 << 14)  # modules are imported
    added = peak_memory(name, 1 << 22) - peak_memory(name, 1 << 14)
    assert added < 40 * (1 << 22)


@pytest.mark.parametrize("method", ["kmeans", "flat", "huffman"])
def test_no_vectors_are_made_where_all_labels_are_under_the_root(method, monkeypatch):
    monkeypatch.delattr("hstree.interop.sklearn.class_tree.project")
    monkeypatch.delattr(label_tree_module, "normalize")
    X, y = problem()
    options = {"arity": N_CLASSES} if method != "flat" else {}
    for estimator in (ProbabilisticLabelTreeClassifier, HierarchicalSoftmaxClassifier):
        tree = estimator(method, builder_options=options).fit(X, y).tree_
        assert tree.n_nodes == 1 or method == "huffman"
        assert tree.meta["method"] == method
    with pytest.raises(HstreeError, match="arity is 'many'"):
        ProbabilisticLabelTreeClassifier("kmeans", builder_options={"arity": "many"}).fit(X, y)


SCALINGS = ["auto", "unit", "tfidf", "none"]


@pytest.mark.parametrize("scaling", ["auto", "unit", "tfidf", "none"])
@pytest.mark.parametrize(
    ("dtype", "factor"),
    [(np.float32, 1e20), (np.float32, 1e-33), (np.float64, 1e200), (np.float64, 1e-200)],
)
@pytest.mark.parametrize("signed", [True, False])
def test_a_label_tree_does_not_depend_on_the_scale_of_its_features(scaling, dtype, factor, signed):
    X, y = problem(signed=signed)
    builder = {"builder": "kmeans", "builder_options": {"arity": 3}}
    power = float(2.0 ** np.round(np.log2(factor)))  # which keeps all digits
    scaled = (X * power).astype(dtype)
    model = ProbabilisticLabelTreeClassifier(scaling=scaling, **builder).fit(X.astype(dtype), y)
    other = ProbabilisticLabelTreeClassifier(scaling=scaling, **builder).fit(scaled, y)
    assert other.tree_ == model.tree_
    assert other.score(scaled, y) > 0.9
    expected = model.predict_proba(X.astype(dtype))
    np.testing.assert_allclose(other.predict_proba(scaled), expected, rtol=1e-5)


@softmaxes
@pytest.mark.parametrize("layout", [scipy.sparse.csr_array, scipy.sparse.csr_array.toarray])
def test_a_softmax_refuses_features_beyond_the_range_of_float32(name, layout):
    """Its objective, which is that of logistic regression, depends on their scale."""
    X, y = problem()
    model = new_model(name).fit(X, y)
    for method in (lambda X: new_model(name).fit(X, y), model.predict):
        with pytest.raises(InputError, match="scale the features") as caught:
            method(layout(X * -1e20))
        assert "\n" not in str(caught.value)


def test_a_label_tree_refuses_features_beyond_those_of_its_training():
    X, y = problem()
    X = X.astype(np.float32)
    model = ProbabilisticLabelTreeClassifier(scaling="none").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for factor in (1e20, 1e36):
            with pytest.raises(InputError, match="scale the features"):
                model.predict_proba(X * np.float32(factor))


@every_model
@pytest.mark.parametrize("n_features", [N_FEATURES, WIDE])
def test_features_of_zeros_are_no_error(name, n_features):
    _, y = problem()
    empty = scipy.sparse.csr_array((N, n_features))
    probability = new_model(name, tol=1e-8).fit(empty, y).predict_proba(empty)
    assert np.isfinite(probability).all()
    np.testing.assert_allclose(probability, probability[[0] * N])
