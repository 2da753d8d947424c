"""A comparison with several jobs at a time: the same folder, whatever the number of jobs."""

import io
import json
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import joblib
import pytest

import hstree
from hstree._files import locked
from hstree.data.vectors import WordVectors
from hstree.errors import InputError, WorkerError
from hstree.experiments import results
from hstree.experiments.candidate import BuilderCandidate
from hstree.experiments.parallel import _unpack
from hstree.experiments.run import Runner
from hstree.training.checkpoints import Checkpoints
from hstree.tree import Tree
from tests.experiments.conftest import CANDIDATES, QUICK
from tests.texts import contents

#: What differs from one run to the next: times and what is made of them.
TIMES = {
    "steps",
    "seconds",
    "scoring_seconds",
    "tokens_per_second",
    "vectors",
    "from_text_times_flat",
    "cheaper",
    "checksum",
}


def untimed(value):
    """Return JSON values without times."""
    if isinstance(value, dict):
        return {key: untimed(one) for key, one in value.items() if key not in TIMES}
    return [untimed(one) for one in value] if isinstance(value, list) else value


def content(home, kinds=("runs", "trees", "vectors")):
    """Return what the files of a comparison's jobs hold, times left out."""
    files = [home / "results.json", home / "words.tsv"]
    files += [file for kind in kinds for file in (home / kind).rglob("*") if file.is_file()]
    contents = {}
    for file in files:
        data = file.read_bytes()
        is_timed = file.name in ("results.json", "result.json", "build.json")
        if file.name != ".lock":
            name = file.relative_to(home).as_posix()
            contents[name] = untimed(json.loads(data)) if is_timed else data
    return contents


@pytest.fixture(scope="package")
def alone(splits, tmp_path_factory):
    """The folder of a comparison with one job at a time."""
    home = tmp_path_factory.mktemp("alone")
    hstree.compare(splits, CANDIDATES, home, stop=hstree.Epochs(2), speed_rounds=0, **QUICK)
    return home


@pytest.mark.slow
@pytest.mark.parametrize("is_shared", [True, False], ids=["shared", "sent"])
def test_two_jobs_leave_the_same_folder(alone, splits, tmp_path, is_shared):
    how = {"n_jobs": 2, "is_shared": is_shared, "speed_rounds": 0}
    hstree.compare(splits, CANDIDATES, tmp_path, stop=hstree.Epochs(2), **how, **QUICK)
    assert content(tmp_path) == content(alone)


@pytest.mark.parametrize(
    ("candidates", "stop"),
    [(["flat", "kn2"], hstree.Epochs(2)), (["huffman", "gmm", "flat"], hstree.Seconds(1))],
)
def test_finished_jobs_are_kept(splits, tmp_path, candidates, stop):
    """Under seconds they are those of the share of threads that a job has."""
    first = hstree.compare(
        splits, candidates, tmp_path, stop=stop, n_jobs=2, speed_rounds=1, **QUICK
    )
    assert [candidate.name for candidate in first.candidates] == candidates
    second = hstree.compare(
        splits, candidates, tmp_path, stop=stop, n_jobs=2, speed_rounds=1, **QUICK
    )
    assert second == first


def test_a_tree_in_memory_is_a_candidate(splits, tmp_path):
    tree = hstree.build("huffman", splits.train.counted_vocabulary())
    candidates = [tree, "huffman"]
    how = {"stop": hstree.Epochs(1), "n_jobs": 2, "speed_rounds": 0}
    first, second = hstree.compare(splits, candidates, tmp_path, **how, **QUICK).candidates
    assert first.test == second.test


@pytest.fixture
def writes(monkeypatch):
    """The folders of a comparison that a job wrote into, and whether it held their locks.

    Others that are at work at the same time then wait, or take what was written.
    """
    seen = []

    def watched(owner, name, path_of):
        write = getattr(owner, name)

        def run(*arguments, **options):
            path = path_of(*arguments)
            jobs = (parent for parent in path.parents if parent.name.startswith(("seed-", "kn")))
            folder = next(jobs, path.parent)
            is_locked = True
            with suppress(InputError), locked(folder):
                is_locked = False
            seen.append((folder, is_locked))
            return write(*arguments, **options)

        monkeypatch.setattr(owner, name, run)

    watched(Tree, "save", lambda tree, file: file)
    watched(WordVectors, "save", lambda vectors, file: file)
    watched(results, "write_kept", lambda file, struct: file)
    watched(Checkpoints, "save", lambda checkpoints, state: checkpoints.folder)
    return seen


