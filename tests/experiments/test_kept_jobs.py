"""The folder of a comparison: when results are written, and that damage is found."""

import json
import re
import shutil
import threading
from pathlib import Path

import msgspec
import pytest

import hstree
from hstree import report
from hstree._files import remove
from hstree.errors import FileFormatError, HstreeError
from hstree.experiments import results, speed, store, writer
from hstree.experiments.results import JobResult
from hstree.experiments.store import Store
from hstree.models.lbl import LogBilinearTrainer
from tests.damage import IN_THE_PLACE, changed_values
from tests.experiments.conftest import compare, names, perplexities

RULE = hstree.Epochs(1)


@pytest.fixture
def written(monkeypatch):
    """The names of the candidates in the results, each time that they are written."""
    written = []

    def save(comparison, folder):
        written.append(names(comparison))
        results_save(comparison, folder)

    results_save = results.save
    monkeypatch.setattr(results, "save", save)
    return written


def interrupt_after(monkeypatch, n_steps):
    """Raise KeyboardInterrupt from a training step once so many steps were done."""
    step, steps = LogBilinearTrainer.step, []

    def interrupted(self, *arguments):
        steps.append(None)
        if len(steps) > n_steps:
            raise KeyboardInterrupt
        return step(self, *arguments)

    monkeypatch.setattr(LogBilinearTrainer, "step", interrupted)


# When results are written


def test_results_are_not_written_once_per_kept_candidate(splits, tmp_path, written):
    candidates = [f"random random_state={seed}" for seed in range(6)]
    compare(splits, candidates, tmp_path)
    written.clear()
    compare(splits, ["flat"], tmp_path)
    assert written == [[*candidates, "flat"]]
    written.clear()
    compare(splits, candidates, tmp_path)
    assert written == [[*candidates, "flat"]]


def test_the_number_of_writes_is_bounded_where_they_take_long(
    splits, tmp_path, written, monkeypatch
):
    monkeypatch.setattr(writer, "_WRITING_SECONDS", 0.0)
    monkeypatch.setattr(writer, "_WRITING_FRACTION", 0.0)
    compare(splits, [f"random random_state={seed}" for seed in range(4)], tmp_path)
    assert list(map(len, written)) == [4]


@pytest.mark.parametrize("stop", [RULE, hstree.Halving(0.1)])
def test_an_interrupted_comparison_has_results_of_what_is_finished(
    splits, tmp_path, monkeypatch, stop
):
    with monkeypatch.context() as patched:
        interrupt_after(patched, 3)
        with pytest.raises(KeyboardInterrupt):
            compare(splits, ["kn2", "huffman", "flat"], tmp_path, stop=stop)
    stopped = results.load(tmp_path)
    assert names(stopped) == ["kn2"]
    assert stopped.pending == ["huffman", "flat"]
    report.write(stopped, tmp_path / "report.html")
    assert compare(splits, ["kn2", "huffman", "flat"], tmp_path, stop=stop).pending == []


def test_an_interruption_before_the_first_result_leaves_the_folder_to_any_comparison(
    splits, tmp_path, monkeypatch
):
    with monkeypatch.context() as patched:
        interrupt_after(patched, 3)
        with pytest.raises(KeyboardInterrupt):
            compare(splits, ["huffman", "flat"], tmp_path)
    assert not (tmp_path / results.JSON).exists()
    assert names(compare(splits, ["flat"], tmp_path, stop=hstree.Epochs(2))) == ["flat"]


@pytest.mark.parametrize("refusal", ["few minutes", "file of runs"])
def test_a_refused_comparison_leaves_the_folder_to_any_comparison(splits, tmp_path, refusal):
    stop = hstree.Halving(0.001)
    if refusal == "file of runs":
        stop = hstree.Epochs(2)
        (tmp_path / "runs").write_text("a file")
    with pytest.raises(HstreeError):
        compare(splits, ["huffman", "random", "flat"], tmp_path, stop=stop)
    assert not (tmp_path / results.JSON).exists()
    (tmp_path / "runs").unlink(missing_ok=True)
    assert names(compare(splits, ["flat"], tmp_path)) == ["flat"]


def test_a_comparison_without_candidates_leaves_the_folder_to_any_comparison(splits, tmp_path):
    finished = compare(splits, ["flat"], tmp_path)
    results.save(msgspec.structs.replace(finished, candidates=[], choice=None), tmp_path)
    stop = hstree.Epochs(2)
    assert names(compare(splits, ["huffman"], tmp_path, stop=stop)) == ["huffman"]


