"""Plans: what is trained, how long it takes, and what fits a budget."""

import json
from dataclasses import replace

import numpy as np
import pytest

from hstree import LanguageModel, progress
from hstree.errors import OptionError
from hstree.experiments import compare, planning, results
from hstree.experiments.comparison import plan_of
from hstree.experiments.entries import Baseline, Ensemble, Layer, Method
from hstree.experiments.evaluation import corpus_splits
from hstree.experiments.planning import PLAN, Plan, PlannedRun, fitted, in_order
from hstree.experiments.work import Work
from hstree.models.base import MOST_EPOCHS
from tests.texts import corpus_of, markov_lines

pytestmark = pytest.mark.usefixtures("short_turns")

QUICK = {"dim": 4, "context": 2, "epochs": 2, "batch_size": 64}


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    return corpus_splits(corpus_of(tmp_path_factory.mktemp("text"), markov_lines(2_500, 0)[0]))


def fit(runs, rows, minutes, *, measuring=0.0, equal_seconds=False):
    plan = fitted(Plan(runs, measuring), rows, minutes, equal_seconds=equal_seconds, spent=0.0)
    return plan.fit.options, plan


def run_of(entry, epoch, *, building=0.0, validation=0.0, scoring=0.0, epochs=20):
    return PlannedRun(
        entry, "equal_epochs", 0,
        building=building, epoch=epoch, validation=validation, scoring=scoring, epochs=epochs,
    )  # fmt: skip


HUFFMAN, FLAT, GMM, RANDOM = (Method(name) for name in ("huffman", "flat", "gmm", "random"))
KN = Baseline.named("kn3")


def test_a_plan_has_every_run_in_order_and_its_seconds(splits, tmp_path):
    planned = plan_of(splits, ["gmm", "huffman", "kn2"], tmp_path, seeds=2, **QUICK)
    order = [(run.entry.name, run.seed) for run in planned.runs]
    assert order == [
        *[("random", 0), ("gmm", 0), ("huffman", 0), ("kn2", 0)],
        *[("random", 1), ("gmm", 1), ("huffman", 1)],
    ]
    for run in planned.runs:
        assert run.seconds > 0
        if run.entry.name != "kn2":
            assert run.seconds == run.building + 2 * (run.epoch + run.validation) + run.scoring
    assert planned.seconds == planned.measuring + sum(run.seconds for run in planned.runs)


def test_a_layer_over_a_tree_is_planned_with_its_features_and_known_again(splits, tmp_path):
    huffman = plan_of(splits, ["huffman", Method("huffman", layer="ngrams")], tmp_path, **QUICK)
    plain, with_features = huffman.runs
    assert with_features.building > 0 == plain.building  # it reads the text
    over = Method("gmm", layer="ngrams")
    compare(splits, [over], tmp_path, **QUICK)
    again = plan_of(splits, ["gmm", over], tmp_path, **QUICK)
    assert [run.finished for run in again.runs] == [True, True, False]  # gmm comes last
    assert [run.entry.slug for run in again.runs][:2] == ["random", over.slug]


def test_finished_runs_take_no_time(splits, tmp_path):
    compare(splits, ["gmm", "kn2"], tmp_path, **QUICK)
    planned = plan_of(splits, ["huffman"], tmp_path, **QUICK)
    seconds = {run.entry.name: run.seconds for run in planned.runs}
    assert [name for name, of_run in seconds.items() if of_run] == ["huffman"]
    assert set(seconds) == {"random", "gmm", "kn2", "huffman"}
    assert planned.measuring > 0
    nothing = plan_of(splits, ["gmm"], tmp_path, **QUICK)
    assert (nothing.measuring, nothing.seconds) == (0, 0)
    kept = json.loads((tmp_path / PLAN).read_bytes())
    assert [run["finished"] for run in kept["runs"]] == [False] * 3


def test_epochs_are_fitted_to_the_minutes():
    runs = [run_of(HUFFMAN, 3.0, building=10, validation=1.0, scoring=6.0)]
    options, plan = fit(runs, [HUFFMAN], 1.0, measuring=4.0)
    assert options == {"epochs": 10}  # 4 + 10 + 6 + 10 * (3 + 1) = 60
    assert plan.seconds == 60
    options, plan = fit(runs, [HUFFMAN], 10.0, measuring=4.0)
    assert options == {"epochs": 20}