@pytest.mark.parametrize("stop", [hstree.Epochs(1), hstree.Seconds(0.2), hstree.Halving(0.1)])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_no_folder_of_a_job_is_written_without_its_lock(splits, tmp_path, writes, n_jobs, stop):
    candidates = ["random", "gmm", "gmm + ngrams", "kn2"]
    with joblib.parallel_config("threading", n_jobs=n_jobs):  # which takes the watched functions
        hstree.compare(splits, candidates, tmp_path, stop=stop, speed_rounds=0, **QUICK)
    folders = {folder.relative_to(tmp_path).as_posix() for folder, _ in writes}
    expected = {"trees/gmm/seed-0", "vectors/random/seed-0", "runs/gmm/seed-0", "runs/kn2"}
    assert expected <= folders
    assert [folder for folder, is_locked in writes if not is_locked] == []


@pytest.mark.parametrize("candidates", [["huffman", "huffman + ngrams"], ["random", "gmm"]])
def test_two_jobs_that_share_a_tree_build_it_once(splits, tmp_path, monkeypatch, candidates):
    """One waits while the other builds, in `Runner.tree` itself or for the vectors."""
    build, built = BuilderCandidate.build, []

    def slowly(self, *arguments):
        built.append(str(self))
        time.sleep(0.3)
        return build(self, *arguments)

    monkeypatch.setattr(BuilderCandidate, "build", slowly)
    runner = Runner.of(splits, candidates, tmp_path, hstree.Epochs(1), 1, QUICK)
    jobs = [runner.jobs_of(candidate)[0][0] for candidate in runner.candidates]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(runner.tree, jobs))
    assert len(built) == len(set(built))


def test_halving_trains_the_candidates_of_a_round_together(splits, tmp_path):
    candidates = ["huffman", "random", "flat"]
    how = {"stop": hstree.Halving(0.15), "n_jobs": 2, "speed_rounds": 0}
    comparison = hstree.compare(splits, candidates, tmp_path, **how, **QUICK)
    assert len(comparison.candidates) == 3
    rounds = json.loads((tmp_path / "rounds.json").read_text())["rounds"]
    assert rounds[0]["valid"].keys() == set(candidates)
    assert (
        rounds[0]["seconds"] > 1.35
    )  # which each candidate would have at most, one after the other


def packed_as(*names):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, "sent")
    return buffer.getvalue()


NAMES = ["../other/x", "runs/../../other/x", "{other}/x", "x", "./x", ".."]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("is_given", [True, False], ids=["folders of a job", "any folder"])
def test_files_that_lead_out_of_a_folder_are_refused(tmp_path, name, is_given):
    home, other = tmp_path / "home", tmp_path / "other"
    for folder in (home / "runs" / "a", home / "runs" / "b", other):
        folder.mkdir(parents=True)
        (folder / "mine").write_text("mine")
    before = contents(tmp_path)
    packed = packed_as("runs/a/good", name.format(other=other))
    with pytest.raises(WorkerError, match="use only workers that you trust"):
        _unpack(packed, home, [home / "runs" / "a"] if is_given else None)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["runs/b/x", "runs/x", "runs/ab/x", "results.json", "runs/a"])
def test_files_of_other_jobs_are_refused(tmp_path, name):
    home = tmp_path / "home"
    (home / "runs" / "b").mkdir(parents=True)
    (home / "runs" / "b" / "mine").write_text("mine")
    with pytest.raises(WorkerError, match=f"a worker sent the file '{name}', which its job does"):
        _unpack(packed_as(name), home, [home / "runs" / "a"])
    assert (home / "runs" / "b" / "mine").exists()


def test_the_folder_of_a_job_is_replaced(tmp_path):
    folder = tmp_path / "runs" / "a"
    folder.mkdir(parents=True)
    (folder / "old").touch()
    _unpack(packed_as("runs/a/new", "runs/a/model/new"), tmp_path, [folder])
    files = [path.as_posix() for path in contents(tmp_path)]
    assert files == ["runs/a/model/new", "runs/a/new"]
