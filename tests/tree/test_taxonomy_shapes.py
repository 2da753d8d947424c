"""Taxonomies whose shapes look alike: a rule decides and is named, or both shapes are."""

import re

import networkx
import numpy as np
import pytest

from hstree import Tree, formats, progress
from hstree.errors import InputError
from hstree.tree.hierarchy import Hierarchy
from tests.limits import nested
from tests.texts import Messages

PANDAS = "needs pandas: pip install '.[notebook]'"


def read_as(source):
    """Return the tree of a taxonomy and the line that says how it was read."""
    display = Messages()
    with progress.shown_by(display):
        tree = Tree.from_taxonomy(source)
    (line,) = display.lines
    assert line == f"taxonomy read as {tree.meta['input']['read_as']}"
    return tree, line.removeprefix("taxonomy read as ")


# Mappings


@pytest.mark.parametrize(
    "children",
    [
        {"root": ["pet", "farm"], "pet": ["cat", "dog"], "farm": ["cow", "hen"]},
        {"pet": ("cat", "dog"), "farm": ("cow", "hen"), "root": ("pet", "farm")},
        {"root": ["pet", "farm"], "pet": ["cat", "dog"], "farm": ["cow", "hen"], "cat": []},
        {"root": {"pet": None, "farm": {}}, "pet": {"cat": {}, "dog": {}}, "farm": ["cow", "hen"]},
        {"root": np.array(["pet", "farm"]), "pet": {"cat", "dog"}, "farm": ["cow", "hen"]},
    ],
)
def test_children_by_node_are_no_nested_mapping(children):
    tree, rule = read_as(children)
    assert set(tree.labels) == {"cat", "dog", "cow", "hen"}
    assert set(tree.names) == {"root", "pet", "farm"}
    assert tree.names[0] == "root"
    assert tree.child.tolist()[:2] == [tree.names.index("pet"), tree.names.index("farm")]
    assert rule.startswith("{node: its children}, since ")


@pytest.mark.parametrize(
    "source",
    [
        {"r": ["a", "b"], "a": ["x"], "s": ["y"]},
        {"cat": ["pet"], "dog": ["pet"], "pet": ["r"]},
        {"a": ["b", "x"], "b": ["a", "y"]},
    ],
)
def test_children_that_make_no_tree_are_refused_with_the_rule(source):
    with pytest.raises(InputError, match=r"cycle|read as \{node: its children\}"):
        Tree.from_taxonomy(source)


def test_one_key_around_all_makes_mappings_nested():
    tree, rule = read_as({"all": {"shoes": {"a": ["x", "bags"]}, "bags": ["y", "z"]}})
    assert rule == "nested mappings"
    assert tree.labels == ("x", "bags", "y", "z")


@pytest.mark.parametrize("holds", [list, np.array, tuple, iter, dict.fromkeys])
def test_leaves_are_in_any_iterable(holds):
    assert Tree.from_taxonomy({"a": {"b": holds(["x", "y"])}, "c": None}).labels == ("x", "y", "c")


def test_sets_of_leaves_are_sorted():
    assert Tree.from_taxonomy({"a": set("hgfedcba")}).labels == tuple("abcdefgh")


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ({"cat": "pet", "dog": "pet"}, "{child: parent}, since each value is one name"),
        ({"pet": ["cat", "dog"]}, "nested mappings"),
        ([("pet", "cat"), ("pet", "dog")], "pairs (parent, child)"),
        ([("r", "pet", "cat"), ("r", "pet", "dog")], "levels from the top down"),
    ],
)
def test_rules_of_objects_are_named(source, rule):
    assert read_as(source)[1].startswith(rule)


# Tables and arrays


