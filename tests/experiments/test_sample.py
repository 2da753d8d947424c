"""Samples of the held-out tokens where the time is bounded, and scores of all of them."""

import csv
import json
import shutil

import numpy as np
import pytest
from msgspec.structs import replace

import hstree
from hstree.experiments import results
from hstree.experiments.results import JobResult, Timings, TokenCounts
from hstree.experiments.schedule import Schedule
from hstree.experiments.setting import read_setting
from hstree.experiments.statistics import paired_ratio
from hstree.experiments.store import ALL_TOKENS, Store
from hstree.report.table import make_table
from tests.experiments.conftest import QUICK, perplexities, token_nlls
from tests.texts import contents

#: Maximum number of tokens in a sample.
SAMPLE = 100
STOP = hstree.Seconds(0.2)
CANDIDATES = ["huffman", "flat", "2 x huffman", "huffman + ngrams", "kn2"]


@pytest.fixture(autouse=True)
def small_sample(monkeypatch):
    monkeypatch.setattr("hstree.experiments.setting.SAMPLE", SAMPLE)


def compare(splits, folder, candidates=CANDIDATES, **options):
    how = {"stop": STOP, "speed_rounds": 0, **QUICK, **options}
    return hstree.compare(splits, candidates, folder, **how)


def nlls(compared, name, split, *, sampled=False):
    """Return the nll of every token that a candidate was scored on, for each of its jobs."""
    return token_nlls(compared, name, split, inner="" if sampled or name == "kn2" else ALL_TOKENS)


def sizes(splits):
    return len(splits.valid), len(splits.test)


def test_candidates_are_scored_on_all_tokens_where_that_takes_a_tenth_of_the_time(splits, tmp_path):
    compared = compare(splits, tmp_path, stop=hstree.Seconds(1))
    assert (compared.tokens["valid"], compared.tokens["test"]) == sizes(splits)
    assert all(candidate.sample is None for candidate in compared.candidates)
    for name in ("huffman", "flat", "huffman + ngrams"):
        candidate = compared.candidate(name)
        model = hstree.load_model(compared.folder / candidate.jobs[0].folder / "model")
        assert candidate.valid == pytest.approx(model.perplexity(splits.valid))
        assert candidate.test == pytest.approx(model.perplexity(splits.test))
    assert len(nlls(compared, "kn2", "test")[0]) == len(splits.test)
    assert results.SAMPLED not in str(compared)


def test_the_sample_is_the_first_lines_and_its_figures_are_marked(splits, tmp_path, monkeypatch):
    monkeypatch.setattr("hstree.experiments.schedule.SCORING_FRACTION", 0)
    compared = compare(splits, tmp_path)
    valid, test = (part.first_tokens(SAMPLE) for part in (splits.valid, splits.test))
    sample = TokenCounts(len(valid), len(test))
    assert max(sample.valid, sample.test) <= SAMPLE
    trained = [candidate for candidate in compared.candidates if candidate.kind != "ngram"]
    assert all(candidate.sample == sample for candidate in trained)
    candidate = compared.candidate("huffman")
    model = hstree.load_model(compared.folder / candidate.jobs[0].folder / "model")
    assert candidate.test == pytest.approx(model.perplexity(test))
    # in the table, in the sentence, in the CSV file
    cells = dict(zip(compared.table().columns, compared.table().rows[0], strict=True))
    for title in ("valid", "test", "vs flat", "mixed with kn2"):
        assert cells[title].endswith(results.SAMPLED)
    assert f" on the first {sample.valid} tokens" in compared.recommendation[0]
    assert f"the first {sample.valid} tokens of the validation split" in compared.samples()[0]
    with (compared.folder / results.CSV).open(newline="") as file:
        line = next(csv.DictReader(file))
    assert (line["valid_sample"], line["test_sample"]) == (str(sample.valid), str(sample.test))


