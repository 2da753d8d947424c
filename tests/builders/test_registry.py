"""The registry: options from signatures, builders of other packages, inputs of every kind."""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Literal

import numpy as np
import pytest
from msgspec import Meta

import hstree
from hstree._options import RandomState
from hstree.builders import Builder, broken_builders, builder, builders, open_input
from hstree.builders.huffman import huffman
from hstree.builders.registry import NATIVE
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import HstreeError, InputError, OptionError, PluginError
from hstree.tree import Tree
from tests.plugins import install
from tests.strategies import counts_of
from tests.texts import corpus_of

VOCABULARY = Vocabulary(["a", "b", "c"], [1, 5, 2])


def under_one_node(
    words: Vocabulary,
    *,
    arity: Annotated[int, Meta(ge=2)] = 2,
    file: Path | None = None,
    choice: Literal["one", "two"] = "one",
    random_state: RandomState = 0,
) -> Tree:
    """Hang all words under one node.

    More text that is not the summary.
    """
    return Tree(words.words, [0, len(words)], ~np.arange(len(words)), meta={"own": choice})


def test_a_builder_is_described_by_its_function():
    every = Builder.of("every", under_one_node)
    assert every.takes is Vocabulary
    assert every.takes_text == "a vocabulary"
    assert every.summary == "Hang all words under one node."
    assert [option.name for option in every.options] == [
        "arity",
        "file",
        "choice",
        "random_state",
        "short_list",
    ]


def test_a_function_is_a_method_too():
    tree = hstree.build(under_one_node, VOCABULARY.words, choice="two")
    assert tree.meta["method"] == "under_one_node"
    assert tree.meta["options"]["choice"] == "two"
    assert hstree.build(huffman, VOCABULARY) == hstree.build("huffman", VOCABULARY)
    with pytest.raises(OptionError, match="has no option 'chioce'; did you mean 'choice'"):
        hstree.build(under_one_node, VOCABULARY, chioce="two")

    def fails(words: Vocabulary) -> Tree:
        raise KeyError("own")

    def forgets(words: Vocabulary) -> Tree:
        return Tree(words.words[1:], [0, 2], [~0, ~1])

    def unnamed(words: Vocabulary) -> Tree:
        raise ValueError("no module")

    unnamed.__module__ = None  # as of a function that exec made
    for function, message in (
        (lambda words: None, "must be annotated"),
        (unnamed, "no module"),
        (fails, "KeyError"),
        (forgets, "over other words"),
    ):
        with pytest.raises(PluginError, match=message):
            hstree.build(function, VOCABULARY)


@pytest.mark.parametrize("method", NATIVE)
def test_our_own_builders_document_every_option(method):
    described = builder(method)
    assert described.summary.endswith((".", "softmax."))
    assert all(option.help for option in described.options)
    assert "Parameters\n" in inspect.getdoc(described.function)


def test_an_unknown_option_or_method_gets_a_suggestion():
    with pytest.raises(OptionError, match="huffman has no option 'artiy'; did you mean 'arity'"):
        hstree.build("huffman", VOCABULARY, artiy=3)
    with pytest.raises(OptionError, match="flat has no option 'arity'; it has short_list"):
        hstree.build("flat", VOCABULARY, arity=3)
    with pytest.raises(OptionError, match="no method 'hufman'; did you mean 'huffman'"):
        hstree.build("hufman", VOCABULARY)
    with pytest.raises(OptionError, match=r"no method 'zzz'; there are random, balanced"):
        hstree.build("zzz", VOCABULARY)
    with pytest.raises(OptionError, match="method is None"):
        hstree.build(None, VOCABULARY)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("words", "must be annotated Vocabulary, Corpus or WordVectors"),
        ("words: Vocabulary, arity: int = 2", "'arity' must be keyword-only"),
        ("words: Vocabulary, *, arity: int", "'arity' needs a default"),
        ("words: Vocabulary, *, arity: int | str = 2", "'arity' must be annotated bool"),
        ("words: Vocabulary, *, min_count: int = 2", "'min_count' must be keyword-only, and not a"),
        ("words: Vocabulary, *, arity: Annotated[int, Meta(ge=2)] = 1", "by default, .* is 1; it"),
        ("words: Vocabulary, *, arity: Nowhere = 2", "cannot be read .*Nowhere"),
        ("", "cannot be read"),
    ],
)
def test_what_is_no_builder_is_refused(parameters, message):
    defined = dict(globals())
    exec(f"def odd({parameters}) -> Tree: ...", defined)
    with pytest.raises(HstreeError, match=f"'odd' of the package theirs .*{message}"):
        Builder.of("odd", defined["odd"], "theirs")