@pytest.mark.parametrize(
    ("text", "rule", "labels"),
    [
        ("parent,child\nr,a\nr,b\n", "by the title 'parent'; titles are 'parent', 'child'", "a b"),
        ("category,Parent Category\na,r\nb,r\n", "by the title 'Parent Category'", "a b"),
        (
            "r,a\na,x\na,y\nr,b\n",
            "since 'a' is in both columns; without",
            "b x y",
        ),
        ("r,a\na,x\na,y\n", "without titles, since 'a' of line 1 occurs again", "x y"),
        ("dep,cat\nr,a\nr,b\n", "levels from the top down, dep > cat; .* none occurs again", "a b"),
    ],
)
def test_the_rules_of_tables_are_said(text, rule, labels, tmp_path):
    (tmp_path / "x.csv").write_text(text)
    tree, line = read_as(tmp_path / "x.csv")
    assert " ".join(sorted(tree.labels)) == labels
    assert re.search(rule, line)
    assert formats.read(tmp_path / "x.csv").meta["input"]["read_as"] == line


MISSING = [None, np.nan, np.float32("nan"), "", np.datetime64("NaT"), np.ma.masked]


@pytest.mark.parametrize("missing", MISSING, ids=str)
def test_a_missing_parent_is_none(missing):
    edges = [(missing, "r"), ("r", "a"), ("r", "b")]
    array = np.array([[None, "r"], ["r", "a"], ["r", "b"]], object)
    if missing is not np.ma.masked:
        array[0, 0] = missing
    for source in (edges, array, {"r": missing, "a": "r", "b": "r"}):
        assert_root_without_parent(source)


def assert_root_without_parent(source):
    tree = Tree.from_taxonomy(source)
    assert (tree.labels, tree.names, tree.meta["collapsed"]) == (("a", "b"), ("r",), [])


def test_missing_numbers_of_arrays_are_none():
    masked = np.ma.array([[0, 1], [1, 2], [1, 3]], mask=[[1, 0], [0, 0], [0, 0]])
    for array in (np.array([[np.nan, 1], [1, 2], [1, 3]]), masked):
        assert Tree.from_taxonomy(array).names == ("1",)
        assert Tree.from_taxonomy(array).labels == ("2", "3")
    levels = np.array([[0, 1, 10], [0, 1, 11], [0, 2, np.nan]])
    assert Tree.from_taxonomy(levels).labels == ("10", "11", "2")


@pytest.mark.parametrize("ids", [[1, 2, 3, 4], list("wxyz")])
def test_a_first_column_of_ids_is_no_level(ids):
    rows = list(zip(ids, "abcd", "efgh", strict=True))
    for table in (rows, rows * 2):
        with pytest.raises(InputError, match=r"another value in each row .*levels from the top"):
            Tree.from_taxonomy(table)
    assert Tree.from_taxonomy(rows[:2]).labels == ("e", "f")


def test_two_columns_with_a_name_in_both_have_the_alternative_in_errors():
    pairs = [("Home", "Garden"), ("Home", "Kitchen"), ("Garden", "Tools"), ("Sports", "Balls")]
    pandas = pytest.importorskip("pandas", reason=PANDAS)
    with pytest.raises(InputError, match="parents and children, since 'Garden' is in both columns"):
        Tree.from_taxonomy(pandas.DataFrame(pairs, columns=["department", "category"]))
    rows = pandas.DataFrame([("shop", *pair) for pair in pairs], columns=list("xyz"))
    assert Tree.from_taxonomy(rows).labels == ("Garden", "Kitchen", "Tools", "Balls")


@pytest.mark.parametrize("columns", [["x"], ["x", "y"], ["z"]])
def test_an_index_that_may_be_a_level_is_refused(columns):
    pandas = pytest.importorskip("pandas", reason=PANDAS)
    levels = pandas.DataFrame({"x": list("aabb"), "y": list("cdef"), "z": list("ghij")})
    with pytest.raises(InputError, match="index"):
        Tree.from_taxonomy(levels.set_index(columns))
    assert Tree.from_taxonomy(levels[levels.z != "h"]).labels == ("g", "i", "j")


# The same names in several places


