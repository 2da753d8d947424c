"""Every format: keeps what it says, names what it drops, refuses what it cannot hold."""

from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hstree import formats, prune
from hstree.builders.huffman import huffman
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import FileFormatError, InputError, OptionError, TreeError
from hstree.formats import FORMATS
from hstree.tree import Tree
from tests.campaigns.mutators import mutated
from tests.strategies import chain, children_of, counts_of, trees

READ = sorted(name for name, each in FORMATS.items() if each.read and each.write)
BINARY = ("brown", "linkage")
ONE_CODE = (*BINARY, "napkinxc", "newick")

#: Labels that every format can quote, however odd.
odd_labels = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters="\ufffe\uffff"),
    min_size=1,
    max_size=8,
)

quick = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])


def path_for(name, folder):
    return folder / f"tree{FORMATS[name].endings[0]}"


@st.composite
def trees_of(draw, name):
    """Draw trees that a format can hold."""
    tree = draw(trees(several_codes=name not in ONE_CODE, wide=name not in BINARY))
    if tree.n_labels == 1 and name == "napkinxc":
        tree = Tree.from_children(["a", "b"], [[~1, ~0]])
    labels = draw(st.lists(odd_labels, min_size=tree.n_labels, max_size=tree.n_labels, unique=True))
    empty = None if name == "newick" else ""
    names = ["".join(filter(str.isprintable, n or "")) or empty for n in tree.names or ()]
    names = names if any(names) else None
    counts = tree.counts if tree.counts is None or tree.counts.any() else None
    return Tree(labels, tree.child_start, tree.child, counts=counts, names=names, meta=tree.meta)


def codes_by_label(tree):
    return {
        label: sorted([branch for _, branch in code] for code in tree.codes(label))
        for label in tree.labels
    }


@pytest.mark.parametrize("name", READ)
def test_what_a_format_keeps_comes_back(name, tmp_path):
    path = path_for(name, tmp_path)

    @given(trees_of(name))
    @quick
    def check(tree):
        formats.write(tree, path)
        back = formats.read(path)
        assert codes_by_label(back) == codes_by_label(tree)
        lost = FORMATS[name].losses(tree)
        if "how the tree was made" not in lost and tree.meta:
            assert back.meta == tree.meta
        if lost in ([], ["how the tree was made"]):
            assert back.sha256 == tree.sha256
        if "the counts" not in lost:
            assert (back.counts is None) == (tree.counts is None)
            assert tree.counts is None or counts_of(back) == counts_of(tree)
        if "the order of labels" not in lost:
            assert back.labels == tree.labels
        if "the numbers of nodes" not in lost:
            assert (back.child == tree.child).all()
        if "the names of nodes" not in lost:
            keep_order = list if "the numbers of nodes" not in lost else sorted
            names = (filter(None, each.names or ()) for each in (back, tree))
            assert len(set(map(tuple, map(keep_order, names)))) == 1
        # The tree that came back can lose only its names.
        formats.write(back, path)
        again = formats.read(path)
        assert (again.labels, again.child.tolist()) == (back.labels, back.child.tolist())

    check()


def test_losses_are_named(tmp_path):
    tree = Tree.from_children(
        ["a", "b"], [[~1, ~0]], counts=[1, 2], names=["root"], meta={"method": "by hand"}
    )
    lost = ["the counts", "the order of labels", "the numbers of nodes", "how the tree was made"]
    assert formats.losses(tree, "t.newick") == lost
    assert formats.losses(tree, "t.graphml") == ["how the tree was made"]
    assert formats.losses(Tree(["a"], [0], []), "t.nwk") == []


SHARED = Tree.from_children(["a", "b", "c"], [[1, 2], [~0, ~1], [~2, ~0]])
WIDE = Tree.from_children(["a", "b", "c"], [[~0, ~1, ~2]])


@pytest.mark.parametrize(
    ("name", "tree", "message"),
    [
        *((name, SHARED, "the label 'a' has 2 codes") for name in ONE_CODE),
        *((name, WIDE, "node 0 has 3 children") for name in BINARY),
        ("napkinxc", Tree(["only"], [0], []), "a tree of one label"),
        ("brown", chain(100_000), "5,000,049,999 decisions"),
    ],
)
def test_trees_that_a_format_cannot_hold_are_refused(name, tree, message, tmp_path):
    path = path_for(name, tmp_path)
    with pytest.raises(InputError, match=message) as caught:
        formats.write(tree, path)
    assert str(caught.value).startswith(f"{path} as {name}: ")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("brown", "a\tb"),
        ("newick", "a\nb"),
        ("newick", ""),
        ("napkinxc", "a\tb"),
        ("dot", "a\0"),
        ("graphml", "\ufffe"),
    ],
)
def test_labels_that_cannot_be_quoted_are_refused(name, label, tmp_path):
    tree = Tree.from_children(["ok", label], [[~0, ~1]])
    with pytest.raises(InputError) as caught:
        formats.write(tree, path_for(name, tmp_path))
    assert repr(label) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["dot", "graphml", "newick", "napkinxc", "linkage"])
