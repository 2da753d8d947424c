"""The answer in words: it says what the results say, and no more than they tell."""

import copy
import re

import pytest

pytest.importorskip("bokeh", reason="the report extra is not installed")

from hstree.report.answer import answers_of


def row(name, test, speed, *, valid=None, sd=0.1, n=3, nodes=99, to_flat=None, codes=1.0):
    return {
        "name": name, "kind": "tree", "method": "gmm", "options": {},
        "tree": {"nodes": nodes, "codes_per_label": codes, "scores_per_target": 12.0,
                 "code_length": {"uniform": 13.0, "weighted": 12.0}},
        "perplexity": {
            "valid": {"mean": 1.1 * test if valid is None else valid, "sd": sd, "n": n},
            "test": {"mean": test, "sd": sd, "n": n},
        },
        "to_flat": to_flat, "parameters": 1000, "seconds_per_epoch": 5.0,
        "tokens_per_second": speed, "speed_up": speed / 100, "from_text": None,
    }  # fmt: skip


FLAT = row("flat", 100.0, 100, nodes=1, to_flat={"ratio": 1, "low": 1, "high": 1, "p": None})


def results(*rows, best, fastest):
    return {
        "vocabulary": {"size": 10_000},
        "choice": {
            "by": "valid", "among": len(rows), "best": best, "within": 0.03, "fastest": fastest,
        },
        "rows": [copy.deepcopy(one) for one in rows],
    }  # fmt: skip


def said(found):
    return {answer.question: re.sub("<[^>]+>", "", answer.text) for answer in answers_of(found)}


def test_the_fastest_tree_near_the_best_is_the_answer():
    near = row("near", 101.0, 900, to_flat={"ratio": 1.01, "low": 1.005, "high": 1.02, "p": 0.01})
    quick = row("quick", 130.0, 2_000)
    answer = said(results(FLAT, near, quick, best="flat", fastest="near"))
    assert answer["Which tree?"].startswith(
        "Use near: test perplexity 101.0, chosen from 3 trees by validation perplexity: with 111.1 "
        "the fastest of those within 3% of the lowest, 110.0 by flat. That is 1.0% higher than the "
        "flat softmax (95% interval +0.5% to +2.0%)."
    )
    assert (
        "12.0 node scores for each word predicted, where a flat softmax takes 10,000"
        in (answer["What does it cost?"])
    )
    assert "9.00\N{MULTIPLICATION SIGN} the flat softmax" in answer["What does it cost?"]
    assert answer["And if only perplexity counts?"].startswith(
        "flat has the lowest on the validation text, 110.0; its test perplexity, 100.0, is 1.0% "
        "lower than that of near"
    )
    assert answer["And if only speed counts?"].startswith("quick: 2,000 tokens/s, 2.22")


def test_an_interval_around_one_is_no_difference():
    near = row("near", 101.0, 900, to_flat={"ratio": 1.01, "low": 0.99, "high": 1.03, "p": 0.3})
    answer = said(results(FLAT, near, best="flat", fastest="near"))
    assert (
        "does not tell it from the flat softmax (+1.0%; 95% interval \N{MINUS SIGN}1.0% to"
        in (answer["Which tree?"])
    )


def test_a_short_test_text_has_no_interval():
    to_flat = {"ratio": 1.01, "low": None, "high": None, "p": None, "blocks": 8}
    near = row("near", 101.0, 900, to_flat=to_flat)
    answer = said(results(FLAT, near, best="flat", fastest="near"))["Which tree?"]
    assert "Its ratio to the flat softmax, +1.0%, is of a test text too short to tell" in answer
    assert "interval" not in answer


def test_the_rival_is_chosen_by_validation_and_reported_by_test():
    lucky = row("lucky", 90.0, 900, valid=130.0)
    steady = row("steady", 103.0, 800, valid=111.0)
    answer = said(results(row("a", 100.0, 900), lucky, steady, best="a", fastest="a"))
    assert (
        "The best of the other trees, steady, has a test perplexity 3.0% higher"
        in (answer["How sure is that?"])
    )


def test_the_cost_counts_from_the_text():
    near = row("near", 101.0, 900)
    near["from_text"] = {
        "seconds": 1213.0, "vectors": 331.0, "tree": 2.0, "training": 880.0, "speed_up": 0.57,
    }  # fmt: skip
    answer = said(results(FLAT, near, best="flat", fastest="near"))["What does it cost?"]
    assert "1,213 seconds from the text to the model, 331 of them for the vectors" in answer
    assert "0.57\N{MULTIPLICATION SIGN} flat\u2019s speed" in answer


def test_where_no_tree_is_near_the_flat_softmax_is_the_answer():
    far = row("far", 120.0, 900)
    answer = said(results(FLAT, far, best="flat", fastest="flat"))
    assert answer["Which tree?"].startswith("None: use the flat softmax")
    assert "chosen from 2 trees by validation perplexity" in answer["Which tree?"]
    assert "far, has a test perplexity 20.0% higher" in answer["Which tree?"]


@pytest.mark.parametrize(
    ("sd", "n", "expected"),
    [
        (None, 1, "no tree was trained more than once, so whether other seeds would change"),
        (0.1, 3, "more than seeds differ"),
        (5.0, 3, "does not tell from none"),
    ],
)
def test_how_sure_it_is_follows_the_spread_over_seeds(sd, n, expected):
    trees = [row("a", 100.0, 900, sd=sd, n=n), row("b", 102.0, 800, sd=sd, n=n)]
    assert expected in said(results(*trees, best="a", fastest="a"))["How sure is that?"]


def test_without_any_tree_none_is_named():
    found = {"vocabulary": {"size": 3}, "choice": None, "rows": []}
    assert "none to name" in said(found)["Which tree?"]


def test_a_name_is_text_in_the_answer():
    bad = "<b>bold</b>"
    (answer, *_) = answers_of(results(row(bad, 100.0, 900), best=bad, fastest=bad))
    assert "&lt;b&gt;bold" in answer.text