def test_the_slowest_rows_are_left_out_until_three_epochs_fit():
    rows = [FLAT, HUFFMAN, GMM, KN]
    runs = [run_of(RANDOM, 5.0), *map(run_of, rows[:3], [100.0, 5.0, 6.0])]
    runs.append(PlannedRun(KN, "equal_epochs", 0, building=3.0))
    options, plan = fit(runs, rows, 1.0)
    assert plan.left_out == {"flat": "an epoch takes 100 seconds"}
    assert options == {"epochs": 3}  # 3 + 3 * 16 = 51
    assert [run.entry.name for run in plan.runs] == ["random", "huffman", "gmm", "kn3"]
    # Two rows stay, even if less than three epochs fit; what learned vectors goes with its row.
    options, plan = fit(runs, rows, 0.5)
    assert (options, [run.entry.name for run in plan.runs]) == (
        {"epochs": 1}, ["random", "huffman", "gmm", "kn3"],
    )  # fmt: skip
    one = replace(runs[3], epoch=200.0)
    options, plan = fit([*runs[:3], one, runs[4]], rows, 5)
    assert list(plan.left_out) == ["gmm"]
    assert [run.entry.name for run in plan.runs] == ["flat", "huffman", "kn3"]


def test_an_ensemble_is_left_out_with_its_models():
    rows = [Ensemble(FLAT, 2), HUFFMAN, Ensemble(GMM, 3)]
    of_flat = [replace(run_of(FLAT, 100.0), seed=seed) for seed in (0, 1)]
    of_gmm = [replace(run_of(GMM, 2.0), seed=seed) for seed in (0, 1, 2)]
    runs = [run_of(RANDOM, 1.0), *of_flat, run_of(HUFFMAN, 5.0), *of_gmm]
    options, plan = fit(runs, rows, 1.0)
    assert plan.left_out == {"2 x flat": "an epoch takes 200 seconds"}
    assert options == {"epochs": 5}  # 5 * (1 + 5 + 3 * 2) = 60
    assert [(run.entry, run.seed) for run in plan.runs] == [
        (RANDOM, 0), (HUFFMAN, 0), (GMM, 0), (GMM, 1), (GMM, 2),
    ]  # fmt: skip


def test_an_ensemble_is_left_out_without_the_row_of_one_of_its_models():
    rows = [HUFFMAN, FLAT, Ensemble(FLAT, 10)]
    runs = [run_of(HUFFMAN, 1.0), *(replace(run_of(FLAT, 5.0), seed=seed) for seed in range(10))]
    options, plan = fit(runs, rows, 1.0)
    assert plan.left_out == {"10 x flat": "an epoch takes 50 seconds"}
    assert options == {"epochs": 10}  # 10 * (1 + 5) = 60
    assert [(run.entry, run.seed) for run in plan.runs] == [(HUFFMAN, 0), (FLAT, 0)]


def test_each_model_of_an_ensemble_is_planned_once(splits, tmp_path):
    entries = [Ensemble(GMM, 2), GMM, HUFFMAN]
    work = Work.of(splits, entries, tmp_path, 2, QUICK)
    planned = [(entry.name, state) for entry, state in in_order(work, entries)]
    assert planned == [
        ("random", 0), ("gmm", 0), ("random", 1), ("gmm", 1), ("huffman", 0),
        ("random", 2), ("gmm", 2), ("random", 3), ("gmm", 3), ("huffman", 1),
    ]  # fmt: skip


@pytest.mark.parametrize("part", ["validation", "building", "scoring"])
def test_the_row_that_takes_longest_in_all_is_left_out(part):
    """Whatever takes its time: a sampled layer trains fast, but its validation is that of flat."""
    runs = [run_of(HUFFMAN, 1.0), run_of(FLAT, 2.0, **{part: 100.0}), run_of(GMM, 8.0)]
    _, plan = fit(runs, [HUFFMAN, FLAT, GMM], 1.0)
    assert list(plan.left_out) == ["flat"]


def test_the_same_seconds_are_fitted_to_the_minutes():
    runs = [run_of(FLAT, 100.0, validation=10.0), run_of(HUFFMAN, 5.0, building=3.0)]
    options, plan = fit(runs, [FLAT, HUFFMAN], 1.0, measuring=7.0, equal_seconds=True)
    assert options == {"epochs": MOST_EPOCHS, "seconds": 20.0}  # 7 + 3 + 2 * 20 + 10
    assert plan.seconds == 60
    assert plan.left_out == {}


@pytest.mark.parametrize("equal_seconds", [True, False])
def test_too_few_minutes_are_refused(equal_seconds):
    runs = [run_of(FLAT, 100.0), run_of(HUFFMAN, 50.0)]
    with pytest.raises(
        OptionError, match=r"minutes is 1: one epoch .* takes 4 min; give more minutes"
    ):
        fit(runs, [FLAT, HUFFMAN], 1.0, measuring=60.0, equal_seconds=equal_seconds)


