"""Jobs in several processes: they end in any order, and outlive their workers."""

import os
import signal
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import joblib
import pytest

from hstree._parallel import n_parallel, n_threads, parallel, threads_of_job
from hstree.errors import InputError, OptionError, WorkerError
from tests.limits import use_threads

#: A program whose two jobs never end.
ENDLESS = """
import pathlib, time
from hstree._parallel import parallel
def job(name):
    pathlib.Path(name).touch()
    time.sleep(60)
if __name__ == "__main__":
    list(parallel(job, ["1.begun", "2.begun"], 2))
"""


def process(_):
    time.sleep(0.2)
    return os.getpid(), n_threads()


def die_once(folder, name):
    """Write a file; the job "victim" ends its process at its first time."""
    file = folder / name
    with file.open("a") as log:
        log.write("x")
    if name == "victim" and file.stat().st_size == 1:
        time.sleep(0.5)
        os._exit(1)
    return name


def die(_):
    os._exit(1)


def warn(number):
    warnings.warn(f"job {number}", RuntimeWarning, stacklevel=1)


def refuse(_):
    raise OptionError.about("dim", "is 0")


def fill_the_disk(_):
    raise OSError(28, "No space left on device", "a.npy")


def nested(_):
    return n_parallel(None), n_parallel(-1)


def test_one_job_at_a_time_runs_in_this_process():
    assert [pid for _, (pid, _) in parallel(process, range(2))] == [os.getpid()] * 2


def test_jobs_times_threads_are_the_cores(monkeypatch):
    use_threads(monkeypatch, 4)
    assert threads_of_job(1) == 4
    assert [threads for _, (_, threads) in parallel(process, range(2), 2)] == [2, 2]


def test_an_ambient_configuration_is_obeyed():
    with joblib.parallel_config(n_jobs=2):
        assert n_parallel() == 2
        assert os.getpid() not in [pid for _, (pid, _) in parallel(process, range(2))]


def test_a_job_has_no_jobs_of_its_own():
    assert [result for _, result in parallel(nested, range(2), 2)] == [(1, 1)] * 2


def test_only_what_a_dead_worker_left_is_done_again(tmp_path):
    jobs = ["first", "victim", "third"]
    results = dict(parallel(partial(die_once, tmp_path), jobs, 2))
    assert results == dict(enumerate(jobs))
    assert (tmp_path / "victim").read_text() == "xx"
    assert (tmp_path / "first").read_text() == "x"


@pytest.mark.slow
def test_workers_that_always_die_are_given_up():
    with pytest.raises(WorkerError, match="workers died 3 times"):
        list(parallel(die, range(2), 2))


def test_warnings_of_jobs_are_given_here():
    with pytest.warns(RuntimeWarning, match="job 0"), pytest.warns(RuntimeWarning, match="job 1"):
        list(parallel(warn, [0, 1], 2))


def test_an_error_of_a_job_is_raised_as_it_is():
    with pytest.raises(OptionError, match="dim is 0") as caught:
        list(parallel(refuse, range(2), 2))
    assert caught.value.option == "dim"


def test_a_full_disk_names_the_machine():
    with pytest.raises(WorkerError, match=r"a\.npy on .*: No space left on device"):
        list(parallel(fill_the_disk, range(2), 2))


def test_an_error_of_what_makes_the_jobs_is_raised():
    def jobs():
        yield 0
        yield 1
        raise InputError("the text ended")

    with pytest.raises(InputError, match="the text ended"):
        list(parallel(process, jobs(), 2))


def test_zero_jobs_are_refused():
    with pytest.raises(OptionError, match="n_jobs is 0; it must be from 1 to 65,536, or -1"):
        n_parallel(0)


needs_proc = pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")


@contextmanager
def started(folder, script, *begun):
    """Run a script in a session and a folder of its own; the body begins when files are there."""
    (folder / "script.py").write_text(script)
    how = {"stderr": subprocess.PIPE, "start_new_session": True, "cwd": folder}
    with subprocess.Popen([sys.executable, "script.py"], **how) as program:
        deadline = time.monotonic() + 60
        while not all((folder / name).exists() for name in begun) and time.monotonic() < deadline:
            time.sleep(0.05)
        yield program


def wait_for_all(session, seconds=10):
    """Wait until a session has no processes; return how long that took."""
    began = time.monotonic()
    while in_session(session) and time.monotonic() < began + seconds:
        time.sleep(0.05)
    return time.monotonic() - began


@needs_proc
def test_ctrl_c_ends_all_jobs_within_two_seconds(tmp_path):
    with started(tmp_path, ENDLESS, "1.begun", "2.begun") as program:
        os.killpg(program.pid, signal.SIGINT)
        assert wait_for_all(program.pid) < 2
        errors = program.stderr.read().decode()
        assert errors.count("Traceback") == 1, errors


@needs_proc
@pytest.mark.parametrize("n_jobs", [2, 3], ids=["busy", "one of them idle"])
def test_workers_end_with_a_killed_parent(tmp_path, n_jobs):
    script = ENDLESS.replace("2)", f"{n_jobs})")
    with started(tmp_path, script, "1.begun", "2.begun") as program:
        program.kill()
        assert wait_for_all(program.pid) < 3


def in_session(session):
    """Return the processes of a session, those that only wait to be reaped left out."""
    some = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, its_session = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue  # it has just ended
        if int(its_session) == session and state != "Z":
            some.append(int(stat.parent.name))
    return some
