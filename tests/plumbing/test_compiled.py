"""When compiled kernels are used: what is installed, what is asked for, where they are kept."""

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from hstree import _compiled
from tests.campaigns.interrupts import computed
from tests.needs import NUMBA

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason=NUMBA)
on_posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")

#: Prints what kernels are used, and whether numba was imported before that was asked.
REPORT = """
import sys
import hstree, hstree_cli
before = "numba" in sys.modules
from hstree._compiled import backend, kernels
print(before, kernels(), backend("layers") is not None)
"""
#: Prints how far a step moves a weight.
MOVED = """
import numpy as np
from hstree.training.adagrad import adagrad_rows
weight = np.zeros((1, 1), "f")
adagrad_rows(weight, np.zeros(1, "f"), np.zeros(1, int), weight + 0.01, 0.1, None)
print(weight[0, 0])
"""


def run(code, **environment):
    answer = subprocess.run(
        [sys.executable, "-W", "always", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stdout.strip(), answer.stderr


def run_with(folder, numba, code):
    """Run with a module in the place of the numba that is installed."""
    (folder / "numba.py").write_text(numba)
    return run(code, PYTHONPATH=f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


def test_without_numba_numpy_computes_alone(tmp_path):
    missing = "raise ModuleNotFoundError('no numba', name='numba')"
    assert run_with(tmp_path, missing, REPORT) == ("False numpy False", "")


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("raise ImportError('Numba needs NumPy 1.5 or less')", "Numba needs NumPy 1.5 or less"),
        ("version_info, __version__ = (0, 60, 0), '0.60.0'", "version 0.60.0 is older than 0.61"),
    ],
)
def test_a_numba_that_cannot_be_used_is_said_once(tmp_path, module, why):
    printed, warned = run_with(tmp_path, module, REPORT + "\nkernels()")
    assert printed == "False numpy False"
    assert warned.count("RuntimeWarning") == 1
    assert f"numba is installed but not used: {why}; upgrade it, or set HSTREE_FAST=0" in warned


@needs_numba
def test_numba_is_imported_when_it_is_first_needed():
    import numba

    assert run(REPORT)[0] == f"False numba {numba.__version__} True"
    assert run(REPORT, HSTREE_FAST="0")[0] == "False numpy False"


#: Have hstree choose the folder of machine code.
NO_FOLDER = "import os; del os.environ['NUMBA_CACHE_DIR']\n"


@needs_numba
def test_machine_code_is_kept_in_the_cache_folder(tmp_path):
    def times():
        run(NO_FOLDER + MOVED, HSTREE_CACHE=str(tmp_path), NUMBA_CACHE_DIR="")
        return {file: file.stat().st_mtime_ns for file in (tmp_path / "kernels").rglob("*.nbc")}

    first = times()
    assert first
    assert times() == first


@pytest.fixture
def copied(tmp_path):
    """Return a copy of the package, a folder for its machine code, and what runs a step there."""
    package, code = tmp_path / "copy" / "hstree", tmp_path / "code"
    shutil.copytree(Path(_compiled.__file__).parent, package)
    environment = {"PYTHONPATH": str(package.parent), "PYTHONSAFEPATH": "1"}
    return package, code, lambda: run(MOVED, NUMBA_CACHE_DIR=str(code), **environment)[0]


@needs_numba
def test_a_constant_of_another_file_is_compiled_anew(copied):
    package, code, step = copied
    before = step()
    file = package / "training" / "adagrad.py"
    text = file.read_text()
    file.write_text(text.replace("TINY = 1e-10", "TINY = 1e-2"))
    assert step() != before
    file.write_text(text)
    assert step() == before
    assert len(list(code.iterdir())) == 2


@needs_numba
def test_damaged_machine_code_is_compiled_anew(copied):
    _, code, step = copied
    before = step()
    for suffix, kept in (("nbi", 0), ("nbc", 40)):
        files = list(code.rglob(f"*.{suffix}"))
        assert files
        for file in files:
            file.write_bytes(file.read_bytes()[:kept])
        assert step() == before


@on_posix
@needs_numba
def test_a_full_disk_costs_machine_code_alone(tmp_path):
    limit = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))
