"""`--model cbow|skipgram`: the same questions, another figure, and said so."""

import json

import pytest

QUICK = ["--epochs", "1", "--dim", "4"]


@pytest.mark.parametrize("kind", ["cbow", "skipgram"])
def test_evaluate_says_what_is_predicted_from_what(hstree, tree, corpus, tmp_path, kind):
    given = ["--model", kind, "--window", 2, "--sample", "0.1", *QUICK, "--seed", 3]
    ran = hstree("evaluate", tree, corpus, *given, "--save", "m", "--json", "r.json")
    assert (ran.status, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= 80
    found = json.loads((tmp_path / "r.json").read_text(), parse_constant=pytest.fail)
    assert found["predicts"].startswith("word given")
    assert "window" in found["predicts"]
    assert f"of each {found['predicts'][:24]}" in ran.out
    assert found["options"] == {
        "model": kind,
        "dim": 4,
        "window": 2,
        "epochs": 1,
        "batch_size": 1024,
        "learning_rate": {"cbow": 0.2, "skipgram": 0.05}[kind],
        "sample": 0.1,
        "online": False,
        "random_state": 3,
    }
    hstree("evaluate", "m", corpus, "--no-train", "--json", "again.json")
    again = json.loads((tmp_path / "again.json").read_text())
    assert again["predicts"] == found["predicts"]
    scored = hstree("score", "m", corpus, "-o", "lines.tsv", "--json", "s.json")
    assert json.loads((tmp_path / "s.json").read_text())["predicts"] == found["predicts"]
    assert found["predicts"][:24] in scored.out
    assert "w0" in hstree("predict", "m", "w1 w2").out


def test_the_log_bilinear_model_stays_what_it_was(hstree, tree, corpus, tmp_path):
    hstree("evaluate", tree, corpus, *QUICK, "--json", "r.json")
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["predicts"] == "word given the words before it"
    assert list(found["options"])[:3] == ["dim", "context", "full"]
    assert "model" not in found["options"]


def test_options_of_another_model_are_refused(refused, hstree, tree, corpus):
    for given, said in (
        (["--model", "cbow", "--context", 3], "--context: not with --model cbow, but with lbl"),
        (["--window", 3], "--window: not with --model lbl, but with cbow and skipgram"),
        (["--model", "glove"], "glove"),
        (["--model", "cbow", "--sample", "-1"], "--sample is -1"),
        (["--learning-rate", 0], "--learning-rate is 0.0"),
    ):
        refused("evaluate", tree, corpus, *given, status=2, saying=said)
    hstree("evaluate", tree, corpus, "--model", "cbow", *QUICK, "--save", "m")
    refused("sample", "m", saying="holds a model 'cbow', not 'lbl'")
    refused("evaluate", "m", corpus, "--no-train", "--window", 3, status=2, saying="--window")


def test_compare_trains_any_model_and_says_of_what_its_figures_are(
    hstree, corpus, tmp_path, monkeypatch
):
    monkeypatch.setattr("hstree.experiments.throughput.TURN", 0.001)
    given = ["--model", "skipgram", "--window", 1, *QUICK]
    methods = ["-m", "huffman", "-m", "gmm", "-m", "flat"]
    ran = hstree("compare", corpus, *methods, *given, "-o", "runs")
    assert ran.status == 0, ran.err
    assert "of every word given one word of its window" in ran.out
    found = json.loads((tmp_path / "runs" / "results.json").read_text())
    assert found["predicts"].startswith("word given one word")
    assert found["options"]["model"] == "skipgram"
    assert [row["name"] for row in found["rows"]] == ["huffman", "gmm", "flat"]
    assert all(row["tokens_per_second"] > 0 for row in found["rows"])


def test_figures_of_other_things_stand_in_no_table(refused, corpus):
    given = ["-m", "huffman", "--baseline", "kn3", "--model", "cbow", "-o", "runs"]
    refused("compare", corpus, *given, status=2, saying="kn3 gives the perplexity of a word given")
