"""The multi-label classifier: the contract, the model, the search, the files."""

import json
from functools import cache

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from hstree import HstreeError, Tree, build
from hstree.data.multilabel import read_multilabel
from hstree.errors import FileFormatError, InputError, OptionError
from hstree.interop.sklearn import ProbabilisticLabelTreeClassifier as Classifier
from hstree.interop.sklearn import label_nodes
from hstree.interop.sklearn.feature_scale import scale_samples
from hstree.metrics import precision_at_k
from tests.needs import TORCH, shared
from tests.strategies import THREE_CYCLES

SEVERAL_CODES = {"builder": "gmm", "builder_options": {"epsilon": 0.4, "trees": 3}}
TREES = {
    "kmeans": {},
    "kmeans, 3 branches": {"builder_options": {"arity": 3}},
    "flat": {"builder": "flat"},
    "gmm": {"builder": "gmm"},
    "huffman": {"builder": "huffman"},
    "several codes": SEVERAL_CODES,
}


@parametrize_with_checks([Classifier(), Classifier("huffman", scaling="none", tol=0.01)])
def test_scikit_learns_contract(estimator, check):
    if "decision_function" not in str(check):  # which the classifier does not have
        check(estimator)


def problem(n=300, n_features=30, n_labels=20, seed=0):
    """Return a sparse X of counts, and Y with some samples without labels."""
    X, Y = make_multilabel_classification(
        n, n_features, n_classes=n_labels, n_labels=3, random_state=seed
    )
    return scipy.sparse.csr_array(X), Y


@pytest.fixture(params=[False, True], ids=["all nodes", "search"])
def searched(request, monkeypatch):
    """Whether trees are searched that are small enough to be scored at all nodes."""
    if request.param:
        monkeypatch.setattr(label_nodes, "MAX_SCORED_EDGES", 0)
    return request.param


@cache
def fitted(name):
    """Return a classifier with one of `TREES`, and the features that it was fitted to."""
    X, Y = problem(n=100)
    return Classifier(**TREES[name]).fit(X, Y), X


@pytest.mark.parametrize("name", TREES)
def test_the_k_likeliest_labels_are_exact(name, searched):
    model, X = fitted(name)
    whole = model.predict_proba(X)
    with pytest.raises(OptionError, match="k is 0"):
        model.predict_proba(X, k=0)
    for k in (1, 3, 20, 50):
        few = model.predict_proba(X, k=k)
        assert few.shape == whole.shape
        assert (np.diff(few.indptr) == min(k, 20)).all()
        # The first k by probability, ties by label
        first = np.argsort(-np.round(whole, 12), axis=1, kind="stable")[:, :k]
        labels, probability = (a.reshape(len(whole), -1) for a in (few.indices, few.data))
        for of in (labels, first):
            expected = np.take_along_axis(whole, of, axis=1)
            np.testing.assert_allclose(probability, expected, rtol=1e-5)
        assert (np.diff(probability, axis=1) <= 0).all()


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("threshold", [0, 0.05, 0.5, 1])
def test_predict_has_all_labels_from_the_threshold_on(name, threshold, searched):
    model, X = fitted(name)
    probability = model.predict_proba(X)
    sure = np.abs(probability - threshold) > 1e-6
    predicted = model.set_params(threshold=threshold).predict(X)
    np.testing.assert_array_equal((predicted == 1)[sure], (probability >= threshold)[sure])


def test_what_cannot_reach_the_threshold_is_not_scored(monkeypatch):
    monkeypatch.setattr(label_nodes, "MAX_SCORED_EDGES", 0)
    X, Y = problem(n_labels=60)
    model = Classifier(builder_options={"arity": 4}).fit(X, Y)
    n_scores, product = [], label_nodes.sparse_product

    def counted(X, weight):
        n_scores.append(X.shape[0] * weight.shape[0])
        return product(X, weight)

    monkeypatch.setattr(label_nodes, "sparse_product", counted)
    model.predict(X)
    assert sum(n_scores) < X.shape[0] * model.weight_.shape[0] / 2


