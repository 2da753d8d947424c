"""Inner nodes of the classifier's tree: probabilities, predictions at a level, targets there."""

import numpy as np
import pytest
import scipy.sparse
from scipy.special import logsumexp
from sklearn.exceptions import NotFittedError

from hstree import Tree
from hstree.errors import InputError, OptionError
from hstree.interop.sklearn import HierarchicalSoftmaxClassifier as Classifier

#: wild and elk's node have one child
TREE = Tree.from_taxonomy(
    {"animal": {"pet": ["cat", "dog"], "wild": ["elk"]}, "plant": ["oak", "elm", "fir"]}
)
NAMES = ["cat", "dog", "elk", "oak", "elm", "fir"]


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    number = rng.integers(0, 6, 300)
    centres = rng.standard_normal((6, 4))
    return centres[number] + rng.standard_normal((300, 4)), np.array(NAMES)[number]


@pytest.fixture(scope="module")
def model(samples):
    return Classifier(tree=TREE).fit(*samples)


def probabilities(model, X):
    """Return the probabilities (n,) of each class and node by its name."""
    names = [*model.classes_, *model.nodes_]
    columns = np.hstack([model.predict_proba(X), model.predict_node_proba(X)]).T
    return dict(zip(names, columns, strict=True))


def test_a_node_has_the_probability_of_the_classes_below(model, samples):
    proba = probabilities(model, samples[0])
    assert model.nodes_.tolist() == ["node 0", "animal", "pet", "plant", "wild"]
    np.testing.assert_allclose(proba["node 0"], 1)
    np.testing.assert_allclose(proba["pet"], proba["cat"] + proba["dog"])
    np.testing.assert_allclose(proba["animal"], proba["pet"] + proba["elk"])
    np.testing.assert_allclose(proba["wild"], proba["elk"])


def test_predictions_at_a_level_are_the_most_probable_there(model, samples):
    X = samples[0]
    proba = probabilities(model, X)
    at = [["node 0"], ["animal", "plant"], ["pet", "wild", "oak", "elm", "fir"], NAMES]
    sure = np.full(len(X), "node 0", "<U6")
    for depth, names in enumerate(at):
        columns = np.array([proba[name] for name in names])
        best = np.array(names)[columns.argmax(axis=0)]
        assert (model.predict_nodes(X, depth=depth) == best).all()
        sure = np.where(columns.max(axis=0) >= 0.7, best, sure)
        assert (model.predict_nodes(X, depth=depth, confidence=0.7) == sure).all()
    assert (model.predict_nodes(X, confidence=0.7) == sure).all()
    assert (model.predict_nodes(scipy.sparse.csr_array(X)) == model.predict(X)).all()
    with pytest.raises(OptionError, match="confidence is 2; it must be above 0 and at most 1"):
        model.predict_nodes(X, confidence=2)
    with pytest.raises(NotFittedError):
        Classifier(tree=TREE).predict_nodes(X)


def test_nodes_whose_name_others_have_are_predicted_by_their_paths():
    rows = [
        ["shoes", "Other", "clog"],
        ["shoes", "Other", "mule"],
        ["bags", "Other", "sack"],
        ["bags", "Other", "tote"],
        ["hats", "wool", "cap"],
        ["hats", "wool", "beret"],
        ["socks", "wool"],
    ]
    tree = Tree.from_taxonomy(rows)
    model = Classifier(tree=tree).fit(np.eye(7), tree.labels)
    assert model.predict_nodes(np.eye(7), depth=2).tolist() == [
        "shoes/Other",
        "shoes/Other",
        "bags/Other",
        "bags/Other",
        "hats/wool",
        "hats/wool",
        "wool",
    ]


def partly(y, share=0.5):
    """Name some samples of pets and plants by their nodes alone."""
    above = {"cat": "pet", "dog": "pet", "oak": "plant"}
    unsure = np.random.default_rng(1).random(len(y)) < share
    return np.where(unsure, [above.get(name, name) for name in y], y)


#: Classes below each inner node with several children, the root aside.
BELOW = {"animal": ["cat", "dog", "elk"], "pet": ["cat", "dog"], "plant": ["oak", "elm", "fir"]}


def reaching(y, node):
    """Return which samples have a class below a node, or a node that is it or below it."""
    return np.isin(y, [node, *BELOW[node], *(["pet"] if node == "animal" else [])])