def test_candidates_finished_since_the_last_write_are_in_the_results_of_an_interruption(
    splits, tmp_path, monkeypatch
):
    monkeypatch.setattr(writer, "_WRITING_SECONDS", 0.0)
    monkeypatch.setattr(writer, "_WRITING_FRACTION", 0.0)
    monkeypatch.setattr(
        "hstree.experiments.speed.kept_speeds", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        compare(splits, ["huffman", "flat"], tmp_path)
    assert names(results.load(tmp_path)) == [
        "huffman",
        "flat",
    ]


def test_an_interruption_while_finished_jobs_are_read_leaves_the_results_as_they_were(
    splits, tmp_path, monkeypatch
):
    candidates = ["huffman", "random", "flat"]
    compare(splits, candidates, tmp_path)
    before = (tmp_path / "results.json").read_bytes()
    kept, calls = Store.load_result, []

    def interrupted(self, folder, *arguments):
        calls.append(folder)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return kept(self, folder, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(Store, "load_result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            compare(splits, ["balanced"], tmp_path)
    assert (tmp_path / "results.json").read_bytes() == before


@pytest.mark.filterwarnings("ignore:.*all of them train again")
def test_candidates_that_were_to_train_anew_stay_after_an_interruption(
    splits, tmp_path, monkeypatch
):
    """By halving, another candidate changes the seconds of all."""
    stop = hstree.Halving(0.1)
    compare(splits, ["kn2", "huffman", "flat"], tmp_path, stop=stop)
    shutil.rmtree(tmp_path / "runs/kn2")  # so that results are written before the interruption
    with monkeypatch.context() as patched:
        interrupt_after(patched, 3)
        with pytest.raises(KeyboardInterrupt):
            compare(splits, ["random"], tmp_path, stop=stop)
    assert results.load(tmp_path).pending == ["huffman", "flat", "random"]
    again = compare(splits, ["random"], tmp_path, stop=stop)
    assert set(names(again)) == {"kn2", "huffman", "flat", "random"}


def test_the_order_of_candidates_is_the_same_after_an_interruption(splits, tmp_path, monkeypatch):
    candidates = ["huffman", "flat", "kn2"]
    with monkeypatch.context() as patched:
        interrupt_after(patched, 3)
        with pytest.raises(KeyboardInterrupt):
            compare(splits, candidates, tmp_path, stop=hstree.Halving(0.1))
    assert names(results.load(tmp_path)) == ["kn2"]
    again = compare(splits, candidates, tmp_path, stop=hstree.Halving(0.1))
    assert names(again) == candidates


# Damage


#: Candidates with every kind of file: vectors, trees, models, n-gram models.
CANDIDATES = ["gmm", "flat", "sampled samples=3", "kn2"]


@pytest.fixture(scope="module")
def finished(splits, tmp_path_factory):
    """A comparison with speeds; tests copy its folder."""
    home = tmp_path_factory.mktemp("finished")
    return compare(splits, CANDIDATES, home, speed_rounds=1)


@pytest.fixture
def folder(finished, tmp_path):
    return Path(shutil.copytree(finished.folder, tmp_path / "c"))


def test_every_changed_figure_of_kept_work_is_found(finished, tmp_path):
    document = json.loads((finished.folder / RUN / "result.json").read_bytes())
    file, n_changes = tmp_path / "kept.json", 0
    for changed in changed_values(document):
        file.write_text(json.dumps(changed))
        with pytest.raises(FileFormatError, match=r"is damaged|cannot read"):
            store.read_record(file, JobResult)
        n_changes += 1
    assert n_changes > 20


def test_kept_numbers_that_json_lacks_are_read_as_null(tmp_path):
    spread = results.Spread(mean=None, sd=float("inf"), n=1)
    store.write_record(tmp_path / "kept.json", spread)
    kept = store.read_record(tmp_path / "kept.json", results.Spread)
    assert kept == results.Spread(mean=None, sd=None, n=1)


RUN, TREE, VECTORS = "runs/gmm/seed-0", "trees/gmm/seed-0", "vectors/random/seed-0"
#: Damage to files of a finished comparison; None removes them.
DAMAGE = [
    (f"{RUN}/model/weights.safetensors", lambda data: data[:-9] + b"123456789"),
    (f"{RUN}/model/config.json", lambda data: b"[" * 100_000),
    (f"{RUN}/result.json", lambda data: re.sub(rb'(?<="perplexity": )\{[^}]*}', b"{}", data)),
    (f"{RUN}/result.json", lambda data: data.replace(b'"training":', b'"training": 1e400, "x":')),
    (f"{RUN}/test_nll.npy", lambda data: data[:-8]),
    (f"{RUN}/valid_nll.npy", lambda data: data[:-8] + bytes(8)),
    ("runs/kn2/test_nll.npy", None),
    (f"{TREE}/tree.json", lambda data: data[:50]),
    (f"{TREE}/build.json", lambda data: b"[" * 100_000),
    (f"{VECTORS}/vectors.npy", lambda data: data[:-8] + bytes(8)),
    (f"{VECTORS}/vectors.npy", None),
    ("speeds.json", lambda data: b"{"),
    ("results.json", lambda data: b"[" * 100_000),
    ("results.json", lambda data: data.replace(b'"jobs"', b'"jabs"')),
]


@pytest.mark.parametrize(("name", "change"), DAMAGE)
def test_what_is_damaged_is_named_and_done_anew(finished, folder, splits, name, change):
    file = folder / name
    file.unlink() if change is None else file.write_bytes(change(file.read_bytes()))
    consequence = "again|ignored"
    with pytest.warns(UserWarning, match=f"{file.parent}.*({consequence})"):
        again = compare(splits, CANDIDATES, folder, speed_rounds=1)
    assert perplexities(again) == perplexities(finished)
    assert hstree.load_model(folder / RUN / "model").perplexity(splits.test)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_vectors_without_their_words_build_no_tree(finished, folder, splits):
    (folder / VECTORS / "vectors.labels.tsv").unlink()
    shutil.rmtree(folder / "trees/gmm")
    again = compare(splits, CANDIDATES, folder)
    assert again.candidate("gmm").tree == finished.candidate("gmm").tree


def test_scores_of_all_tokens_are_those_of_the_model_that_is_trained_anew(
    splits, tmp_path, monkeypatch
):
    monkeypatch.setattr("hstree.experiments.setting.SAMPLE", 100)
    stop = hstree.Seconds(1.0)
    before = compare(splits, ["huffman"], tmp_path, stop=stop)
    assert before.candidates[0].sample is None
    home = tmp_path / "runs/huffman/seed-0"
    divided_result = json.loads((home / "result.json").read_bytes())
    divided_result["parameters"] += 1
    (home / "result.json").write_text(json.dumps(divided_result))
    # a changed training, as of a busier machine in the same seconds
    monkeypatch.setattr(LogBilinearTrainer, "learning_rate", lambda *_: 0.01)
    with pytest.warns(UserWarning, match=r"result.json is damaged"):
        again = compare(splits, ["huffman"], tmp_path, stop=stop)
    model = hstree.load_model(home / "model")
    assert again.candidates[0].test == pytest.approx(model.perplexity(splits.test))
    assert again.candidates[0].test != pytest.approx(before.candidates[0].test)


#: Files that a user may have put there, which are not removed: a message asks to.
NOT_REMOVED = {"results.json", "results.csv", "words.tsv", ".lock"}


def within_a_minute(function):
    """Return the result of a function; fail if it waits, as for a pipe."""
    outcome = []

    def run():
        try:
            outcome.append(function())
        except HstreeError as error:
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert outcome, "it waits for ever, or raised what is no HstreeError"
    return outcome[0]


def files_of(folder):
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


FOLDERS = ["runs", "trees", "vectors", "runs/gmm", "trees/gmm", "runs/kn2", RUN, TREE, VECTORS]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", IN_THE_PLACE)
def test_whatever_is_in_a_place_it_is_done_anew_or_refused(
    request, finished, splits, tmp_path, kind
):
    places = [*files_of(finished.folder), *FOLDERS, f"{RUN}/model"]
    if not request.config.getoption("--slow"):  # some places, others for each kind
        places = places[list(IN_THE_PLACE).index(kind) % 6 :: 6]
    for name in places:
        home = Path(shutil.copytree(finished.folder, tmp_path / "c"))
        is_file = (home / name).is_file()
        remove(home / name)
        IN_THE_PLACE[kind](home / name)
        again = within_a_minute(lambda home=home: compare(splits, CANDIDATES, home, speed_rounds=1))
        if isinstance(again, HstreeError):
            assert "\n" not in str(again)
            assert Path(name).name in str(again) or kind == "dangling"
            assert Path(name).name in NOT_REMOVED or not is_file, again
        else:
            assert perplexities(again) == perplexities(finished), name
            assert results.load(home).candidates == again.candidates
        shutil.rmtree(home)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", IN_THE_PLACE)
def test_checkpoints_in_whose_place_anything_is_stop_no_training(splits, tmp_path, kind):
    place = tmp_path / "c/runs/flat/seed-0/checkpoints"
    place.parent.mkdir(parents=True)
    IN_THE_PLACE[kind](place)
    again = within_a_minute(lambda: compare(splits, ["flat"], tmp_path / "c"))
    assert again.candidates[0].perplexity["test"].mean > 1


def test_speeds_are_measured_again_after_a_failure(tmp_path, monkeypatch):
    turns = iter([({"training": {"flat": [1.0]}}, {}), ({}, {"flat": "bad"})])
    monkeypatch.setattr(speed, "_in_turns", lambda *_: next(turns))
    home = Store(tmp_path)
    arguments = {"flat": tmp_path}, None, 1
    assert speed.kept_speeds(home, {"flat": "first"}, *arguments)[0] == {"training": {"flat": [1]}}
    failed = {"training": {}}, {"flat": "bad"}
    assert speed.kept_speeds(home, {"flat": "second"}, *arguments) == failed
    # the speeds under the first key are not those of the model with the second key
    with pytest.raises(StopIteration):
        speed.kept_speeds(home, {"flat": "second"}, *arguments)
