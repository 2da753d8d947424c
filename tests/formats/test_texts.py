"""Text formats against independent readers and files."""

import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster import hierarchy

from hstree import formats
from hstree.builders.linkage import tree_from_linkage
from hstree.errors import InputError
from hstree.formats.linkage import to_linkage
from hstree.formats.newick import newick
from hstree.tree import Tree
from hstree.tree.bit_paths import paths_of
from tests.needs import shared
from tests.strategies import trees

BINARY = trees(several_codes=False, wide=False, plain_labels=True)


def bits(tree):
    return dict(zip(tree.labels, paths_of(tree).strings, strict=True))


# Brown


def test_brown_paths_with_classes(tmp_path):
    path = tmp_path / "x.paths"
    path.write_text("0\tthe\t9\n110\tcat\t1\n110\tdog\t3\n110\teel\t2\n111\tred\t2\n")
    tree = formats.read(path)
    assert tree.labels == ("the", "cat", "dog", "eel", "red")
    # The shared second bit decides nothing; the class is a Huffman tree, lighter child first.
    assert bits(tree) == {"the": "0", "dog": "100", "cat": "1010", "eel": "1011", "red": "11"}
    assert [name for name in tree.names if name] == ["110"]
    assert tree.counts.tolist() == [9, 1, 3, 2, 2]


@st.composite
def prefix_codes(draw):
    """Bit strings, none of which begins another one, and without any that could be added."""
    strings = [""]
    for _ in range(draw(st.integers(0, 12))):
        parted = strings.pop(draw(st.integers(0, len(strings) - 1)))
        strings += [parted + "0", parted + "1"]
    return strings


@given(prefix_codes(), st.sampled_from(["", "0", "01", "1"]))
def test_bits_that_decide_nothing_make_no_node(strings, between):
    longer = [between + "".join(bit + between for bit in string) for string in strings]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.paths")
        path.write_text("".join(f"{bits}\tw{i}\t0\n" for i, bits in enumerate(longer)))
        assert paths_of(formats.read(path)).strings == strings


def test_real_brown_paths(tmp_path):
    tree = formats.read(shared("brown-clusters/ptb-c256.paths.gz"), "brown")
    assert tree.n_labels == 9999
    formats.write(tree, tmp_path / "again.paths")
    again = formats.read(tmp_path / "again.paths")
    assert bits(again) == bits(tree)
    assert (again.counts == tree.counts).all()


# napkinXC


def test_napkinxc_with_any_numbers(tmp_path):
    # As napkinXC saves a tree: a space after nodes without a label, and numbers in any order.
    (tmp_path / "x.txt").write_text("3 5\n-1 4 \n4 0 1\n4 2 \n2 3 2\n2 1 0\n")
    tree = formats.read(tmp_path / "x.txt", "napkinxc")
    assert tree.labels == ("0", "1", "2")
    assert bits(tree) == {"1": "0", "2": "10", "0": "11"}
    (tmp_path / "words.txt").write_text("the\t5\ncat\t2\ndog\t1\n")
    named = formats.read(tmp_path / "x.txt", "napkinxc", labels=tmp_path / "words.txt")
    assert bits(named) == {"cat": "0", "dog": "10", "the": "11"}
    assert named.counts.tolist() == [5, 2, 1]


BAD_PATHS = [
    ("cat\tanimal\ndog\tanimal\n", "line 1: expected bits of 0 and 1, a tab, a word"),
    ("01\tcat\t5\n02\tdog\t3\n", "line 2: expected bits of 0 and 1"),
    ("01\t\t3\n", "line 1"),
    ("0\tcat\t1\n\n1\tcat\t1\n", "line 3: expected a word that no earlier line has"),
    ("01\tcat\t5\n011\tdog\t3\n", "'01' is a prefix of '011'"),
    ("0\tcat\t9999999999999999999\n1\tdog\t1\n", "a count is above 2**63 - 1"),
]
BAD_NODES = [
    ("3\n", "line 1: expected the numbers of labels and nodes"),
    ("2 3\n-1 0\n0 1 0\n", "line 1 announces 3 nodes, but 2 lines"),
    ("2 3\n-1 0\n0 1 0\n0 x 1\n", "line 4: expected a parent, a child and perhaps a label"),
    ("2 3\n-1 0\n0 1 0\n0 9 1\n", "line 4: expected nodes below 3"),
    ("2 3\n-1 0\n0 1 0\n0 1 1\n", "line 4: expected a child that no earlier line has"),
    ("2 3\n-1 0\n0 1 0\n0 2 0\n", "the leaves have the labels [0, 0]; each must have a different"),
    ("2 3\n-1 0\n0 1 0\n0 2\n", "the leaves have the labels [0, -1]"),
    ("2 3\n-1 0\n0 1 0\n0 2 2\n", "the leaves have the labels [0, 2]"),
    ("3 3\n-1 0\n0 1 0\n0 2 1\n", "2 leaves for the 3 labels"),
    ("2 3\n-1 0\n-1 1 0\n0 2 1\n", "0, 1 have no parent"),
]


