"""How to get a candidate: commands and lines of Python that do as the page says."""

import pathlib
import shlex

import pytest
from msgspec.structs import replace

import hstree
from hstree.experiments.results import Halving, Seconds
from hstree.report.recipe import make_recipe
from hstree_cli.inputs import read_splits
from hstree_cli.main import exit_status
from tests.report.comparison import a_candidate, a_comparison
from tests.texts import markov_lines, write_lines

OVER = "huffman arity=4 + ngrams words=2"
CANDIDATES = ("huffman", "gmm epsilon=0.4", "flat", "adaptive", OVER, "2 x huffman")


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    home = tmp_path_factory.mktemp("compared")
    text = write_lines(home / "text.txt", markov_lines(4_000, 0, n_words=60)[0])
    options = {"dim": 8, "context": 2, "batch_size": 64}
    return hstree.compare(
        read_splits(str(text)), CANDIDATES, home, stop=hstree.Epochs(1), speed_rounds=0, **options
    )


def recipe(compared, name):
    return make_recipe(compared.candidate(name), compared, compared.folder)


@pytest.mark.parametrize("name", ["gmm epsilon=0.4", "flat", "adaptive", OVER])
def test_the_command_trains_the_same_model(compared, monkeypatch, name):
    typed = shlex.split(recipe(compared, name).command)
    assert typed == [
        *("hstree", "evaluate", name, "text.txt", "--model", "lbl dim=8 context=2 batch_size=64"),
        *("--epochs", "1", "--save", "model"),
    ]
    monkeypatch.chdir(compared.folder)
    assert exit_status(["--quiet", *typed[1:], "--force"]) == 0
    again, weights = pathlib.Path("model"), "weights.safetensors"
    (first,) = recipe(compared, name).models
    assert (again / weights).read_bytes() == (compared.folder / first / weights).read_bytes()


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
    pytest.importorskip("torch", reason="needs torch: pip install '.[torch]'")
    monkeypatch.chdir(compared.folder)
    names = {"d": 4}
    exec(recipe(compared, name).python, names)
    assert type(names["layer"]).__name__ == kind


def test_the_command_names_a_vocabulary_that_is_not_that_of_the_training_split(compared):
    comparison = replace(compared, oov=compared.oov | {"train": 1})
    typed = make_recipe(compared.candidate("adaptive"), comparison, compared.folder).command
    assert "--vocabulary words.tsv" in typed


def test_the_command_lower_cases_a_text_that_was(compared):
    train = compared.corpus["train"] | {"lower": True}
    comparison = replace(compared, corpus=compared.corpus | {"train": train})
    typed = make_recipe(compared.candidate("adaptive"), comparison, compared.folder).command
    assert "--lower" in typed
    assert "--lower" not in recipe(compared, "adaptive").command


@pytest.mark.parametrize(("stop", "seconds"), [(Seconds(12.5), "12.5"), (Halving(1.0), "70")])
def test_a_bounded_time_is_in_the_command(tmp_path, stop, seconds):
    """Under halving, that of the candidate: 30 seconds before its training, which takes 40."""
    (tmp_path / "words.tsv").write_text("a\t1\n")
    candidate = a_candidate("sampled", kind="layer")
    command = make_recipe(candidate, a_comparison(candidate, stop=stop), tmp_path).command
    typed = shlex.split(command)
    assert typed[typed.index("--seconds") + 1] == seconds


def test_other_options_of_a_model_are_in_its_spelling(tmp_path):
    (tmp_path / "words.tsv").write_text("a\t1\n")
    candidate = a_candidate("sampled", kind="layer")
    options = {"model": "cbow", "dim": 50, "window": 3}
    typed = shlex.split(
        make_recipe(candidate, a_comparison(candidate, options=options), tmp_path).command
    )
    assert typed[typed.index("--model") + 1] == "cbow dim=50 window=3"
