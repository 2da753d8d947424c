"""Speeds of trained models."""

import time
from itertools import count
from types import SimpleNamespace

import hstree
from hstree.experiments import speed
from hstree.experiments.speed import _per_second
from tests.experiments.conftest import QUICK


def test_speeds_of_finished_candidates_are_kept(splits, tmp_path, monkeypatch):
    measured, turn = [], speed.training_turn

    def noted(folder, corpus):
        measured.append(folder.relative_to(tmp_path).parts[1])
        return turn(folder, corpus)

    def compare(*candidates, **options):
        how = {"stop": hstree.Epochs(1), "speed_rounds": 2, **QUICK, **options}
        return hstree.compare(splits, candidates, tmp_path, **how)

    monkeypatch.setattr(speed, "training_turn", noted)
    first = compare("huffman", "flat")
    assert measured == 2 * ["huffman", "flat"]
    again = compare("huffman", "random", speed_rounds=3)
    assert measured[4:] == 3 * ["random"]
    for candidate in first.candidates:
        assert again.candidate(candidate.name) == candidate
    random, flat = again.candidate("random"), again.candidate("flat")
    assert random.training.times_flat == random.training.median / flat.training.median
    # a candidate that is left out for once keeps its speeds, too
    compare("random", only=True)
    assert (
        compare("huffman").candidate("huffman").training.rounds
        == first.candidate("huffman").training.rounds
    )
    assert len(measured) == 7


def test_speeds_of_another_machine_or_job_are_measured_anew(splits, tmp_path, monkeypatch):
    def compare(**options):
        how = {"stop": hstree.Epochs(1), "speed_rounds": 1, **QUICK, **options}
        found = hstree.compare(splits, ["huffman"], tmp_path, force=True, **how)
        return found.candidates[0].training.rounds

    first = compare()
    assert compare() == first
    assert compare(dim=4) != first
    second = compare(dim=4)
    monkeypatch.setattr(speed, "n_threads", lambda: 99)
    assert compare(dim=4) != second


def test_kernels_that_a_larger_batch_compiles_are_not_counted():
    compiled = []

    def score(n):
        if n > 1 and not compiled:
            time.sleep(0.3)
            compiled.append(n)

    assert _per_second(score, 4) > 1000


def test_a_pause_of_the_machine_leaves_a_speed_above_zero(monkeypatch):
    clock = SimpleNamespace(perf_counter=count(0.0, 10.0).__next__)  # ten seconds between readings
    monkeypatch.setattr(speed, "time", clock)
    assert _per_second(lambda n: None, 4) == 4 / 10