@pytest.mark.parametrize("k", [1, 3, 50])
def test_top_k_has_the_likeliest_labels(k):
    model, X = fitted("gmm")
    labels, log_prob = model.top_k(X, k)
    assert labels.shape == log_prob.shape == (len(X.toarray()), min(k, 20))
    probability = np.take_along_axis(model.predict_proba(X), labels, axis=1)
    np.testing.assert_allclose(np.exp(log_prob), probability, rtol=1e-5)
    np.testing.assert_array_equal(labels[:, 0], model.predict_proba(X).argmax(axis=1))
    with pytest.raises(HstreeError, match="k is None"):
        model.top_k(X, None)


@pytest.mark.parametrize("order", THREE_CYCLES, ids=str)
def test_the_order_of_the_labels_of_a_given_tree_does_not_matter(order, searched):
    X, Y = problem(n_labels=4)
    a, b, c, d = order
    # The same tree, with its labels in the order of the classes and in another one
    in_order = Tree.from_children(list("0123"), [[1, ~a], [~b, 2], [~c, ~d]])
    permuted = Tree.from_children([str(label) for label in order], [[1, ~0], [~1, 2], [~2, ~3]])
    expected, model = (Classifier(tree=tree).fit(X, Y) for tree in (in_order, permuted))
    assert abs(model.weight_ - expected.weight_).max() == 0
    assert (model.predict_proba(X, k=4) != expected.predict_proba(X, k=4)).nnz == 0
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


def test_each_child_is_a_logistic_regression_over_the_samples_of_its_node():
    X, Y = problem(n_labels=4)
    tree = Tree.from_children(["0", "1", "2", "3"], [[1, ~3], [~0, ~1, ~2]])
    model = Classifier(tree=tree, scaling="none", C=2.0, tol=1e-8, weight_threshold=0).fit(X, Y)
    X = X * model.scale_[0]
    some = Y.any(axis=1)
    under = Y[:, :3].any(axis=1)

    def probability(samples, y):
        """Return that of scikit-learn; the bias is penalised as the weight of a feature 0.3."""
        C = 2 * np.sqrt(len(Y) / samples.sum())
        bias = {"solver": "liblinear", "intercept_scaling": label_nodes.BIAS_FEATURE}
        there = LogisticRegression(C=C, tol=1e-8, max_iter=1000, **bias)
        return there.fit(X[samples], y[samples]).predict_proba(X)[:, 1]

    every = np.ones(len(Y), bool)
    root = probability(every, some) if not some.all() else 1
    inner = probability(some, under) * root
    expected = [*(inner * probability(under, Y[:, j] > 0) for j in range(3))]
    expected.append(root * probability(some, Y[:, 3] > 0))
    np.testing.assert_allclose(
        model.predict_proba(X / model.scale_[0]), np.transpose(expected), atol=1e-4
    )


def test_one_label_is_the_model_of_the_root():
    X, Y = problem(n_labels=3)
    model = Classifier().fit(X, scipy.sparse.csr_array(Y[:, :1]))
    assert model.tree_.n_nodes == 0
    probability = model.predict_proba(X)
    assert probability[Y[:, 0] == 1].mean() > probability[Y[:, 0] == 0].mean() + 0.2
    np.testing.assert_allclose(model.predict_proba(X, k=1).toarray(), probability, rtol=1e-6)


def test_classes_are_predicted_where_a_sample_has_one():
    X, Y = problem(n_labels=5)
    names = np.array(["a", "b", "c", "d", "e"])[Y.argmax(axis=1)]
    model = Classifier().fit(X, names)
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert (model.predict(X) == model.classes_[probability.argmax(axis=1)]).all()
    assert model.tree_.labels == tuple(model.classes_)


def series(values):
    return pytest.importorskip("pandas").DataFrame({"labels": values})["labels"]