def test_candidates_of_two_sizes_are_compared_on_the_tokens_of_both(splits, tmp_path, monkeypatch):
    """Where only finalists are scored on all tokens, one of them is recommended."""

    def all_but_flat(self, finished):
        return [candidate for candidate in self.finalists if candidate.name != "flat"]

    monkeypatch.setattr(Schedule, "candidates_to_rescore", all_but_flat)
    compared = compare(splits, tmp_path)
    flat, huffman = compared.candidate("flat"), compared.candidate("huffman")
    assert (flat.sample is None, huffman.sample) == (False, None)
    n = flat.sample.test
    first = [nll[:n] for nll in nlls(compared, "huffman", "test")]
    level = nlls(compared, "flat", "test", sampled=True)
    assert huffman.to_flat == paired_ratio(first, level)
    assert compared.choice.candidates == ["huffman", "2 x huffman", "huffman + ngrams"]
    assert compared.best.sample is None
    # the values of a sample are marked in both tables
    table = compared.table()
    huffman_cells = dict(zip(table.columns, table.rows[0], strict=True))
    marked = [title for title, cell in huffman_cells.items() if results.SAMPLED in cell]
    assert marked == ["vs flat"]
    columns, cells = make_table(compared)
    huffman_notes = {
        column.title: cell.note for column, cell in zip(columns, cells[0], strict=True)
    }
    noted = [title for title, note in huffman_notes.items() if "tokens" in note]
    assert noted == ["vs flat"]


def test_the_scores_of_all_tokens_are_kept(splits, tmp_path):
    stop = hstree.Seconds(1)
    first = compare(splits, tmp_path, stop=stop)
    before = contents(tmp_path / "runs")
    again = compare(splits, tmp_path, stop=stop)
    assert again.candidates == first.candidates
    assert contents(tmp_path / "runs") == before

    # what is missing or damaged is scored again, without training
    shutil.rmtree(tmp_path / "runs/huffman/seed-0" / ALL_TOKENS)
    file = tmp_path / "runs/flat/seed-0" / ALL_TOKENS / "test_nll.npy"
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.warns(UserWarning, match="test_nll.npy is damaged"):
        again = compare(splits, tmp_path, stop=stop)
    assert perplexities(again) == perplexities(first)
    assert again.candidate("flat").timings == first.candidate("flat").timings


def test_an_evaluation_scores_all_tokens(splits, tmp_path):
    evaluation = hstree.evaluate("huffman", splits, stop=hstree.Seconds(1), **QUICK)
    assert evaluation.candidate.sample is None
    assert evaluation.perplexity == pytest.approx(evaluation.model.perplexity(splits.test))


def test_the_rounds_say_how_many_tokens_they_are_ranked_by(splits, tmp_path):
    compared = compare(splits, tmp_path, ["huffman", "flat", "random"], stop=hstree.Halving(0.15))
    rounds = json.loads((tmp_path / "rounds.json").read_bytes())
    n = rounds["valid_tokens"]
    assert n == len(splits.valid.first_tokens(SAMPLE))
    (name,) = set(rounds["rounds"][0]["candidates"]) - set(rounds["rounds"][-1]["candidates"])
    ranked_by = rounds["rounds"][0]["valid"][name]
    (nll,) = nlls(compared, name, "valid", sampled=True)
    assert np.exp(nll[:n].mean()) == pytest.approx(ranked_by)


@pytest.mark.parametrize(
    ("stop", "costs", "scored"),
    [
        # a tenth of a minute for all, and for the two finalists
        (hstree.Halving(1), {"huffman": 2, "flat": 3.9, "random": 0.05, "gmm": 9}, ["random"]),
        (hstree.Halving(1), {"huffman": 2, "flat": 3, "random": 0.05, "gmm": 0.01},
         ["gmm", "random"]),
        # both finalists or none
        (hstree.Halving(1), {"huffman": 2, "flat": 4.1, "random": 1, "gmm": 1}, None),
        # a tenth of the seconds of all jobs
        (hstree.Seconds(10), {"huffman": 1, "flat": 1, "random": 1, "gmm": 0.9}, ["random", "gmm"]),
        (hstree.Seconds(10), {"huffman": 1, "flat": 1, "random": 1, "gmm": 1.1}, None),
    ],
)  # fmt: skip
def test_finalists_are_scored_first_then_the_cheapest(splits, tmp_path, stop, costs, scored):
    setting, candidates = read_setting(splits, [*costs, "kn2"], stop, 1, QUICK)
    sample = setting.sample_tokens
    share = (sample.valid + sample.test) / sum(sizes(splits))
    result = JobResult(
        key="", files={}, candidate="", seed=0, perplexity=dict.fromkeys(results.SCORED),
        parameters=1, options={}, timings=Timings(), scored=sample,
    )  # fmt: skip
    finished = {}
    for candidate in candidates:
        seconds = costs.get(candidate.name, 0.0) * share
        finished[candidate] = [replace(result, scoring_seconds=seconds)]
    schedule = Schedule(candidates, setting, Store(tmp_path))
    if isinstance(stop, hstree.Halving):
        schedule.finalists = schedule.trained[:2]
    names = [candidate.name for candidate in schedule.candidates_to_rescore(finished)]
    assert names == ([] if scored is None else ["huffman", "flat", *scored])
