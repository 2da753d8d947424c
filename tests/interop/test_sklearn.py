"""The scikit-learn classifier: the contract, the optimum, the trees, and messages on misuse."""

import numpy as np
import pytest
import scipy.sparse
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from hstree import HstreeError, Tree, build
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError, OptionError
from hstree.interop.sklearn import HierarchicalSoftmaxClassifier as Classifier
from hstree.interop.sklearn import linear
from tests.builders.label_sets import child_sets
from tests.strategies import THREE_CYCLES

LIBLINEAR = {"builder": "kmeans", "builder_options": {"arity": 5}, "solver": "liblinear"}
CONFIGURATIONS = {
    "gmm": {"builder": "gmm"},
    "flat": {"builder": "flat"},
    "huffman, 3 branches": {"builder": "huffman", "builder_options": {"arity": 3}},
    "linkage": {"builder": "linkage"},
    "short list": {"builder": "semantic", "builder_options": {"short_list": 2}},
    "adagrad": {"builder": "gmm", "solver": "adagrad", "epochs": 2, "learning_rate": 0.5},
    "liblinear": LIBLINEAR,
}
CHECKED = [
    {},
    {"builder": "gmm", "solver": "adagrad"},
    {"builder": "kmeans", "warm_start": True},
    LIBLINEAR,
]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def not_of_liblinear(estimator):
    """Say which checks need an optimum, or a bias without a penalty."""
    if estimator.solver != "liblinear":
        return {}
    weights = "check_sample_weight_equivalence_on_{}_data"
    return {
        **dict.fromkeys(map(weights.format, ("dense", "sparse")), "it ends before the optimum"),
        "check_class_weight_classifiers": "it penalises the bias",
    }


@parametrize_with_checks(
    [Classifier(**parameters) for parameters in CHECKED],
    expected_failed_checks=not_of_liblinear,
)
def test_scikit_learns_contract(estimator, check):
    check(estimator)


def problem(n_classes=8, n=240, n_features=12, seed=0):
    """Return overlapping classes of unequal size: float64 X, and y as names."""
    rng = np.random.default_rng(seed)
    y = rng.choice(n_classes, n, p=rng.dirichlet(np.full(n_classes, 5.0)))
    y[:n_classes] = np.arange(n_classes)
    centres = rng.standard_normal((n_classes, n_features))
    X = centres[y] + 1.5 * rng.standard_normal((n, n_features))
    X[np.abs(X) < 1] = 0
    return X, np.array([f"class {c}" for c in range(n_classes)])[y]


def close(a, b, tolerance=1e-4):
    np.testing.assert_allclose(a, b, atol=tolerance, rtol=0)


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_matrix])
@pytest.mark.parametrize("n_classes", [2, 5, 40])
def test_by_default_it_is_logistic_regression(layout, n_classes):
    X, y = problem(n_classes)
    X = layout(X)
    theirs = LogisticRegression(C=0.05, tol=1e-8, max_iter=10_000).fit(X, y)
    ours = Classifier(C=0.05, tol=1e-8, max_iter=10_000).fit(X, y)
    assert ours.tree_.fan_out.tolist() == [n_classes]
    close(ours.predict_proba(X), theirs.predict_proba(X))
    close(ours.coef_, theirs.coef_)
    centred = ours.intercept_ - (ours.intercept_.mean() if n_classes > 2 else 0)
    close(centred, theirs.intercept_, 1e-3)
    # The first of two children is scikit-learn's negative class.
    close(ours.weight_, -theirs.coef_ if n_classes == 2 else theirs.coef_)
    assert (ours.predict(X) == theirs.predict(X)).all()


