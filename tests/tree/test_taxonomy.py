"""Taxonomies: every form makes one tree, all names are kept, and bad ones end in one line."""

from types import SimpleNamespace

import networkx
import numpy as np
import pytest
import scipy.sparse

from hstree import Tree, prune
from hstree.errors import InputError, OptionError, TreeError
from hstree.tree import load
from hstree.tree.hierarchy import Hierarchy

#: thing > (living > (animal > (cat, dog), plant > tree > oak), car); plant and tree have one child
EDGES = [
    *(("thing", "living"), ("living", "animal"), ("animal", "cat"), ("animal", "dog")),
    *(("living", "plant"), ("plant", "tree"), ("tree", "oak"), ("thing", "car")),
]
NESTED = {
    "thing": {"living": {"animal": ["cat", "dog"], "plant": {"tree": {"oak": {}}}}, "car": None}
}
LISTS = {"thing": [{"living": [{"animal": ("cat", "dog")}, {"plant": {"tree": ["oak"]}}]}, "car"]}
LEVELS = "living,animal,cat\nliving,animal,dog\nliving,plant,tree,oak\ncar\n"


def node(name, *children):
    return SimpleNamespace(name=name, children=children)


def objects():
    plant = node("plant", node("tree", node("oak")))
    living = node("living", node("animal", node("cat"), node("dog")), plant)
    return node("thing", living, node("car"))


FORMS = {
    "nested": NESTED,
    "nested lists": LISTS,
    "parents": {child: parent for parent, child in EDGES} | {"thing": None},
    "numpy parents": {np.str_(child): np.str_(parent) for parent, child in EDGES}
    | {"thing": np.nan},
    "edges": EDGES,
    "array": np.array(EDGES),
    "networkx": networkx.DiGraph(EDGES),
    "objects": objects(),
    "an object of objects": SimpleNamespace(node=objects()),
    "newick": "(((cat,'dog')animal,((oak)tree)plant)living,car)thing;",
    "newick of bigtree": "(((cat,dog)animal,((oak)tree)plant)living,car)thing",
}


def content(tree):
    return tree.labels, tree.names, tree.child.tolist(), tree.meta["collapsed"]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_makes_the_same_tree(form):
    tree = Tree.from_taxonomy(FORMS[form])
    assert tree.labels == ("cat", "dog", "oak", "car")
    assert tree.names == ("thing", "living", "animal")
    assert tree.child.tolist() == [1, ~3, 2, ~2, ~0, ~1]
    assert tree.meta["collapsed"] == [[~2, "plant", "tree"]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.csv", "parent,child\n" + "".join(f"{a},{b}\n" for a, b in EDGES)),
        ("x.csv", "child;parent\n" + "".join(f"{b};{a}\n" for a, b in EDGES) + "thing;\n"),
        ("x.csv", "".join(f'"{a}", {b}\n' for a, b in EDGES)),
        ("x.tsv", "group\tmember\n" + "".join(f"{a}\t{b}\n" for a, b in EDGES)),
        ("x.nwk", FORMS["newick"] + "\n"),
    ],
)
def test_files_of_edges_make_the_same_tree(name, text, tmp_path):
    (tmp_path / name).write_text(text)
    assert content(Tree.from_taxonomy(tmp_path / name)) == content(Tree.from_taxonomy(EDGES))
    assert content(Tree.from_taxonomy(str(tmp_path / name))) == content(Tree.from_taxonomy(EDGES))


@pytest.mark.parametrize("titles", ["", "kingdom,phylum,class,order\n"])
@pytest.mark.parametrize("again", [1, 3])
def test_columns_of_levels_hang_under_one_root_without_a_name(titles, again, tmp_path):
    (tmp_path / "x.csv").write_text(titles + LEVELS * again)
    tree = Tree.from_taxonomy(tmp_path / "x.csv")
    assert (tree.labels, tree.names) == (("cat", "dog", "oak", "car"), (None, "living", "animal"))
    assert content(Tree.from_taxonomy([line.split(",") for line in LEVELS.split()])) == content(
        tree
    )


def test_two_columns_of_which_no_name_stands_in_both_are_levels(tmp_path):
    (tmp_path / "x.csv").write_text("top,group\nrec,hockey\nrec,autos\nsci,space\nsci,med\n")
    tree = Tree.from_taxonomy(tmp_path / "x.csv")
    assert (tree.labels, tree.names) == (("hockey", "autos", "space", "med"), (None, "rec", "sci"))


def test_a_group_of_one_class_of_its_name_is_levels(tmp_path):
    (tmp_path / "x.csv").write_text("top,group\nrec,hockey\nrec,autos\nmisc,misc\n")
    tree = Tree.from_taxonomy(tmp_path / "x.csv")
    assert (tree.labels, tree.meta["collapsed"]) == (("hockey", "autos", "misc"), [[~2, "misc"]])