@pytest.mark.parametrize(
    ("name", "text", "saying"),
    [
        *(("x.paths", *bad) for bad in [("", "no line in it"), *BAD_PATHS]),
        *(("x.napkinxc", *bad) for bad in [("", "no line in it"), *BAD_NODES]),
    ],
)
def test_bad_files_name_the_line(name, text, saying, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        formats.read(path)
    assert str(caught.value).startswith(str(path))
    assert saying in str(caught.value)


def test_too_few_words_for_the_labels(tmp_path):
    (tmp_path / "x.napkinxc").write_text("2 3\n-1 0\n0 1 0\n0 2 1\n")
    (tmp_path / "x.labels.tsv").write_text("one\n")
    with pytest.raises(InputError, match="1 labels for the 2 of"):
        formats.read(tmp_path / "x.napkinxc")


# linkage


@given(BINARY)
@settings(max_examples=25)
def test_linkages_are_valid_for_scipy(tree):
    merges = to_linkage(tree)
    assert merges.shape == (tree.n_labels - 1, 4)
    if tree.n_labels == 1:
        return
    hierarchy.is_valid_linkage(merges, throw=True)
    leaves = hierarchy.to_tree(merges).pre_order()
    in_order = sorted(range(tree.n_labels), key=paths_of(tree).strings.__getitem__)
    assert leaves == in_order
    assert bits(tree_from_linkage(merges, tree.labels)) == bits(tree)


def test_labels_of_a_matrix_are_numbers_or_those_of_its_file(tmp_path):
    np.save(tmp_path / "z.npy", hierarchy.linkage(np.random.default_rng(0).normal(size=(9, 2))))
    assert formats.read(tmp_path / "z.npy").labels == tuple("012345678")
    (tmp_path / "z.labels.tsv").write_text("".join(f"w{i}\t{i}\n" for i in range(9)))
    named = formats.read(tmp_path / "z.npy")
    assert named.labels[3] == "w3"
    assert named.counts.tolist() == list(range(9))


@pytest.mark.parametrize(
    ("matrix", "saying"),
    [
        (np.zeros((2, 3), complex), "cannot read the linkage .*not real numbers"),
        (np.array([[0, 1, 1, 2.0], [0, 2, 1, 3]]), "merges cluster 0 twice"),
        (np.array([[0, 7, 1, 2.0]]), "merges the cluster 7"),
        (np.float64(3), "a matrix of numbers"),
    ],
)
def test_bad_linkages(matrix, saying, tmp_path):
    np.save(tmp_path / "z.npy", matrix)
    with pytest.raises(InputError, match=saying) as caught:
        formats.read(tmp_path / "z.npy")
    assert "z.npy" in str(caught.value)
    (tmp_path / "z.npy").write_text("no matrix")
    with pytest.raises(InputError, match="cannot read the linkage"):
        formats.read(tmp_path / "z.npy")


# Newick; DOT, which is only written


def test_newick_names_nodes_and_quotes():
    tree = Tree.from_children(["a", "b c", "d_e"], [[1, ~0], [~1, ~2]], names=[None, "n.01"])
    assert newick(tree) == "(('b c','d_e')n.01,a);"
    quotes = Tree.from_children(["it's", '"a"', "a 'b\""], [[~0, ~1, ~2]])
    assert newick(quotes) == "(\"it's\",'\"a\"','a ''b\"');"
    assert newick(Tree(["only"], [0], [])) == "only;"


def test_newick_of_others_is_read(tmp_path):
    (tmp_path / "x.nwk").write_text("((a:1,'it''s':2)n_1:0.5[&&NHX:S=x],\"b c\")root:1;\n")
    tree = formats.read(tmp_path / "x.nwk")
    assert (tree.labels, tree.names) == (("a", "it's", "b c"), ("root", "n_1"))
    assert tree.child.tolist() == [1, ~2, ~0, ~1]


def test_newick_has_the_nodes_of_one_child_of_a_taxonomy():
    nested = {"life": {"a": {"b": ["x"]}, "c d": {"e": ["y", "z"]}}}
    tree = Tree.from_taxonomy({"all": nested})
    assert newick(tree) == "((((x)b)a,((y,z)e)'c d')life)all;"
    assert Tree.from_taxonomy(newick(tree)).meta["collapsed"] == tree.meta["collapsed"]
    assert newick(Tree.from_taxonomy({"a": {"b": ["x"]}})) == "((x)b)a;"


def test_dot_escapes_what_graphviz_reads(tmp_path):
    tree = Tree.from_children(
        ['say "hi"', "a\\N", "x\ny", "&lt;"], [[1, ~0, ~1], [~2, ~3, ~0]], counts=[1, 2, 3, 4]
    )
    formats.write(tree, tmp_path / "x.dot")
    lines = (tmp_path / "x.dot").read_text().splitlines()
    assert 'l0 [label="say \\"hi\\"", count=1];' in lines
    assert 'l1 [label="a\\\\N", count=2];' in lines
    assert 'l2 [label="x\\ny", count=3];' in lines
    assert 'l3 [label="&amp;lt;", count=4];' in lines
    edges = re.findall(r'^(\w+) -> (\w+) \[label="(\d)"\];$', "\n".join(lines), re.MULTILINE)
    expected = "n0 n1 0, n0 l0 1, n0 l1 2, n1 l2 0, n1 l3 1, n1 l0 2"
    assert ", ".join(map(" ".join, edges)) == expected
