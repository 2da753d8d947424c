"""One function names a class, a number by its digits everywhere, and refuses what is no name."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import hstree
from hstree import Corpus, Tree
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError, TreeError
from hstree.interop.sklearn import HierarchicalSoftmaxClassifier
from hstree.metrics import hierarchical_f1
from hstree.tree.names import class_name, is_missing

PANDAS = "needs pandas: pip install '.[notebook]'"

TENS = {
    "int": 10,
    "float": 10.0,
    "numpy int": np.int64(10),
    "numpy float32": np.float32(10),
    "numpy float16": np.float16(10),
    "numpy uint8": np.uint8(10),
    "text": "10",
    "numpy text": np.str_("10"),
    "decimal": Decimal("10.00"),
    "fraction": Fraction(10),
    "array": np.array(10.0),
}


def elevens(kind):
    """Return 11 as a value of the type of a ten."""
    return "11" if isinstance(TENS[kind], str) else type(TENS[kind])(11)


@pytest.mark.parametrize("kind", TENS)
def test_a_whole_number_of_any_type_has_one_name(kind):
    name = class_name(TENS[kind])
    assert (name, type(name)) == ("10", str)


def test_a_number_of_a_nullable_column_has_the_same_name():
    pandas = pytest.importorskip("pandas", reason=PANDAS)
    for dtype in ("Int64", "Float32", "float64", "object", "category"):
        assert [class_name(value) for value in pandas.Series([10, 11], dtype=dtype)] == ["10", "11"]


def test_other_classes_are_named_as_they_are_shown():
    values = [2.5, np.float32(2.1), Decimal("2.50"), True, np.bool_(False), -0.0, "x y", "10.0"]
    names = ["2.5", "2.1", "2.5", "True", "False", "0", "x y", "10.0"]
    assert [class_name(value) for value in values] == names


NOT_NAMES = [
    *(None, np.nan, np.float32("nan"), np.datetime64("NaT"), np.ma.masked, Decimal("NaN")),
    *(["cat"], ("cat",), {"cat"}, {"cat": 1}, np.zeros(3), b"cat", 1j, np.inf, object(), 10**5000),
]


@pytest.mark.parametrize("value", NOT_NAMES, ids=lambda value: type(value).__name__)
def test_what_is_no_name_is_refused_in_one_line(value):
    with pytest.raises(InputError, match="is no name; ") as caught:
        class_name(value)
    assert "\n" not in str(caught.value)


def test_dates_have_one_name():
    pandas = pytest.importorskip("pandas", reason=PANDAS)
    day = "2020-01-31"
    for value in (
        datetime.date(2020, 1, 31),
        datetime.datetime(2020, 1, 31),
        np.datetime64(day),
        np.datetime64(day, "ns"),
        pandas.Timestamp(day),
    ):
        assert class_name(value) == day
    assert class_name(np.datetime64("2020-01-31T12:30")) == "2020-01-31 12:30:00"
    assert class_name(pandas.Timestamp("2020-01-31T12:30")) == "2020-01-31 12:30:00"


def test_missing_values_of_all_libraries_are_missing():
    pandas = pytest.importorskip("pandas", reason=PANDAS)
    for value in (*NOT_NAMES[:6], "", pandas.NA, pandas.NaT, np.timedelta64("NaT")):
        assert is_missing(value)
    for value in (0, 0.0, False, "nan", "None", [], np.zeros(0)):
        assert not is_missing(value)


USES = {
    "vectors": lambda tens: WordVectors(tens, [[1.0], [2.0]]).labels,
    "counts": lambda tens: Vocabulary(tens, [1, 2]).words,
    "a dict of counts": lambda tens: Vocabulary.of(dict(zip(tens, (1, 2), strict=True))).words,
    "tokens": lambda tens: Corpus.from_tokens([tens]).vocabulary.words[:2],
    "labels of ids": lambda tens: Corpus.from_ids([0, 1], labels=tens).vocabulary.words[:2],
    "grow": lambda tens: hstree.grow(Tree(["x"], [0], []), tens).labels[1:],
    "grow by counts": lambda tens: hstree.grow(
        Tree(["x"], [0], [], counts=[1]), dict.fromkeys(tens, 1)
    ).labels[1:],
    "prune": lambda tens: (
        hstree.prune(Tree.from_children(["10", "11", "x"], [[~0, ~1, ~2]]), tens).labels
    ),
    "nested": lambda tens: Tree.from_taxonomy({"a": list(tens)}).labels,
    "edges": lambda tens: Tree.from_taxonomy([("a", ten) for ten in tens]).labels,
    "parents": lambda tens: Tree.from_taxonomy(dict.fromkeys(tens, "a")).labels,
    "levels": lambda tens: Tree.from_taxonomy([("a", "b", ten) for ten in tens]).labels,
}


@pytest.mark.parametrize("kind", [kind for kind in TENS if kind != "array"])
@pytest.mark.parametrize("use", USES)
def test_every_use_names_whole_numbers_alike(use, kind):
    names = tuple(USES[use]([TENS[kind], elevens(kind)]))
    assert names == ("10", "11")
    assert {type(name) for name in names} == {str}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("value", [None, np.nan, ["cat"]], ids=["None", "nan", "list"])
def test_every_use_refuses_what_is_no_name(use, value):
    if use in ("a dict of counts", "grow by counts", "parents") and isinstance(value, list):
        return  # no key of a dict
    if use == "levels" and not isinstance(value, list):
        return  # the end of a row
    with pytest.raises(InputError) as caught:
        USES[use]([10, value])
    assert "\n" not in str(caught.value)


COLUMNS = {
    "int": np.array([10, 11, 20] * 10),
    "float": np.array([10.0, 11.0, 20.0] * 10),
    "float32": np.array([10, 11, 20] * 10, np.float32),
    "text": np.array(["10", "11", "20"] * 10),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_taxonomy_and_classes_of_the_same_numbers_fit(kind):
    tree = Tree.from_taxonomy({"a": np.array([10.0, 11.0]), "b": ["20"]})
    y = COLUMNS[kind]
    X = np.random.default_rng(0).normal(size=(30, 3))
    model = HierarchicalSoftmaxClassifier(tree=tree).fit(X, y)
    assert model.classes_.tolist() == np.unique(y).tolist()
    assert model.tree_.labels == tree.labels == ("10", "11", "20")
    assert hierarchical_f1(y, COLUMNS["text"], tree) == 1


def test_metrics_name_a_sample_without_a_class():
    tree = Tree.from_taxonomy({"a": [10, 11]})
    with pytest.raises(InputError, match="y_pred, sample 1: nan is no name"):
        hierarchical_f1([10, 11], [10.0, np.nan], tree)
    with pytest.raises(InputError, match=r"y_true, sample 0: \[10, 11\] is no name"):
        hierarchical_f1([[10, 11]], [10], tree)


# Labels of a Tree


def test_labels_and_names_of_a_tree_are_plain_text(tmp_path):
    labels, names = np.array(["a", "b"]), [np.str_("top")]
    tree = Tree.from_children(labels, [[~0, ~1]], names=names)
    assert {type(text) for text in (*tree.labels, *tree.names)} == {str}
    assert {type(word) for word in WordVectors(labels, [[1.0], [2.0]]).labels} == {str}
    for name in ("x.graphml", "x.json", "x.npz", "x.nwk", "x.dot", "x.paths"):
        hstree.formats.write(tree, tmp_path / name)
    assert hstree.formats.read(tmp_path / "x.graphml").sha256 == tree.sha256


@pytest.mark.parametrize("labels", [{"a", "b"}, frozenset("ab")])
def test_labels_of_a_tree_have_an_order(labels):
    with pytest.raises(TreeError, match="labels are a set, which has no order; give a list"):
        Tree.from_children(labels, [[~0, ~1]])
