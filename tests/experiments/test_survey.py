"""The survey: rows in two regimes, speeds, mixtures, the plan and what is kept."""

import csv
import json
import math

import numpy as np
import pytest

from hstree.errors import FileFormatError, OptionError
from hstree.experiments import compare
from hstree.experiments.entries import Ensemble, Method
from hstree.experiments.evaluation import corpus_splits
from hstree.experiments.published import published
from hstree.experiments.runs import nll_of
from hstree.experiments.survey import best_weight, default_rows, load, mixed_nll, survey
from hstree.layers.registry import LAYERS
from hstree.ngrams.kneser_ney import KneserNey
from hstree.report.survey_page import survey_page_of
from tests.texts import corpus_of, markov_lines

QUICK = {"dim": 8, "context": 2, "epochs": 2, "batch_size": 64}
ROWS = ("huffman", "gmm", "own")
NAMES = [*ROWS, "flat"]


@pytest.fixture(autouse=True)
def short_turns(monkeypatch):
    monkeypatch.setattr("hstree.experiments.throughput.TURN", 0.001)
    monkeypatch.setattr("hstree.experiments.throughput.TESTING_TURN", 0.001)
    monkeypatch.setitem(LAYERS.native, "own", "tests.layers.dense:SelfNormalised")


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    return corpus_splits(corpus_of(tmp_path_factory.mktemp("text"), markov_lines(2_500, 0)[0]))


@pytest.fixture(scope="module")
def surveyed(splits, tmp_path_factory):
    home, plans = tmp_path_factory.mktemp("surveyed"), []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("hstree.experiments.throughput.TURN", 0.001)
        patched.setattr("hstree.experiments.throughput.TESTING_TURN", 0.001)
        patched.setitem(LAYERS.native, "own", "tests.layers.dense:SelfNormalised")
        given = {"budget": 0.05, "kneser_ney": 2, "planned": plans.append}
        found = survey(splits, ROWS, home, **given, **QUICK)
    return home, found, plans[0]


def test_every_row_is_in_both_regimes_and_flat_is_one(surveyed):
    _, found, _ = surveyed
    assert [row.name for row in found.rows] == NAMES
    assert list(found.regimes()) == ["equal_epochs", "equal_seconds"]
    for row in found.equal_epochs.rows:
        assert len(row.runs[0].epochs) == 2
        assert row.out_of_time == 0
    for row in found.equal_seconds.rows:
        # a fast machine may see a small tree converge before the time is over
        seconds = sum(epoch.seconds for epoch in row.runs[0].epochs)
        assert row.out_of_time == (seconds >= 0.05)
        assert row.to_flat.ratio > 0
    assert any(row.out_of_time for row in found.equal_seconds.rows)
    assert found.equal_seconds.options["seconds"] == found.budget == 0.05
    assert "seconds" not in found.equal_epochs.options


def test_equal_epochs_are_what_compare_finds_and_share_its_runs(surveyed, splits, trainings):
    home, found, _ = surveyed
    compared = compare(splits, NAMES, home, **QUICK)
    assert trainings == []
    for one, other in zip(found.equal_epochs.rows, compared.rows, strict=True):
        assert one.runs == other.runs
        assert one.to_flat == other.to_flat


def test_both_regimes_train_the_same_trees(surveyed):
    _, found, _ = surveyed
    for one, other in zip(found.equal_epochs.rows, found.equal_seconds.rows, strict=True):
        assert one.tree == other.tree
        vectors = [row.from_text.vectors for row in (one, other)]
        assert (vectors[0] > 0) == (vectors[1] > 0) == (one.name == "gmm")


def test_speeds_and_sizes_are_relative_to_flat(surveyed):
    _, found, _ = surveyed
    flat = found.rows[-1]
    assert flat.is_flat
    assert flat.parameters_to_flat == 1
    for row in found.rows:
        for what in ("training", "nll", "log_prob", "top_k"):
            speed = getattr(row, what)
            assert speed.tokens_per_second > 0
            assert math.isfinite(speed.times_flat)
            if row.is_flat:
                assert speed.times_flat == 1
        assert row.parameters_to_flat == row.parameters / flat.parameters
        assert row.approach.endswith(".")
    own = found.rows[2]
    assert own.parameters == flat.parameters
    assert own.unnormalised.tokens_per_second > 0
    assert math.isfinite(own.unnormalised.times_flat)
    assert [row.name for row in found.rows if row.unnormalised] == ["own"]
    assert found.row("equal_epochs", "own").log_normaliser.sd > 0
    assert found.row("equal_epochs", "flat").log_normaliser is None


