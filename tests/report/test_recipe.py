"""How to get a row: commands and lines of Python that do what the page says of them."""

import shlex

import pytest
from hstree.experiments.entries import Method
from hstree.experiments.evaluation import corpus_splits

import hstree
from hstree.experiments import compare, results, words
from hstree.report.recipe import recipe_of
from hstree.report.table import row_named, rows_of
from hstree_cli.main import exit_status
from tests.texts import corpus_of, markov_lines

OVER = Method("huffman", {"arity": 4}, layer="ngrams", layer_options={"words": 2})
ROWS = ["huffman", ("gmm", {"epsilon": 0.4}), ("classes", {"levels": 3}), "flat", "adaptive", OVER]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("compared")
    patch = pytest.MonkeyPatch()
    patch.setattr("hstree.experiments.throughput.TURN", 0.001)
    patch.setattr("hstree.experiments.throughput.TESTING_TURN", 0.001)
    text = corpus_splits(corpus_of(home, markov_lines(4_000, 0, n_words=60)[0]))
    compare(text, ROWS, home, dim=8, context=2, epochs=1, batch_size=64)
    patch.undo()
    return home


def split(command):
    """The words of a command, as a shell has them: it joins lines that end in a backslash."""
    return shlex.split(command.replace("\\\n", ""))


def recipe(folder, name):
    found = results.load(folder)
    row = row_named(rows_of(found), name)
    return row, recipe_of(row, found, folder)


@pytest.mark.parametrize("name", ["huffman", "gmm epsilon=0.4", "classes levels=3", "flat"])
def test_the_command_builds_the_same_tree(folder, monkeypatch, name):
    row, found = recipe(folder, name)
    assert (folder / found.tree_file).exists()
    assert (folder / found.model).is_dir()
    program, *typed = split(found.command)
    assert program == "hstree"
    monkeypatch.chdir(folder)
    assert exit_status([*typed, "--quiet"]) == 0
    assert hstree.load(folder / "tree.json").sha256 == row.tree.sha256
    (folder / "tree.json").unlink()


def test_the_command_of_a_layer_trains_it_with_the_same_budget(folder):
    _, found = recipe(folder, "adaptive")
    typed = split(found.command)
    assert typed[:5] == ["hstree", "evaluate", "--layer", "adaptive", "text.txt"]
    for option, value in {"--dim": "8", "--context": "2", "--epochs": "1"}.items():
        assert typed[typed.index(option) + 1] == value
    assert found.tree_file is None
    assert (folder / found.model).is_dir()


def test_the_commands_of_a_layer_over_a_tree_build_it_and_train(folder, monkeypatch):
    row, found = recipe(folder, OVER.name)
    assert not row.is_flat
    assert "Over it: Hierarchical softmax with direct connections" in found.sentence
    assert "words 2" in found.sentence
    build, train = found.command.replace("\\\n", "").split("\n")
    monkeypatch.chdir(folder)
    assert exit_status([*shlex.split(build)[1:], "--quiet"]) == 0
    assert hstree.load("tree.json").sha256 == row.tree.sha256
    assert exit_status([*shlex.split(train)[1:], "--quiet", "--save", "again"]) == 0
    again, kept = hstree.load_model("again"), hstree.load_model(found.model)
    assert again.spec.config() == kept.spec.config()
    assert again.config() == kept.config()
    assert "load_model" in found.python


def test_the_lines_of_python_make_a_layer(folder, monkeypatch):
    pytest.importorskip("torch", reason="needs torch: pip install 'hstree[torch]'")
    monkeypatch.chdir(folder)
    for name, kind in (("huffman", "HierarchicalSoftmax"), ("flat", "Linear")):
        names = {"d": 4}
        exec(recipe(folder, name)[1].python, names)
        assert type(names["layer"]).__name__ == kind


def test_a_method_is_said_in_a_sentence(folder):
    assert "random tree" in recipe(folder, "gmm epsilon=0.4")[1].sentence
    assert "epsilon 0.4" in recipe(folder, "gmm epsilon=0.4")[1].sentence
    assert recipe(folder, "adaptive")[1].sentence.endswith(".")


def test_a_comparison_leaves_the_words_of_every_row(folder):
    found = results.load(folder)
    tables = words.load(folder).tables
    assert (tables[0].row, tables[0].against) == (found.choice.chosen, found.choice.rival)
    against_flat = {table.row for table in tables if table.against == "flat"}
    assert against_flat == {row.name for row in found.rows} - {"flat"}
    assert all(table.helped and table.hurt for table in tables)
