"""Taxonomies: each shape makes one tree, all names are kept, and bad ones end in one line."""

import networkx
import numpy as np
import pytest

from hstree import Tree, formats, prune
from hstree.errors import InputError, OptionError, TreeError
from hstree.tree import load
from hstree.tree.hierarchy import Hierarchy

#: thing > (living > (animal > (cat, dog), plant > tree > oak), car); plant and tree have one child
EDGES = [
    ("thing", "living"),
    ("living", "animal"),
    ("animal", "cat"),
    ("animal", "dog"),
    ("living", "plant"),
    ("plant", "tree"),
    ("tree", "oak"),
    ("thing", "car"),
]
NESTED = {
    "thing": {"living": {"animal": ["cat", "dog"], "plant": {"tree": {"oak": {}}}}, "car": None}
}
LISTS = {"thing": [{"living": [{"animal": ("cat", "dog")}, {"plant": {"tree": ["oak"]}}]}, "car"]}
LEVELS = "living,animal,cat\nliving,animal,dog\nliving,plant,tree,oak\ncar\n"
NEWICK = "(((cat,'dog')animal,((oak)tree)plant)living,car)thing"
#: Inputs and files of the same taxonomy.
SHAPES = {
    "nested": NESTED,
    "nested lists": LISTS,
    "parents": {child: parent for parent, child in EDGES} | {"thing": None},
    "numpy parents": {np.str_(child): np.str_(parent) for parent, child in EDGES}
    | {"thing": np.nan},
    "edges": EDGES,
    "array": np.array(EDGES),
    "networkx": networkx.DiGraph(EDGES),
    "newick": f"{NEWICK};",
    "newick without its end": NEWICK,
}
FILES = {
    "titled.csv": "parent,child\n" + "".join(f"{a},{b}\n" for a, b in EDGES),
    "reversed.csv": "child;parent\n" + "".join(f"{b};{a}\n" for a, b in EDGES) + "thing;\n",
    "quoted.csv": "".join(f'"{a}", {b}\n' for a, b in EDGES),
    "other titles.tsv": "group\tmember\n" + "".join(f"{a}\t{b}\n" for a, b in EDGES),
    "newick.nwk": f"{NEWICK};\n",
}


def content(tree):
    return tree.labels, tree.names, tree.child.tolist(), tree.meta["collapsed"]


@pytest.mark.parametrize("shape", [*SHAPES, *FILES])
def test_every_shape_makes_the_same_tree(shape, tmp_path):
    expected = (
        ("cat", "dog", "oak", "car"),
        ("thing", "living", "animal"),
        [1, ~3, 2, ~2, ~0, ~1],
        [[~2, "plant", "tree"]],
    )
    if shape not in FILES:
        assert content(Tree.from_taxonomy(SHAPES[shape])) == expected
        return
    path = tmp_path / shape
    path.write_text(FILES[shape])
    for tree in (Tree.from_taxonomy(path), Tree.from_taxonomy(str(path)), formats.read(path)):
        assert content(tree) == expected


@pytest.mark.parametrize("titles", ["", "kingdom,phylum,class,order\n"])
@pytest.mark.parametrize("times", [1, 3])
def test_columns_of_levels_have_one_root_without_a_name(titles, times, tmp_path):
    (tmp_path / "x.csv").write_text(titles + LEVELS * times)
    tree = Tree.from_taxonomy(tmp_path / "x.csv")
    assert (tree.labels, tree.names) == (("cat", "dog", "oak", "car"), (None, "living", "animal"))
    rows = [line.split(",") for line in LEVELS.split()]
    assert content(Tree.from_taxonomy(rows)) == content(tree)


def test_a_group_of_one_class_of_its_name_is_levels(tmp_path):
    (tmp_path / "x.csv").write_text("top,group\nrec,hockey\nrec,autos\nmisc,misc\n")
    tree = Tree.from_taxonomy(tmp_path / "x.csv")
    assert (tree.labels, tree.meta["collapsed"]) == (("hockey", "autos", "misc"), [[~2, "misc"]])


def test_a_label_goes_before_nodes_of_its_name():
    levels = Hierarchy(Tree.from_taxonomy({"x": ["a", "x"], "y": {"x": {"x": ["b"]}}}))
    assert [levels.is_label[item] for item in levels.find(["x", "b"])] == [True, True]
    assert levels.names[levels.find(["node 0"])[0]] == "node 0"
    assert not levels.has_name("node 0")


@pytest.mark.parametrize("converted", [False, True])
def test_data_frames_are_tables(converted):
    pandas = pytest.importorskip("pandas", reason="needs pandas: pip install '.[notebook]'")
    edges = pandas.DataFrame(EDGES, columns=["parent", "child"])
    # Whole numbers are floats where others are missing
    numbers = pandas.DataFrame({"a": [10, 10, 20], "b": [11, 12, None]})
    if converted:  # to types whose missing value is pandas.NA
        edges = edges.convert_dtypes()
        numbers = numbers.convert_dtypes()
    assert content(Tree.from_taxonomy(edges)) == content(Tree.from_taxonomy(EDGES))
    assert Tree.from_taxonomy(numbers).labels == ("11", "12", "20")


def test_a_taxonomy_of_one_class_is_a_tree_without_nodes():
    tree = Tree.from_taxonomy({"thing": {"animal": ["cat"]}})
    assert (tree.labels, tree.n_nodes) == (("cat",), 0)
    assert Hierarchy(tree).names == ("thing", "animal", "cat")


def nested_mapping(depth):
    inner = {"x": None, "y": None}
    for _ in range(depth):
        inner = {"a": inner}
    return inner