def test_deep_chains(name, tmp_path):
    tree = chain(3_000)
    path = path_for(name, tmp_path)
    formats.write(tree, path)
    if FORMATS[name].read:
        back = formats.read(path)
        assert (back.labels, back.child.tolist()) == (tree.labels, tree.child.tolist())


def test_unknown_formats_and_endings_are_named(tmp_path):
    tree = Tree(["a"], [0], [])
    with pytest.raises(OptionError, match=r"ending of .*tree\.txt"):
        formats.write(tree, tmp_path / "tree.txt")
    with pytest.raises(OptionError, match="'yaml'; there are tree, dot, graphml"):
        formats.write(tree, tmp_path / "tree.json", "yaml")
    with pytest.raises(OptionError, match="dot can only be written"):
        formats.read(tmp_path / "tree.dot")
    with pytest.raises(OptionError, match="taxonomy can only be read"):
        formats.write(tree, tmp_path / "tree.csv")
    with pytest.raises(OptionError, match="labels is not for brown files"):
        formats.read(tmp_path / "tree.paths", labels="words.txt")


@pytest.mark.parametrize("ending", [ending for name in READ for ending in FORMATS[name].endings])
def test_a_damaged_file_is_a_tree_or_one_clear_line(ending, tmp_path):
    tree = huffman(Vocabulary([f"w{i}" for i in range(12)], np.arange(1, 13)))
    path = tmp_path / f"tree{ending}"
    formats.write(tree, path)
    whole, random = path.read_bytes(), Random(0)
    for _ in range(100):
        path.write_bytes(mutated(random, path.name, whole))
        message = f"{path} is valid"
        try:
            read = formats.read(path)
            content = read.labels, children_of(read)
            assert read == Tree.from_children(*content, counts=read.counts, names=read.names)
        except (InputError, FileFormatError, TreeError) as error:
            message = str(error)
        assert str(path) in message
        assert len(message.splitlines()) == 1


PIECES = [*"a \t\n\r\0\x0b\x1c\x85\u2028\u00a0\ufeff\ud800'\"#0\\&(,;_é\ufffe", "# hstree\t{"]
WORDS = sorted({first + last for first in ("", *PIECES) for last in ("", "a", " ", "\n", "'")})


@pytest.mark.parametrize("name", ["v.vec", "v.txt", "v.bin", "v.npy", "v.tsv"])
def test_words_come_back_or_are_refused_by_the_writer(name, tmp_path):
    for word in WORDS:
        for words in (("zz", word), (word, "zz")):
            written = WordVectors(words, [[1.5], [2.5]])
            if name == "v.tsv":
                written = Vocabulary(words, [1, 2])
            try:
                written.save(tmp_path / name)
            except InputError:
                continue
            if name == "v.tsv":
                assert tuple(Vocabulary.from_file(tmp_path / name).words) == words
            else:
                assert WordVectors.read(tmp_path / name).labels == words


@pytest.mark.parametrize(
    "name",
    ["t.json", "t.npz", "t.json.gz", "t.graphml", "t.nwk", "t.paths", "t.napkinxc", "t.npy"],
)
def test_labels_come_back_or_are_refused_by_the_writer(name, tmp_path):
    for word in WORDS:
        try:
            tree = Tree.from_children(["zz", word], [[~1, ~0]], names=[word])
            formats.write(tree, tmp_path / name)
        except (InputError, TreeError):
            continue
        again = formats.read(tmp_path / name)
        assert set(again.labels) == set(tree.labels)
        assert again.names in ((word,), None) or name == "t.paths"


@pytest.mark.parametrize("name", ["t.json", "t.npz", "t.graphml", "t.nwk"])
def test_a_tree_without_a_name_has_its_hash_after_a_round_trip(name, tmp_path):
    tree = prune(Tree.from_taxonomy({"x": ["a", "b"], "y": ["c"]}), ["a", "c"])
    assert tree.names is None
    formats.write(tree, tmp_path / name)
    assert formats.read(tmp_path / name).sha256 == tree.sha256
