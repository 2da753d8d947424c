"""The answer in words: it says what the table says, and no more than that tells."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hstree.experiments.results import (
    SAME_TIME,
    TOLERANCE,
    Epochs,
    Halving,
    Seconds,
    Steps,
    TokenCounts,
)
from hstree.experiments.significance import Ratio
from hstree.report.answer import verdict_of
from hstree.report.page import markup, page_of
from tests.report.comparison import a_candidate, a_comparison, chosen, epoch

FLAT = a_candidate("flat", test=100.0, speed=100.0, to_flat=Ratio(1, 1, 1, None, 82))


def html_of(comparison):
    nowhere = Path("nowhere")
    return markup(page_of(comparison, nowhere), nowhere)


def text_of(html):
    return " ".join(re.sub("<[^>]+>", "", html).split())


def said(comparison):
    """The reasons by their questions, and the verdict's lines as "verdict", without markup."""
    answer = html_of(comparison).partition('<section id="answer"')[2].partition("</section>")[0]
    pairs = re.findall(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", answer.partition("</dl>")[0], re.S)
    verdict = answer.partition('<div class="said">')[2].partition("</div>")[0]
    lines = [text_of(line) for line in re.findall(r"<(?:h2|p)>(.*?)</(?:h2|p)>", verdict, re.S)]
    return {"verdict": lines} | {question: text_of(answer) for question, answer in pairs}


def lines(compared):
    return verdict_of(compared).lines()


def timed(seconds):
    return Steps(training=seconds)


def trained(candidate, epochs):
    """Return a candidate whose jobs have trained for so many epochs, the last maybe in part."""
    whole = [epoch(i, valid=candidate.valid) for i in range(1, int(epochs) + 1)]
    if part := epochs - int(epochs):
        whole.append(epoch(len(whole) + 1, valid=candidate.valid, share=part))
    return replace(candidate, jobs=[replace(job, epochs=whole) for job in candidate.jobs])


# Random tables

NAMES = ("flat", "flat + ngrams", "huffman", "huffman + ngrams", "2 x gmm", "sampled", "kn5")
numbers = st.floats(50, 60, allow_nan=False).map(lambda x: round(x, 3))


@st.composite
def candidates(draw):
    """Draw a table: close perplexities, times, epochs and ratios, some of them unknown."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    table = []
    for name in names:
        kind = {"sampled": "layer", "kn5": "ngram"}.get(name, "tree")
        total = draw(st.none() | st.sampled_from([10.0, 10.05, 12.0]) | st.floats(0.1, 900))
        ratio = draw(st.none() | st.floats(0.5, 1.5))
        low, high = draw(st.sampled_from([(0.99, 1.01), (0.5, 0.9), (None, None)]))
        to_flat = None if ratio is None or "flat" not in names else Ratio(ratio, low, high, 0.1, 9)
        candidate = a_candidate(
            name, kind=kind, valid=draw(numbers), test=draw(numbers), models=1 + (name[0] == "2"),
            steps=timed(total), seen=draw(st.sampled_from([None, None, None, "it was read"])),
            to_flat=to_flat,
        )  # fmt: skip
        if candidate.layer and name != "flat + ngrams" and "flat + ngrams" in names:
            candidate = replace(
                candidate, like="flat + ngrams", to_like=Ratio(0.98, low, high, 0.1, 9)
            )
        table.append(trained(candidate, draw(st.sampled_from([2, 3, 3.25]))))
    return table


@given(candidates(), st.sampled_from([Epochs(3), Seconds(240), Halving(10)]))
def test_the_sentences_agree_with_the_table(table, stop):
    compared = a_comparison(*table, stop=stop)
    cells = dict(
        zip(compared.table().columns, zip(*compared.table().rows, strict=True), strict=True)
    )
    shown = {name: i for i, name in enumerate(cells["candidate"])}
    eligible = {
        candidate.name: candidate
        for candidate in table
        if candidate.kind != "ngram" and candidate.seen is None
    }
    first, *others = lines(compared)
    if not eligible:
        assert not first.startswith("Recommended: ")
        return
    name, valid, seconds = re.fullmatch(
        r"Recommended: (.*) \(validation perplexity ([\d.]+)(?:, ([\d.]+) s from the text)?\)\.",
        first,
    ).groups()
    best = compared.candidate(name)
    assert best.valid == min(candidate.valid for candidate in eligible.values())
    assert valid == cells["valid"][shown[name]]
    agrees(seconds, cells["s from text"][shown[name]])
    cheaper = re.match(
        r"Cheaper alternative within 3%: (.*) \(validation perplexity ([\d.]+), ([\d.]+) s from "
        r"the text\), (?:([\d.]+)% worse|as good to 0.1%) in ([\d.e-]+) of the time\.", others[0],
    )  # fmt: skip
    near = [
        candidate
        for candidate in eligible.values()
        if candidate.valid <= (1 + TOLERANCE) * best.valid
    ]
    times = {
        candidate.name: candidate.steps.total
        for candidate in near
        if candidate.steps.total is not None
    }
    if cheaper is None:
        slower = (1 - SAME_TIME) * (best.steps.total or 0.0)
        assert all(time >= slower for other, time in times.items() if other != name)
        if "takes less time" in others[0]:
            assert best.steps.total == min(times.values())
    else:
        other, valid, seconds, loss, time = cheaper.groups()
        assert times[other] == min(times.values()) < best.steps.total
        assert valid == cells["valid"][shown[other]]
        agrees(seconds, cells["s from text"][shown[other]])
        assert float(loss or 0) == round(100 * (eligible[other].valid / best.valid - 1), 1)
        assert float(time) == pytest.approx(times[other] / best.steps.total, rel=0.06)
    for sentence in others:
        if against := re.search(
            r"that of (flat.*?)(?: \(within.*\))?, after the same (.*)\.", sentence
        ):
            flat, training = compared.candidate(against[1]), against[2]
            assert (best.layer, best.models) == (flat.layer, flat.models)
            amount, unit = training.split()
            if unit.startswith("epoch"):
                assert float(amount) == best.trained_epochs == flat.trained_epochs
            else:
                assert unit == "seconds"
                agrees(amount, cells["s from text"][shown[name]])
                assert flat.steps.total == pytest.approx(best.steps.total, rel=2 * SAME_TIME)
        elif sentence is not others[0]:
            assert sentence.startswith("The n-gram model kn5, which is no output layer")
            assert compared.candidate("kn5").valid < best.valid
        assert "times as fast" not in sentence


def agrees(seconds, cell):
    """Check that rounded seconds are those of a cell of the table, which has one decimal."""
    assert (seconds is None) == (cell == "-")
    if seconds is not None:
        assert abs(float(seconds) - float(cell)) <= (0.5 if "." not in seconds else 0) + 1e-9


@given(candidates(), st.floats(1.0001, 2), st.floats(0.1, 900), st.sampled_from(["tree", "ngram"]))
def test_another_candidate_that_is_worse_does_not_change_the_recommendation(
    table, factor, seconds, kind
):
    before = a_comparison(*table)
    if before.choice is None:
        return
    worse = a_candidate("worse", kind=kind, valid=factor * before.best.valid, steps=timed(seconds))
    for more in ([worse, *table], [*table, worse]):
        after = a_comparison(*more)
        assert after.choice.chosen == before.choice.chosen
        assert lines(after)[0] == lines(before)[0]


@given(candidates())
def test_the_program_the_page_and_python_say_the_same(table):
    compared = a_comparison(*table)
    assert said(compared)["verdict"] == lines(compared)
    assert str(compared).endswith("\n".join(lines(compared)))
    if compared.choice is not None:
        assert lines(compared)[0].startswith(f"Recommended: {compared.best.name} (")


# Sentences


def test_the_lowest_perplexity_is_recommended_and_a_cheaper_candidate_is_named():
    best = a_candidate("classes", valid=112.4, steps=timed(243))
    near = a_candidate("huffman", valid=114.0, steps=timed(97.2))
    nearer = a_candidate("gmm", valid=113.0, steps=timed(150))
    far = a_candidate("random", valid=130.0, steps=timed(10))
    for stop in (Epochs(20), Seconds(243), Halving(10)):
        assert lines(a_comparison(nearer, far, best, near, stop=stop)) == [
            "Recommended: classes (validation perplexity 112.4, 243 s from the text).",
            "Cheaper alternative within 3%: huffman (validation perplexity 114.0, 97.2 s from the "
            "text), 1.4% worse in 0.4 of the time.",
        ]


@pytest.mark.parametrize(
    ("valid", "seconds", "named"),
    [(103.0, 98.9, True), (103.1, 50, False), (101, 99.5, False), (101, None, False)],
)
def test_the_cheaper_candidate_takes_less_time_and_is_within_the_tolerance(valid, seconds, named):
    best, other = (a_candidate("best", valid=100.0, steps=timed(100.0)),
                   a_candidate("other", valid=valid, steps=timed(seconds)))  # fmt: skip
    compared = a_comparison(best, other)
    assert (compared.choice.cheaper == "other") == named
    less = "at least 1% less time" if seconds == 99.5 else "less time"
    none = f"No other candidate within 3% of this perplexity takes {less} from the text."
    assert (lines(compared)[1] == none) == (not named)


def test_a_candidate_whose_time_is_not_known_has_no_cheaper_alternative():
    best = a_candidate("mine.json", valid=100.0, steps=timed(None))
    assert lines(a_comparison(best, a_candidate("other", valid=101.0))) == [
        "Recommended: mine.json (validation perplexity 100.0).",
        "Its time from the text is not known, so that no cheaper alternative is named.",
    ]


@pytest.mark.parametrize(
    ("ratio", "says"),
    [
        (Ratio(1.01, 0.99, 1.03, 0.3, 82), "1.0% higher than that of flat (within the noise)"),
        (Ratio(1.01, None, None, None, 8), "1.0% higher than that of flat"),
        (Ratio(0.986, 0.98, 0.99, 0.01, 82), "1.4% lower than that of flat"),
        (Ratio(1.0004, 1.0, 1.001, 0.3, 82), "within 0.1% of that of flat"),
    ],
)
def test_a_ratio_says_what_its_interval_tells(ratio, says):
    candidate = a_candidate("near", test=99.0, to_flat=ratio)
    expected = f"Its test perplexity is {says}, after the same 3 epochs."
    assert lines(a_comparison(FLAT, candidate))[2] == expected


@pytest.mark.parametrize(
    ("epochs", "seconds", "training"),
    [(3, 99, "3 epochs"), (2, 99, None), (2, 240.9, "240 seconds"), (0.03, 12, None)],
)
def test_flat_is_compared_after_the_same_training_alone(epochs, seconds, training):
    candidate = a_candidate(
        "near", test=50.0, to_flat=Ratio(0.5, 0.4, 0.6, 0.01, 82), steps=timed(240.0)
    )
    flat = trained(replace(FLAT, steps=timed(seconds)), epochs)
    told = lines(a_comparison(flat, candidate))[2:]
    assert [one.partition("after the same ")[2] for one in told] == (
        [f"{training}."] if training else []
    )


def test_a_candidate_with_a_layer_is_compared_with_flat_of_the_same_layer_alone():
    ratio = Ratio(0.98, 0.97, 0.99, 0.01, 82)
    candidate = a_candidate("near + ngrams", test=90.0, to_flat=Ratio(0.9, 0.8, 0.95, 0.01, 82))
    assert not any("that of flat" in line for line in lines(a_comparison(FLAT, candidate)))
    candidate = replace(candidate, like="flat + ngrams", to_like=ratio)
    alike = a_candidate("flat + ngrams", test=92.0)
    assert lines(a_comparison(FLAT, alike, candidate))[2] == (
        "Its test perplexity is 2.0% lower than that of flat + ngrams, after the same 3 epochs."
    )


def test_an_n_gram_model_of_lower_perplexity_is_named():
    kneser_ney = a_candidate("kn5", kind="ngram", valid=90.0)
    assert lines(a_comparison(FLAT, kneser_ney))[-1] == (
        "The n-gram model kn5, which is no output layer, has a lower validation perplexity: 90.0."
    )


def test_one_candidate_is_not_called_the_best():
    assert lines(a_comparison(a_candidate("one"))) == [
        "Recommended: one (validation perplexity 110.0, 70.0 s from the text).",
        "It is the only candidate to choose from.",
    ]


def test_where_all_have_read_the_test_part_none_is_named():
    assert "has read lines of the test part" in lines(a_comparison(a_candidate("a", seen="all")))[0]


def test_without_a_finite_perplexity_none_is_named():
    perplexity = a_candidate("a").perplexity
    lost = perplexity | {"valid": replace(perplexity["valid"], mean=None)}
    compared = a_comparison(a_candidate("a", perplexity=lost))
    assert lines(compared) == [
        "No candidate is recommended: none has a finite validation perplexity."
    ]
    assert compared.choice is None


def test_without_any_tree_none_is_named():
    assert lines(a_comparison()) == ["No tree was compared, so that none is recommended."]


# The page


def test_the_reasons_are_those_of_the_recommendation():
    candidate = a_candidate("near", test=101.0, speed=900.0)
    compared = a_comparison(FLAT, candidate, a_candidate("quick", test=130.0, speed=2_000))
    answer = said(compared)
    assert answer["How was it chosen?"] == (
        "It has the lowest validation perplexity of 2 trees and the flat softmax; its test "
        "perplexity is 100.0. The cheaper alternative takes the least time from the text of those "
        "whose validation perplexity is at most 3% higher, if that is at least 1% less."
    )
    assert answer["And if only time counts?"] == (
        "quick takes the least time from the text, 50.0 seconds; its test perplexity is 30.0% "
        "higher."
    )


def test_that_flat_is_missing_is_said():
    answer = said(a_comparison(a_candidate("near"), a_candidate("other", test=120.0)))
    assert "The flat softmax was not compared." in answer["How was it chosen?"]


def test_the_cost_names_the_vectors():
    candidate = a_candidate("near", test=90.0, steps=Steps(vectors=331.0, tree=2.0, training=880.0))
    answer = said(a_comparison(FLAT, candidate))
    cost = answer["What does it cost?"]
    assert "node scores for each word predicted, where a flat softmax takes 10,000" in cost
    assert "331 seconds for the vectors that it is built from" in cost
    assert "1,213 s from the text" in answer["verdict"][0]


def test_the_answer_may_be_a_layer():
    layer = a_candidate("fast", kind="layer", speed=100.0)
    compared = a_comparison(a_candidate("tree", test=120.0, speed=50.0), layer)
    answer = said(compared)
    assert "<title>Which output layer for made up?</title>" in html_of(compared)
    assert "of 2 output layers;" in answer["How was it chosen?"]
    assert answer["What does it cost?"].startswith("No tree; 100 tokens/s in training")
    assert answer["And if only time counts?"].startswith("The same candidate: no other")
    assert "The best of the other candidates, tree" in answer["How sure is that?"]


@pytest.mark.parametrize(
    ("sd", "n", "expected"),
    [
        (None, 1, "no candidate was trained with several seeds, so it is not known"),
        (0.1, 3, "more than the spread over seeds explains"),
        (5.0, 3, "no more than the spread over seeds explains"),
    ],
)
def test_how_sure_it_is_follows_the_spread_over_seeds(sd, n, expected):
    candidates = [
        a_candidate("a", test=100.0, sd=sd, n=n),
        a_candidate("b", test=102.0, speed=500.0, sd=sd, n=n),
    ]
    assert expected in said(a_comparison(*candidates))["How sure is that?"]


@pytest.mark.parametrize(
    ("high", "expected"), [(1.1, "does not tell them apart"), (0.95, "tells them apart")]
)
def test_the_interval_against_the_rival_says_whether_it_tells_them_apart(high, expected):
    choice = chosen("a", "b", rival="b", to_rival=Ratio(0.94, 0.9, high, 0.1, 82))
    candidates = [a_candidate("a"), a_candidate("b", test=102.0)]
    assert expected in said(a_comparison(*candidates, choice=choice))["How sure is that?"]


def test_a_name_is_text_in_the_answer():
    assert "<strong><bdi>&lt;b&gt;bold</bdi></strong>" in html_of(
        a_comparison(a_candidate("<b>bold"))
    )


def test_the_conditions_have_the_rule_and_the_sizes_of_the_samples():
    compared = a_comparison(a_candidate("a", at_epoch_limit=1, sample=TokenCounts(50, 60)))
    page = html_of(compared)
    text = re.sub("<[^>]+>", "", page)
    for part in (
        "at most 6 epochs",
        "first 50 tokens of the validation split and the first 60 of the test split: a",
        "lines 1 to 1,000",
        "1 of 1 candidate, marked *",
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
    candidates = [a_candidate("a"), a_candidate("b", test=test, valid=112.0)]
    assert expected in said(a_comparison(*candidates))["How sure is that?"]