@pytest.fixture
def other_packages(tmp_path, monkeypatch):
    """Install a package with a good builder and several bad ones."""
    (tmp_path / "their_trees.py").write_text(
        "from hstree.tree import Tree\n"
        "from hstree.data.vocabulary import Vocabulary\n"
        "def chain(words: Vocabulary, *, turn: bool = False) -> Tree:\n"
        "    '''Hang every word under the one before it.'''\n"
        "    n = len(words)\n"
        "    children = [[~i, i + 1] for i in range(n - 2)] + [[~(n - 2), ~(n - 1)]]\n"
        "    return Tree.from_children(words.words, children[: n - 1], counts=words.counts)\n"
        "not_one = 3\n"
    )
    (tmp_path / "broken_trees.py").write_text("raise RuntimeError('two\\nlines')\n")
    builders = {
        "chain": "their_trees:chain",
        "raises": "broken_trees:f",
        "missing": "their_trees:nowhere",
        "three": "their_trees:not_one",
        "huffman": "their_trees:chain",
    }
    install(tmp_path, "their-package", {"hstree.builders": builders})
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("other_packages")
def test_another_packages_builder_is_like_our_own():
    assert list(builders()) == [*NATIVE, "chain"]
    chain = builder("chain")
    assert chain.package == "their-package"
    assert chain.summary == "Hang every word under the one before it."
    tree = hstree.build("chain", VOCABULARY, turn=True)
    assert tree.meta["method"] == "chain"
    assert tree.meta["options"] == {"turn": True}


@pytest.mark.usefixtures("other_packages")
def test_a_broken_one_is_an_error_only_when_it_is_used():
    assert hstree.build("huffman", VOCABULARY) == huffman(VOCABULARY)
    assert set(broken_builders()) == {"raises", "missing", "three", "huffman"}
    for name, message in {
        "raises": "'raises' of the package their-package cannot be loaded: RuntimeError: two lines",
        "missing": "cannot be loaded: AttributeError",
        "three": "cannot be used: its signature",
    }.items():
        with pytest.raises(HstreeError, match=message) as caught:
            hstree.build(name, VOCABULARY)
        assert str(caught.value) == broken_builders()[name]
        assert "\n" not in str(caught.value)
    assert "hstree already has this name" in broken_builders()["huffman"]


def use_own_builder(monkeypatch):
    """Register `under_one_node` as hstree's own for a test."""
    monkeypatch.setitem(NATIVE, "every", f"{__name__}:under_one_node")


def test_meta_keeps_what_the_builder_put_there(monkeypatch):
    use_own_builder(monkeypatch)
    tree = hstree.build("every", VOCABULARY, choice="two", random_state=9)
    assert tree.meta["own"] == "two"
    assert tree.meta["random_state"] == 9
    assert "random_state" not in tree.meta["options"]


