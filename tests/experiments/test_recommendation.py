"""Recommendations: small trainings, what they promise, and what comes true."""

import json
import math
from dataclasses import replace

import pytest

from hstree import LanguageModel
from hstree.errors import FileFormatError, InputError, OptionError, TrainingError
from hstree.experiments.entries import Ensemble, Method
from hstree.experiments.evaluation import corpus_splits
from hstree.experiments.recommendation import (
    EXPONENT,
    FARTHEST,
    JSON,
    SEEDS,
    Candidate,
    Recommendation,
    Trial,
    default_candidates,
    recommend,
)
from hstree.experiments.runs import BUILD
from tests.texts import corpus_of, markov_lines

SMALL = {"dim": 8, "context": 2, "batch_size": 64}
CANDIDATES = ["huffman", "gmm", "flat", ("kmeans", {"arity": 4})]


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    return corpus_splits(corpus_of(tmp_path_factory.mktemp("text"), markov_lines(4_000, 0)[0]))


def on_curve(level, slope, *, at=(1, 2, 4, 8), converged=False, building=0.0, name="row"):
    """Return a candidate whose trials lie on a curve, an epoch in each four seconds."""
    trials = [
        Trial(
            share=t / 64, seconds=t, epochs=t / 4, valid=math.exp(level + slope * t**-EXPONENT),
            converged=converged and t == at[-1],
        )
        for t in at
    ]  # fmt: skip
    return Candidate(name=name, key=name, scores=10.0, building=building, trials=trials)


def test_the_expected_perplexity_is_that_of_the_curve_through_the_trials():
    candidate = on_curve(4.0, 0.5, building=10.0)
    assert candidate.expected(74.0) == pytest.approx(math.exp(4.0 + 0.5 * 64**-EXPONENT))
    ahead = (0.5 / 0.03) ** (1 / EXPONENT)
    assert candidate.seconds_to(math.exp(4.03)) == pytest.approx(10 + ahead)
    assert candidate.seconds_to(candidate.trials[1].valid) == 12
    assert candidate.seconds_to(math.exp(3.99)) == math.inf


def test_nothing_is_expected_of_far_epochs():
    candidate = on_curve(4.0, 0.5)
    assert candidate.expected(1e9) == candidate.expected(4 * FARTHEST)
    assert candidate.expected(1e9) < candidate.expected(4 * FARTHEST - 10)
    assert candidate.seconds_to(candidate.expected(1e9) - 0.01) == math.inf


def test_nothing_is_expected_of_a_training_that_converged_or_rose():
    ended = on_curve(4.0, 0.5, converged=True)
    assert ended.expected(1e6) == pytest.approx(ended.trials[-1].valid)
    assert ended.error(1e6) == SEEDS
    rising = on_curve(4.0, -0.5)
    lowest = min(trial.valid for trial in rising.trials)
    assert rising.expected(1e6) == pytest.approx(lowest)
    assert rising.seconds_to(rising.trials[0].valid) == 1
    same = on_curve(4.0, 0.5, at=(4, 5))
    assert same.expected(1e6) == pytest.approx(same.trials[-1].valid)


def test_the_error_grows_with_the_fall_that_is_expected_and_with_a_wrong_prediction():
    straight = on_curve(4.0, 0.5)
    assert SEEDS < straight.error(16) < straight.error(64)
    fall = math.log(straight.trials[-1].valid / straight.expected(64))
    assert straight.error(64) == pytest.approx(fall / 2)
    bent = on_curve(4.0, 0.5)
    last = bent.trials[-1]
    bent.trials[-1] = replace(last, valid=1.1 * last.valid)
    assert bent.error(16) == pytest.approx(math.log(1.1))


def test_the_interval_and_the_rival_follow_from_the_errors():
    better, worse = on_curve(4.0, 0.5), on_curve(4.2, 0.5, name="other")
    near = on_curve(4.01, 0.5, name="near")
    found = Recommendation(seconds=64.0, key="", candidates=[better, worse, near])
    low, high = found.interval
    assert math.log(high / low) == pytest.approx(4 * better.error(64))
    assert low < found.expected < high
    rival, chance = found.rival
    assert rival is near
    assert 0.5 < chance < 0.9
    twice = Recommendation(seconds=64.0, key="", candidates=[better, better])
    assert twice.rival[1] == pytest.approx(0.5)
    assert Recommendation(seconds=64.0, key="", candidates=[better]).rival is None


def test_all_candidates_are_tried_and_the_best_of_them_for_longer(splits, tmp_path):
    found = recommend(splits, tmp_path, seconds=8.0, candidates=CANDIDATES, **SMALL)
    shares = {c.name: tuple(trial.share for trial in c.trials) for c in found.candidates}
    assert found.best.has_converged or shares[found.best.name][-1] == 1 / 8
    assert sum(1 / 16 in of for of in shares.values()) <= 3
    assert sum(1 / 8 in of for of in shares.values()) <= 2
    assert all(len(c.trials) >= 2 or c.has_converged for c in found.candidates)
    flat = next(c for c in found.candidates if c.name == "flat")
    assert flat.scores == len(splits.train.vocabulary)
    assert found.scored == len(splits.valid)
    gmm = next(c for c in found.candidates if c.name == "gmm")
    source = json.loads((tmp_path / "runs/random/seed-0/result.json").read_text())
    learning = source["preparation"] + sum(epoch["seconds"] for epoch in source["epochs"])
    records = [(tmp_path / gmm.tree).parent / BUILD, tmp_path / "runs/random/seed-0" / BUILD]
    building = sum(json.loads(record.read_text())["seconds"] for record in records)
    assert gmm.building == pytest.approx(learning + building)
    assert (tmp_path / gmm.tree).exists()


