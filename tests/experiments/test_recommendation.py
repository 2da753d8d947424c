"""Recommendations: small trainings, what they promise, and what comes true."""

import json
import math

import pytest

from hstree.errors import InputError, OptionError
from hstree.experiments.evaluation import corpus_splits
from hstree.experiments.recommendation import (
    EXPONENT,
    JSON,
    Candidate,
    Recommendation,
    Trial,
    default_candidates,
    recommend,
)
from tests.texts import corpus_of, markov_lines

SMALL = {"dim": 8, "context": 2, "batch_size": 64}
CANDIDATES = ["huffman", "gmm", "flat", ("kmeans", {"arity": 4})]


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    return corpus_splits(corpus_of(tmp_path_factory.mktemp("text"), markov_lines(4_000, 0)[0]))


def on_curve(level, slope, *, at=(1, 2, 4, 8), converged=False, building=0.0, name="row"):
    """Return a candidate whose trials lie on a curve."""
    trials = [
        Trial(
            share=t / 64, seconds=t, valid=math.exp(level + slope * t**-EXPONENT),
            converged=converged and t == at[-1],
        )
        for t in at
    ]  # fmt: skip
    return Candidate(name=name, scores=10.0, building=building, trials=trials)


def test_the_expected_perplexity_is_that_of_the_curve_through_the_trials():
    candidate = on_curve(4.0, 0.5, building=10.0)
    assert candidate.expected(74.0) == pytest.approx(math.exp(4.0 + 0.5 * 64**-EXPONENT))
    assert candidate.seconds_to(math.exp(4.1)) == pytest.approx(10 + 5 ** (1 / EXPONENT))
    assert candidate.seconds_to(math.exp(3.99)) == math.inf


def test_nothing_is_expected_of_a_training_that_converged_or_rose():
    ended = on_curve(4.0, 0.5, converged=True)
    assert ended.expected(1e6) == ended.trials[-1].valid
    assert ended.error(1e6) == 0
    rising = on_curve(4.0, -0.5)
    assert rising.expected(1e6) == min(trial.valid for trial in rising.trials)
    assert rising.seconds_to(rising.trials[0].valid) == 1


def test_the_error_grows_with_the_time_ahead_and_with_a_trial_that_was_predicted_wrongly():
    straight = on_curve(4.0, 0.5)
    assert 0 < straight.error(16) < straight.error(64)
    bent = on_curve(4.0, 0.5)
    bent.trials[-1] = Trial(share=1, seconds=8, valid=1.1 * bent.trials[-1].valid, converged=False)
    assert bent.error(16) == pytest.approx(math.log(1.1))


def test_the_interval_and_the_chance_follow_from_the_errors():
    better, worse = on_curve(4.0, 0.5), on_curve(4.05, 0.5, name="other")
    found = Recommendation(seconds=64.0, candidates=[better, worse])
    low, high = found.interval
    assert math.log(high / low) == pytest.approx(4 * better.error(64))
    assert low < found.expected < high
    assert found.chance > 0.9
    assert Recommendation(seconds=64.0, candidates=[better, better]).chance == pytest.approx(0.5)
    assert Recommendation(seconds=64.0, candidates=[better]).chance is None


def test_all_candidates_are_tried_and_the_best_of_them_for_longer(splits, tmp_path):
    found = recommend(splits, tmp_path, seconds=8.0, candidates=CANDIDATES, **SMALL)
    shares = [tuple(trial.share for trial in c.trials) for c in found.candidates]
    most = max(shares, key=len)
    assert most == (1 / 64, 1 / 32, 1 / 16, 1 / 8) or found.candidates[0].trials[-1].converged
    assert sum(len(of) >= 3 for of in shares) <= 3
    assert sum(len(of) == 4 for of in shares) <= 2
    assert all(len(c.trials) >= 2 or c.trials[-1].converged for c in found.candidates)
    flat = next(c for c in found.candidates if c.name == "flat")
    assert flat.scores == len(splits.train.vocabulary)
    gmm = next(c for c in found.candidates if c.name == "gmm")
    assert gmm.building >= 0.1 * 8
    assert (tmp_path / gmm.tree).exists()


def test_finished_trials_are_kept_and_decide_the_same(splits, tmp_path, trainings):
    given = {"seconds": 4.0, "candidates": CANDIDATES[:2], **SMALL}
    first = recommend(splits, tmp_path, **given)
    trainings.clear()
    again = recommend(splits, tmp_path, **given)
    assert trainings == []
    assert again == first
    assert json.loads((tmp_path / JSON).read_text()) == first.as_dict()
    with pytest.raises(InputError, match="another folder"):
        recommend(splits, tmp_path, **{**given, "seconds": 5.0})


def test_a_stopped_search_goes_on_with_the_trials_that_it_has(splits, tmp_path, trainings):
    given = {"seconds": 4.0, "candidates": ["huffman", "flat"], **SMALL}

    def stop(found):
        if sum(len(candidate.trials) for candidate in found.candidates) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recommend(splits, tmp_path, updated=stop, **given)
    before = json.loads((tmp_path / JSON).read_text())
    found = recommend(splits, tmp_path, **given)
    kept = {c["name"]: c["trials"] for c in before["candidates"]}
    for candidate in found.as_dict()["candidates"]:
        assert candidate["trials"][: len(kept[candidate["name"]])] == kept[candidate["name"]]


def test_what_is_recommended_is_trained_for_what_is_left(splits, tmp_path):
    found = recommend(splits, tmp_path, seconds=4.0, candidates=["gmm"], train=True, **SMALL)
    assert found.outcome.valid > 1
    assert found.outcome.test > 1
    result = json.loads((tmp_path / "trained/gmm/seed-0/result.json").read_text())
    assert result["options"]["seconds"] == pytest.approx(4.0 - found.best.building)
    assert (tmp_path / found.model / "config.json").exists()
    assert found.outcome.valid == pytest.approx(result["perplexity"]["valid"])


def test_a_limit_of_scores_leaves_candidates_out(splits, tmp_path):
    given = {"seconds": 2.0, "candidates": ["huffman", "flat"], **SMALL}
    found = recommend(splits, tmp_path / "few", scores=3, **given)
    assert [candidate.name for candidate in found.candidates] == ["huffman"]
    with pytest.raises(OptionError, match="scores is 1; the least that a candidate has is"):
        recommend(splits, tmp_path / "none", scores=1, **given)


def test_a_target_puts_first_what_reaches_it_first(splits, tmp_path):
    given = {"seconds": 4.0, "candidates": ["huffman", "flat"], **SMALL}
    found = recommend(splits, tmp_path, target=1e6, **given)
    times = [candidate.seconds_to(1e6) for candidate in found.candidates]
    assert times == sorted(times)
    assert times[0] < math.inf


def test_a_baseline_is_no_candidate(splits, tmp_path):
    with pytest.raises(OptionError, match="no output layer"):
        recommend(splits, tmp_path, candidates=["huffman", "kn3"], **SMALL)


def test_default_candidates_can_be_built_over_few_words_and_many():
    for n_words in (12, 30, 10_000, 1_000_000):
        listed = [options for _, options in default_candidates(n_words) if "short_list" in options]
        assert len(listed) == 3
        for options in listed:
            assert options["n_classes"] <= n_words - options["short_list"]
