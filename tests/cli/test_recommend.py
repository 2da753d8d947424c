"""`hstree recommend`: the candidates, the advice, and what came true."""

import json

import pytest

from tests.texts import markov_lines, write_lines

SMALL = ("--dim", "8", "--context", "2", "--batch-size", "64", "--seconds", "3")


@pytest.fixture
def text(tmp_path):
    return write_lines(tmp_path / "text.txt", markov_lines(2_000, 0)[0])


def told(ran):
    return " ".join(ran.out.split())


def test_a_candidate_is_recommended_and_then_trained(hstree, text, tmp_path):
    arguments = ("recommend", text, "-o", "advice", "-m", "huffman", "-m", "flat", *SMALL)
    ran = hstree(*arguments, "--json", "advice.json")
    assert (ran.status, ran.errors) == (0, [])
    assert max(map(len, ran.out.splitlines())) <= 80
    found = json.loads((tmp_path / "advice.json").read_text())
    assert found == json.loads((tmp_path / "advice/recommendation.json").read_text())
    best, second = (candidate["name"] for candidate in found["candidates"])
    assert f"recommended {best} expected validation perplexity" in told(ran)
    assert f"how sure better than {second} (" in told(ran)
    assert f"tree advice/{found['candidates'][0]['tree']}" in told(ran)
    assert "--train trains it" in told(ran)
    assert found["outcome"] is None

    ran = hstree(*arguments, "--train", "--json", "advice.json", "--force")
    assert (ran.status, ran.errors) == (0, [])
    found = json.loads((tmp_path / "advice.json").read_text())
    real = found["outcome"]
    assert f"came true validation perplexity {real['valid']:.1f}" in told(ran)
    assert f"test {real['test']:.1f}" in told(ran)
    assert hstree("predict", f"advice/{real['model']}", "w1").status == 0


def test_names_of_candidates_are_as_typed_and_fit_a_narrow_terminal(hstree, text, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    ran = hstree("recommend", text, "-o", "advice", "-m", "classes --n-classes 3", *SMALL)
    assert ran.status == 0
    assert "recommended classes --n-classes 3" in told(ran)
    assert max(map(len, ran.out.splitlines())) <= 60


def test_all_default_candidates_are_tried(hstree, text):
    ran = hstree("recommend", text, "-o", "advice", *SMALL)
    assert ran.status == 0
    for name in ("huffman", "gmm --epsilon 0.4 --trees 4", "--trees 4 + ngrams", "flat"):
        assert name in told(ran)


def test_a_target_says_when_it_is_reached_or_that_it_is_not(hstree, text):
    given = ("recommend", text, "-m", "huffman", *SMALL)
    ran = hstree(*given, "-o", "b", "--target-ppl", "1000")
    assert "target 1000 is expected after" in told(ran)
    assert "no candidate that was tried to the end is expected to reach 1 in 3 s" in told(
        hstree(*given, "-o", "c", "--target-ppl", "1")
    )


def test_limits_that_cannot_be_are_one_line(refused, hstree, text):
    given = ("recommend", text, "-m", "huffman", *SMALL)
    refused(*given, "-o", "a", "--scores", "0", status=2, saying="--scores is 0")
    refused(*given, "-o", "b", "--seconds", "-1", status=2, saying="--seconds is -1")
    refused(*given, "-o", "c", "--target-ppl", "0", status=2, saying="--target-ppl is 0")
    ran = hstree(*given, "-o", "d", "--scores", "0.5")
    assert ran.status == 2
    assert ran.errors == [
        "hstree: error: no candidate is left: huffman: it computes 2.4 scores a target",
    ]
