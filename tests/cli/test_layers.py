"""Output layers in the program: `hstree layers`, `--layer`, and commands on saved models."""

import json
import re
from pathlib import Path

from hstree.experiments.published import PUBLISHED

from hstree.layers import LAYERS

QUICK = ["--epochs", "1", "--dim", "4"]


def test_layers_lists_every_layer_with_its_options(hstree):
    ran = hstree("layers")
    assert (ran.status, ran.err) == (0, "")
    for name, kind in LAYERS.all().items():
        assert f"{name}  takes " in ran.out
        assert " ".join(f"Source: {kind.references}".split()) in " ".join(ran.out.split())
        assert kind.references
        assert all(f"--{option.name.replace('_', '-')}" in ran.out for option in kind.options)


def test_layers_describes_those_that_are_named(hstree, refused):
    ran = hstree("layers", "adaptive")
    assert ran.out.startswith("adaptive  takes the words of a corpus\n  Softmax in two steps")
    assert "ICML 2017" in ran.out
    assert "sampled" not in ran.out
    refused("layers", "adaptiv", status=2, saying="did you mean 'adaptive'?")
    refused("layers", "huffman", status=2, saying="`hstree build --method huffman --help`")


def test_a_layer_is_cited_with_one_year_everywhere():
    docs = Path(__file__).parents[2] / "docs" / "approximations.md"
    for name, published in PUBLISHED.items():
        authors, year = published.source.rsplit(" ", 1)
        first = authors.split()[0]
        for text in (LAYERS.get(name).references, docs.read_text()):
            assert re.search(rf"{first}\b[^;]*?\b{year}\b", text)


def test_a_model_with_a_layer_is_trained_saved_and_used(hstree, corpus, tmp_path):
    chosen = ["--layer", "target --candidates 5"]
    ran = hstree("evaluate", *chosen, corpus, *QUICK, "--save", "m", "--json", "r.json")
    assert (ran.status, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "target --candidates 5 --correction\n" in ran.out
    result = json.loads((tmp_path / "r.json").read_text())
    assert result["layer"]["name"] == "target"
    assert result["layer"]["options"]["candidates"] == 5
    assert result["tree"] is None
    again = hstree("evaluate", "m", corpus, "--no-train", "--json", "again.json")
    assert again.status == 0
    assert json.loads((tmp_path / "again.json").read_text())["layer"] == result["layer"]
    assert "w0" in hstree("predict", "m", "w1 w2").out
    assert hstree("score", "m", corpus, "-o", "lines.tsv").status == 0
    assert hstree("sample", "m", "--words", 5).status == 0


def test_a_layer_over_a_tree_takes_one(hstree, tree, corpus):
    ran = hstree("evaluate", "--layer", "tree", tree, corpus, *QUICK)
    assert (ran.status, ran.err) == (0, "")


def test_layers_are_rows_of_a_comparison(hstree, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("hstree.experiments.throughput.TURN", 0.001)
    rows = ["-m", "huffman", "-m", "flat", "--layer", "target --candidates 5"]
    ran = hstree("compare", corpus, *rows, *QUICK, "-o", "c")
    assert (ran.status, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "Which output layer? Of 3 output layers" in ran.out.replace("\n", " ")
    document = json.loads((tmp_path / "c" / "results.json").read_text())
    row = document["rows"][2]
    assert (row["name"], row["kind"]) == ("target --candidates 5", "layer")
    assert (row["method"], row["options"]["candidates"]) == ("target", 5)


def test_wrong_layers_are_refused(refused, tree, corpus):
    for arguments, message in (
        (["evaluate", "--layer", "targt", corpus], "there is no output layer 'targt'; did you"),
        (["evaluate", "--layer", "target", tree, corpus], "--layer target is over the words"),
        (["evaluate", "--layer", "tree", corpus], "corpus.txt is read as the tree"),
        (["evaluate", corpus, "--epochs", "1"], "give a tree before the corpus, or --layer LAYER"),
        (["evaluate", "--layer", "target --samples 3", corpus], "no option --samples for target"),
        (["evaluate", "--layer", "target --candidates 0", corpus], "--candidates is 0"),
        (["compare", corpus, "--layer", "tree", "-o", "c"], "'tree' is over a tree"),
        (["compare", corpus, "--layer", "", "-o", "c"], "a name is missing"),
        (["compare", corpus, "--layer", "sampled --samples 999", "-o", "c"], "--samples is 999, "),
        (["evaluate", "--layer", "nce --samples 999", corpus], "--samples is 999, but there are"),
        (["evaluate", "--layer", "target", "--epochs", "1"], "Missing argument 'CORPUS'"),
    ):
        refused(*arguments, status=2, saying=message)


def test_a_tree_and_a_layer_that_change_places_are_told_apart(refused, corpus):
    tree, layer = "huffman is a way to build a tree: ", "sampled is an output layer, not a tree: "
    build = f"{tree}`hstree build --method huffman CORPUS -o tree.json`, then `hstree "
    for arguments, message in (
        (["evaluate", "--layer", "huffman"], f"{build}evaluate tree.json CORPUS`"),
        (["embed", "-o", "v.vec", "--layer", "huffman"], f"{build}embed CORPUS --tree tree.json`"),
        (["compare", "-o", "c", "--layer", "huffman"], f"{tree}give it with --method huffman"),
        (["compare", "-o", "c", "-m", "sampled"], f"{layer}give it with --layer sampled"),
        (["build", "-m", "sampled"], f"{layer}train with it by `hstree evaluate --layer sampled"),
        (["compare", "-o", "c", "-m", "tree"], "there is no method 'tree'"),
    ):
        refused(*arguments, corpus, status=2, saying=message)


def test_help_inside_a_row_is_told_where_it_is(refused, corpus):
    for arguments, command in (
        (["evaluate", "--layer", "sampled --help"], "`hstree layers sampled`"),
        (["compare", "-o", "c", "-m", "gmm -h"], "`hstree build --method gmm --help`"),
    ):
        refused(*arguments, corpus, status=2, saying=f"{command} describes the options of ")


def test_a_model_is_trained_anew_on_its_tree_or_with_its_layer(refused, hstree, tree, corpus):
    hstree("evaluate", "--layer", "target", corpus, *QUICK, "--save", "words")
    hstree("evaluate", tree, corpus, *QUICK, "--save", "model")
    Path("empty").mkdir()
    for folder, remedy in (
        ("words", "in it, or train anew with --layer target; see"),
        ("model", "in it, or train anew on model/tree.json; see"),
        ("empty", "in it; see"),
    ):
        refused("evaluate", folder, corpus, status=2, saying=remedy)
