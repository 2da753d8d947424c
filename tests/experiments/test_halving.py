"""Rules that bound the time: seconds for each candidate, and halving."""

import json
import time
from itertools import pairwise

import numpy as np
import pytest

import hstree
from hstree.data.splits import Splits
from hstree.data.vectors import WordVectors
from hstree.errors import OptionError
from hstree.experiments.compare import plan
from hstree.experiments.job import MIN_TRAINING_FRACTION, continue_job, run_job
from hstree.experiments.setting import Budget, read_setting
from hstree.experiments.store import Store
from hstree.layers.ngram_features import NgramFeatures
from hstree.layers.registry import LayerSpec
from hstree.models.lbl import LanguageModel
from hstree.training.scoring import score
from tests.experiments.conftest import QUICK, names
from tests.texts import corpus_of, markov_lines

CANDIDATES = ["huffman", "random", "balanced", "gmm", "flat", "kn2"]


@pytest.fixture(scope="module")
def halved(splits, tmp_path_factory):
    """A comparison by halving; every round is long enough for some epochs."""
    home = tmp_path_factory.mktemp("halved")
    stop = hstree.Halving(minutes=0.2)
    return hstree.compare(splits, CANDIDATES, home, stop=stop, speed_rounds=0, **QUICK)


def rounds_of(found):
    return json.loads((found.folder / "rounds.json").read_bytes())["rounds"]


def test_the_better_half_goes_on_until_two_candidates_are_left(halved):
    rounds = rounds_of(halved)
    assert [len(one["candidates"]) for one in rounds] == [5, 3, 2]
    for one, after in pairwise(rounds):
        ranked = sorted(one["candidates"], key=lambda candidate: one["valid"][candidate])
        assert set(after["candidates"]) == set(ranked[: len(after["candidates"])])


def test_rounds_double_the_seconds_and_take_no_more_than_there_are(halved):
    rounds = rounds_of(halved)
    seconds = [one["seconds"] for one in rounds]
    assert all(before < after <= 2 * before for before, after in pairwise(seconds))
    steps = np.diff([0.0, *seconds])
    assert 2 < sum(len(one["candidates"]) * s for one, s in zip(rounds, steps, strict=True)) < 12


def test_no_candidate_trains_longer_than_its_last_round(halved):
    rounds = rounds_of(halved)
    for candidate in halved.candidates:
        last = [one["seconds"] for one in rounds if candidate.name in one["candidates"]]
        if last:
            assert candidate.timings.total < last[-1] + 3.0  # a busy machine ends a step late


def test_all_candidates_stay_in_the_table_and_the_lowest_perplexity_is_recommended(halved):
    assert names(halved) == CANDIDATES
    assert halved.candidate("huffman").to_flat is not None
    trained = [candidate for candidate in halved.candidates if candidate.kind != "ngram"]
    assert halved.choice.candidates == [candidate.name for candidate in trained]
    assert halved.best == min(trained, key=lambda candidate: candidate.valid)


def test_candidates_of_the_same_model_go_on_together(splits, tmp_path):
    """They share its folder: one that trained on alone would change the results of the others."""
    same, stop = ["huffman", "2 x huffman", "3 x huffman"], hstree.Halving(0.15)
    candidates = [*same, "random", "flat"]
    first = hstree.compare(splits, candidates, tmp_path, stop=stop, speed_rounds=0, **QUICK)
    assert all(len(set(same) & set(one["candidates"])) in (0, 3) for one in rounds_of(first))
    trained = {file: file.stat().st_mtime_ns for file in tmp_path.glob("runs/*/*/result.json")}
    again = hstree.compare(splits, candidates, tmp_path, stop=stop, speed_rounds=0, **QUICK)
    assert again.candidates == first.candidates
    assert {file: file.stat().st_mtime_ns for file in trained} == trained


def test_minutes_that_are_too_few_for_the_candidates_are_refused(splits, tmp_path):
    with pytest.raises(
        OptionError, match=r"0.1 minutes are too few for 5 candidates; give 0.18 or more"
    ):
        hstree.compare(splits, CANDIDATES, tmp_path, stop=hstree.Halving(0.1), **QUICK)


def test_n_gram_models_need_no_round(splits, tmp_path):
    found = hstree.compare(splits, ["kn2"], tmp_path, stop=hstree.Halving(0.1), **QUICK)
    assert found.candidates[0].test > 1


