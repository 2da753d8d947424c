"""Test lines that something has read before are called out, through every file in between."""

import shlex

import pytest

import hstree as library
from hstree.experiments import results
from tests.cli.conftest import figures

QUICK = ("--dim", "4", "--epochs", "1", "--batch-size", "64")


@pytest.fixture
def done(hstree):
    """Run the program and return its warnings."""
    return lambda *arguments: hstree(*arguments, warns=True).warnings


def one(warnings, *saying):
    """Check that there is one warning, beside those of few shared words, which says all of this."""
    own = [warning for warning in warnings if "read as <unk>" not in warning]
    assert len(own) == 1, warnings
    assert all(word in own[0] for word in saying), warnings


BY_FILES = "the tree was built from a vocabulary or vectors that were made from"
FEW = "vocab corpus.txt --max-size 9 -o v.tsv"
EMBED = "embed corpus.txt --dim 4 --epochs 1 -o v.npy"
CLASSES = "classes cluster_by=vectors n_classes=3 vectors_file=v.npy"


@pytest.mark.parametrize(
    "commands",
    [
        ["vocab corpus.txt -o v.tsv", "build -m huffman v.tsv"],
        # Another text is counted, but its words were selected on the test lines.
        [FEW, "build -m huffman other.txt --vocabulary v.tsv"],
        [FEW, "build -m 'classes n_classes=2' other.txt --vocabulary v.tsv"],
        [EMBED, "build -m gmm v.npy"],
        # The vectors are the file of an option, beside a corpus that has none of the lines.
        [EMBED, f"build -m '{CLASSES}' corpus.txt --train-split-only"],
    ],
)
def test_words_and_vectors_remember_their_lines(done, corpus, tmp_path, commands):
    (tmp_path / "other.txt").write_text("w1 w2\n" * 10)
    for command in commands:
        done(*shlex.split(command))
    one(done("evaluate", "tree.json", corpus, "--epochs", "0"), BY_FILES, "lines 181 to 200")


def test_a_model_remembers_its_training_and_so_do_vectors_of_it(done, tree, corpus, tmp_path):
    train = ("evaluate", tree, corpus, *QUICK, "--save", "m", "--vectors-out", "v.npy")
    assert done(*train, "--json", "r.json") == []
    assert figures(tmp_path / "r.json")["seen"] is None
    one(done("score", "m", corpus, "-o", "s.txt"), "trained or validated on lines 1 to 180")
    done("build", "-m", "gmm", "v.npy", "-o", "g.json")
    assert done("evaluate", "g.json", corpus, "--epochs", "0") == []


def test_parts_that_share_lines_are_called_out_everywhere(done, corpus, tmp_path):
    same = ("--valid", corpus, "--test", corpus)
    said = [
        "lines 1 to 200 of corpus.txt are in the training split and in the test split",
        "lines 1 to 200 of corpus.txt are in the validation split and in the test split",
        "lines 1 to 200 of corpus.txt are in the training split and in the validation split",
    ]
    warnings = done("compare", corpus, "huffman", "kn2", "-o", "c", *QUICK, *same)
    assert all(part in warning for part, warning in zip(said, warnings, strict=True))
    assert [said[0] in candidate.seen for candidate in results.load("c").candidates] == [True] * 2
    header, candidate, _ = (tmp_path / "c" / "results.csv").read_text().splitlines()
    assert header.split(",")[-1] == "seen"
    assert said[0] in candidate


def test_a_candidate_of_a_comparison_knows_what_its_tree_has_read(done, tree, corpus, tmp_path):
    labels = library.load(tree).labels
    library.Vocabulary(labels, [1] * len(labels)).save(tmp_path / "w.tsv")
    seen = library.build("balanced", library.Corpus.read(corpus), vocabulary=tmp_path / "w.tsv")
    given = ("--vocabulary", "w.tsv", "-o", "c", *QUICK)
    # An equal tree that has read none of the test lines is trained first, and its run kept.
    seen.with_meta({}).save(tmp_path / "it.json")
    assert done("compare", corpus, "it.json", *given) == []
    assert results.load(tmp_path / "c").candidates[0].seen is None
    seen.save(tmp_path / "it.json")
    one(done("compare", corpus, "it.json", tree, *given), "it.json: ")
    first, second = results.load(tmp_path / "c").candidates
    assert "the tree's builder read lines 181 to 200" in first.seen
    assert second.seen is None


def test_a_vocabulary_chosen_on_the_test_lines_is_called_out(done, corpus, tmp_path):
    choice = ("vocab", corpus, "--max-size", "20", "--force", "-o", "v.tsv")
    done(*choice)
    chosen = "the vocabulary was selected from lines 181 to 200"
    compared = done("compare", corpus, "huffman", "--vocabulary", "v.tsv", "-o", "c", *QUICK)
    one(compared, chosen, "(`hstree vocab --train-split-only`)")
    assert "made from lines 181 to 200" in results.load(tmp_path / "c").candidates[0].seen
    evaluate = ("evaluate", "flat", corpus, "--vocabulary", "v.tsv", "--epochs", "0")
    one(done(*evaluate), chosen)
    done(*choice, "--train-split-only")
    assert done(*evaluate) == []