def test_deep_taxonomies_need_no_recursion():
    n = 3_000
    chain = [(i, i + 1) for i in range(n)]
    tree = Tree.from_taxonomy(chain + [(i, f"leaf {i}") for i in range(0, n, 2)])
    assert tree.n_labels == n // 2 + 1
    assert len(tree.meta["collapsed"]) == n // 2
    for source in (nested_mapping(10**5), "(" * 10**5 + "x,y" + ")" * 10**5 + ";"):
        assert Tree.from_taxonomy(source).labels == ("x", "y")


# Names and depths


def test_every_level_has_its_names_also_of_nodes_of_one_child():
    levels = Hierarchy(Tree.from_taxonomy(EDGES))
    assert [[levels.names[item] for item in levels.at_depth(depth)] for depth in range(5)] == [
        ["thing"],
        ["living", "car"],
        ["animal", "plant", "car"],
        ["cat", "dog", "tree", "car"],
        ["cat", "dog", "oak", "car"],
    ]
    assert levels.names_of([2, 4 + 2], depth=2) == ["plant", "animal"]
    with pytest.raises(OptionError, match="depth is -1"):
        levels.at_depth(-1)


def test_items_have_the_probabilities_of_the_labels_below():
    levels = Hierarchy(Tree.from_taxonomy(EDGES))
    probabilities = levels.probabilities(np.array([[0.1, 0.2, 0.3, 0.4]]))[0].round(12)
    by_name = dict(zip(levels.names, probabilities.tolist(), strict=True))
    assert by_name["thing"] == 1
    assert (by_name["living"], by_name["animal"]) == (0.6, 0.3)
    assert by_name["plant"] == by_name["tree"] == by_name["oak"] == 0.3


def test_names_survive_the_file_and_pruning(tmp_path):
    tree = Tree.from_taxonomy(EDGES)
    tree.save(tmp_path / "x.json")
    assert Hierarchy(load(tmp_path / "x.json")).names == Hierarchy(tree).names
    pruned = Hierarchy(prune(tree, ["cat", "oak"]))
    assert pruned.names == ("thing", "living", "animal", "cat", "plant", "tree", "oak")
    assert pruned.depth.tolist() == [0, 1, 2, 3, 2, 3, 4]


def test_collapsed_names_must_fit_the_tree():
    tree = Tree.from_children(["a", "b"], [[~0, ~1]], meta={"collapsed": [[7, "x"]]})
    with pytest.raises(TreeError, match=r"collapsed in the tree's meta holds ..7, 'x'"):
        Hierarchy(tree)


# Bad input


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([("a", "x"), ("b", "y")], "'a', 'b' have no parent; a taxonomy has one root"),
        ([("a", "b"), ("b", "a")], "a cycle"),
        (networkx.DiGraph([(1, 2), (2, 1)]), "a cycle"),
        ([("r", "a"), ("a", "x"), ("r", "x")], "'x' .* under 'a' and under 'r'"),
        ([(None, "x"), ("r", "x")], "'x' .* under no parent and under 'r'"),
        (networkx.DiGraph([("r", "a"), ("a", "x"), ("r", "x")]), "'x' has several parents"),
        ({"a": ["x", "y"], "b": ["x", "z"]}, "duplicate leaf 'x' under 'a' and 'b'"),
        ({}, "the taxonomy is empty"),
        ([], "the taxonomy has no edge"),
        (["cat", "dog"], "item 0 is \"'cat'\", no pair"),
        ({"a": "b", "c": ["d"]}, "the value of 'c' is a list"),
        ({"a": {"b": 3}, "c": None}, "below 'a/b' is '3'; give a mapping"),
        ([("a", None)], "an item of the taxonomy has no name"),
        ([["a", "", "c"]], "row 0 has an empty cell before its last name"),
        (np.array([["a", "b", np.nan]]), "row 0 has the cell 'nan'"),
        (networkx.Graph([(1, 2)]), "not a networkx.DiGraph"),
        (3, "'3' is no taxonomy; give a nested dict"),
        ("tree.xml", "neither Newick text, .* nor the name of a file in .csv"),
        ("(a,b", "Newick: more brackets are opened than closed"),
        ("(a,,b);", "Newick, character 4, ',': a leaf has no name"),
        ("(a,b));", "opening and closing brackets differ"),
        ("('a'b,c);", "Newick, character 5, 'b': a comma is missing"),
        ("(a,'b);", "a quote or comment that does not end"),
        ("(a,b);(c,d);", "another tree after the semicolon"),
    ],
)
def test_bad_taxonomies_end_in_one_line(source, message):
    with pytest.raises(InputError, match=message) as caught:
        Tree.from_taxonomy(source)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.csv", "", "the file is empty"),
        ("x.csv", "a,b\n", "the table has no row"),
        ("x.csv", "path\na > b\na > c\n", "the table has one column"),
        ("x.csv", "id,name,parent\n1,x,0\n", "a column 'parent' and 3 columns; keep the columns"),
        ("x.csv", "top,mid,leaf\na,,x\n", "row 2 has an empty cell"),
        ("x.csv", "top,leaf\na,b,c\n", "line 2 has 3 cells, and there are 2 titles"),
        ("x.csv", 'top,leaf\n"a,b\n', "line 2: .*quotes"),
    ],
)
def test_bad_files_end_in_one_line_with_their_name(name, text, message, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        Tree.from_taxonomy(tmp_path / name)
    assert str(caught.value).startswith(str(tmp_path / name))
    assert "\n" not in str(caught.value)
