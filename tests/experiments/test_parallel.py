"""A comparison with several jobs at a time: the same folder for any number of jobs."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import joblib
import pytest

import hstree
from hstree._files import locked
from hstree.data.vectors import WordVectors
from hstree.errors import InputError
from hstree.experiments import store
from hstree.experiments.candidate import BuilderCandidate
from hstree.experiments.job import build_tree
from hstree.experiments.setting import read_setting
from hstree.experiments.store import Store
from hstree.training.checkpoints import Checkpoints
from hstree.tree import Tree
from tests.experiments.conftest import CANDIDATES, QUICK, names

#: Times and values computed from them, which differ between runs.
TIMES = {
    "timings",
    "seconds",
    "scoring_seconds",
    "tokens_per_second",
    "vectors",
    "from_text_times_flat",
    "cheaper",
    "checksum",
    "recommendation",
}


def untimed(value):
    """Return JSON values without times."""
    if isinstance(value, dict):
        return {key: untimed(one) for key, one in value.items() if key not in TIMES}
    return [untimed(one) for one in value] if isinstance(value, list) else value


def content(home, kinds=("runs", "trees", "vectors")):
    """Return the content of the files of a comparison's jobs, without times."""
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
def test_two_jobs_leave_the_same_folder(alone, splits, tmp_path):
    how = {"n_jobs": 2, "speed_rounds": 0}
    hstree.compare(splits, CANDIDATES, tmp_path, stop=hstree.Epochs(2), **how, **QUICK)
    assert content(tmp_path) == content(alone)


@pytest.mark.parametrize(
    ("candidates", "stop"),
    [(["flat", "kn2"], hstree.Epochs(2)), (["huffman", "gmm", "flat"], hstree.Seconds(1))],
)
def test_finished_jobs_are_kept(splits, tmp_path, candidates, stop):
    """Under a limit of seconds, they depend on the number of threads of a job."""
    first = hstree.compare(
        splits, candidates, tmp_path, stop=stop, n_jobs=2, speed_rounds=1, **QUICK
    )
    assert names(first) == candidates
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
    watched(store, "write_record", lambda file, record: file)
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
    """One waits while the other builds, in `build_tree` itself or for the vectors."""
    build, built = BuilderCandidate.build, []

    def slowly(self, *arguments):
        built.append(str(self))
        time.sleep(0.3)
        return build(self, *arguments)

    monkeypatch.setattr(BuilderCandidate, "build", slowly)
    setting, parsed = read_setting(splits, candidates, hstree.Epochs(1), 1, QUICK)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda job: build_tree(job, setting, Store(tmp_path)), setting.jobs(*parsed)))
    assert len(built) == len(set(built))


def test_halving_trains_the_candidates_of_a_round_together(splits, tmp_path):
    candidates = ["huffman", "random", "flat"]
    how = {"stop": hstree.Halving(0.15), "n_jobs": 2, "speed_rounds": 0}
    comparison = hstree.compare(splits, candidates, tmp_path, **how, **QUICK)
    assert len(comparison.candidates) == 3
    rounds = json.loads((tmp_path / "rounds.json").read_text())["rounds"]
    assert rounds[0]["valid"].keys() == set(candidates)
    # at most 1.35 seconds would be left for each candidate, one after the other
    assert rounds[0]["seconds"] > 1.35