def test_a_binary_tree_is_a_logistic_regression_at_each_node():
    X, y = problem(3)
    weight = np.random.default_rng(1).uniform(0.2, 3, len(y))
    tree = Tree.from_children(["class 2", "class 0", "class 1"], [[1, ~0], [~1, ~2]])
    model = Classifier(tree=tree, C=0.3, tol=1e-8).fit(X, y, weight)

    root = LogisticRegression(C=0.3, tol=1e-8).fit(X, y != "class 2", weight)
    below = y != "class 2"
    C = 0.3 * np.sqrt(weight.sum() / weight[below].sum())
    node = LogisticRegression(C=C, tol=1e-8).fit(X[below], y[below] == "class 0", weight[below])
    left = root.predict_proba(X)[:, 1]
    first = node.predict_proba(X)[:, 1]
    close(model.predict_proba(X).T, [left * first, left * (1 - first), 1 - left])


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_answers_agree_with_each_other(name):
    X, y = problem(n_classes=36)
    model = Classifier(**CONFIGURATIONS[name]).fit(X.astype(np.float32), y)
    proba = model.predict_proba(X)
    assert proba.shape == (len(X), 36)
    assert np.abs(proba.sum(axis=1) - 1).max() < 1e-9
    close(np.exp(model.predict_log_proba(X)), proba, 1e-12)
    assert (model.decision_function(X) == model.predict_log_proba(X)).all()
    assert model.score(X, y) == (model.predict(X) == y).mean()
    with pytest.raises(OptionError, match=r"k is 1\.5"):
        model.top_k(X, 1.5)
    assert model.top_k(X, 50)[0].shape == (len(X), 36)
    assert sorted(model.tree_.labels) == sorted(model.classes_)
    assert model.weight_.dtype == np.float32
    if model.tree_.n_nodes > 1:
        assert abs(model.coef_ - model.weight_).max() == 0
        assert (model.intercept_ == model.bias_).all()
    if name != "liblinear":
        assert len(model.loss_curve_) == model.n_iter_ > 0
        assert model.loss_curve_[-1] <= model.loss_curve_[0]


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("patience", [0, 12, 1000])
def test_the_most_probable_classes_are_those_of_a_sort(name, layout, patience, monkeypatch):
    """Searched in small batches, with an answer for no, some or all samples."""
    monkeypatch.setattr(linear, "LEAST_EDGES", 0)
    monkeypatch.setattr(linear, "SEARCHED_TOGETHER", 100)
    monkeypatch.setattr(linear, "LEAST_PATIENCE", patience)
    X, y = problem(n_classes=36)
    model = Classifier(**CONFIGURATIONS[name]).fit(X, y)
    log_proba = model.predict_log_proba(X)
    order = np.argsort(-log_proba, axis=1, kind="stable")
    monkeypatch.setattr(linear, "TABLE_LIMIT", 100)
    close(model.predict_log_proba(layout(X)), log_proba, 1e-12)
    assert (model.predict(layout(X)) == model.classes_[order[:, 0]]).all()
    for k in (1, 2, 7, 36):
        classes, values = model.top_k(layout(X), k)
        assert (classes == model.classes_[order[:, :k]]).all()
        close(values, np.take_along_axis(log_proba, order[:, :k], axis=1), 1e-6)
    if patience == 1000:
        monkeypatch.delattr(linear, "first_columns")
        model.top_k(layout(X), 2)


def test_ties_are_in_the_order_of_the_classes(monkeypatch):
    names = [f"class {c}" for c in (3, 1, 0, 2)]
    tree = Tree.from_children(names, [[1, 2], [~0, ~1], [~2, ~3]])
    X, y = np.zeros((8, 2)), np.repeat(sorted(names), 2)
    model = Classifier(tree=tree).fit(X, y)
    for edges in (0, 100):
        monkeypatch.setattr(linear, "LEAST_EDGES", edges)
        assert model.top_k(X[:1], 4)[0].tolist() == [sorted(names)]
        assert model.predict(X[:1]).tolist() == ["class 0"]


def penalised(model, X, y, C):
    """Objective: a node's penalty is weighted by the root of its fraction of the samples."""
    nll = -model.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    tree = model.tree_
    count = np.array([(y == label).sum() for label in tree.labels])
    node_share = np.add.reduceat(tree.sum_up(count / tree.codes_per_label), tree.child_start[:-1])
    row_penalty = np.repeat((node_share / len(y)) ** 0.5, np.diff(tree.row_start))
    return C * nll.sum() + 0.5 * (row_penalty @ model.weight_**2).sum()


@pytest.mark.parametrize(("builder", "n_classes"), [("flat", 6), ("kmeans", 40)])
@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array])
def test_adagrad_goes_to_the_same_optimum(builder, layout, n_classes):
    X, y = problem(n_classes)
    exact = Classifier(builder, C=0.1).fit(X, y)
    steps = Classifier(
        builder, C=0.1, solver="adagrad", epochs=60, batch_size=40, learning_rate=0.3
    ).fit(layout(X), y)
    least = penalised(exact, X, y, 0.1)
    assert least < penalised(steps, X, y, 0.1) < 1.02 * least