def test_speeds_are_measured_in_a_quarter_of_the_minutes(splits, tmp_path):
    found = hstree.compare(splits, ["random", "flat"], tmp_path, stop=hstree.Halving(0.15), **QUICK)
    assert rounds_of(found)[0]["seconds"] > 1
    assert len(json.loads((tmp_path / "speeds.json").read_bytes())["speeds"]["nll"]["flat"]) == 1


def test_another_candidate_changes_the_seconds_of_all_and_the_plan_says_so(halved, splits):
    def finished(*candidates):
        planned = plan(splits, candidates, halved.folder, stop=hstree.Halving(0.2), **QUICK)
        return [job.candidate.name for job, one in planned.jobs.items() if one.is_finished]

    assert finished("huffman", "kn3") == CANDIDATES
    with pytest.warns(UserWarning, match=r"all of them train again.*: classes"):
        assert finished("classes") == ["kn2"]


def test_the_plan_has_the_seconds_of_each_candidate(splits, tmp_path):
    planned = plan(splits, CANDIDATES, tmp_path, stop=hstree.Halving(1), speed_rounds=0, **QUICK)
    assert [one.candidates for one in planned.rounds] == [5, 3, 2]
    seconds = [one.seconds for one in planned.rounds]
    # training takes three quarters of the first round, and then all that is left
    assert seconds[0] == pytest.approx(0.75 * 60 / (5 + 2 * 3 / 2 + 4 * 2 / 2), rel=0.5)
    steps = np.diff([0.0, *seconds])
    in_all = sum(one.candidates * step for one, step in zip(planned.rounds, steps, strict=True))
    assert 30 < in_all <= 60
    jobs = {job.candidate.name: one for job, one in planned.jobs.items()}
    assert (jobs["huffman"].seconds, jobs["huffman"].max_seconds) == (seconds[0], seconds[-1])
    assert jobs["kn2"].seconds is None
    fixed = plan(splits, CANDIDATES, tmp_path, stop=hstree.Seconds(5), **QUICK)
    assert {job.candidate.name: one.seconds for job, one in fixed.jobs.items()}["huffman"] == 5
    assert fixed.rounds == []


def test_the_planned_seconds_are_those_of_the_comparison(halved, splits, tmp_path):
    stop = hstree.Halving(0.2)
    planned = plan(splits, CANDIDATES, tmp_path, stop=stop, speed_rounds=0, **QUICK)
    rounds = rounds_of(halved)
    assert planned.rounds[0].seconds == pytest.approx(rounds[0]["seconds"], rel=0.2)
    assert [one.candidates for one in planned.rounds] == [len(one["candidates"]) for one in rounds]
    again = plan(splits, CANDIDATES, halved.folder, stop=stop, speed_rounds=0, **QUICK)
    assert [one.seconds for one in again.rounds] == [one["seconds"] for one in rounds]


def test_ten_minutes_by_halving_are_the_default(splits):
    setting, candidates = read_setting(splits, None, None, 1, {})
    assert setting.stop == hstree.Halving(minutes=10)
    assert list(map(str, candidates))[-2:] == ["flat", "kn5"]


def test_all_candidates_have_the_same_seconds_from_the_text(splits, tmp_path):
    found = hstree.compare(
        splits, ["gmm", "flat"], tmp_path, stop=hstree.Seconds(1.0), speed_rounds=0, **QUICK
    )
    gmm = found.candidate("gmm")
    assert gmm.timings.vectors > 0
    assert all(candidate.timings.total < 2.0 for candidate in found.candidates)


