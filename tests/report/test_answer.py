"""The answer in words: it says what the results say, and no more than they tell."""

import re
from pathlib import Path

import msgspec
import pytest

from hstree.experiments.results import Halving, Steps
from hstree.experiments.significance import Ratio
from hstree.report.page import page_of
from tests.report.comparison import a_comparison, a_row, chosen

FLAT = a_row("flat", test=100.0, speed=100.0, to_flat=Ratio(1, 1, 1, None, 82))
TIMES = "\N{MULTIPLICATION SIGN}"


def said(comparison):
    """The answers by their questions on the page, without markup."""
    answers = page_of(comparison, Path("nowhere")).split('<div class="answer')[1:]
    shown = next(text for text in answers if "hidden" not in text.partition(">")[0])
    shown = shown.partition("</dl>")[0]
    pairs = re.findall(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", shown, re.S)
    return {q: " ".join(re.sub("<[^>]+>", "", text).split()) for q, text in pairs}


def near(**changed):
    return a_row("near", **{"test": 101.0, "speed": 900.0} | changed)


def test_the_fastest_tree_near_the_best_is_the_answer():
    row = near(to_flat=Ratio(1.01, 1.005, 1.02, 0.01, 82))
    answer = said(a_comparison(FLAT, row, a_row("quick", test=130.0, speed=2_000)))
    assert answer["Which tree?"] == (
        "Use near: test perplexity 101.0, chosen by validation perplexity from 2 trees and the "
        "flat softmax: with 111.1 the fastest of those within 3% of the lowest, 110.0 by flat. "
        "That is 1.0% higher than the flat softmax (95% interval +0.5% to +2.0%)."
    )
    assert answer["And if only perplexity counts?"].startswith(
        "flat has the lowest validation perplexity, 110.0; its test perplexity, 100.0, is 1.0% "
        "lower than that of near, at 0.11"
    )
    assert answer["And if only speed counts?"].startswith(
        f"quick: 2,000 words/s in training (2.22{TIMES} that of near), 2,000 words/s for the"
    )
    assert answer["And if only speed counts?"].endswith("; its test perplexity is 28.7% higher.")


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (
            Ratio(1.01, 0.99, 1.03, 0.3, 82),
            "does not differ significantly from the flat softmax",
        ),
        (
            Ratio(1.01, None, None, None, 8),
            "too short to tell whether its ratio to the flat",
        ),
        (None, "The flat softmax was not compared."),
    ],
)
def test_a_ratio_says_what_its_interval_tells(ratio, expected):
    assert expected in said(a_comparison(FLAT, near(to_flat=ratio)))["Which tree?"]


def test_a_row_with_a_layer_is_compared_with_flat_of_the_same_layer():
    row = a_row("near + ngrams", test=90.0, speed=900.0, like="flat + ngrams",
                to_like=Ratio(0.98, 0.97, 0.99, 0.01, 82))  # fmt: skip
    answer = said(a_comparison(FLAT, row))["Which tree?"]
    assert "Like for like: That is 2.0% lower than flat + ngrams (95% interval" in answer


def test_the_cost_counts_from_the_text():
    row = near(steps=Steps(vectors=331.0, tree=2.0, training=880.0), from_text_times_flat=0.57)
    answer = said(a_comparison(FLAT, row))["What does it cost?"]
    assert "node scores for each word predicted, where a flat softmax takes 10,000" in answer
    assert f"9.00{TIMES} the flat softmax\u2019s speed" in answer
    assert "1,213 seconds from the text to the model, 331 of them for the vectors" in answer
    assert f"(0.57{TIMES} flat\u2019s speed)" in answer


def test_where_no_tree_is_near_the_flat_softmax_is_the_answer():
    answer = said(a_comparison(FLAT, a_row("far", test=120.0)))["Which tree?"]
    assert answer.startswith("None: use the flat softmax")
    assert "from 1 tree and the flat softmax: no tree" in answer
    assert "The nearest, far, has a test perplexity 20.0% higher" in answer


def test_after_a_halving_the_answer_is_of_those_that_trained_longest():
    rows = [a_row(f"row{i}", test=100.0 + i) for i in range(4)]
    choice = chosen("row0", rival="row1")
    answer = said(a_comparison(*rows, choice=choice, stop=Halving(1.0)))["Which tree?"]
    assert "from 2 trees, which trained longest of 4 rows: the lowest" in answer


def test_the_answer_may_be_a_layer():
    layer = a_row("fast", kind="layer", speed=100.0)
    answer = said(a_comparison(a_row("tree", test=120.0, speed=50.0), layer))
    assert answer["Which output layer?"].startswith("Use fast: test perplexity")
    assert "from 2 output layers:" in answer["Which output layer?"]
    assert answer["What does it cost?"].startswith("No tree; 100 tokens/s in training")
    assert answer["And if only speed counts?"].startswith("The same: 100 words/s in training")
    assert "The best of the other output layers, tree" in answer["How sure is that?"]


@pytest.mark.parametrize(
    ("sd", "n", "expected"),
    [
        (None, 1, "no row was trained with several seeds, so it is not known"),
        (0.1, 3, "more than the spread over seeds explains"),
        (5.0, 3, "no more than the spread over seeds explains"),
    ],
)
def test_how_sure_it_is_follows_the_spread_over_seeds(sd, n, expected):
    rows = [a_row("a", test=100.0, sd=sd, n=n), a_row("b", test=102.0, speed=500.0, sd=sd, n=n)]
    assert expected in said(a_comparison(*rows))["How sure is that?"]


@pytest.mark.parametrize(
    ("high", "expected"), [(1.1, "does not tell them apart"), (0.95, "tells them apart")]
)
def test_the_interval_against_the_rival_says_whether_it_tells_them_apart(high, expected):
    choice = chosen("a", rival="b", to_rival=Ratio(0.94, 0.9, high, 0.1, 82))
    rows = [a_row("a"), a_row("b", test=102.0)]
    assert expected in said(a_comparison(*rows, choice=choice))["How sure is that?"]


def test_rows_as_fast_are_named():
    rows = [a_row("a"), a_row("b", test=102.0)]
    answer = said(a_comparison(*rows, choice=chosen("a", tied=["b"])))["Which tree?"]
    assert "As fast, within the spread of the rounds of the measurement: b." in answer


def test_where_all_have_read_the_test_part_none_is_named():
    assert "has read the test part" in said(a_comparison(a_row("a", seen="all")))["Which tree?"]


def test_without_any_tree_none_is_named():
    assert "none to name" in said(a_comparison())["Which tree?"]


def test_a_name_is_text_in_the_answer():
    page = page_of(a_comparison(a_row("<b>bold")), Path("nowhere"))
    assert "<strong>&lt;b&gt;bold</strong>" in page


def test_the_conditions_have_the_rule_and_the_sizes_of_the_samples():
    compared = a_comparison(a_row("a", at_epoch_limit=1))
    page = page_of(msgspec.structs.replace(compared, whole={"test": 9_000}), Path("nowhere"))
    text = re.sub("<[^>]+>", "", page)
    for part in (
        "at most 6 epochs",
        "test 8,243 (a sample of 9,000)",
        "lines 1 to 1,000",
        "1 of 1 tree, marked *",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        (103.5, "has a test perplexity 3.5% higher"),
        (98.6, "has a test perplexity 1.4% lower"),
        (100.01, "has a test perplexity the same to 0.1%"),
    ],
)
def test_a_rival_is_compared_in_percent(test, expected):
    rows = [a_row("a"), a_row("b", test=test, valid=112.0)]
    assert expected in said(a_comparison(*rows))["How sure is that?"]