def test_finished_trials_are_kept_and_decide_the_same(splits, tmp_path, trainings):
    given = {"seconds": 4.0, "candidates": CANDIDATES[:2], **SMALL}
    first = recommend(splits, tmp_path, **given)
    trainings.clear()
    again = recommend(splits, tmp_path, **given)
    assert trainings == []
    assert again == first
    assert json.loads((tmp_path / JSON).read_text()) == first.as_dict()
    limited = recommend(splits, tmp_path, **given, scores=6, target_ppl=1e6)
    assert trainings == []
    assert {one.name for one in limited.candidates} == {"huffman", "gmm"}
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
    assert found.outcome.test > 1
    again = recommend(splits, tmp_path, seconds=4.0, candidates=["gmm"], **SMALL)
    assert again.outcome == found.outcome
    result = json.loads((tmp_path / "trained/gmm/seed-0/result.json").read_text())
    assert result["options"]["seconds"] == pytest.approx(4.0 - found.best.before)
    assert (tmp_path / found.outcome.model / "config.json").exists()
    assert found.outcome.valid == pytest.approx(result["perplexity"]["valid"])


def test_a_limit_of_scores_leaves_candidates_out(splits, tmp_path):
    given = {"seconds": 2.0, "candidates": ["huffman", "flat", "sampled"], **SMALL}
    found = recommend(splits, tmp_path / "few", scores=3, **given)
    assert [candidate.name for candidate in found.candidates] == ["huffman"]
    assert found.left_out == {
        "flat": "it computes 7.0 scores a target",
        "sampled": "it has no tree whose scores could be counted",
    }
    with pytest.raises(OptionError, match=r"no candidate is left: huffman: it computes 2\.3"):
        recommend(splits, tmp_path / "none", scores=1, **given)


def test_what_cannot_be_built_in_time_or_diverges_is_left_out(splits, tmp_path, monkeypatch):
    given = {"seconds": 2.0, "candidates": ["huffman", "flat"], **SMALL}
    fit = LanguageModel.fit

    def fails(self, *texts, **options):
        if self.tree.n_nodes == 1:
            raise TrainingError("the training diverged")
        return fit(self, *texts, **options)

    monkeypatch.setattr(LanguageModel, "fit", fails)
    found = recommend(splits, tmp_path / "a", **given)
    assert [one.name for one in found.candidates] == ["huffman"]
    assert found.left_out == {"flat": "the training diverged"}
    with pytest.raises(OptionError, match="huffman: building takes"):
        recommend(splits, tmp_path / "b", **{**given, "seconds": 1e-6})


def test_trials_of_another_tree_are_not_used(splits, tmp_path):
    given = {"seconds": 2.0, "candidates": ["huffman"], **SMALL}
    recommend(splits, tmp_path, **given)
    document = json.loads((tmp_path / JSON).read_text())
    (record,) = document["candidates"]
    made_up = record["trials"][0]["valid"] = 123456.0
    (tmp_path / JSON).write_text(json.dumps(document))
    assert recommend(splits, tmp_path, **given).best.trials[0].valid == made_up
    record["key"] = "another"
    (tmp_path / JSON).write_text(json.dumps(document))
    assert recommend(splits, tmp_path, **given).best.trials[0].valid < made_up


def test_a_damaged_file_is_named(splits, tmp_path):
    given = {"seconds": 2.0, "candidates": ["huffman"], **SMALL}
    for damage, said in (("{}", "no"), ("nothing", "JSON"), ('{"seconds": "a"}', "number")):
        (tmp_path / JSON).write_text(damage)
        with pytest.raises(FileFormatError, match=rf"{JSON}.*{said}.*remove it"):
            recommend(splits, tmp_path, **given)


def test_a_target_puts_first_what_reaches_it_first(splits, tmp_path):
    given = {"seconds": 4.0, "candidates": ["huffman", "flat"], **SMALL}
    found = recommend(splits, tmp_path, target_ppl=1e6, **given)
    times = [candidate.seconds_to(1e6) for candidate in found.candidates]
    assert times == sorted(times)
    assert times[0] < math.inf


@pytest.mark.parametrize("other", ["kn3", Ensemble(Method("gmm"), 2)])
def test_baselines_and_ensembles_are_no_candidates(splits, tmp_path, other):
    with pytest.raises(OptionError, match="is not one output layer"):
        recommend(splits, tmp_path, candidates=["huffman", other], **SMALL)


def test_default_candidates_can_be_built_over_few_words_and_many():
    for n_words in (12, 30, 10_000, 1_000_000):
        methods = default_candidates(n_words)
        listed = [m.options for m in methods if "short_list" in m.options]
        assert len(listed) == 2
        assert [m.layer for m in methods].count("ngrams") == 2
        assert len(default_candidates(n_words, with_contexts=False)) == len(methods) - 2
        for options in listed:
            assert options["n_classes"] <= n_words - options["short_list"]