def test_nodes_of_the_same_name_in_several_places_stay_apart():
    tree = Tree.from_taxonomy({"a": {"other": ["x", "y"]}, "b": {"other": ["z", "w"]}})
    assert tree.n_nodes == 3
    with pytest.raises(InputError, match="several nodes of the tree are called 'other'"):
        Hierarchy(tree).find(["other"])


def test_a_label_goes_before_nodes_of_its_name():
    levels = Hierarchy(Tree.from_taxonomy({"x": ["a", "x"], "y": {"x": {"x": ["b"]}}}))
    assert [levels.is_label[item] for item in levels.find(["x", "b"])] == [True, True]
    assert levels.names[levels.find(["node 0"])[0]] == "node 0"
    assert not levels.knows("node 0")


def test_data_frames_are_tables():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: hstree[notebook]")
    frame = pandas.DataFrame(EDGES, columns=["parent", "child"])
    assert content(Tree.from_taxonomy(frame)) == content(Tree.from_taxonomy(EDGES))
    rows = [line.split(",") for line in LEVELS.split()]
    levels = pandas.DataFrame([row + [None] * (4 - len(row)) for row in rows])
    assert Tree.from_taxonomy(levels).names == (None, "living", "animal")


@pytest.mark.parametrize("converted", [False, True])
def test_numbers_of_a_data_frame_are_whole_where_others_are_missing(converted):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: hstree[notebook]")
    edges = pandas.DataFrame({"parent": [None, 1, 1], "child": [1, 2, 3]})
    levels = pandas.DataFrame({"a": [10, 10, 20], "b": [11, 12, None]})
    if converted:  # to types whose missing value is pandas.NA
        edges, levels = edges.convert_dtypes(), levels.convert_dtypes()
    assert Tree.from_taxonomy(edges).labels == ("2", "3")
    assert Tree.from_taxonomy(levels).labels == ("11", "12", "20")


def chain(*parents):
    """Return a cluster chain from the cluster of each row, matrix by matrix."""
    return [
        scipy.sparse.csc_matrix((np.ones(len(p)), (np.arange(len(p)), p)))
        for p in map(np.array, parents)
    ]


def test_cluster_chains_of_pecos():
    matrices = chain([0, 0], [0, 1, 1], [0, 0, 1, 2, 2])
    tree = Tree.from_taxonomy(matrices)
    assert tree.labels == ("0", "1", "2", "3", "4")
    assert tree.child.tolist() == [2, 1, ~2, 3, ~0, ~1, ~3, ~4]
    assert Tree.from_taxonomy(matrices, labels=list("abcde")).labels == tuple("abcde")
    assert content(Tree.from_taxonomy(SimpleNamespace(chain=matrices))) == content(tree)


def test_a_taxonomy_of_one_class_is_a_tree_without_nodes():
    tree = Tree.from_taxonomy({"thing": {"animal": ["cat"]}})
    assert (tree.labels, tree.n_nodes) == (("cat",), 0)
    assert Hierarchy(tree).names == ("thing", "animal", "cat")


def test_long_chains_need_no_recursion():
    n = 3_000
    tree = Tree.from_taxonomy(
        [(i, i + 1) for i in range(n)] + [(i, f"leaf {i}") for i in range(0, n, 2)]
    )
    assert tree.n_labels == n // 2 + 1
    assert len(tree.meta["collapsed"]) == n // 2
    assert Tree.from_taxonomy("(" * n + "a" + ")" * n + ";").labels == ("a",)


# Names and depths