def test_a_file_given_as_an_option_is_recorded_by_name_and_hash(monkeypatch, tmp_path):
    use_own_builder(monkeypatch)
    path = tmp_path / "classes.tsv"
    path.write_bytes(b"a\t1\n")
    meta = hstree.build("every", VOCABULARY, file=path).meta
    assert meta["options"]["file"] == "classes.tsv"
    assert meta["input"]["files"] == {"file": hashlib.sha256(b"a\t1\n").hexdigest()}
    corpus = corpus_of(tmp_path, ["a b"])
    corpus.counted_vocabulary().save(path)
    provenance = hstree.build("every", VOCABULARY, file=path).meta["input"]["texts_of_files"]
    assert [text["name"] for text in provenance] == [corpus.name]
    assert hstree.build("every", VOCABULARY, file=tmp_path).meta["input"] == VOCABULARY.source
    with pytest.raises(InputError, match=r"cannot read .*nowhere\.tsv"):
        hstree.build("every", VOCABULARY, file=tmp_path / "nowhere.tsv")


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A text, a vocabulary and vectors of its words, in a folder."""
    monkeypatch.setenv("HSTREE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "text.txt").write_text("a b b c\nb b c b\n")
    VOCABULARY.save(tmp_path / "vocab.tsv")
    WordVectors(VOCABULARY.words, np.eye(3), counts=VOCABULARY.counts).save(tmp_path / "v.npy")
    (tmp_path / "glove.txt").write_text("a 1 0\nb 0 1\nc 0.5 1\n")
    return tmp_path


def test_reading_options_reach_the_corpus(files):
    corpus = open_input(files / "text.txt", builder("huffman"), min_count=2)
    assert set(corpus.vocabulary.words) == {"b", "c", "<eos>", "<unk>"}


def test_under_one_node_of_input_serves_where_it_can(files):
    counts = {"a": 1, "b": 5, "c": 2}
    (files / "text.txt").write_text("a b b c\nb b c b a\n")
    for name in ("text.txt", "vocab.tsv", "v.npy"):
        tree = hstree.build("huffman", str(files / name))
        found = counts_of(tree)
        found["a"] -= name == "text.txt"
        assert found.pop("<unk>", 0) == 0
        assert found.pop("<eos>", 2) == 2
        assert found == counts
        assert tree.meta["input"]["kind"] == {"t": "corpus", "v": "vocabulary"}.get(
            name[0] if name != "v.npy" else "", "vectors"
        )


def test_a_corpus_is_counted_over_its_own_lines(files):
    whole = Corpus.read(files / "text.txt", unk=False)
    tree = hstree.build("huffman", whole.select_lines(0, 1))
    assert counts_of(tree) == {"a": 1, "b": 2, "c": 1, "<eos>": 1}
    assert tree.meta["input"]["lines"] == [0, 1]


def test_a_vocabulary_lies_over_a_corpus(files):
    Vocabulary(["c", "b", "zebra"], [1, 1, 1]).save(files / "other.tsv")
    tree = hstree.build("flat", files / "text.txt", vocabulary=files / "other.tsv")
    assert tree.labels == ("c", "b", "zebra")
    assert tree.counts.tolist() == [2, 5, 0]


@pytest.mark.parametrize(
    ("method", "given_input", "message"),
    [
        ("kmeans", "nltk:brown", r"kmeans takes word vectors, not nltk:brown.*hstree\.CBOW"),
        ("kmeans", "vocab.tsv", r"kmeans takes word vectors, not .*vocab\.tsv; give"),
        ("kmeans", "text.txt", r"line 1: expected a word and numbers.*bootstrap"),
    ],
)
def test_what_cannot_serve_is_refused_with_the_way_out(
    files, monkeypatch, method, given_input, message
):
    monkeypatch.chdir(files)
    with pytest.raises(InputError, match=message):
        hstree.build(method, given_input)


def test_a_second_vocabulary_is_refused():
    with pytest.raises(OptionError, match="as the input"):
        hstree.build("huffman", VOCABULARY, vocabulary=VOCABULARY)


def test_keyed_vectors_are_vectors_with_counts():
    """Vectors of gensim, or any object with the same attributes."""
    rows = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    words, counts = list("abcdef"), [9, 5, 4, 4, 2, 1]
    keyed = SimpleNamespace(index_to_key=words, vectors=rows, expandos={"count": counts})
    vectors = WordVectors(words, rows, counts=counts)
    assert hstree.build("gmm", keyed) == hstree.build("gmm", vectors)
    assert hstree.build("huffman", keyed) == hstree.build("huffman", vectors)
    without = SimpleNamespace(index_to_key=words, vectors=rows)
    assert hstree.build("gmm", without) == hstree.build("gmm", WordVectors(words, rows))
    with pytest.raises(InputError, match="come without counts"):
        hstree.build("huffman", without)


def test_a_method_may_have_options_in_its_text():
    counts = {f"word{i}": 50 - i for i in range(50)}
    tree = hstree.build("huffman arity=4 short_list=5", counts)
    assert tree.sha256 == hstree.build("huffman", counts, arity=4, short_list=5).sha256
    # A keyword replaces an option of the text
    replaced = hstree.build("huffman arity=4", counts, arity=3)
    assert replaced.meta["options"] == {"arity": 3}
    with pytest.raises(OptionError, match="trees"):
        hstree.build("huffman trees=2", counts)
    with pytest.raises(OptionError, match="hstree compare CORPUS 'gmm"):
        hstree.build("gmm + ngrams", counts)
