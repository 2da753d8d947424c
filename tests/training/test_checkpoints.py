"""Training that was stopped and continues has the same bits as training without a stop."""

import os
import signal
import threading

import numpy as np
import pytest

import hstree
from hstree import progress
from hstree.data.splits import Splits
from hstree.kernels import backend_name
from hstree.layers.registry import LAYERS, LayerSpec
from hstree.models import new_model
from hstree.models.lbl import LogBilinearTrainer
from hstree.models.word2vec import OnlineTrainer
from hstree.training import checkpoints, interrupts
from hstree.training import trainer as trainer_module
from hstree.training.checkpoints import Checkpoints, State
from hstree.training.interrupts import held_back
from hstree.training.trainer import Trainer
from hstree.tree import Tree
from tests.needs import NUMBA
from tests.texts import corpus_of, markov_lines

#: Networks have tests of their own, tests/models/test_torch_models.py.
WORD2VEC = ["cbow", "skipgram"]
SMALL = {"epochs": 3, "dim": 4, "batch_size": 16, "random_state": 5}
#: Options with which a layer has gradients, a partition or a tree that last for several batches.
OPTIONS = {"cnn": {"delay": 3}, "target": {"candidates": 6}}
#: Every layer in the language model; every model over a tree; and word by word.
KINDS = [("lbl", name, {}) for name in LAYERS.all()]
KINDS += [(name, "tree", {}) for name in WORD2VEC]
needs_kernels = pytest.mark.skipif(backend_name() == "numpy", reason=NUMBA)
ONLINE = [pytest.param(name, "tree", {"online": True}, marks=needs_kernels) for name in WORD2VEC]
KINDS += ONLINE


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Return a training and a validation text."""
    folder = tmp_path_factory.mktemp("texts")
    return tuple(
        corpus_of(folder, markov_lines(tokens, seed)[0], name)
        for tokens, seed, name in ((600, 1, "train.txt"), (200, 2, "valid.txt"))
    )


def spec_of(layer, corpus):
    words = corpus.counted_vocabulary()
    over = hstree.build("huffman", words) if LAYERS.all()[layer].takes is Tree else words
    return LayerSpec(over, layer, **OPTIONS.get(layer, {}))


def bits(model):
    history = [(e.train, e.valid, e.learning_rate, e.share) for e in model.history_.epochs]
    return {name: array.tobytes() for name, array in model.parameters().items()}, history


def stopped_after(monkeypatch, steps):
    """Send Ctrl-C to the process in the given step, counted over all training runs."""
    batches, done = Trainer.epoch_batches, 0

    def counted(self, train, epoch=1):
        nonlocal done
        for batch in batches(self, train, epoch):
            done += 1
            if done in steps:
                signal.raise_signal(signal.SIGINT)
            yield batch

    monkeypatch.setattr(Trainer, "epoch_batches", counted)


@pytest.mark.parametrize(("model", "layer", "more"), KINDS)
def test_a_stopped_training_ends_in_the_same_bits(model, layer, more, texts, tmp_path, monkeypatch):
    def new():
        return new_model(spec_of(layer, texts[0]), model=model, **SMALL | more)

    whole = new().fit(*texts)
    stopped_after(monkeypatch, {3, 40, 41, 95})
    parts = [new().fit(*texts, checkpoints=tmp_path / "c")]
    while parts[-1].history_.interrupted:
        parts.append(new().fit(*texts, checkpoints=tmp_path / "c"))
    assert len(parts) > 3
    assert [part.history_.before > 0 for part in parts] == [False] + [True] * (len(parts) - 1)
    assert bits(parts[-1]) == bits(whole)


@pytest.mark.parametrize(("model", "layer", "more"), [("lbl", "tree", {}), *ONLINE])
def test_a_killed_training_goes_on(model, layer, more, texts, tmp_path, monkeypatch):
    whole = new_model(spec_of(layer, texts[0]), model=model, **SMALL | more).fit(*texts)
    part, again = (new_model(spec_of(layer, texts[0]), model=model, **SMALL | more) for _ in "ab")
    monkeypatch.setattr(checkpoints, "MINUTES", 0)
    trainer = part.trainer(part.windows(texts[0]))
    step, done = type(trainer).step, []

    def killed(self, *arguments):
        done.append(1)
        if len(done) == 50:
            raise SystemExit
        return step(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(type(trainer), "step", killed)
        with pytest.raises(SystemExit):
            part.fit(*texts, checkpoints=tmp_path / "c")
    assert bits(again.fit(*texts, checkpoints=tmp_path / "c")) == bits(whole)
    assert again.history_.before > 0


@pytest.mark.parametrize(("model", "layer", "more"), [("lbl", "tree", {}), *ONLINE])
def test_a_training_without_validation_goes_on_from_its_end(model, layer, more, texts, tmp_path):
    whole, again = (
        new_model(spec_of(layer, texts[0]), model=model, **SMALL | more).fit(
            texts[0], checkpoints=tmp_path / "c"
        )
        for _ in range(2)
    )
    assert again.history_.before > 0
    assert bits(again) == bits(whole)


@needs_kernels
def test_ctrl_c_before_the_first_word_leaves_the_model_as_it_was(texts, monkeypatch, tmp_path):
    def interrupted(self, *arguments):
        raise KeyboardInterrupt

    model, untouched = (
        new_model(spec_of("tree", texts[0]), model="cbow", online=True, **SMALL) for _ in "ab"
    )
    monkeypatch.setattr(OnlineTrainer, "_train_epoch", interrupted)
    model.fit(texts[0], checkpoints=tmp_path / "c")
    untouched.fit(texts[0])
    assert model.history_.interrupted
    assert bits(model) == bits(untouched)
    assert any(array.any() for array in model.parameters().values())


def test_a_state_is_of_the_vectors_that_the_training_began_with(texts, tmp_path, monkeypatch):
    spec = spec_of("tree", texts[0])
    one, other = (new_model(spec, **{**SMALL, "random_state": n}).fit(*texts) for n in (1, 2))
    whole = new_model(spec, **SMALL).fit(*texts, warm_start=one)
    from_other = new_model(spec, **SMALL).fit(*texts, warm_start=other)
    assert bits(whole) != bits(from_other)
    stopped_after(monkeypatch, {40})
    given = {"checkpoints": tmp_path / "c"}
    part = new_model(spec, **SMALL).fit(*texts, warm_start=one, **given)
    assert part.history_.interrupted
    for source, expected in ((other, from_other), (one, whole)):
        again = new_model(spec, **SMALL).fit(*texts, warm_start=source, **given)
        assert bits(again) == bits(expected)


def test_a_stopped_run_goes_on_and_leaves_no_checkpoints(texts, tmp_path, monkeypatch):
    splits = Splits(*texts, texts[1])
    options = {name: value for name, value in SMALL.items() if name != "epochs"}
    options |= {"stop": hstree.Epochs(SMALL["epochs"]), "speed_rounds": 0}
    job = "runs/huffman/seed-5"
    stopped_after(monkeypatch, {50})
    with pytest.raises(KeyboardInterrupt):
        hstree.compare(splits, ["huffman"], tmp_path / "r", **options)
    left = [path.name for path in (tmp_path / "r" / job).iterdir() if path.name != ".lock"]
    assert left == ["checkpoints"]
    stopped = hstree.compare(splits, ["huffman"], tmp_path / "r", **options)
    assert not (tmp_path / "r" / job / "checkpoints").exists()
    whole = hstree.compare(splits, ["huffman"], tmp_path / "whole", **options)
    assert stopped.candidates[0].perplexity == whole.candidates[0].perplexity
    one, other = (tmp_path / n / job / "model/weights.safetensors" for n in ("r", "whole"))
    assert one.read_bytes() == other.read_bytes()


def test_a_training_that_has_ended_is_kept_while_it_is_scored(texts, tmp_path):
    ended = []

    def interrupted(model):
        ended.append(bits(model))
        raise KeyboardInterrupt

    splits, how = Splits(*texts, texts[1]), {"stop": hstree.Epochs(3), "dim": 4, "folder": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        hstree.evaluate("huffman", splits, trained=interrupted, **how)
    again = hstree.evaluate("huffman", splits, **how)
    assert [bits(again.model)] == ended
    assert again.model.history_.before >= again.model.history_.seconds
    assert not list(tmp_path.rglob("*.checkpoint"))


def test_an_interrupted_validation_is_done_again(texts, tmp_path, monkeypatch):
    whole = new_model(spec_of("tree", texts[0]), **SMALL).fit(*texts)
    score, calls = trainer_module.score, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return score(*args)

    monkeypatch.setattr(trainer_module, "score", interrupted)
    for _ in range(2):
        part = new_model(spec_of("tree", texts[0]), **SMALL).fit(*texts, checkpoints=tmp_path / "c")
    assert bits(part) == bits(whole)
    assert part.history_.before > part.history_.epochs[0].seconds
    assert whole.history_.before == 0


def test_the_seconds_before_every_pause_are_counted(texts, tmp_path, monkeypatch):
    """Each batch takes a second, by a clock that only batches move."""
    now = [100.0]
    step = LogBilinearTrainer.step

    def timed(self, contexts, targets, *arguments):
        now[0] += len(targets) > 0  # a batch of nothing compiles the step
        return step(self, contexts, targets, *arguments)

    monkeypatch.setattr(trainer_module.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(LogBilinearTrainer, "step", timed)
    whole = new_model(spec_of("tree", texts[0]), **SMALL).fit(*texts)
    stopped_after(monkeypatch, {3, 40, 41, 95})
    began, parts = now[0], []
    while not parts or parts[-1].history_.interrupted:
        elapsed = now[0] - began
        part = new_model(spec_of("tree", texts[0]), **SMALL).fit(*texts, checkpoints=tmp_path)
        assert part.history_.before == elapsed
        parts.append(part)
    assert len(parts) > 3
    assert [e.seconds for e in parts[-1].history_.epochs] == [
        e.seconds for e in whole.history_.epochs
    ]


def restored(kept):
    return kept.restore(lambda state: state)


def test_two_are_kept(tmp_path):
    kept = Checkpoints(tmp_path, "0" * 64)
    for number in range(4):
        kept.save(State({"a": np.arange(3.0)}, {"number": number}))
    assert len(list(kept.folder.glob("*.checkpoint"))) == 2
    assert restored(kept).record["number"] == 3
    assert restored(Checkpoints(tmp_path, "0" * 16 + "1" * 48)) is None


STATE = State({"a": np.arange(3.0)}, {})


def test_the_checkpoints_of_a_training_in_another_process_stay(tmp_path):
    mine, same = Checkpoints(tmp_path, "0" * 64), Checkpoints(tmp_path, "0" * 64)
    mine.save(STATE)
    same.save(STATE)
    same.remove()
    assert restored(mine) is not None
    mine.remove()
    assert list(tmp_path.iterdir()) == []


def test_what_others_abandoned_is_removed_and_what_they_are_at_is_not(tmp_path):
    """Also where the clock has jumped."""
    abandoned, going_on, mine = (Checkpoints(tmp_path, key * 64) for key in "123")
    abandoned.save(STATE)
    abandoned.release()
    going_on.save(STATE)
    other = tmp_path / "mine"
    other.mkdir()
    for folder in (abandoned.folder, going_on.folder, other):
        os.utime(folder, (0, 0))
    mine.save(STATE)
    assert not abandoned.folder.exists()
    assert other.exists()
    assert restored(going_on) is not None


def damaged(content, rng):
    """Return a file with a byte changed, some of its bytes or anything else."""
    at = int(rng.integers(len(content)))
    changed = bytes([content[at] ^ (1 << int(rng.integers(8)))])
    return [content[:at] + changed + content[at + 1 :], content[:at], content + b"0"][at % 3]


@pytest.mark.filterwarnings("error")
def test_a_damaged_state_is_passed_over(tmp_path):
    rng = np.random.default_rng(0)
    for case in range(60):
        kept = Checkpoints(tmp_path / str(case), "0" * 64)
        for number in range(2):
            kept.save(State({"a": np.arange(3.0) + number}, {"number": number}))
        newest = max(kept.folder.iterdir())
        newest.write_bytes(damaged(newest.read_bytes(), rng))
        with pytest.warns(UserWarning, match=rf"cannot continue from {newest};[^\n]*$"):
            assert restored(kept).record["number"] == 0
        assert restored(kept).arrays["a"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays, record: record.pop("position"),
        lambda arrays, record: record["position"].update(batches="many"),
        lambda arrays, record: record["position"]["noise"].update(state=0),
        lambda arrays, record: record["history"]["epochs"].append({"epoch": 1}),
        lambda arrays, record: arrays.pop("node_weight"),
        lambda arrays, record: arrays.update(node_bias=np.zeros(1, np.float32)),
        lambda arrays, record: arrays.update(node_bias=arrays["node_bias"].astype(np.float64)),
    ],
)
def test_a_state_that_does_not_fit_is_passed_over(texts, tmp_path, monkeypatch, change):
    whole = new_model(spec_of("tree", texts[0]), **SMALL).fit(*texts)
    stopped_after(monkeypatch, {40})
    part = new_model(spec_of("tree", texts[0]), **SMALL).fit(*texts, checkpoints=tmp_path / "c")
    assert part.history_.interrupted
    key = part._checkpoints.key
    kept = Checkpoints(tmp_path / "c", key)
    state = restored(kept)
    change(state.arrays, state.record)
    kept.save(state)
    again = new_model(spec_of("tree", texts[0]), **SMALL)
    with pytest.warns(UserWarning, match="cannot continue from "):
        again.fit(*texts, checkpoints=tmp_path / "c")
    assert bits(again) == bits(whole)


def test_other_conditions_are_told(tmp_path, monkeypatch):
    kept = Checkpoints(tmp_path, "0" * 64)
    kept.save(State({}, {}))
    monkeypatch.setattr(checkpoints, "n_threads", lambda: 17)
    with pytest.warns(UserWarning, match="under other conditions: .*threads . -> 17"):
        restored(Checkpoints(tmp_path, "0" * 64))


def test_a_second_ctrl_c_is_not_held_back():
    done = []

    def body():
        with held_back() as is_stopped:
            done.append(is_stopped())
            signal.raise_signal(signal.SIGINT)
            done.append(is_stopped())
            signal.raise_signal(signal.SIGINT)
            done.append("after")

    with pytest.raises(KeyboardInterrupt):
        body()
    assert done == [False, True]
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(("seconds", "is_told"), [(0.0, False), (5.0, True)])
def test_who_waits_for_a_long_step_is_told(monkeypatch, seconds, is_told):
    monkeypatch.setattr(interrupts, "PATIENCE", 0.1)
    said, was_told = [], threading.Event()

    class Listening(progress.Silent):
        def say(self, text):
            said.append(text)
            was_told.set()

    def body():
        with held_back():
            signal.raise_signal(signal.SIGINT)
            was_told.wait(seconds)

    with progress.shown_by(Listening()), pytest.raises(KeyboardInterrupt):
        body()
    assert not was_told.wait(0.2) or is_told
    assert [text.startswith("interrupted: ") for text in said] == [True] * is_told


def test_a_training_outlives_a_full_disk(texts, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    whole = new_model(spec_of("tree", texts[0]), **SMALL).fit(*texts)
    monkeypatch.setattr(checkpoints, "MINUTES", 0)
    part = new_model(spec_of("tree", texts[0]), **SMALL)
    with pytest.warns(UserWarning, match="cannot be saved") as warned:
        part.fit(*texts, checkpoints=tmp_path / "file")
    assert len(warned) == 1
    assert bits(part) == bits(whole)