@pytest.mark.parametrize(
    "container",
    [
        list,
        series,
        lambda lists: series(lists).to_frame(),
        lambda lists: series(lists).to_frame().to_numpy(),
        lambda lists: [set(names) for names in lists],
        lambda lists: [np.array(names) for names in lists],
    ],
)
@pytest.mark.parametrize("names", ["abcdef", (30, 10, 20, 40, 60, 50)])
def test_lists_of_labels_are_taken_and_predicted(tmp_path, container, names):
    X, Y = problem(n_labels=6)
    names = np.array(list(names))
    lists = [names[row > 0].tolist() for row in Y]
    model = Classifier(C=100).fit(X, container(lists))
    order = np.argsort(names)
    assert model.classes_.tolist() == names[order].tolist()
    assert sorted(model.tree_.labels) == sorted(map(str, names.tolist()))
    expected = Classifier(C=100).fit(X, Y[:, order])
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    predicted = model.predict(X)
    for labels, row in zip(predicted, expected.predict(X), strict=True):
        assert sorted(labels) == model.classes_[row > 0].tolist()
    assert predicted[0] == model.top_k(X[:1], len(predicted[0]))[0][0].tolist()
    assert model.score(X, container(lists)) == expected.score(X, Y[:, order]) > 0.1
    model.save(tmp_path / "model")
    assert Classifier.load(tmp_path / "model").predict(X) == predicted


@pytest.mark.parametrize(
    ("trained", "y", "weight", "message"),
    [
        ("lists", [["a"], ["b"], []], None, "lists for 3 samples, but X has 4"),
        ("lists", [["a"], [["b"]], [], []], None, r"label \['b'\] for sample 1"),
        ("lists", np.eye(4, 2), None, "no lists of labels"),
        ("lists", np.array(None), None, "no lists of labels"),
        ("indicator", [["a"], ["b"], [], []], None, "y has lists of labels"),
        *(
            (trained, None, weight, "sample_weight is .* 4 samples")
            for trained in ("lists", "indicator")
            for weight in (
                [1, 2],
                2,
                ["a"] * 4,
                np.eye(4),
                [1, 1, 1, np.nan],
                [-1, 1, 1, 1],
                [0] * 4,
            )
        ),
    ],
)
def test_what_cannot_be_scored_is_refused_in_one_line(trained, y, weight, message):
    targets = {
        "lists": [["a"], ["b"], [], ["a", "b"]],
        "indicator": [[1, 0], [0, 1], [1, 1], [0, 0]],
    }
    model = Classifier().fit(np.eye(4), targets[trained])
    with pytest.raises(InputError, match=rf"\A[^\n]*{message}[^\n]*\Z"):
        model.score(np.eye(4), targets[trained] if y is None else y, weight)


def test_lists_of_one_length_are_lists_for_a_model_of_lists():
    model = Classifier(C=100).fit(np.eye(3), [[1, 2], [3], []])
    assert model.score(np.eye(3), [[3], [3], [3]], [1, 2, 5]) == 2 / 8
    assert model.score(np.eye(3), [[], [], []]) == 1 / 3


def test_tensors_of_labels_are_lists():
    torch = pytest.importorskip("torch", reason=TORCH)
    labels = [torch.tensor([1, 2]), torch.tensor([3]), torch.tensor([2])]
    model = Classifier(C=100).fit(np.eye(3), labels)
    assert model.classes_.tolist() == [1, 2, 3]
    assert model.score(np.eye(3), labels) == model.score(np.eye(3), [[1, 2], [3], [2]])


def test_names_of_columns_are_the_classes(tmp_path):
    X, Y = problem(n_labels=4)
    frame = pytest.importorskip("pandas").DataFrame(Y, columns=["d", "b", "a", "c"])
    model = Classifier(tree=Tree.from_children(list("abcd"), [[~0, 1], [~1, ~2, ~3]])).fit(X, frame)
    assert model.classes_.tolist() == ["d", "b", "a", "c"]
    model.save(tmp_path / "model")
    again = Classifier.load(tmp_path / "model")
    assert again.classes_.tolist() == model.classes_.tolist()
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.score(X, frame) == model.score(X, Y)