@pytest.mark.parametrize(
    ("n_classes", "method", "fan_out"),
    [(256, "flat", [256]), (300, "kmeans", [10, *[30] * 10])],
)
def test_by_default_many_classes_are_under_ten_children(n_classes, method, fan_out):
    X, y = problem(n_classes, n=900)
    tree = Classifier(solver="adagrad", epochs=1).fit(X, y).tree_
    assert tree.meta["method"] == method
    assert tree.fan_out.tolist() == fan_out


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize(("length", "C"), [(0, 100), (1, 10), (2, 2.5), (100, 1)])
def test_by_default_the_penalty_follows_the_length_of_the_samples(length, C, layout):
    X, y = problem(3)
    X *= length / np.linalg.norm(X, axis=1, keepdims=True)
    X = layout(X)
    model = Classifier().fit(X, y)
    assert pytest.approx(C) == model.C_
    close(model.weight_, Classifier(C=C).fit(X, y).weight_)
    assert pytest.approx(C) == Classifier().partial_fit(X, y, np.unique(y)).C_


def test_a_penalty_set_between_calls_of_partial_fit_is_used():
    X, y = problem(3)
    model = Classifier().partial_fit(X, y, np.unique(y))
    chosen = model.C_
    assert chosen == model.partial_fit(2 * X, y).C_
    assert model.set_params(C=0.5).partial_fit(X, y).C_ == 0.5


@pytest.mark.parametrize("order", [*THREE_CYCLES, (0, 1), (1, 0)], ids=str)
@pytest.mark.parametrize("solver", ["lbfgs", "adagrad", "liblinear"])
def test_coefficients_of_a_given_flat_tree_are_those_of_the_classes(order, solver, monkeypatch):
    n = len(order)
    X, y = problem(n)
    names = [f"class {c}" for c in range(n)]
    in_order = Tree.from_children(names, [[~label for label in order]])
    permuted = Tree.from_children([names[c] for c in order], [range(-1, -n - 1, -1)])
    for tree in (in_order, permuted):
        model = Classifier(tree=tree, solver=solver).fit(X, y)
        logits = X @ model.coef_.T + model.intercept_
        if n == 2:
            logits = np.hstack([np.zeros_like(logits), logits])
        close(model.predict_log_proba(X), log_softmax(logits, axis=1), 1e-5)
        assert model.score(X, y) > 0.5
        expected = model.classes_[np.argsort(-logits, axis=1)]
        for edges in (0, 100):
            monkeypatch.setattr(linear, "LEAST_EDGES", edges)
            assert (model.top_k(X, n)[0] == expected).all()
        assert (model.predict(X) == expected[:, 0]).all()


@pytest.mark.parametrize("solver", ["lbfgs", "adagrad"])
@pytest.mark.parametrize("builder", ["flat", "huffman"])
def test_without_an_intercept_the_weights_decide_alone(builder, solver):
    X, y = problem(5)
    model = Classifier(builder, solver=solver, C=0.3, tol=1e-7, fit_intercept=False).fit(X, y)
    assert not model.bias_.any()
    proba = model.predict_proba(np.zeros((1, X.shape[1])))
    if builder == "flat":
        close(proba, np.full((1, 5), 0.2), 1e-12)
        if solver == "lbfgs":
            theirs = LogisticRegression(C=0.3, tol=1e-7, fit_intercept=False).fit(X, y)
            close(model.predict_proba(X), theirs.predict_proba(X))


@pytest.mark.parametrize(
    ("builder", "layout"),
    [("auto", np.asarray), ("auto", scipy.sparse.csr_array), ("huffman", np.asarray)],
)
def test_a_warm_start_continues_from_the_optimum(builder, layout):
    X, y = problem(5)
    X = layout(X)
    model = Classifier(builder, C=0.3, warm_start=True).fit(X, y)
    before, tree = model.n_iter_, model.tree_
    proba = model.predict_proba(X)
    model.fit(X, y)
    assert model.n_iter_ < before / 3
    assert model.tree_ is tree
    close(model.predict_proba(X), proba, 5e-3)
    cold = clone(model).set_params(warm_start=False).fit(X, y)
    assert cold.fit(X, y).n_iter_ == before


