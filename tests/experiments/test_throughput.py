"""Speeds are of whole training steps, and all trees take turns."""

import os
from pathlib import Path

import numpy as np
import pytest

import hstree
from hstree import LanguageModel
from hstree.experiments import throughput as module
from hstree.experiments.throughput import throughput
from hstree.layers.registry import layer_spec
from hstree.models import new_model
from hstree.models.lbl import LogBilinearTrainer
from tests.texts import corpus_of, markov_lines

#: The memory of this process, in pages: all of it, and what is resident.
STATM = Path("/proc/self/statm")


def test_a_trained_model_goes_on_training(text, tmp_path, monkeypatch):
    """Layers that draw until their samples suffice are faster before they have learned."""
    spec = layer_spec(text.counted_vocabulary(), "importance", samples=4, effective=3.5)
    model = new_model(spec, dim=4, batch_size=32)
    model.layer.weight[...] = 0.5
    model.save(tmp_path / "model")
    seen, step = [], LogBilinearTrainer.step

    def recorded(self, *arguments):
        seen.append(float(self.layer.weight.mean()))
        return step(self, *arguments)

    monkeypatch.setattr(LogBilinearTrainer, "step", recorded)
    monkeypatch.setattr(module, "TURN", 0)
    found = throughput({"trained": tmp_path / "model", "new": spec}, text, rounds=1, dim=4)
    assert set(found) == {"trained", "new"}
    assert seen[0] == 0.5
    assert 0 in seen


@pytest.fixture
def text(tmp_path):
    return corpus_of(tmp_path, markov_lines(2_000, 0)[0])


def test_tokens_over_the_seconds_of_the_steps_that_count(text, monkeypatch):
    """With a clock on which every step takes as long as it is told to."""
    clock, order, before = [0.0], [], [None]
    step_seconds = {2: 0.5, 3: 0.25}

    def step(self, contexts, targets, learning_rate):
        arity = self.layer.tree.meta["options"]["arity"]
        assert (len(targets), learning_rate) == (32, 0.2)
        if before[0] is not self:
            order.append(arity)
            clock[0] += 100  # the first step of a turn does not count
        before[0] = self
        clock[0] += step_seconds[arity]
        return 0.0

    monkeypatch.setattr(LogBilinearTrainer, "step", step)
    monkeypatch.setattr(module.time, "perf_counter", lambda: clock[0])
    trees = {f"arity {n}": hstree.build("huffman", text, arity=n) for n in (2, 3)}
    found = throughput(trees, text, rounds=3, dim=4, batch_size=32, learning_rate=0.2)
    assert found == {"arity 2": [64.0] * 3, "arity 3": [128.0] * 3}
    assert order == [2, 3] * 3


@pytest.mark.parametrize("delay", [1, 5, 7])
def test_a_turn_has_the_costs_of_whole_periods(text, monkeypatch, delay):
    """The network of `cnn` is computed once every `delay` batches."""
    layer = layer_spec(text.counted_vocabulary(), "cnn", delay=delay)
    steps, step = [0], LogBilinearTrainer.step

    def counted(self, *arguments):
        steps[0] += 1
        return step(self, *arguments)

    monkeypatch.setattr(LogBilinearTrainer, "step", counted)
    monkeypatch.setattr(module, "TURN", 0)
    throughput({"cnn": layer}, text, rounds=1, dim=4, batch_size=32)
    timed = steps[0] - 1  # the first one does not count
    assert timed == max(2, delay)


@pytest.mark.parametrize("per_position", [1e-6, 1e-3, 4e-3, 1.0])
def test_slow_layers_are_measured_on_few_positions(per_position, monkeypatch):
    clock, calls = [0.0], []

    def work(n):
        calls.append(n)
        clock[0] += per_position * n + 5e-5

    monkeypatch.setattr(module.time, "perf_counter", lambda: clock[0])
    found = module._per_second(work, 1000)
    most = {1e-6: 1000, 1e-3: 1000, 4e-3: 256, 1.0: 1}[per_position]
    assert max(calls) == most
    assert found == pytest.approx(most / (per_position * most + 5e-5), rel=1e-3)
    assert clock[0] < 2.5


@pytest.mark.skipif(not STATM.exists(), reason="needs Linux's /proc")
def test_a_turn_does_not_wait_for_memory(text, monkeypatch):
    """The pages of a new model are mapped before its first step."""
    mapped, step = [], LogBilinearTrainer.step
    unmapped = np.zeros(1 << 24, np.float32)
    parameters = LanguageModel.parameters
    before = resident()

    def recorded(self, *arguments):
        mapped.append(resident() - before)
        return step(self, *arguments)

    monkeypatch.setattr(LanguageModel, "parameters", lambda m: parameters(m) | {"x": unmapped})
    monkeypatch.setattr(LogBilinearTrainer, "step", recorded)
    monkeypatch.setattr(module, "TURN", 0)
    throughput({"tree": hstree.build("huffman", text)}, text, rounds=1, dim=4)
    assert mapped[0] > 0.9 * unmapped.nbytes


def resident():
    """Return the bytes of this process that are in memory."""
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