def objective(model, X, y):
    """Return the penalised loss, from the probabilities of the classes below each name."""
    log_proba = dict(zip(model.classes_, model.predict_log_proba(X).T, strict=True))
    nll = 0.0
    for i, name in enumerate(y):
        nll -= logsumexp([log_proba[below_name][i] for below_name in BELOW.get(name, [name])])
    tree = model.tree_
    share = [reaching(y, name).mean() for name in tree.names[1:]]
    row_penalty = np.repeat(np.sqrt([1, *share]), np.diff(tree.row_start))
    return model.C_ * nll + 0.5 * (row_penalty @ model.weight_**2).sum()


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array])
def test_both_solvers_lower_the_same_objective(samples, layout):
    X, y = samples
    y = partly(y)
    best = Classifier(tree=TREE, tol=1e-7).fit(layout(X), y)
    assert best.classes_.tolist() == sorted(NAMES)
    lowest = objective(best, X, y)
    assert best.loss_curve_[-1] * best.C_ * len(y) == pytest.approx(lowest, rel=1e-5)
    other = Classifier(tree=TREE, solver="adagrad", epochs=100).fit(layout(X), y)
    assert lowest <= objective(other, X, y) < 1.05 * lowest


@pytest.mark.parametrize("solver", ["lbfgs", "liblinear", "warm start", "partial_fit"])
@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_all_samples_that_reach_a_node_weaken_its_penalty(samples, solver, weight):
    X, y = samples
    y = partly(y, 0.9)
    weights = np.where(y == "pet", weight, 1.0)
    if solver == "partial_fit":
        model = Classifier(tree=TREE).partial_fit(X, y, NAMES, weights)
    elif solver == "warm start":
        model = Classifier(tree=TREE, warm_start=True).fit(X, samples[1]).fit(X, y, weights)
    else:
        model = Classifier(tree=TREE, solver=solver).fit(X, y, weights)
    expected = [1.0]
    expected += [weights[reaching(y, name)].sum() / weights.sum() for name in model.tree_.names[1:]]
    np.testing.assert_allclose(model._model.node_penalty() ** 2, expected, rtol=1e-5)


def test_partial_fit_takes_samples_at_nodes(samples):
    X, y = samples
    y = partly(y)
    model = Classifier(tree=TREE, learning_rate=0.5)
    for part in np.array_split(np.arange(len(y)), 5):
        model.partial_fit(X[part], y[part], classes=NAMES)
    wanted = np.isin(samples[1], ["oak", "elm", "fir"])
    assert ((model.predict_nodes(X, depth=1) == "plant") == wanted).mean() > 0.75
    with pytest.raises(ValueError, match="y has the class 'zebra', which is not among classes"):
        model.partial_fit(X[:1], ["zebra"])


def test_nodes_keep_their_names_and_depths_where_classes_are_not_in_the_data(samples):
    X, y = samples
    there = ~np.isin(y, ["dog", "elm", "fir"])
    y = np.where(y == "cat", "pet", y)
    y[np.flatnonzero(y == "pet")[:5]] = "cat"
    model = Classifier(tree=TREE).fit(X[there], y[there])
    assert model.classes_.tolist() == ["cat", "elk", "oak"]
    assert set(model.predict_nodes(X, depth=1)) == {"animal", "plant"}
    assert set(model.predict_nodes(X, depth=2)) <= {"pet", "wild", "oak"}


def test_the_weight_of_a_name_is_that_of_its_samples(samples):
    """Samples at the root train nothing."""
    X, y = samples
    y = partly(y)
    tree = Tree.from_taxonomy(
        {"thing": {"animal": {"pet": ["cat", "dog"], "wild": ["elk"]}, "plant": NAMES[3:]}}
    )
    doubled = Classifier(tree=tree, class_weight={"pet": 2.0}, C=1, tol=1e-7)
    doubled.fit(np.r_[X, 9 * X], np.r_[y, ["thing"] * len(y)])
    weight = np.where(y == "pet", 2.0, 1.0)
    weighted = Classifier(tree=tree, C=1, tol=1e-7).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(doubled.predict_proba(X), weighted.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["oak", "elm", "pet"], "y has 'pet', and no class of the data is below"),
        (["plant", "pet", "pet"], "y has names of inner nodes alone"),
        (["zebra", "pet", "pet"], "the tree has no label 'zebra'"),
        (["cat", "dog", "pets"], "the tree has no label 'pets'"),
    ],
)
def test_names_that_lead_to_no_class_are_one_line(samples, y, message):
    with pytest.raises(InputError, match=message):
        Classifier(tree=TREE).fit(samples[0][:3], y)