def test_rows_are_mixed_with_a_kneser_ney_model(surveyed, splits):
    home, found, _ = surveyed
    ngram = KneserNey(2).fit(splits.train)
    assert found.kneser_ney.order == 2
    assert found.kneser_ney.perplexity["test"] == pytest.approx(ngram.perplexity(splits.test))
    for regime in found.regimes():
        for row in found.rows:
            mixture = row.with_kneser_ney[regime]
            folder = home / found.row(regime, row.name).runs[0].folder
            valid, other = nll_of(folder, splits, "valid"), ngram.nll(splits.valid)
            grid = np.linspace(0.001, 0.999, 999)
            totals = [-np.log(w * np.exp(-valid) + (1 - w) * np.exp(-other)).mean() for w in grid]
            assert mixture.weight == pytest.approx(grid[np.argmin(totals)], abs=2e-3)
            assert mixture.valid == pytest.approx(np.exp(min(totals)), rel=1e-4)
            test, other = nll_of(folder, splits), ngram.nll(splits.test)
            prob = mixture.weight * np.exp(-test) + (1 - mixture.weight) * np.exp(-other)
            assert mixture.test == pytest.approx(np.exp(-np.log(prob).mean()))


def test_finished_rows_are_written_while_others_are_pending(splits, tmp_path):
    seen = []

    def updated(folder):
        seen.append(load(folder))
        assert (folder / "survey.csv").read_text().count("\n") == len(seen[-1].rows) + 1
        assert survey_page_of(seen[-1])

    rows = ["huffman", "own", "flat"]
    survey(splits, rows, tmp_path, budget=0.05, updated=updated, **QUICK)
    assert [[row.name for row in found.rows] for found in seen] == [rows[:1], rows[:2], *3 * [rows]]
    in_second = [found.equal_seconds and len(found.equal_seconds.rows) for found in seen]
    assert in_second == [None, None, None, 1, 2]
    waiting = [set(found.pending) for found in seen]
    assert waiting == [{*rows}, {*rows}, {*rows}, {"own", "flat"}, {"flat"}]
    last = seen[-1]
    assert last.rows[0].training is last.rows[0].top_k is None
    assert seen[0].rows[0].parameters_to_flat is None
    assert last.rows[0].parameters_to_flat == pytest.approx(1, abs=0.1)
    whole = load(tmp_path)
    assert whole.pending == []
    for row in rows:
        assert last.row("equal_epochs", row).runs == whole.row("equal_epochs", row).runs


def test_an_interrupted_survey_keeps_its_rows(splits, tmp_path):
    def interrupt(folder):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        survey(splits, ["huffman", "flat"], tmp_path, updated=interrupt, **QUICK)
    assert [row.name for row in load(tmp_path).rows] == ["huffman"]
    assert load(tmp_path).pending == ["flat"]
    survey(splits, ["huffman", "flat"], tmp_path, updated=interrupt, **QUICK)
    assert [row.name for row in load(tmp_path).rows] == ["huffman", "flat"]


def test_a_mixture_that_helps_has_a_weight_between():
    rng = np.random.default_rng(0)
    one, other = rng.exponential(2, 500), rng.exponential(2, 500)
    weight = best_weight(one, other)
    assert 0.3 < weight < 0.7
    best = mixed_nll(weight, one, other).sum()
    assert best < min(one.sum(), other.sum())
    assert all(best <= mixed_nll(w, one, other).sum() for w in (weight - 0.01, weight + 0.01))
    assert best_weight(np.empty(0), np.empty(0)) == 1


def test_the_plan_names_every_training_before_the_first(surveyed, splits, trainings):
    home, found, plan = surveyed
    first = [(run.entry.name, run.regime) for run in plan.runs]
    assert first == [
        *(("random", "equal_epochs"), *((name, "equal_epochs") for name in NAMES)),
        *((name, "equal_seconds") for name in NAMES),
    ]
    assert not any(run.finished for run in plan.runs)
    assert all(run.seconds > 0.05 for run in plan.runs if run.regime == "equal_seconds")
    assert plan.seconds > sum(run.seconds for run in plan.runs)
    again = []
    given = {"budget": 0.05, "kneser_ney": 2, "planned": again.append}
    same = survey(splits, ["huffman", "gmm", "own"], home, **given, **QUICK)
    assert trainings == []
    assert all(run.finished and run.seconds == 0 for run in again[0].runs)
    assert same.row("equal_seconds", "own").runs == found.row("equal_seconds", "own").runs
    # Another budget is another regime; the same epochs are kept.
    more = []
    survey(splits, ["huffman"], home, budget=0.03, force=True, planned=more.append, **QUICK)
    assert [run.finished for run in more[0].runs] == [True, True, False, False]
    assert {path.name for path in home.glob("runs*")} == {"runs", "runs-0.05s", "runs-0.03s"}


