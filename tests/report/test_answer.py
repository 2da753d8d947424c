"""The answer in words: it says what the results say, and no more than they tell."""

import re
from pathlib import Path

import msgspec
import pytest

from hstree.experiments.results import Halving, Steps
from hstree.experiments.significance import Ratio
from hstree.report.answer import answer_of, sentence_of
from hstree.report.page import markup, page_of
from tests.report.comparison import a_comparison, a_row, chosen

FLAT = a_row("flat", test=100.0, speed=100.0, to_flat=Ratio(1, 1, 1, None, 82))
TIMES = "\N{MULTIPLICATION SIGN}"


def html_of(comparison):
    nowhere = Path("nowhere")
    return markup(page_of(comparison, nowhere), nowhere)


def said(comparison):
    """The first paragraph as "figures", and the reasons by their questions, without markup."""
    offers = html_of(comparison).split('<div class="offer"')[1:]
    shown = next(text for text in offers if "hidden" not in text.partition(">")[0])
    pairs = re.findall(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", shown.partition("</dl>")[0], re.S)
    texts = {"figures": shown.partition("<p>")[2].partition("</p>")[0], **dict(pairs)}
    return {q: " ".join(re.sub("<[^>]+>", "", text).split()) for q, text in texts.items()}


def sentence(compared):
    return sentence_of(compared, compared.choice)


def near(**changed):
    return a_row("near", **{"test": 101.0, "speed": 900.0} | changed)


def test_the_fastest_tree_near_the_best_is_the_answer():
    row = near(to_flat=Ratio(1.01, 1.005, 1.02, 0.01, 82))
    compared = a_comparison(FLAT, row, a_row("quick", test=130.0, speed=2_000))
    assert compared.best.name == "near"
    assert sentence(compared) == "1.0% worse than flat, 9.0 times as fast to train"
    answer = said(compared)
    assert answer["figures"].startswith(
        "Test perplexity 101.0, +1.0% against flat\u2019s (95% interval +0.5% to +2.0%). "
    )
    assert answer["How was it chosen?"] == (
        "By validation perplexity from 2 trees and the flat softmax: with 111.1 the fastest of "
        "those within 3% of the lowest, 110.0 by flat."
    )
    assert answer["And if only perplexity counts?"].startswith(
        "flat has the lowest validation perplexity, 110.0; its test perplexity, 100.0, is 1.0% "
        "lower than that of near, at 0.11"
    )
    assert answer["And if only speed counts?"] == (
        f"quick trains fastest: 2,000 tokens/s, 2.22{TIMES} that of near; its test perplexity is "
        "28.7% higher."
    )


@pytest.mark.parametrize(
    ("ratio", "says", "figures"),
    [
        (Ratio(1.01, 0.99, 1.03, 0.3, 82), "1.0% worse than flat (within the noise), ", "-1.0% to"),
        (Ratio(1.01, None, None, None, 8), "1.0% worse than flat, ", "too short for an interval"),
        (Ratio(0.986, 0.98, 0.99, 0.01, 82), "1.4% better than flat, ", "-2.0% to -1.0%"),
        (Ratio(1.0004, 1.0, 1.001, 0.3, 82), "as good as flat, ", "0.0% against"),
    ],
)
def test_a_ratio_says_what_its_interval_tells(ratio, says, figures):
    compared = a_comparison(FLAT, near(to_flat=ratio))
    assert sentence(compared) == f"{says}9.0 times as fast to train"
    assert figures in said(compared)["figures"].replace("\N{MINUS SIGN}", "-")


def test_without_flat_the_answer_is_among_the_rows():
    rows = [near(training=None), a_row("other", test=120.0, training=None)]
    compared = a_comparison(*rows)
    assert sentence(compared) == "the lowest perplexity, and no faster row comes near it"
    after_equal_seconds = a_comparison(*rows, choice=chosen("near", within=0.0))
    assert sentence(after_equal_seconds) == "the lowest perplexity"
    assert "The flat softmax was not compared." in said(compared)["How was it chosen?"]


def test_a_row_with_a_layer_is_compared_with_flat_of_the_same_layer():
    row = a_row("near + ngrams", test=90.0, speed=900.0, like="flat + ngrams",
                to_like=Ratio(0.98, 0.97, 0.99, 0.01, 82))  # fmt: skip
    figures = said(a_comparison(FLAT, row))["figures"].replace("\N{MINUS SIGN}", "-")
    assert "like for like, -2.0% against flat + ngrams (95% interval -3.0% to -1.0%)" in figures


def test_the_cost_counts_from_the_text():
    row = near(steps=Steps(vectors=331.0, tree=2.0, training=880.0), from_text_times_flat=0.57)
    answer = said(a_comparison(FLAT, row))
    cost = answer["What does it cost?"]
    assert "node scores for each word predicted, where a flat softmax takes 10,000" in cost
    assert "331 seconds for the vectors that it is built from" in cost
    expected = f"1,213 seconds from the text to the model, 0.57{TIMES} flat\u2019s speed."
    assert expected in answer["figures"]


def test_where_no_tree_is_near_the_flat_softmax_is_the_answer():
    other = a_row("flat + ngrams", test=110.0, speed=80.0, tree=FLAT.tree)
    far = a_row("far", test=120.0, speed=900.0, to_flat=Ratio(1.2, 1.1, 1.3, 0.01, 82))
    compared = a_comparison(FLAT, other, far)
    assert compared.best.is_flat
    assert sentence(compared) == (
        "no faster tree comes near it; far is 20.0% worse than flat, 9.0 times as fast to train"
    )
    assert "from 1 tree and 2 flat softmaxes: the" in said(compared)["How was it chosen?"]


def test_after_a_halving_the_answer_is_of_those_that_trained_longest():
    rows = [a_row(f"row{i}", test=100.0 + i) for i in range(4)]
    choice = chosen("row0", rival="row1", among=3, rows=["row0", "row1", "row3"])
    answer = said(a_comparison(*rows, choice=choice, stop=Halving(1.0)))["How was it chosen?"]
    assert "from 3 trees, which trained longest of 4 rows: the lowest" in answer


def test_an_ngram_model_of_lower_perplexity_is_named():
    kneser_ney = a_row("kn5", kind="ngram", test=90.0)
    figures = said(a_comparison(FLAT, near(), kneser_ney))["figures"]
    assert figures.endswith("The n-gram model kn5 is lower still: 90.00.")
    assert answer_of(a_comparison(FLAT, near(), kneser_ney)).endswith("lower still: 90.0.")


def test_one_row_is_not_called_the_best():
    comparison = a_comparison(a_row("one"), choice=chosen("one", rival=None, among=1))
    assert answer_of(comparison) == "Use one: the only row to choose from."


@pytest.mark.parametrize(("share", "time"), [(1.1, "the same time"), (0.25, "4 times its time")])
def test_under_a_bounded_time_flat_may_have_had_less(share, time):
    row = near(to_flat=Ratio(0.5, 0.4, 0.6, 0.01, 82), from_text_times_flat=share)
    compared = a_comparison(FLAT, row, stop=Halving(1.0))
    assert sentence(compared).startswith(f"50.0% better than flat in {time}, 9.0 times")


def test_the_answer_may_be_a_layer():
    layer = a_row("fast", kind="layer", speed=100.0)
    compared = a_comparison(a_row("tree", test=120.0, speed=50.0), layer)
    answer = said(compared)
    assert "<title>Which output layer for made up?</title>" in html_of(compared)
    assert "from 2 output layers:" in answer["How was it chosen?"]
    assert answer["What does it cost?"].startswith("No tree; 100 tokens/s in training")
    assert answer["And if only speed counts?"].startswith("The same row: no other")
    assert "The best of the other rows, tree" in answer["How sure is that?"]


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
    answer = said(a_comparison(*rows, choice=chosen("a", tied=["b"])))["How was it chosen?"]
    assert "As fast, within the spread of the rounds of the measurement: b." in answer


def test_where_all_have_read_the_test_part_none_is_named():
    assert "has read the test part" in sentence(a_comparison(a_row("a", seen="all")))


def test_without_any_tree_none_is_named():
    assert "none to name" in sentence(a_comparison())


def test_a_name_is_text_in_the_answer():
    assert "<strong><bdi>&lt;b&gt;bold</bdi></strong>" in html_of(a_comparison(a_row("<b>bold")))


def test_the_conditions_have_the_rule_and_the_sizes_of_the_samples():
    compared = a_comparison(a_row("a", at_epoch_limit=1))
    page = html_of(msgspec.structs.replace(compared, whole={"test": 9_000}))
    text = re.sub("<[^>]+>", "", page)
    for part in (
        "at most 6 epochs",
        "test 8,243 (a sample of 9,000)",
        "lines 1 to 1,000",
        "1 of 1 row, marked *",
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