def test_every_level_has_its_names_also_of_nodes_of_one_child():
    levels = Hierarchy(Tree.from_taxonomy(EDGES))
    at = [[levels.names[item] for item in levels.at_depth(depth)] for depth in range(5)]
    assert at == [
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
    prob = levels.probabilities(np.array([[0.1, 0.2, 0.3, 0.4]]))
    of = dict(zip(levels.names, prob[0].round(12).tolist(), strict=True))
    assert of["thing"] == 1
    assert (of["living"], of["animal"]) == (0.6, 0.3)
    assert of["plant"] == of["tree"] == of["oak"] == 0.3


def test_names_survive_the_file_and_pruning(tmp_path):
    tree = Tree.from_taxonomy(EDGES)
    tree.save(tmp_path / "x.json")
    assert Hierarchy(load(tmp_path / "x.json")).names == Hierarchy(tree).names
    left = Hierarchy(prune(tree, ["cat", "oak"]))
    assert left.names == ("thing", "living", "animal", "cat", "plant", "tree", "oak")
    assert left.depth.tolist() == [0, 1, 2, 3, 2, 3, 4]


def test_what_is_collapsed_must_fit_the_tree():
    tree = Tree.from_children(["a", "b"], [[~0, ~1]], meta={"collapsed": [[7, "x"]]})
    with pytest.raises(TreeError, match=r"collapsed in the tree's meta holds ..7, 'x'"):
        Hierarchy(tree)


# Bad input


@pytest.mark.parametrize(
    ("source", "saying"),
    [
        ([("a", "x"), ("b", "y")], "'a', 'b' have no parent; a taxonomy has one root"),
        ({"a": "r1", "b": "r2"}, "'r1', 'r2' have no parent"),
        ([("a", "b"), ("b", "a")], "a cycle: 'a' under 'b' under 'a'"),
        ([("r", "x"), ("a", "b"), ("b", "a")], "a cycle: 'a' under 'b' under 'a'"),
        ([("a", "a")], "a cycle: 'a' under 'a'"),
        (networkx.DiGraph([(1, 2), (2, 1)]), "a cycle"),
        ([("r", "a"), ("a", "x"), ("r", "x")], "'x' stands under 'a' and under 'r' too"),
        ([("r", "x"), ("r", "x")], "'x' stands under 'r' and again"),
        (networkx.DiGraph([("r", "a"), ("a", "x"), ("r", "x")]), "'x' stands under 'r'"),
        ({"a": ["x", "y"], "b": ["x", "z"]}, "duplicate leaf 'x' under 'a' and 'b'"),
        ("((x,y)a,(x,z)b);", "duplicate leaf 'x' under 'a' and 'b'; rename one"),
        (node("r", node("x"), node("x")), "duplicate leaf 'x' under 'r' and 'r'"),
        (node("r", *[node("x")] * 2), "the node 'x' is below two others"),
        ({}, "the taxonomy is empty"),
        ([], "the taxonomy has no edge"),
        (["cat", "dog"], "item 0 is \"'cat'\", no pair"),
        ({"a": "b", "c": ["d"]}, "'c' has list and others a name"),
        ({"a": {"b": 3}, "c": None}, "below 'a/b' is '3'; give a mapping"),
        ([("a", None)], "an item of the taxonomy has no name"),
        ([["a", "", "c"]], "row 0 has an empty cell before its last name"),
        (networkx.Graph([(1, 2)]), "not a networkx.DiGraph"),
        (3, "'3' is no taxonomy; give a nested dict"),
        ("tree.xml", "neither Newick text, .* nor the name of a file in .csv"),
        ("(a,b", "Newick: more brackets are opened than closed"),
        (";", "Newick, character 1, ';': a leaf has no name"),
        ("(a,,b);", "Newick, character 4, ',': a leaf has no name"),
        ("((a,b);", "more brackets are opened than closed"),
        ("(a,b));", "or closed than opened"),
        ("('a'b,c);", "Newick, character 5, 'b': a comma is missing"),
        ("(a,'b);", "a quote or comment that does not end"),
        ("(a,b);(c,d);", "another tree after the semicolon"),
        (chain([0, 0], [0, 1, 2]), "matrix 1 of the chain has 3 columns for the 2 clusters"),
        (chain([0, 0, 0], [0, 2]), "column 1 of matrix 1 is a cluster without members"),
        ([scipy.sparse.csr_matrix([[1, 1], [0, 1]])], "the label '0' is in 2 clusters"),
        ([scipy.sparse.csr_matrix([[1, 0], [0, 0]])], "the label '1' is in 0 clusters"),
    ],
)  # fmt: skip
def test_bad_taxonomies_end_in_one_line(source, saying):
    with pytest.raises(InputError, match=saying) as caught:
        Tree.from_taxonomy(source)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "saying"),
    [
        ("", "the file is empty"),
        ("a,b\n", "the table has no row"),
        ("id,name,parent\n1,x,0\n", "a column 'parent' and 3 columns; keep the columns of"),
        ("parent,child\na,x\nb,y\n", "'a', 'b' have no parent"),
        ("top,leaf\na,x\nb,x\n", "duplicate leaf 'x' under 'a' and 'b'"),
        ("top,mid,leaf\na,,x\n", "row 2 has an empty cell"),
        ("top,leaf\na,b,c\n", "line 2 has 3 cells, and the titles are 2"),
        ('top,leaf\n"a,b\n', "line 2: .*mend the quotes"),
    ],
)
def test_bad_tables_end_in_one_line_with_the_name_of_the_file(text, saying, tmp_path):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(InputError, match=saying) as caught:
        Tree.from_taxonomy(tmp_path / "x.csv")
    assert str(caught.value).startswith(str(tmp_path / "x.csv"))
    assert "\n" not in str(caught.value)


def test_labels_are_for_cluster_chains():
    with pytest.raises(OptionError, match="labels names the labels of a cluster chain"):
        Tree.from_taxonomy(EDGES, labels=["a"])
    with pytest.raises(InputError, match="1 labels for the 2 rows"):
        Tree.from_taxonomy(chain([0, 0]), labels=["a"])
