"""Words that no option selects: all commands map those that occur once to <unk>, and say so."""

import random
import re
import warnings

import pytest

import hstree as library
from hstree.experiments import results
from tests.texts import write_lines

QUICK = ("--dim", "2", "--epochs", "0")
UNTRAINED = "<unk> never occurs in the training split"
SAID = "read as <unk> (320 of 381 words); --min-count 1 (in Python min_count=1) keeps them"


@pytest.fixture(autouse=True)
def every_warning():
    """Show a warning again that another test has shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        yield


@pytest.fixture
def text(tmp_path):
    """A text of 60 words, in which half of the lines end with a word that occurs once."""
    words = [f"w{i}" for i in range(60)]
    draw = random.Random(0)
    lines = [" ".join(draw.choices(words, k=10)) for _ in range(800)]
    lines = [f"{line} rare{i}" if i % 2 else line for i, line in enumerate(lines)]
    return write_lines(tmp_path / "rare.txt", lines)


def test_every_table_has_the_rate_of_unknown_words(hstree, text):
    out = hstree("compare", text, "huffman", "kn3", *QUICK, "-o", "c", warns=True).out
    compared = results.load("c")
    rate = f"{compared.oov['test'] / compared.tokens['test']:.2%}"
    assert re.search(rf"^out of vocabulary .*test {rate}", out, re.M)
    for shown in (str(compared), compared._repr_html_()):
        assert f"Out of vocabulary: {rate} of test tokens" in shown
    out = hstree("evaluate", "huffman", text, *QUICK, warns=True).out
    assert re.search(rf"^out of vocabulary .*test {rate}", out, re.M)


@pytest.mark.parametrize(
    ("command", "written"),
    [
        (["build", "-m", "huffman", "rare.txt", "--train-split-only"], "tree.json"),
        (["vocab", "rare.txt", "--train-split-only"], "vocab.tsv"),
        (["bootstrap", "rare.txt", "-o", "b", *QUICK],
         "b/trees/random/seed-0/tree.json"),
        (["compare", "rare.txt", "huffman", "-o", "c", *QUICK],
         "c/trees/huffman/seed-0/tree.json"),
        (["evaluate", "huffman", "rare.txt", "--save", "m", *QUICK],
         "m/tree.json"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)  # fmt: skip
def test_commands_choose_the_same_words(hstree, text, command, written):
    def words():
        if written.endswith(".tsv"):
            return set(library.Vocabulary.from_file(written).words)
        return set(library.load(written).labels)

    ran = hstree(*command, warns=True)
    assert ran.err.count("occur once") == ran.err.count(SAID) == 1
    assert ran.warnings == []
    assert words() == set(library.Corpus.read(text).splits()[0].select_vocabulary().words)
    ran = hstree(*command, "--min-count", "1", "--force", warns=True)
    assert "occur once" not in ran.err
    is_scored = command[0] not in ("build", "vocab")
    assert any(UNTRAINED in warning for warning in ran.warnings) == is_scored
    assert len(words()) > 300


def test_words_and_vectors_of_a_text_are_chosen_alike(hstree, text):
    chosen = set(library.Corpus.read(text).vocabulary.words)
    hstree("vocab", text, warns=True)
    assert set(library.Vocabulary.from_file("vocab.tsv").words) == chosen
    hstree("embed", text, "-o", "v.vec", "--dim", "2", "--epochs", "1", warns=True)
    assert set(library.WordVectors.read("v.vec").labels) == chosen


def test_words_that_were_chosen_before_stay(hstree, text):
    """Those of a tree and of a vocabulary file, whose <unk> was never seen."""
    hstree("vocab", text, "--min-count", "1", "--train-split-only")
    hstree("build", "-m", "huffman", "vocab.tsv")
    for candidate, option in (("tree.json", ()), ("huffman", ("--vocabulary", "vocab.tsv"))):
        evaluate = ("evaluate", candidate, text, *option, "--epochs", "0", "--save", "m")
        ran = hstree(*evaluate, "--force", warns=True)
        assert [UNTRAINED in warning for warning in ran.warnings] == [True]
        assert "occur once" not in ran.err
    ran = hstree("score", "m", text, "-o", "lines.tsv", warns=True)
    assert any("scored as <unk>, which did not occur" in said for said in ran.warnings)
