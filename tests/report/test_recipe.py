"""How to get a row: commands and lines of Python that do what the page says of them."""

import shlex

import pytest
from msgspec.structs import replace

import hstree
from hstree.experiments import compare as comparing
from hstree.experiments.results import Halving, Seconds
from hstree.report.recipe import recipe_of
from hstree_cli.main import exit_status
from tests.report.comparison import a_comparison, a_row
from tests.texts import corpus_of, markov_lines

OVER = "huffman arity=4 + ngrams words=2"
TREES = ("huffman", "gmm epsilon=0.4", "classes levels=3", "classes cluster_by=vectors", "flat")
ROWS = (*TREES, "adaptive", OVER, "2 x huffman")


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    home = tmp_path_factory.mktemp("compared")
    text = corpus_of(home, markov_lines(4_000, 0, n_words=60)[0])
    options = {"dim": 8, "context": 2, "batch_size": 64}
    return comparing.compare(text, ROWS, home, stop=hstree.Epochs(1), speed_rounds=0, **options)


def recipe(compared, name):
    return recipe_of(compared.row(name), compared, compared.folder)


@pytest.mark.parametrize("name", TREES)
def test_the_command_builds_the_same_tree(compared, monkeypatch, name):
    program, *typed = shlex.split(recipe(compared, name).command)
    assert program == "hstree"
    monkeypatch.chdir(compared.folder)
    assert exit_status(["--quiet", *typed, "--force"]) == 0
    assert hstree.load("tree.json").sha256 == compared.row(name).tree.sha256


def test_the_command_of_a_layer_trains_it_with_the_same_options(compared):
    assert shlex.split(recipe(compared, "adaptive").command) == [
        *("hstree", "evaluate", "adaptive", "text.txt", "--dim", "8", "--context", "2"),
        *("--batch-size", "64", "--epochs", "1", "--save", "model"),
    ]


def test_the_command_of_a_layer_over_a_tree_is_one(compared):
    assert shlex.split(recipe(compared, OVER).command) == [
        *("hstree", "evaluate", OVER, "text.txt", "--dim", "8", "--context", "2"),
        *("--batch-size", "64", "--epochs", "1", "--save", "model"),
    ]


def test_several_models_are_trained_by_a_comparison(compared):
    found = recipe(compared, "2 x huffman")
    assert shlex.split(found.command)[:4] == ["hstree", "compare", "text.txt", "2 x huffman"]
    assert len(found.models) == 2
    assert "hstree.Ensemble(" in found.python


@pytest.mark.parametrize("name", ["2 x huffman", OVER, "adaptive"])
def test_the_lines_of_python_load_what_was_trained(compared, monkeypatch, name):
    monkeypatch.chdir(compared.folder)
    names = {}
    exec(recipe(compared, name).python, names)
    assert names["model"].dim == 8 if name != "2 x huffman" else len(names["model"].models) == 2


@pytest.mark.parametrize(("name", "kind"), [("huffman", "HierarchicalSoftmax"), ("flat", "Linear")])
def test_the_lines_of_python_make_a_layer_in_torch(compared, monkeypatch, name, kind):
    pytest.importorskip("torch", reason="needs torch: pip install 'hstree[torch]'")
    monkeypatch.chdir(compared.folder)
    names = {"d": 4}
    exec(recipe(compared, name).python, names)
    assert type(names["layer"]).__name__ == kind


def test_the_command_names_a_vocabulary_that_is_not_that_of_the_training_split(compared):
    comparison = replace(compared, oov=compared.oov | {"train": 1})
    typed = recipe_of(compared.row("adaptive"), comparison, compared.folder).command
    assert "--vocabulary words.tsv" in typed


@pytest.mark.parametrize(("stop", "seconds"), [(Seconds(12.5), "12.5"), (Halving(1.0), "70")])
def test_a_bounded_time_is_in_the_command(tmp_path, stop, seconds):
    """Under halving, that of the row: 30 seconds before its training, which takes 40."""
    (tmp_path / "words.tsv").write_text("a\t1\n")
    row = a_row("sampled", kind="layer")
    command = recipe_of(row, a_comparison(row, stop=stop), tmp_path).command
    typed = shlex.split(command)
    assert typed[typed.index("--seconds") + 1] == seconds


def test_other_options_of_a_model_are_in_its_spelling(tmp_path):
    (tmp_path / "words.tsv").write_text("a\t1\n")
    row = a_row("sampled", kind="layer")
    options = {"model": "cbow", "dim": 50, "window": 3}
    typed = shlex.split(recipe_of(row, a_comparison(row, options=options), tmp_path).command)
    assert typed[typed.index("--model") + 1] == "cbow window=3"
    assert typed[typed.index("--dim") + 1] == "50"
