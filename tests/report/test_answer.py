"""The recommendation: its sentences agree with the table, and the page gives the reasons."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hstree.experiments.recommendation import SAME_TIME, TOLERANCE
from hstree.experiments.results import (
    Epochs,
    Halving,
    Ratio,
    Seconds,
    Timings,
    TokenCounts,
)
from hstree.report.page import make_page, render
from tests.report.comparison import a_candidate, a_comparison, chosen, epoch

FLAT = a_candidate("flat", test=100.0, speed=100.0, to_flat=Ratio(1, 1, 1, None, 82))


def page_html(comparison):
    nowhere = Path("nowhere")
    return render(make_page(comparison, nowhere), nowhere)


def without_markup(html):
    return " ".join(re.sub("<[^>]+>", "", html).split())


def reasons(comparison):
    """Return the answers of the page by their questions."""
    html = page_html(comparison).partition('<details class="why">')[2].partition("</dl>")[0]
    pairs = re.findall(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", html, re.S)
    return {question: without_markup(answer) for question, answer in pairs}


def timed(seconds):
    return Timings(training=seconds)


def trained(candidate, epochs):
    """Return a candidate whose jobs trained for so many epochs; the last may be a part of one."""
    done = [epoch(i, valid=candidate.valid) for i in range(1, int(epochs) + 1)]
    if part := epochs - int(epochs):
        done.append(epoch(len(done) + 1, valid=candidate.valid, share=part))
    return replace(candidate, jobs=[replace(job, epochs=done) for job in candidate.jobs])


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
            timings=timed(total), seen=draw(st.sampled_from([None, None, None, "it was read"])),
            to_flat=to_flat,
        )  # fmt: skip
        if candidate.layer and name != "flat + ngrams" and "flat + ngrams" in names:
            candidate = replace(
                candidate, like="flat + ngrams", to_like=Ratio(0.98, low, high, 0.1, 9)
            )
        table.append(trained(candidate, draw(st.sampled_from([2, 3, 3.25]))))
    return table


@given(candidates())
def test_the_sentences_agree_with_the_table(table):
    compared = a_comparison(*table)
    eligible = [c for c in table if c.kind != "ngram" and c.seen is None]
    first, *others = compared.recommendation
    if not eligible:
        assert not first.startswith("Recommended: ")
        return
    best = compared.best
    assert first.startswith(f"Recommended: {best.name} (validation perplexity {best.valid:.1f}")
    assert best.valid == min(candidate.valid for candidate in eligible)
    near = [c for c in eligible if c.valid <= (1 + TOLERANCE) * best.valid]
    times = {c.name: c.timings.total for c in near if c.timings.total is not None}
    if others[0].startswith("Cheaper alternative within 3%: "):
        name, loss, time = re.search(
            r": (.*) \(.*\), with (?:([\d.]+)% higher|the same).* in (\S+) of the time\.", others[0]
        ).groups()
        assert name == compared.choice.cheaper
        assert times[name] == min(times.values()) < best.timings.total
        percent = 100 * (compared.candidate(name).valid / best.valid - 1)
        assert float(loss or 0) == round(percent, 1)
        assert float(time) == pytest.approx(times[name] / best.timings.total, rel=0.06)
    else:
        slower = (1 - SAME_TIME) * (best.timings.total or 0.0)
        assert all(time >= slower for name, time in times.items() if name != best.name)
    for sentence in others[1:]:
        if sentence.startswith("The n-gram model kn5"):
            assert compared.candidate("kn5").valid < best.valid
            continue
        flat = compared.candidate(re.search(r"that of (flat.*?)(?: \(|\.)", sentence)[1])
        assert (best.layer, best.models) == (flat.layer, flat.models)
        if "epoch" in sentence:
            assert best.trained_epochs == flat.trained_epochs
        else:
            assert flat.timings.total == pytest.approx(best.timings.total, rel=2 * SAME_TIME)


@given(candidates(), st.floats(1.0001, 2), st.floats(0.1, 900), st.sampled_from(["tree", "ngram"]))
def test_a_worse_candidate_does_not_change_the_recommendation(table, factor, seconds, kind):
    before = a_comparison(*table)
    if before.choice is None:
        return
    worse = a_candidate(
        "worse", kind=kind, valid=factor * before.best.valid, timings=timed(seconds)
    )
    for candidates in ([worse, *table], [*table, worse]):
        after = a_comparison(*candidates)
        assert after.choice.chosen == before.choice.chosen
        assert after.recommendation[0] == before.recommendation[0]


@given(candidates())
def test_the_program_the_page_and_python_say_the_same(table):
    compared = a_comparison(*table)
    verdict = page_html(compared).partition('<div class="verdict">')[2].partition("</div>")[0]
    on_page = re.findall(r"<(?:h2|p)>(.*?)</(?:h2|p)>", verdict, re.S)
    assert list(map(without_markup, on_page)) == compared.recommendation
    assert str(compared).endswith("\n".join(compared.recommendation))
    assert all(sentence in compared._repr_html_() for sentence in compared.recommendation)


# Examples


@pytest.mark.parametrize("stop", [Epochs(20), Seconds(243), Halving(10)])
def test_the_best_candidate_is_recommended_and_a_cheaper_one_is_named(stop):
    best = a_candidate("classes", valid=112.4, timings=timed(243))
    near = a_candidate("huffman", valid=114.0, timings=timed(97.2))
    nearer = a_candidate("gmm", valid=113.0, timings=timed(150))
    far = a_candidate("random", valid=130.0, timings=timed(10))
    recommended, cheaper = a_comparison(nearer, far, best, near, stop=stop).recommendation
    assert recommended.startswith("Recommended: classes (")
    assert "112.4, 243 s" in recommended
    for part in ("within 3%: huffman (", "114.0, 97.2 s", "1.4% higher", "0.4 of the time"):
        assert part in cheaper


@pytest.mark.parametrize(
    ("valid", "seconds", "is_cheaper"),
    [(103.0, 98.9, True), (103.1, 50, False), (101, 99.5, False), (101, None, False)],
)
def test_the_cheaper_candidate_takes_less_time_and_is_within_the_tolerance(
    valid, seconds, is_cheaper
):
    best = a_candidate("best", valid=100.0, timings=timed(100.0))
    other = a_candidate("other", valid=valid, timings=timed(seconds))
    compared = a_comparison(best, other)
    assert (compared.choice.cheaper == "other") == is_cheaper
    assert compared.recommendation[1].startswith("Cheaper") == is_cheaper


def test_a_candidate_whose_time_is_unknown_has_no_cheaper_alternative():
    best = a_candidate("mine.json", valid=100.0, timings=timed(None))
    compared = a_comparison(best, a_candidate("other", valid=101.0))
    assert compared.choice.cheaper is None
    assert "unknown" in compared.recommendation[1]


@pytest.mark.parametrize(
    ("ratio", "part"),
    [
        (Ratio(1.01, 0.99, 1.03, 0.3, 82), "1.0% higher than that of flat (not significant)."),
        (Ratio(1.01, None, None, None, 8), "1.0% higher than that of flat."),
        (Ratio(0.986, 0.98, 0.99, 0.01, 82), "1.4% lower than that of flat."),
        (Ratio(1.0004, 1.0, 1.001, 0.3, 82), "within 0.1% of that of flat."),
    ],
)
def test_a_ratio_to_flat_is_given_with_its_noise(ratio, part):
    compared = a_comparison(FLAT, a_candidate("near", test=99.0, to_flat=ratio))
    assert f"{part} Both trained for 3 epochs." in compared.recommendation[2]


@pytest.mark.parametrize(
    ("epochs", "seconds", "training"),
    [(3, 99, "3 epochs"), (2, 99, None), (2, 240.9, "240 seconds"), (0.03, 12, None)],
)
def test_flat_is_compared_after_the_same_training_alone(epochs, seconds, training):
    near = a_candidate(
        "near", test=50.0, to_flat=Ratio(0.5, 0.4, 0.6, 0.01, 82), timings=timed(240)
    )
    flat = trained(replace(FLAT, timings=timed(seconds)), epochs)
    against_flat = a_comparison(flat, near).recommendation[2:]
    assert [sentence.partition("trained for ")[2] for sentence in against_flat] == (
        [f"{training}."] if training else []
    )


def test_a_candidate_with_a_layer_is_compared_with_flat_of_the_same_layer_alone():
    near = a_candidate("near + ngrams", test=90.0, to_flat=Ratio(0.9, 0.8, 0.95, 0.01, 82))
    assert "that of flat" not in "".join(a_comparison(FLAT, near).recommendation)
    near = replace(near, like="flat + ngrams", to_like=Ratio(0.98, 0.97, 0.99, 0.01, 82))
    alike = a_candidate("flat + ngrams", test=92.0)
    sentence = a_comparison(FLAT, alike, near).recommendation[2]
    assert "2.0% lower than that of flat + ngrams. Both trained for 3 epochs." in sentence


def test_an_n_gram_model_of_lower_perplexity_is_named():
    compared = a_comparison(FLAT, a_candidate("kn5", kind="ngram", valid=90.0))
    assert "kn5" in compared.recommendation[-1]
    assert "90.0" in compared.recommendation[-1]


def test_the_only_candidate_is_not_called_the_best():
    first, second = a_comparison(a_candidate("one")).recommendation
    assert first.startswith("Recommended: one (")
    assert "only candidate" in second


@pytest.mark.parametrize(
    ("candidates", "part"),
    [
        ([a_candidate("a", seen="all")], "seen lines of the test split"),
        ([a_candidate("a", valid=float("inf"))], "finite"),
        ([], "no output layer was compared"),
    ],
)
def test_without_a_candidate_to_choose_none_is_recommended(candidates, part):
    compared = a_comparison(*candidates)
    assert compared.choice is None
    (sentence,) = compared.recommendation
    assert sentence.startswith("No candidate is recommended: ")
    assert part in sentence


# Reasons on the page


def test_the_reasons_name_the_candidates_and_their_values():
    near = a_candidate(
        "near", test=90.0, timings=Timings(vectors=331.0, tree=2.0, training=880.0), speed=900.0
    )
    quick = a_candidate("quick", test=117.0, speed=2_000)
    chosen_from, cost, fastest, _ = reasons(a_comparison(FLAT, near, quick)).values()
    assert "3 candidates" in chosen_from
    assert "90.0" in chosen_from
    assert "not compared" not in chosen_from
    for part in ("10,000 for a flat softmax", "331 seconds for the vectors", "900 tokens/s"):
        assert part in cost
    assert "quick takes the least total time, 50.0 seconds" in fastest
    assert "30.0% higher" in fastest
    assert "flat softmax was not compared" in "".join(reasons(a_comparison(near)).values())


def test_the_answer_may_be_a_layer():
    layer = a_candidate("fast", kind="layer", speed=100.0)
    compared = a_comparison(a_candidate("tree", test=120.0, speed=50.0), layer)
    chosen_from, cost, fastest, certainty = reasons(compared).values()
    assert "<title>Which output layer for made up?</title>" in page_html(compared)
    assert "2 candidates" in chosen_from
    assert cost.startswith("No tree; 100 tokens/s")
    assert fastest.startswith("This candidate")
    assert "tree, is 20.0% higher" in certainty


@pytest.mark.parametrize(
    ("sd", "n", "part"),
    [
        (None, 1, "No candidate was trained with more than one seed"),
        (0.1, 3, "is larger than the spread over seeds"),
        (5.0, 3, "is not larger than the spread over seeds"),
    ],
)
def test_certainty_follows_the_spread_over_seeds(sd, n, part):
    candidates = [
        a_candidate("a", test=100.0, sd=sd, n=n),
        a_candidate("b", test=102.0, speed=500.0, sd=sd, n=n),
    ]
    assert part in reasons(a_comparison(*candidates))["How certain is the order?"]


@pytest.mark.parametrize(("high", "part"), [(1.1, "not significant"), (0.95, "is significant")])
def test_certainty_follows_the_interval_against_the_rival(high, part):
    choice = chosen("a", "b", rival="b", to_rival=Ratio(0.94, 0.9, high, 0.1, 82))
    candidates = [a_candidate("a"), a_candidate("b", test=102.0)]
    answers = reasons(a_comparison(*candidates, choice=choice))
    assert part in answers["How certain is the order?"]


@pytest.mark.parametrize(
    ("test", "part"), [(103.5, "3.5% higher"), (98.6, "1.4% lower"), (100.01, "the same to 0.1%")]
)
def test_a_rival_is_compared_in_percent(test, part):
    candidates = [a_candidate("a"), a_candidate("b", test=test, valid=112.0)]
    assert part in reasons(a_comparison(*candidates))["How certain is the order?"]


def test_a_name_is_text_in_the_answer():
    html = page_html(a_comparison(a_candidate("<b>bold")))
    assert "<strong><bdi>&lt;b&gt;bold</bdi></strong>" in html


def test_the_conditions_have_the_rule_and_the_sizes_of_the_samples():
    compared = a_comparison(a_candidate("a", at_epoch_limit=1, sample=TokenCounts(50, 60)))
    text = without_markup(page_html(compared))
    for part in ("at most 6 epochs", "first 50 tokens", "first 60", "lines 1 to 1,000", "1 of 1"):
        assert part in text
