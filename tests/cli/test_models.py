"""`--model cbow|skipgram`: the same questions, another figure, and said so."""

import json
import re

import pytest

QUICK = ["--epochs", "1", "--dim", "4"]


@pytest.mark.parametrize("kind", ["cbow", "skipgram"])
def test_evaluate_says_what_is_predicted_from_what(hstree, tree, corpus, tmp_path, kind):
    given = ["--model", f"{kind} window=2 sample=0.1", *QUICK, "--seed", 3]
    ran = hstree("evaluate", tree, corpus, *given, "--save", "m", "--json", "r.json")
    found = json.loads((tmp_path / "r.json").read_text(), parse_constant=pytest.fail)
    predicts = found["predicts"]
    assert re.match("word given.*window", predicts)
    assert f"per {predicts[:24]}" in ran.out
    options = {"model": kind, "dim": 4, "window": 2, "batch_size": 1024, "sample": 0.1}
    assert found["options"].items() >= options.items()
    assert found["seeds"] == [3]
    assert predicts[:24] in hstree("score", "m", corpus, "-o", "lines.tsv", warns=True).out
    assert "w0" in hstree("predict", "m", "w1 w2").out


def test_compare_trains_any_model_and_says_of_what_its_figures_are(hstree, corpus):
    given = ["--model", "skipgram window=1", *QUICK]
    ran = hstree("compare", corpus, "huffman", "flat", *given, "-o", "runs")
    assert "per word given one word of its window" in ran.out