def test_a_warm_start_is_cold_where_the_classes_or_the_features_are_others():
    X, y = problem(5)
    part = y != "class 2"
    model = Classifier(C=0.3, warm_start=True).fit(X, y)
    for features, classes in ((X[part], y[part]), (X[part, 1:], y[part]), (X[:, 1:], y)):
        expected = Classifier(C=0.3).fit(features, classes)
        assert (model.fit(features, classes).weight_ == expected.weight_).all()
    assert not model.set_params(fit_intercept=False).fit(X[:, 1:], y).bias_.any()


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("builder", ["auto", "huffman"])
def test_parts_after_a_fit_do_not_make_it_forget(builder, layout):
    X, y = problem(8, n=2000)
    X_test, y_test, X = layout(X[1000:]), y[1000:], X[:1000]
    y = y[:1000]
    model = Classifier(builder).fit(layout(X), y)
    before = model.score(X_test, y_test)
    one_class = np.flatnonzero(y == "class 3")[:20]
    model.partial_fit(layout(X[one_class]), y[one_class])
    assert model.score(X_test, y_test) > before - 0.02
    for part in np.array_split(np.arange(1000), 10):
        model.partial_fit(layout(X[part]), y[part])
    assert model.score(X_test, y_test) > before - 0.02

    # A contradiction is learned
    shifted = np.unique(y)[(np.searchsorted(np.unique(y), y) + 1) % 8]
    for _ in range(10):
        model.partial_fit(layout(X), shifted)
    assert model.score(layout(X), shifted) > 0.5


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("n_classes", [2, 3, 20])
def test_liblinear_trains_each_child_against_its_siblings(n_classes, layout, monkeypatch):
    monkeypatch.setattr("hstree.interop.sklearn.solvers.TOLERANCE", 1e-8)
    monkeypatch.setattr("hstree.interop.sklearn.label_nodes.MAX_ROUNDS", 10_000)
    X, y = problem(n_classes)
    weight = np.random.default_rng(1).uniform(0.2, 3, len(y))
    options = {"builder": "flat", "C": 0.3, "weight_threshold": 0, "fit_intercept": False}
    model = Classifier(**options, solver="liblinear").fit(layout(X), y, weight)
    assert not model.bias_.any()
    for number, name in enumerate(
        model.classes_.tolist()[-1:] if n_classes == 2 else model.classes_
    ):
        theirs = LogisticRegression(C=0.3, tol=1e-8, fit_intercept=False, max_iter=10_000)
        theirs.fit(X, y == name, weight)
        close(model.coef_[[number]].toarray(), theirs.coef_)


def test_weights_of_liblinear_that_move_no_logit_are_not_kept():
    X, y = problem(20)
    every = Classifier(**LIBLINEAR, weight_threshold=0).fit(X, y)
    few = Classifier(**LIBLINEAR, weight_threshold=0.5).fit(X, y)
    weight = every.weight_.toarray()
    expected = np.where(np.abs(weight) * np.abs(X).max(axis=0) > 0.5, weight, 0)
    np.testing.assert_allclose(few.weight_.toarray(), expected, rtol=1e-5)
    assert few.weight_.nnz == np.count_nonzero(expected) < np.count_nonzero(weight)
    assert few.weight_.dtype == np.float32


def test_parts_go_on_from_kept_weights():
    X, y = problem(20, n=600)
    X = scipy.sparse.csr_array(X)
    model = Classifier(**LIBLINEAR, C=3).fit(X[:300], y[:300])
    before = model.score(X[300:], y[300:])
    weight = model.weight_.toarray()
    model.partial_fit(X[:30], y[:30])
    assert model.score(X[300:], y[300:]) > before - 0.03
    assert np.abs(model.weight_ - weight).max() > 0


def test_a_child_without_samples_keeps_its_first_bias():
    X, y = problem(5)
    names = np.unique(y)
    tree = Tree.from_children(list(names), [[1, ~4], [~0, ~1, ~2, ~3]])
    weight = np.where(y == "class 2", 0.0, 1.0)
    model = Classifier(tree=tree, solver="liblinear").fit(X, y, weight)
    assert model.weight_.toarray()[1:][2].tolist() == [0] * X.shape[1]
    assert (model.predict(X) != "class 2").all()
    assert np.isfinite(model.predict_log_proba(X)).all()


