"""The answer in words: it says what the results say, and no more than they tell."""

import re
from dataclasses import replace

import pytest

from hstree.experiments.results import Choice, SecondsFromText, Spread, VocabularyFigures
from hstree.experiments.significance import Ratio
from hstree.report.answer import answers_of
from hstree.report.table import change, rows_of
from tests.experiments.made_up import a_comparison, a_row, a_tree


def row(name, test, speed, *, valid=None, sd=0.1, n=3, nodes=99, to_flat=None, codes=1.0):
    means = {
        "valid": 1.1 * test if valid is None else valid,
        "test": test,
        "test_without_oov": test,
    }
    tree = a_tree(
        nodes=nodes, codes_per_label=codes, scores_per_target=12.0, uniform=13.0, weighted=12.0
    )
    return a_row(
        name=name, method="gmm", tree=tree, to_flat=to_flat, parameters=1000,
        perplexity={part: Spread(mean=mean, sd=sd, n=n) for part, mean in means.items()},
        seconds_per_epoch=5.0, tokens_per_second=speed, speed_up=speed / 100,
    )  # fmt: skip


FLAT = row("flat", 100.0, 100, nodes=1, to_flat=Ratio(1, 1, 1, None, 82))


def results(*rows, best, chosen, **changed):
    choice = Choice(
        **{"by": "valid", "among": len(rows), "within": 0.03, "tied": []} | changed,
        best=best, chosen=chosen,
    )  # fmt: skip
    return a_comparison(
        *rows, vocabulary=VocabularyFigures(size=10_000, sha256="ab"), choice=choice
    )


def said(found):
    return {
        answer.question: re.sub("<[^>]+>", "", answer.text)
        for answer in answers_of(found, rows_of(found))
    }


def test_the_fastest_tree_near_the_best_is_the_answer():
    near = row("near", 101.0, 900, to_flat=Ratio(1.01, 1.005, 1.02, 0.01, 82))
    quick = row("quick", 130.0, 2_000)
    answer = said(results(FLAT, near, quick, best="flat", chosen="near"))
    assert answer["Which tree?"].startswith(
        "Use near: test perplexity 101.0, chosen from 2 trees and the flat softmax by validation "
        "perplexity: with 111.1 the fastest of those within 3% of the lowest, 110.0 by flat. That "
        "is 1.0% higher than the flat softmax (95% interval +0.5% to +2.0%)."
    )
    assert (
        "12.0 node scores for each word predicted, where a flat softmax takes 10,000"
        in (answer["What does it cost?"])
    )
    assert "9.00\N{MULTIPLICATION SIGN} the flat softmax" in answer["What does it cost?"]
    assert answer["And if only perplexity counts?"].startswith(
        "flat has the lowest validation perplexity, 110.0; its test perplexity, 100.0, is 1.0% "
        "lower than that of near"
    )
    assert answer["And if only speed counts?"].startswith("quick: 2,000 tokens/s, 2.22")


def test_an_interval_around_one_is_no_difference():
    near = row("near", 101.0, 900, to_flat=Ratio(1.01, 0.99, 1.03, 0.3, 82))
    answer = said(results(FLAT, near, best="flat", chosen="near"))
    assert (
        "differ significantly from the flat softmax (+1.0%; 95% interval \N{MINUS SIGN}1.0% to"
        in (answer["Which tree?"])
    )


def test_a_short_test_text_has_no_interval():
    near = row("near", 101.0, 900, to_flat=Ratio(1.01, None, None, None, 8))
    answer = said(results(FLAT, near, best="flat", chosen="near"))["Which tree?"]
    assert (
        "The test text is too short to tell whether its ratio to the flat softmax, +1.0%" in answer
    )
    assert "interval" not in answer


def test_the_rival_is_reported_by_test():
    lucky = row("lucky", 90.0, 900, valid=130.0)
    steady = row("steady", 103.0, 800, valid=111.0)
    answer = said(
        results(row("a", 100.0, 900), lucky, steady, best="a", chosen="a", rival="steady")
    )
    assert (
        "The best of the other trees, steady, has a test perplexity 3.0% higher"
        in (answer["How sure is that?"])
    )


def test_the_cost_counts_from_the_text():
    seconds = SecondsFromText(
        seconds=1213.0, vectors=331.0, tree=2.0, training=880.0, speed_up=0.57
    )
    near = replace(row("near", 101.0, 900), from_text=seconds)
    answer = said(results(FLAT, near, best="flat", chosen="near"))["What does it cost?"]
    assert "1,213 seconds from the text to the model, 331 of them for the vectors" in answer
    assert "0.57\N{MULTIPLICATION SIGN} flat\u2019s speed" in answer


def test_where_no_tree_is_near_the_flat_softmax_is_the_answer():
    far = row("far", 120.0, 900)
    answer = said(results(FLAT, far, best="flat", chosen="flat"))
    assert answer["Which tree?"].startswith("None: use the flat softmax")
    assert (
        "chosen from 1 tree and the flat softmax by validation perplexity" in answer["Which tree?"]
    )
    assert "far, has a test perplexity 20.0% higher" in answer["Which tree?"]


@pytest.mark.parametrize(
    ("sd", "n", "expected"),
    [
        (None, 1, "no tree was trained with several seeds, so it is not known"),
        (0.1, 3, "more than the spread over seeds explains"),
        (5.0, 3, "no more than the spread over seeds explains"),
    ],
)
def test_how_sure_it_is_follows_the_spread_over_seeds(sd, n, expected):
    trees = [row("a", 100.0, 900, sd=sd, n=n), row("b", 102.0, 800, sd=sd, n=n)]
    answer = said(results(*trees, best="a", chosen="a", rival="b"))
    assert expected in answer["How sure is that?"]


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(0.9, 1.1, "does not tell them apart"), (0.9, 0.95, "tells them")]
)
def test_the_interval_against_the_rival_says_whether_it_tells_them_apart(low, high, expected):
    trees, ratio = [row("a", 100.0, 900), row("b", 102.0, 800)], Ratio(0.94, low, high, 0.1, 82)
    answer = said(results(*trees, best="a", chosen="a", rival="b", to_rival=ratio))
    assert expected in answer["How sure is that?"]


def test_rows_as_fast_are_named():
    trees = [row("a", 100.0, 900), row("b", 102.0, 890)]
    answer = said(results(*trees, best="a", chosen="a", tied=["b"]))["Which tree?"]
    assert "As fast, within the spread of the rounds of the measurement: b." in answer


def test_where_all_have_read_the_test_part_none_is_named():
    assert "has read the test part" in said(a_comparison(row("a", 100.0, 900)))["Which tree?"]


def test_without_any_tree_none_is_named():
    assert "none to name" in said(a_comparison())["Which tree?"]


def test_a_name_is_text_in_the_answer():
    bad = "<b>bold</b>"
    compared = results(row(bad, 100.0, 900), best=bad, chosen=bad)
    (answer, *_) = answers_of(compared, rows_of(compared))
    assert "&lt;b&gt;bold" in answer.text


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (1.035, "3.5% higher than flat"),
        (0.986, "1.4% lower than flat"),
        (1.0001, "the same as flat to 0.1%"),
    ],
)
def test_a_change_names_what_it_is_compared_with(ratio, expected):
    assert change(ratio, "flat") == expected
    assert change(ratio) == expected.replace(" than flat", "").replace(" as flat", "")