def test_vectors_are_of_the_tokens_that_half_of_the_first_round_has_time_for(tmp_path):
    lines = 40 * markov_lines(2_500, 0)[0]
    lines[len(lines) * 8 // 10 - 1] = "late late"  # the last training line
    splits = Splits.of(corpus_of(tmp_path, lines))
    stop = hstree.Seconds(0.2)
    hstree.compare(splits, ["gmm"], tmp_path, stop=stop, speed_rounds=0, dim=300, context=8)
    learned = WordVectors.read(tmp_path / "vectors/random/seed-0/vectors.npy")
    late = np.array(learned.labels) == "late"
    # A word that is never predicted has the mean vector of all that are.
    expected = learned.vectors[~late].mean(axis=0)
    np.testing.assert_allclose(learned.vectors[late][0], expected, atol=1e-6)
    assert learned.counts[late] == 2


def test_a_candidate_whose_tree_takes_the_whole_round_trains_for_a_share_of_it(splits, tmp_path):
    found = hstree.compare(
        splits, ["gmm epsilon=0.4 trees=99"], tmp_path,
        stop=hstree.Seconds(0.2), speed_rounds=0, **QUICK,
    )  # fmt: skip
    steps = found.candidates[0].timings
    assert steps.vectors + steps.tree > (1 - MIN_TRAINING_FRACTION) * 0.2
    assert steps.training >= MIN_TRAINING_FRACTION * 0.2


def test_a_paused_training_goes_on_to_the_same_bits(splits, tmp_path):
    tree = hstree.build("huffman", splits.train)

    def fitted(folder, *limits):
        for limit in limits:
            model = LanguageModel(tree, **QUICK, **limit)
            model.fit(splits.train, splits.valid, checkpoints=folder, pauses=True)
        return model.parameters()

    paused = fitted(tmp_path / "a", {"epochs": 9, "seconds": 0.02}, {"epochs": 9})
    whole = fitted(tmp_path / "b", {"epochs": 9})
    assert all(np.array_equal(paused[name], whole[name]) for name in whole)


@pytest.fixture
def slow_at_first(monkeypatch):
    """The n-gram features of a text take 0.3 seconds more the first time."""
    prepared = []
    from_text = NgramFeatures.from_text

    def slow(*arguments):
        prepared.append(arguments)
        time.sleep(0.3 if len(prepared) == 1 else 0)
        return from_text(*arguments)

    monkeypatch.setattr(NgramFeatures, "from_text", slow)
    return prepared


def test_a_training_that_goes_on_has_the_preparation_of_its_start(splits, tmp_path, slow_at_first):
    """Preparing again may take less time, which would leave more of the budget to train in."""
    spec = LayerSpec(hstree.build("huffman", splits.train), "ngrams")
    limit = {"epochs": 99, "seconds": 0.35}
    models = [LanguageModel(spec, **QUICK, **limit) for _ in range(2)]
    for model in models:
        model.fit(splits.train, splits.valid, checkpoints=tmp_path, pauses=True)
    assert len(slow_at_first) == 2
    first, again = (model.history_ for model in models)
    assert again.preparation == first.preparation >= 0.3
    assert again.seconds == first.seconds
    one, two = (model.parameters() for model in models)
    assert all(np.array_equal(one[name], two[name]) for name in one)


@pytest.mark.usefixtures("slow_at_first")
def test_a_job_has_the_perplexity_that_its_round_was_ranked_by(splits, tmp_path):
    candidate = "huffman + ngrams"
    setting, candidates = read_setting(splits, [candidate], hstree.Halving(1), 1, QUICK)
    (job,) = setting.jobs(*candidates)
    budget = Budget(0.302, 0.302)
    ranked_by = continue_job(job, setting, Store(tmp_path), budget)
    result = run_job(job, setting, Store(tmp_path), budget)
    assert result.perplexity["valid"] == pytest.approx(ranked_by, rel=1e-9)


def test_candidates_have_the_perplexities_of_their_last_ranking(halved):
    """Those that left after a round train no more."""
    rounds = rounds_of(halved)
    last = {name: valid for one in rounds for name, valid in one["valid"].items()}
    left = set(last) - set(rounds[-1]["candidates"])
    assert len(left) == 3
    for name in left:
        assert halved.candidate(name).valid == pytest.approx(last[name], rel=1e-9)


@pytest.mark.slow
def test_rounds_end_where_scoring_leaves_no_time_for_another(splits, tmp_path, monkeypatch):
    def slowly(*args):
        time.sleep(0.15)
        return score(*args)

    monkeypatch.setattr("hstree.training.trainer.score", slowly)
    candidates, how = (
        ["huffman", "random", "balanced", "semantic", "flat"],
        {"speed_rounds": 0, **QUICK},
    )
    found = hstree.compare(splits, candidates, tmp_path, stop=hstree.Halving(0.18), **how)
    first, last = rounds_of(found)
    assert (len(first["candidates"]), len(last["candidates"])) == (5, 3)
    assert first["seconds"] == last["seconds"]
    assert len(found.choice.candidates) == 5
    monkeypatch.undo()
    again = hstree.compare(splits, candidates, tmp_path, stop=hstree.Halving(0.18), **how)
    assert again.candidates == found.candidates