@pytest.mark.parametrize("without", [None, "class 2"])
def test_class_weights_are_sample_weights(without):
    """Those that balance the classes count no class whose samples have no weight."""
    X, y = problem(5)
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y)) * (y != without)
    total = {c: weight[y == c].sum() for c in np.unique(y)}
    n_present = sum(n > 0 for n in total.values())
    share = {c: weight.sum() / (n_present * n) if n else 1.0 for c, n in total.items()}
    options = {"tree": build("huffman", dict.fromkeys(total, 1)), "C": 0.2, "tol": 1e-7}
    expected = Classifier(**options).fit(X, y, weight * [share[c] for c in y]).predict_proba(X)
    for class_weight in ("balanced", share, share | {"class 7": 9.0}):
        model = Classifier(**options, class_weight=class_weight).fit(X, y, weight)
        close(model.predict_proba(X), expected, 1e-5)


@pytest.mark.parametrize("y", [[7] * 6, [False, True] * 3, [1.0, 2.0, 3.0] * 2])
@pytest.mark.parametrize("builder", ["auto", "gmm", "flat", "semantic"])
def test_one_two_and_three_classes(builder, y):
    X = np.arange(12.0).reshape(6, 2) % 5
    model = Classifier(builder).fit(X, y)
    proba = model.predict_proba(X)
    assert proba.shape == (6, len(set(y)))
    assert np.abs(proba.sum(axis=1) - 1).max() < 1e-12
    assert model.classes_.dtype == np.asarray(y).dtype
    assert set(model.predict(X)) <= set(y)


def test_untrained_classes_of_partial_fit():
    X, y = problem(6)
    some = y != "class 5"
    classes = np.unique(y)
    with pytest.raises(ValueError, match="classes must be passed"):
        Classifier().partial_fit(X, y)
    model = Classifier().partial_fit(X[some], y[some], classes=classes)
    assert (model.classes_ == classes).all()
    assert model.predict_proba(X).shape == (len(X), 6)
    for _ in range(25):
        model.partial_fit(scipy.sparse.csr_array(X), y)
    assert model.score(X, y) > 0.7
    assert len(model.loss_curve_) == 26
    with pytest.raises(ValueError, match="y has the class 'other', which is not among classes"):
        model.partial_fit(X[:1], ["other"])
    with pytest.raises(ValueError, match="not the same"):
        model.partial_fit(X, y, classes=classes[:3])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, 1:], y)


def test_a_given_tree_is_used_as_it_is(tmp_path):
    X, y = problem(4)
    tree = build("huffman", Vocabulary([f"class {c}" for c in (3, 1, 0, 2)], [1, 1, 1, 1]))
    tree.save(tmp_path / "tree.json")
    a, b = (Classifier(tree=given).fit(X, y) for given in (tree, tmp_path / "tree.json"))
    assert a.tree_ is tree
    assert (a.predict_proba(X) == b.predict_proba(X)).all()


def test_a_given_tree_may_name_more_classes():
    X, y = problem(6)
    names = [f"class {c}" for c in (3, 1, 5, 0, 2, 4)]
    tree = Tree.from_children(names, [[1, 2, 3], [~0, ~1], [~2, ~3], [~4, ~5]])
    part = ~np.isin(y, ["class 3", "class 5"])
    model = Classifier(tree=tree).fit(X[part], y[part])
    assert model.classes_.tolist() == ["class 0", "class 1", "class 2", "class 4"]
    left = Tree.from_children([f"class {c}" for c in (1, 0, 2, 4)], [[~0, ~1, 1], [~2, ~3]])
    assert model.tree_ == left
    expected = Classifier(tree=left).fit(X[part], y[part])
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    parts = Classifier(tree=tree).partial_fit(X[part], y[part], classes=np.unique(y[part]))
    assert parts.tree_ == left


@pytest.mark.parametrize("builder", ["gmm", "flat"])
def test_training_starts_at_the_weighted_frequencies_of_the_classes(builder):
    X, y = problem(4)
    weights = {"class 0": 30.0, "class 2": 0.01}
    names = np.unique(y)
    model = Classifier(
        builder, class_weight=weights, solver="adagrad", epochs=1, learning_rate=1e-12
    ).fit(X, y)
    mass = np.array([(y == name).sum() * weights.get(name, 1.0) for name in names])
    np.testing.assert_allclose(model.predict_proba(X[:1])[0], mass / mass.sum(), rtol=2e-3)


def test_same_seed_same_weights():
    X, y = problem()
    model = Classifier(solver="adagrad", epochs=2)
    first, again, other, drawn = (
        clone(model).set_params(random_state=state).fit(X, y).weight_
        for state in (3, 3, 4, np.random.RandomState(0))
    )
    assert (first == again).all()
    assert (other != first).any()
    assert (drawn != first).any()