"""
    unlimited, _ = run(MOVED)
    printed, warned = run(NO_FOLDER + limit + MOVED, HSTREE_CACHE=str(tmp_path), NUMBA_CACHE_DIR="")
    assert (printed, warned) == (unlimited, "")
    assert not list(tmp_path.rglob("*.nbc"))


@on_posix
@needs_numba
@pytest.mark.parametrize("variable", ["HSTREE_CACHE", "NUMBA_CACHE_DIR"])
def test_a_cache_folder_that_cannot_be_written_is_no_fault(tmp_path, variable):
    """numba would write beside the sources instead."""
    (tmp_path / "file").write_text("")
    kept = set(Path(_compiled.__file__).parent.rglob("*.nbi"))
    code = "import os; os.environ['NUMBA_CACHE_DIR'] or os.environ.pop('NUMBA_CACHE_DIR')\n" + MOVED
    environment = {"NUMBA_CACHE_DIR": "", variable: str(tmp_path / "file")}
    assert run(code, **environment) == run(MOVED)
    assert set(Path(_compiled.__file__).parent.rglob("*.nbi")) == kept


def modes(folder):
    """Return the permissions of a folder and of all in it."""
    paths = folder, *folder.rglob("*")
    return {stat.S_IMODE(path.stat().st_mode) for path in paths}


#: Have files and folders be made for all to write, as far as Python does not say otherwise.
OPEN = "import os; os.umask(0)\n"


@on_posix
@needs_numba
@pytest.mark.parametrize("variable", ["HSTREE_CACHE", "NUMBA_CACHE_DIR"])
def test_machine_code_is_kept_where_nobody_else_can_write(tmp_path, variable):
    folder = tmp_path / "new" / "cache"
    environment = {"NUMBA_CACHE_DIR": "", variable: str(folder)}
    code = OPEN + "os.environ['NUMBA_CACHE_DIR'] or os.environ.pop('NUMBA_CACHE_DIR')\n" + MOVED
    expected, _ = run(MOVED)
    for _ in range(2):
        assert run(code, **environment) == (expected, "")
        assert not [mode for mode in modes(tmp_path / "new") if mode & 0o022]
    kept = list(folder.rglob("*.nbc"))
    assert kept
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    before = [file.stat().st_mtime_ns for file in kept]
    run(code, **environment)
    assert [file.stat().st_mtime_ns for file in kept] == before


@on_posix
@needs_numba
@pytest.mark.parametrize("pattern", ["hstree-*", "hstree-*/*/*.nbi"])
def test_code_that_others_can_change_is_not_read(tmp_path, pattern):
    """It is compiled in memory, and one line says so."""
    expected, _ = run(MOVED, NUMBA_CACHE_DIR=str(tmp_path))
    path = min(tmp_path.glob(pattern))
    path.chmod(0o777)
    for file in tmp_path.rglob("*.nbc"):
        file.write_bytes(b"code of somebody else")
    printed, warned = run(MOVED, NUMBA_CACHE_DIR=str(tmp_path))
    assert printed == expected
    (said,) = re.findall(r"UserWarning: (.*)", warned)
    assert said.startswith(f"compiled kernels are not kept: others own {path} or can write to it")
    assert {file.read_bytes() for file in tmp_path.rglob("*.nbc")} == {b"code of somebody else"}


@needs_numba
def test_compiling_is_a_task_of_progress_and_that_of_others_is_not(tmp_path):
    code = f"""
import numba
from hstree import progress
class Sink(progress.Silent):
    def task(self, title, total, unit):
        print(title)
        return super().task()
with progress.shown_by(Sink()):
    def theirs(x):
        return x + 1
    theirs.__module__ = None
    numba.njit(theirs)(1)
    print("theirs"){MOVED.replace(chr(10), chr(10) + "    ")}
print(numba.config.CACHE_DIR == {str(tmp_path)!r})
"""
    printed, _ = run(code, NUMBA_CACHE_DIR=str(tmp_path))
    theirs, compiling, _, unchanged = printed.splitlines()
    assert (theirs, unchanged) == ("theirs", "True")
    assert compiling == "compiling kernels"


@on_posix
@needs_numba
def test_ctrl_c_is_answered_while_kernels_compile(tmp_path):
    code = f"""
from hstree import progress
class Sink(progress.Silent):
    def task(self, title, *_, **__):
        print(title, flush=True)
        return super().task()
with progress.shown_by(Sink()):{MOVED.replace(chr(10), chr(10) + "    ")}
"""
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment}
    with subprocess.Popen(command, **how) as process:
        assert process.stdout.readline() == b"compiling kernels\n"
        time.sleep(0.2)
        began, before = time.monotonic(), computed(process.pid)
        process.send_signal(signal.SIGINT)
        used = before
        while process.poll() is None:
            used = max(used, computed(process.pid))
            time.sleep(0.005)
        assert process.returncode == -signal.SIGINT
        # on a busy machine, the clock says little
        assert min(time.monotonic() - began, used - before) < 1


@needs_numba
@pytest.mark.parametrize(
    ("variable", "work", "is_compiled"),
    [
        ("", (_compiled.WORTH_TOKENS - 1,), False),
        ("", (_compiled.WORTH_TOKENS,), True),
        ("", (10**9, 59.0), False),
        ("", (1, 60.0), True),
        ("1", (1,), True),
        ("0", (10**9,), False),
    ],
)
def test_kernels_do_long_work(monkeypatch, variable, work, is_compiled):
    monkeypatch.setenv("HSTREE_FAST", variable)
    with _compiled.if_it_pays(*work):
        assert (_compiled.kernels() != "numpy") == is_compiled


@needs_numba
def test_work_within_work_is_done_likewise(monkeypatch):
    monkeypatch.delenv("HSTREE_FAST")
    with _compiled.if_it_pays(1), _compiled.if_it_pays(10**9):
        assert _compiled.kernels() == "numpy"
    with _compiled.if_it_pays(10**9), _compiled.if_it_pays(1):
        assert _compiled.kernels() != "numpy"


@needs_numba
def test_numpy_alone_ends_with_its_block_and_can_be_nested():
    fast = _compiled.kernels()
    with _compiled.numpy_alone():
        assert _compiled.kernels() == "numpy"
        with _compiled.numpy_alone(False):
            assert _compiled.kernels() == "numpy"
    with _compiled.numpy_alone(False):
        assert _compiled.kernels() == fast != "numpy"


@pytest.mark.parametrize(
    ("value", "cores"), [("", None), ("1", 1), ("1,4", 1), ("many", None), ("100000", None)]
)
def test_threads_are_those_of_openmp_and_at_most_the_cores(monkeypatch, value, cores):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    all_cores = _compiled.n_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert _compiled.n_threads() == (cores or all_cores)