def test_a_comparison_keeps_the_epochs_that_were_fitted(splits, tmp_path, monkeypatch):
    wanted = {"minutes": 10.0, **QUICK | {"epochs": 9}}
    monkeypatch.setattr(planning, "_epochs_within", lambda runs, total: 3.2)
    found = compare(splits, ["huffman", "flat", "balanced"], tmp_path, **wanted)
    assert found.options["epochs"] == 3
    # Another machine, or a busier one, would fit another number.
    monkeypatch.setattr(planning, "_epochs_within", lambda runs, total: 5.0)
    again = compare(splits, ["random"], tmp_path, **wanted)
    assert again.options["epochs"] == 3
    assert [row.name for row in again.rows] == ["huffman", "flat", "balanced", "random"]
    assert compare(splits, ["random"], tmp_path, force=True, **wanted).options["epochs"] == 5


def test_a_layer_stands_in_for_a_flat_softmax_that_is_too_slow(splits, tmp_path, monkeypatch):
    def only_without_flat(runs, total):
        return 0.5 if any(run.entry.name == "flat" for run in runs) else 3.0

    monkeypatch.setattr(planning, "_epochs_within", only_without_flat)
    monkeypatch.setattr(planning, "_slowest", lambda runs, rows, seeds: next(
        (row for row in rows if row.name == "flat"), None))  # fmt: skip
    rows = ["huffman", "balanced", "flat"]
    found = compare(splits, rows, tmp_path, minutes=10, **QUICK)
    assert [row.name for row in found.rows] == ["huffman", "balanced", "sampled"]
    assert list(found.left_out) == ["flat"]
    again = compare(splits, rows, tmp_path, minutes=10, **QUICK)
    assert [row.name for row in again.rows] == ["huffman", "balanced", "sampled"]
    assert again.left_out == found.left_out


def test_results_are_written_after_each_row(splits, tmp_path):
    seen = []

    def updated(folder):
        found = results.load(folder)
        seen.append(([row.name for row in found.rows], found.pending, len(found.options["seeds"])))

    rows = ["huffman", "kn2", Layer("sampled", {"samples": 3})]
    compare(splits, rows, tmp_path, seeds=2, updated=updated, **QUICK)
    assert seen == [
        (["huffman"], ["kn2", "sampled samples=3"], 1),
        (["huffman", "kn2"], ["sampled samples=3"], 1),
        (["huffman", "kn2", "sampled samples=3"], [], 1),
        (["huffman", "kn2", "sampled samples=3"], [], 1),
    ]
    final = results.load(tmp_path)
    assert (final.options["seeds"], final.pending) == ([0, 1], [])


def test_an_interrupted_comparison_leaves_its_rows(splits, tmp_path):
    def interrupt(folder):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(splits, ["huffman", "flat"], tmp_path, updated=interrupt, **QUICK)
    found = results.load(tmp_path)
    assert ([row.name for row in found.rows], found.pending) == (["huffman"], ["flat"])
    assert found.choice.chosen == "huffman"
    both = compare(splits, ["huffman", "flat"], tmp_path, **QUICK)
    assert [row.name for row in both.rows] == ["huffman", "flat"]


class Overall:
    """Sink that adds up what the task of all runs gets."""

    def __init__(self):
        self.steps, self.total = [], None

    def start(self, title, total, unit):
        if title != "all runs":
            return progress._Silent()
        self.total = total
        return self

    def stop(self, task):
        pass

    def report(self, text, left):
        pass

    def advance(self, amount=1):
        self.steps.append(amount)

    def note(self, text):
        pass


def test_the_overall_task_advances_with_the_tokens_and_ends_whole(splits, tmp_path):
    sink = Overall()
    with progress.shown_by(sink):
        compare(splits, ["huffman", "flat"], tmp_path, **QUICK)
    assert sum(sink.steps) == pytest.approx(sink.total)
    assert len([step for step in sink.steps if step > 0]) > 20


def test_vectors_that_stand_in_are_those_of_a_model_after_an_epoch_of_the_first_lines(
    splits, tmp_path, monkeypatch
):
    work = Work.of(splits, [GMM], tmp_path, 1, QUICK)
    model = LanguageModel(work.tree(RANDOM, 0), **{**QUICK, "epochs": 1}).fit(splits.train)
    fitted_vectors = model.mean_predicted_vectors(splits.train).vectors
    np.testing.assert_array_equal(planning._first_vectors(work).vectors, fitted_vectors)
    monkeypatch.setattr(planning, "LEARNING_TOKENS", len(splits.train) // 3)
    fewer = planning._first_vectors(work).vectors
    assert fewer.shape == fitted_vectors.shape
    assert not np.allclose(fewer, fitted_vectors)