@pytest.mark.parametrize(("y", "C"), [([[1, 0], [0, 1]], 10), ([[1, 0], [1, 1]], 3), ("ab", 10)])
def test_samples_of_one_label_have_a_weaker_penalty(y, C):
    assert Classifier().fit(np.eye(2), list(y)).C_ == C
    assert Classifier(C=5).fit(np.eye(2), list(y)).C_ == 5


def test_a_tree_file_is_taken_and_its_other_labels_are_pruned(tmp_path):
    X, Y = problem(n_labels=6)
    build("random", {str(label): 1 for label in range(9)}).save(tmp_path / "tree.json")
    model = Classifier(tree=tmp_path / "tree.json").fit(X, Y)
    assert sorted(model.tree_.labels) == [str(label) for label in range(6)]
    again = Classifier(tree=model.tree_).fit(X, Y)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("X", "scale", "length"),
    [
        ([[1, 0], [2, 1.0]], [1, np.log(3 / 2) + 1], 1),  # whole numbers, one feature in all
        (np.kron(np.eye(5), [[1, 2]]), np.ones(10), 1),  # no feature in more than a fifth
        ([[0.5, 0], [0.1, 1]], [1, 1], 1),
        ([[-3.0, 0], [0, 4]], np.sqrt([2 / 25, 2 / 25]), None),
    ],
)
def test_features_are_scaled_as_their_numbers_are(X, scale, length):
    model = Classifier().fit(X, np.eye(len(X), dtype=int))
    np.testing.assert_allclose(model.scale_, scale)
    scaled = scale_samples(scipy.sparse.csr_array(X), model.scale_, model._has_unit_length)
    lengths = np.linalg.norm(scaled.toarray(), axis=1)
    if length is None:
        assert np.mean(lengths**2) == pytest.approx(1)
    else:
        np.testing.assert_allclose(lengths, length)


@pytest.mark.slow
def test_the_number_of_jobs_does_not_matter():
    X, Y = problem()
    one, two = (Classifier(builder_options={"arity": 3}, n_jobs=n).fit(X, Y) for n in (1, 2))
    assert (one.weight_ != two.weight_).nnz == 0
    np.testing.assert_array_equal(one.bias_, two.bias_)


def test_it_works_in_a_pipeline_and_a_search():
    X, Y = problem()
    pipeline = make_pipeline(StandardScaler(with_mean=False), Classifier())
    scoring = make_scorer(precision_at_k, response_method="predict_proba", k=1)
    grid = {"probabilisticlabeltreeclassifier__C": [0.001, 3]}
    search = GridSearchCV(pipeline, grid, scoring=scoring, cv=2, error_score="raise").fit(X, Y)
    assert search.best_params_ == {"probabilisticlabeltreeclassifier__C": 3}


@pytest.mark.parametrize("of", ["labels", "sparse labels", "classes", "several codes"])
def test_a_saved_classifier_predicts_the_same(tmp_path, of):
    X, Y = problem(n_labels=6)
    if of != "classes":
        Y[:, 1], Y[:, 2] = 0, 1  # biases are infinite
    y = {"classes": Y.argmax(axis=1), "sparse labels": scipy.sparse.csr_array(Y)}.get(of, Y)
    model = Classifier(**SEVERAL_CODES if of == "several codes" else {}, C=2.0).fit(X, y)
    for name in ("model", "again"):
        model.fit(X, y).save(tmp_path / name)
    again = Classifier.load(tmp_path / "model")
    assert again.C == 2.0
    probability = again.predict_proba(X)
    np.testing.assert_array_equal(probability, model.predict_proba(X))
    if of != "classes":
        assert (probability[:, 1] == 0).all()
        assert (probability[:, 2] == 1).all()
    ours, theirs = again.predict(X), model.predict(X)
    assert scipy.sparse.issparse(ours) == (of == "sparse labels")
    assert (type(ours), ours.dtype) == (type(theirs), y.dtype)
    assert (ours != theirs).sum() == 0
    for file in ("config.json", "tree.json", "weights.safetensors"):
        assert (tmp_path / "model" / file).read_bytes() == (tmp_path / "again" / file).read_bytes()