def test_the_tree_follows_the_centroids_of_wide_sparse_rows():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(8), 10)
    X = np.zeros((80, 400))
    X[np.arange(80), y] = 1
    X[:, 10] = np.isin(y, (0, 1, 2, 5))  # what parts the classes most
    X[np.arange(80), rng.integers(20, 400, 80)] = 0.1
    tree = Classifier("kmeans").fit(scipy.sparse.csr_array(X), y).tree_
    assert set(child_sets(tree, 0)) == {frozenset("0125"), frozenset("3467")}


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"builder": "gmn"}, OptionError, "did you mean 'gmm'"),
        ({"builder": "wordnet"}, InputError, "wordnet takes a corpus"),
        ({"builder_options": {"arity": 3}}, OptionError, "builder_options are those of a builder"),
        ({"builder": "gmm", "builder_options": {"trees": 3}}, InputError, "'class 0' has 3 codes"),
        ({"random_state": -1}, OptionError, "random_state is -1"),
        ({"fit_intercept": None}, OptionError, "fit_intercept is None"),
        ({"C": 0}, OptionError, "C is 0"),
        ({"epochs": 1.5}, OptionError, "epochs is 1.5"),
        ({"solver": "newton"}, OptionError, "solver is 'newton'"),
        ({"weight_threshold": -1}, OptionError, "weight_threshold is -1"),
        ({"class_weight": [1, 2, 3]}, ValueError, "class_weight"),
        ({"class_weight": {"class 0": -1}}, ValueError, "class_weight"),
        ({"class_weight": {"class0": 2}}, ValueError, "class 0"),
        ({"tree": 3}, InputError, "tree is of type int"),
        ({"tree": Tree.from_children(["a", "b"], [[~0, ~1]])}, InputError, "no label 'class 0'"),
        ({"tree": "missing.json"}, HstreeError, "missing.json"),
    ],
)
def test_misuse_is_told_in_one_line(parameters, error, message):
    X, y = problem(3)
    with pytest.raises(error, match=message) as caught:
        Classifier(**parameters).fit(X, y)
    assert "\n" not in str(caught.value)


def test_parts_are_learned_at_the_rate_that_is_set_then():
    X, y = problem(3)
    model = Classifier(learning_rate=0.1).partial_fit(X, y, classes=np.unique(y))
    before = model.bias_.copy()
    model.set_params(learning_rate=1e-9).partial_fit(X, y)
    np.testing.assert_allclose(model.bias_, before, atol=1e-6)


def test_an_end_before_the_optimum_is_told():
    X, y = problem()
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        Classifier(max_iter=2).fit(X, y)


@pytest.mark.parametrize("to_X", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("options", [{"builder": "huffman"}, LIBLINEAR], ids=["lbfgs", "liblinear"])
def test_two_jobs_learn_the_same_weights(options, to_X):
    X, y = problem(20)
    one, two = (Classifier(**options, n_jobs=n).fit(to_X(X), y) for n in (1, 2))
    assert abs(two.weight_ - one.weight_).max() == 0
    assert np.array_equal(two.bias_, one.bias_)
    assert two.loss_curve_ == one.loss_curve_


@pytest.mark.parametrize(
    ("layout", "most_flat", "most_weights", "solver"),
    [
        (np.asarray, 7, 10_000, "lbfgs"),
        (np.asarray, 9, 50, "adagrad"),
        (scipy.sparse.csr_array, 9, 10_000, "lbfgs"),
        (scipy.sparse.csr_array, 7, 10_000, "liblinear"),
        (scipy.sparse.csr_array, 9, 50, "liblinear"),
    ],
)
def test_auto_follows_the_kind_and_the_size(layout, most_flat, most_weights, solver, monkeypatch):
    monkeypatch.setattr("hstree.interop.sklearn.classifier.MOST_FLAT", most_flat)
    monkeypatch.setattr("hstree.interop.sklearn.classifier.MOST_WEIGHTS", most_weights)
    X, y = problem(8)
    model = Classifier("flat", epochs=3).fit(layout(X), y)
    expected = clone(model).set_params(solver=solver).fit(layout(X), y)
    assert abs(model.weight_ - expected.weight_).max() == 0
    assert model.n_iter_ == expected.n_iter_
