"""Reading WordNet: the table, the database files in any build, words and their lemmas."""

import sys
from pathlib import Path

import pytest

from hstree.builders.wordnet import Taxonomy, built_in, open_taxonomy
from hstree.builders.wordnet.lookup import find_lemmas, look_up
from hstree.errors import FileFormatError, InputError
from tests import needs
from tests.builders.wordnet.small import SYNSETS, parents, script, taxonomy_of, write_table

SMALL = taxonomy_of(SYNSETS)


def test_a_table_is_read_as_it_says():
    assert SMALL.version == "9.9"
    assert SMALL.names[:3] == ("animal.n.01", "artifact.n.01", "canine.n.01")
    assert SMALL.names[10:] == ("restrain.v.01", "fast.s.01", "quick.a.01", "quickly.r.01")
    assert SMALL.pos == "nnnnnnnnnvvaar"
    assert [parents(SMALL, i) for i in (0, 4, 5, 7, 11)] == [[], [0, 1], [2, 6], [5], [12]]
    assert SMALL.senses["n"]["cat"] == [(3, 3), (8, 1)]
    assert SMALL.senses["v"]["cat"] == [(10, 2)]
    assert SMALL.exceptions["n"]["mice"] == ["mouse"]


@pytest.mark.slow
def test_the_script_makes_the_table_in_the_wheel_of_debians_files(tmp_path, monkeypatch, capsys):
    """Their byte offsets are others than those of the files that it was made of."""
    if not Path("/usr/share/wordnet/data.noun").exists():
        pytest.skip(needs.WORDNET)
    table = str(tmp_path / "out.xz")
    monkeypatch.setattr(sys, "argv", ["make_wordnet_table.py", "/usr/share/wordnet", "-o", table])
    script()["main"]()
    assert capsys.readouterr().out.startswith("WordNet 3.0: 117,659 synsets")
    assert open_taxonomy(table).sha256 == built_in().sha256


def test_the_script_refuses_a_folder_without_wordnet_in_one_line(tmp_path, monkeypatch):
    for source in (tmp_path / "none", tmp_path):
        monkeypatch.setattr(sys, "argv", ["make_wordnet_table.py", str(source), "-o", "t"])
        with pytest.raises(SystemExit, match=r"^error: .*data\.noun.*$"):
            script()["main"]()


def test_a_source_that_is_no_table_is_said_in_one_line(tmp_path):
    (tmp_path / "text").write_text("no table")
    write_table(tmp_path / "whole")
    (tmp_path / "half").write_bytes((tmp_path / "whole").read_bytes()[:-40])
    for name, message in (
        ("none", "there is no such file"),
        ("", "it is a folder; make a table with"),
        ("text", "cannot read the WordNet .*; make a table with"),
        ("half", "ended before .*; make a table with"),
    ):
        with pytest.raises(InputError, match=message) as raised:
            open_taxonomy(str(tmp_path / name))
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hstree wordnet 2\t3.0\n",
        "hstree wordnet 1\t3.0\nn\t@7\tdog:1\n\n",
        "hstree wordnet 1\t3.0\nn\t@0\tdog:1\n\n",
        "hstree wordnet 1\t3.0\nn\t@1\tdog:1\nn\t@0\tcat:1\n\n",
        "hstree wordnet 1\nn\n",
        *(f"hstree wordnet 1\t3.0\nn\t@{'7' * n}\tdog:1\n\n" for n in (20, 400, 5000)),
        f"hstree wordnet 1\t3.0\nn\t\tdog:{'7' * 5000}\n\n",
    ],
)
def test_a_broken_table_is_refused(text):
    with pytest.raises(FileFormatError, match="not a table of WordNet"):
        Taxonomy(text)


def test_an_empty_table_is_a_wordnet_without_a_word():
    empty = taxonomy_of([])
    assert len(empty) == 0
    assert look_up(["dog"], empty, "all").n_senses.tolist() == [0]


@pytest.mark.parametrize(
    ("word", "pos", "lemmas"),
    [
        ("dog", "n", ["dog"]),
        ("dogs", "n", ["dog"]),
        ("pups", "n", ["puppy"]),
        ("mice", "n", []),  # an exception whose lemma WordNet lacks
        ("puppies", "n", ["puppy"]),
        ("cats", "v", ["cat"]),
        ("restrained", "v", ["restrain"]),
        ("inhibiting", "v", ["inhibit"]),
        ("quicker", "a", ["quick"]),
        ("speedyer", "a", ["speedy"]),
        ("quickest", "r", []),
        ("s", "n", []),
    ],
)
def test_morphy(word, pos, lemmas):
    assert find_lemmas(word, pos, SMALL) == lemmas


def test_the_first_sense_is_the_one_tagged_most():
    words = ["cat", "Cats", "xyzzy", "toy", "<unk>", "dogs"]
    first = look_up(words, SMALL, "first")
    assert first.word.tolist() == [0, 1, 3, 5]
    assert first.synset.tolist() == [3, 3, 8, 5]
    assert first.n_senses.tolist() == [3, 3, 0, 1, 0, 1]
    every = look_up(words, SMALL, "all")
    assert every.word.tolist() == [0, 0, 0, 1, 1, 1, 3, 5]
    assert every.synset.tolist()[:3] == [3, 10, 8]  # tagged 3, 2 and 1 times


@pytest.mark.parametrize(
    ("outside", "inside"),
    [
        ("It it HE at a I can between", "was helium dog bank"),  # function words in any case
        ("N n B k x", "2 is nitrogen"),  # single letters, such as N for numbers in the PTB
    ],
)
def test_function_words_and_letters_are_outside_wordnet(outside, inside):
    words = outside.split() + inside.split()
    synsets = look_up(words, open_taxonomy("builtin"), "first")
    assert [words[i] for i in synsets.word] == inside.split()
    assert [word for word, n in zip(words, synsets.n_senses, strict=True) if n] == inside.split()