@pytest.mark.parametrize("file", ["config.json", "tree.json", "weights.safetensors"])
@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "of another"])
def test_a_damaged_folder_is_refused_in_one_line(tmp_path, file, damage):
    X, Y = problem(n_labels=6)
    Classifier().fit(X, Y).save(tmp_path / "model")
    Classifier().fit(X[:, :29], Y[:, :5]).save(tmp_path / "other")
    path = tmp_path / "model" / file
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        others = {"empty": b"", "cut": content[: len(content) // 2]}
        path.write_bytes(others.get(damage, (tmp_path / "other" / file).read_bytes()))
    with pytest.raises(FileFormatError) as caught:
        Classifier.load(tmp_path / "model")
    assert "\n" not in str(caught.value)
    assert "model" in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"classes": [1]},
        {"dtype": "x"},
        {"dtype": "O"},
        {"parameters": {"threshold": "a"}},
        {"parameters": {"scaling": "l1"}},
        {"parameters": {"D": 1}},
        {"has_unit_length": "no"},
        {"sparse": 3},
        {"feature_names": ["one"]},
        {"words": ["one"]},
    ],
)
def test_a_config_that_does_not_fit_is_refused_in_one_line(tmp_path, change):
    X, Y = problem(n_labels=6)
    Classifier().fit(X, Y).save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(FileFormatError, match="no classifier can be made from it"):
        Classifier.load(tmp_path)


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        ({"C": 0}, None, "^C is "),
        ({"tol": 0}, None, "^tol is "),
        ({"threshold": 2}, None, "^threshold is "),
        ({"weight_threshold": -1}, None, "^weight_threshold is "),
        ({"scaling": "l1"}, None, "^scaling is "),
        ({"builder": "wordnet"}, None, "takes a corpus"),
        ({"builder": "huffman", "random_state": 2**32}, None, "^random_state is 4294967296"),
        ({"tree": build("random", {"0": 1, "1": 1})}, None, "the tree has no label '2'"),
        ({}, [[0, 2], [1, 0], [1, 1]], "y has the value 2"),
        ({}, scipy.sparse.csr_array([[0, 0.5], [1, 0], [1, 1]]), "y has the value 0.5"),
        ({}, scipy.sparse.csr_array((3, 2)), "no sample has a label"),
        ({}, [[], [], []], "no sample has a label"),
        ({}, [["a"], None, ["b"]], "y has None for sample 1"),
        ({}, [["a"], ["b", 1], []], "y has the label 1 for sample 1"),
        ({}, [["a"], [], ["b", None]], "y has the label None for sample 2"),
        ({}, [[2, 1], [None], []], "y has the label None for sample 1"),
        ({}, [["a"], [["b"]], []], r"y has the label \['b'\] for sample 1"),
        ({}, np.array([[0, 1], [1, 0], [0, 0]], object), "y has 2 columns"),
        ({}, np.array([[["a"], 1], [[], 0], [[], 0]], object), "y has 2 columns"),
    ],
)
def test_misuse_is_told(parameters, y, message):
    with pytest.raises(HstreeError, match=message):
        Classifier(**parameters).fit(np.eye(3), np.eye(3, dtype=int) if y is None else y)


@pytest.mark.parametrize("options", [None, {"arity": 16}])
def test_bibtex_is_ranked_better_than_by_napkinxc(options):
    train, test = (
        read_multilabel(shared(f"multilabel/bibtex-{p}.txt.xz")) for p in ("train", "test")
    )
    scores = Classifier(builder_options=options).fit(*train).predict_proba(test.X, k=5)
    for k, least in ((1, 0.635), (3, 0.398), (5, 0.292)):
        assert precision_at_k(test.Y, scores, k) >= least
