"""Words of the test split that training never saw: no ranking depends on an untrained <unk>."""

import csv
import re
import warnings

import numpy as np
import pytest

import hstree as library
from hstree.experiments import results
from tests.texts import write_lines

CANDIDATES = ("huffman", "random", "flat")
QUICK = ("--dim", "16", "--context", "2", "--batch-size", "64", "--epochs", "4")
UNTRAINED = "<unk> never occurs in the training split"
SAID = "read as <unk> (271 of 332 words); --min-count 1 (in Python min_count=1) keeps them"


@pytest.fixture(scope="module")
def rare_lines():
    """Lines of a first-order chain in which 4% of the tokens are words that occur once."""
    rng = np.random.default_rng(0)
    chain = np.random.default_rng(1).dirichlet(np.full(60, 0.05), size=60)
    word, lines, n_rare = 0, [], 0
    for _ in range(800):
        line = []
        for _ in range(10):
            word = rng.choice(60, p=chain[word])
            line.append(f"w{word}")
            if rng.random() < 0.04:
                line.append(f"rare{n_rare}")
                n_rare += 1
        lines.append(" ".join(line))
    return lines


@pytest.fixture(autouse=True)
def every_warning():
    """Show a warning again that another test has shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        yield


@pytest.fixture
def text(tmp_path, rare_lines):
    return write_lines(tmp_path / "rare.txt", rare_lines)


def ranked(folder, split):
    candidates = results.load(folder).candidates
    return sorted(
        CANDIDATES,
        key=lambda name: next(r for r in candidates if r.name == name).perplexity[split].mean,
    )


def test_the_ranking_does_not_depend_on_unknown_words(hstree, text):
    ran = hstree("compare", text, *CANDIDATES, *QUICK, "-o", "c", warns=True)
    assert ran.warnings == []
    assert ran.err.count("occur once") == ran.err.count(SAID) == 1
    assert ranked("c", "test") == ranked("c", "test_without_oov")
    compared = results.load("c")
    words = library.Vocabulary.from_file("c/words.tsv")
    assert words.counts[words.index("<unk>")] == compared.oov["train"] == 271
    # The same text with every word ranks these candidates by what they make of a word never seen.
    ran = hstree("compare", text, *CANDIDATES, *QUICK, "--min-count", "1", "-o", "all", warns=True)
    assert SAID not in ran.err
    assert any(UNTRAINED in warning for warning in ran.warnings)
    assert results.load("all").oov["train"] == 0
    assert ranked("all", "test") != ranked("all", "test_without_oov")


def test_every_table_has_the_rate_of_unknown_words(hstree, text):
    ran = hstree("compare", text, "huffman", "kn3", *QUICK, "-o", "c", warns=True)
    compared = results.load("c")
    rate = compared.oov["test"] / compared.tokens["test"]
    assert 0.02 < rate < 0.05
    assert re.search(rf"^out of vocabulary .*test {rate:.2%}", ran.out, re.M)
    assert f"Out of vocabulary: {rate:.2%} of test tokens" in str(compared)
    assert f"Out of vocabulary: {rate:.2%} of test tokens" in compared._repr_html_()
    with open("c/results.csv", newline="") as file:
        assert [float(candidate["test_oov"]) for candidate in csv.DictReader(file)] == [rate, rate]
    with open("c/report.html", encoding="utf-8") as file:
        assert f"{rate:.2%}" in file.read()
    ran = hstree("evaluate", "huffman", text, *QUICK, warns=True)
    assert re.search(rf"^out of vocabulary .*test {rate:.2%}", ran.out, re.M)


@pytest.mark.parametrize(
    ("command", "written"),
    [
        (["build", "-m", "huffman", "rare.txt", "--train-split-only"], "tree.json"),
        (["vocab", "rare.txt", "--train-split-only"], "vocab.tsv"),
        (["bootstrap", "rare.txt", "-o", "b", "--epochs", "0", "--dim", "2"],
         "b/trees/random/seed-0/tree.json"),
        (["compare", "rare.txt", "huffman", "-o", "c", "--epochs", "0", "--dim", "2"],
         "c/trees/huffman/seed-0/tree.json"),
        (["evaluate", "huffman", "rare.txt", "--save", "m", "--epochs", "0", "--dim", "2"],
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
    assert "<unk>" in chosen
    assert len(chosen) < 70
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
    assert any("<unk> has the count 0 among the model's words" in said for said in ran.warnings)


def test_a_text_with_its_own_unk_keeps_its_words(hstree, tmp_path, rare_lines):
    text = write_lines(tmp_path / "own.txt", [f"{line} <unk>" for line in rare_lines])
    ran = hstree("compare", text, "huffman", "-o", "c", "--epochs", "0", "--dim", "2")
    assert ran.err == ""
    assert results.load("c").oov["train"] == 0