def test_a_budget_alone_learns_vectors_within_it(splits, tmp_path, trainings):
    found = survey(splits, ["gmm"], tmp_path / "s", budget=0.02, equal_epochs=False, **QUICK)
    assert list(found.regimes()) == ["equal_seconds"]
    assert found.equal_epochs is None
    assert len(trainings) == 3  # random, gmm, flat
    assert load(tmp_path / "s") == found


def test_the_files_are_what_was_returned(surveyed):
    home, _, _ = surveyed
    survey_file = json.loads((home / "survey.json").read_text())
    assert survey_file["format"] == "hstree survey"
    assert load(home).rows[0].name == "huffman"
    with (home / "survey.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert lines[0]["name"] == "huffman"
    assert float(lines[-1]["equal_epochs_to_flat"]) == 1
    assert set(lines[0]) >= {"top_k_times_flat", "equal_seconds_ln_z_mean", "published_low"}


def test_damaged_surveys_are_refused(surveyed, tmp_path):
    home, _, _ = surveyed
    document = json.loads((home / "survey.json").read_text())
    epochs = document["equal_epochs"]
    without_runs = [{**row, "runs": []} for row in epochs["rows"]]
    for change, said in (
        ({"format": "hstree results"}, "is not what `hstree.experiments.survey"),
        ({"rows": []}, "has no rows"),
        ({"rows": document["rows"][:1]}, "has other rows than the survey"),
        ({"equal_epochs": {}}, "has no"),
        ({"equal_epochs": {**epochs, "rows": without_runs}}, "has a row without runs"),
    ):
        (tmp_path / "survey.json").write_text(json.dumps(document | change))
        with pytest.raises(FileFormatError, match=said):
            load(tmp_path)


@pytest.mark.parametrize(
    ("rows", "given", "said"),
    [
        (["kn5"], {}, "kn5 is not an output layer"),
        ([Ensemble(Method("gmm"), 2)], {}, "2 x gmm is an ensemble of output layers; compare"),
        (["huffman"], {"equal_epochs": False}, "nothing to survey"),
        (["huffman"], {"budget": 0.0}, "budget is 0"),
        (["huffman"], {"seconds": 3.0}, "a survey takes budget"),
        (["huffman"], {"kneser_ney": 9}, "kn9"),
        (["huffman"], {"kneser_ney": 5, "model": "cbow"}, "leave out the baselines"),
    ],
)
def test_options_are_refused_before_anything_is_trained(
    splits, tmp_path, trainings, rows, given, said
):
    options = {"dim": 8} if "model" in given else QUICK
    with pytest.raises(OptionError, match=said):
        survey(splits, rows, tmp_path / "s", **options | given)
    assert trainings == []
    assert not (tmp_path / "s").exists()


def test_every_registered_layer_is_a_row_by_default():
    rows = default_rows()
    assert rows[-1] == "flat"
    assert "own" in rows
    assert "tree" not in rows
    assert rows.count("flat") == 1


def test_models_without_contexts_have_the_rows_that_need_none(tmp_path):
    assert "adaptive-importance" in default_rows()
    rows = default_rows({"model": "cbow"})
    assert rows == [row for row in default_rows() if row != "adaptive-importance"]


def test_a_text_of_one_word_has_a_flat_row(tmp_path):
    splits = corpus_splits(corpus_of(tmp_path, [""] * 30))
    found = survey(splits, ["huffman", "sampled"], tmp_path / "s", **QUICK)
    assert [row.is_flat for row in found.rows] == [True, False, True]


def test_published_ratios_are_of_the_same_layer():
    assert (published("nce", {}).low, published("nce", {}).source) == (1.045, "Mnih & Teh 2012")
    assert published("nce", {"ranking": True}) is None
    assert published("differentiated", {"projected": False}) is None
    assert published("tree", {}) is None
    assert [str(published(name, {})) for name in ("nce", "adaptive")] == ["1.045", "0.99-1.02"]


def test_flat_with_features_is_not_the_reference(splits, tmp_path):
    rows = ("huffman", Method("flat", layer="ngrams"))
    found = survey(splits, rows, tmp_path, **QUICK)
    assert [row.name for row in found.rows] == ["huffman", "flat + ngrams", "flat"]
    approach = {row.name: row.approach for row in found.rows}
    assert approach["flat + ngrams"].endswith("from the last words to the nodes.")
    assert approach["flat + ngrams"] != approach["flat"]