@pytest.mark.parametrize(
    "source",
    [
        {"shoes": {"Other": ["a", "b"]}, "bags": {"Other": ["c", "d"], "small": ["e"]}},
        [
            ("shoes", "Other", "a"),
            ("shoes", "Other", "b"),
            ("bags", "Other", "c"),
            ("bags", "Other", "d"),
            ("bags", "small", "e"),
        ],
        "(((a,b)Other)shoes,((c,d)Other,(e)small)bags);",
    ],
)
def test_a_category_of_the_same_name_in_two_departments_is_two(source):
    levels = Hierarchy(Tree.from_taxonomy(source))
    names = [name for name in levels.names if "Other" in name]
    assert names == ["shoes/Other", "bags/Other"]
    assert [levels.given_names[item] for item in levels.find(names)] == ["Other", "Other"]
    assert all(levels.has_name(name) for name in names)
    with pytest.raises(InputError, match=r"several nodes .* 'Other'; they are '.*' and '.*'"):
        levels.find(["Other"])


def test_duplicate_leaves_are_named_with_their_paths():
    source = {"shoes": {"Other": ["x"]}, "bags": {"Other": ["x"], "small": ["y"]}}
    with pytest.raises(InputError, match="leaf 'x' under 'shoes/Other' and 'bags/Other'; rename"):
        Tree.from_taxonomy(source)
    with pytest.raises(InputError, match="duplicate leaf 'x' under 'the root' and 'a'"):
        Tree.from_taxonomy("(x,(x,z)a);")


# Order of children


@pytest.mark.parametrize("kind", [int, np.int64, np.uint8, float, np.float32])
def test_branches_of_any_type_order_children(kind):
    graph = networkx.DiGraph()
    graph.add_edge("r", "second", branch=kind(1))
    graph.add_edge("r", "first", branch=kind(0))
    for tree in (Tree.from_taxonomy(graph), formats.networkx.from_networkx(graph)):
        assert [tree.labels[~child] for child in tree.child] == ["first", "second"]


def test_a_graph_of_a_tree_gives_the_codes_back():
    tree = Tree.from_children(list("abcd"), [[~3, 1], [2, ~0], [~2, ~1]], names=["r", "s", "t"])
    again = Tree.from_taxonomy(formats.networkx.to_networkx(tree))
    assert again.sha256 == tree.sha256


@pytest.mark.parametrize("branch", [None, np.nan, "1", 0.5, [1]])
def test_branches_that_are_no_order_are_refused(branch):
    graph = networkx.DiGraph()
    graph.add_edge("r", "second", branch=branch)
    graph.add_edge("r", "first", branch=0)
    for read in (Tree.from_taxonomy, formats.networkx.from_networkx):
        with pytest.raises(InputError, match=r"the edge from 'r' to '.*' has the branch"):
            read(graph)


def test_nodes_of_graphs_have_text_or_a_number_as_names():
    graph = networkx.DiGraph([("r", ("a", 1)), ("r", ("a", 2))])
    for read in (Tree.from_taxonomy, formats.networkx.from_networkx):
        with pytest.raises(
            InputError, match=r"the node \('a', 1\) .* give it a text as its 'label'"
        ):
            read(graph)
    networkx.set_node_attributes(graph, {("a", 1): 10.0, ("a", 2): np.int64(11)}, "label")
    for read in (Tree.from_taxonomy, formats.networkx.from_networkx):
        assert read(graph).labels == ("10", "11")


# Nested input


SIZES = ["small", "large"]


def doubled(depth):
    inner = {"x": None}
    for _ in range(depth):
        inner = {"p": inner, "q": inner}
    return inner


def itself():
    inner = ["x"]
    inner.append({"b": inner})
    return {"a": inner}


@pytest.mark.parametrize(
    "source",
    [
        nested(10**6),
        {"a": nested(10**6)},
        "(" * 10**6,
        doubled(200),
        itself(),
        {"a": SIZES, "b": SIZES},
        {"a": np.zeros((2, 2))},
        {"a": {"b": np.array(5)}},
        {"a": [["x", "y"]]},
        {"a": 3 + 1j, "b": "c"},
        [("animal", ["cat", "dog"])],
        [("r", "a", {"weight": 1})],
        {("r", "a"), ("r", "b")},
        [{"parent": "r", "child": "a"}],
    ],
    ids=lambda source: type(source).__name__,
)
def test_what_holds_no_names_is_refused_in_one_line(source):
    with pytest.raises(InputError) as caught:
        Tree.from_taxonomy(source)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
