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

import hstree
from hstree._parallel import n_threads
from hstree.kernels import backend_name, numpy_for_short_runs, numpy_only
from hstree.kernels.backend import WORTH_TOKENS
from tests.campaigns.interrupts import computed
from tests.needs import NUMBA

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason=NUMBA)
on_posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")

#: Prints what kernels are used, and whether numba was imported before that was asked.
REPORT = """
import sys
import hstree, hstree_cli
before = "numba" in sys.modules
from hstree.kernels import backend_name, compiled
print(before, backend_name(), compiled() is not None)
"""
#: Fits and uses a classifier, and prints whether that imported numba.
CLASSIFIED = """
import sys
import numpy as np
from hstree.interop.sklearn import {0}
X = np.random.default_rng(0).random((60, 5))
{0}().fit(X, np.arange(60) % 20).predict_proba(X)
print("numba" in sys.modules)
"""
#: Prints the sum of two numbers by the smallest compiled function.
SUMMED = """
import numpy as np
from hstree.kernels.decisions import group_sums
sums = np.zeros(1, "f")
group_sums(np.ones(2, "f"), np.array([0, 2]), np.arange(2, dtype=np.int32), sums)
print(sums[0])
"""
#: Compiles a larger function, which takes a second or more.
COMPILED = """
import numpy as np
from hstree.kernels.functions import SearchedTree, label_log_prob
tree = SearchedTree(np.array([0, 2]), np.array([-1, -2]), np.array([0, 1]))
label_log_prob(np.zeros((1, 1), "f"), tree, 2, has_single_codes=True)
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
    """Run with a module instead of the numba that is installed."""
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
    printed, warned = run_with(tmp_path, module, REPORT + "\nbackend_name()")
    assert printed == "False numpy False"
    assert warned.count("RuntimeWarning") == 1
    assert f"numba is installed but not used: {why}; upgrade it, or set HSTREE_FAST=0" in warned


@needs_numba
def test_numba_is_imported_when_it_is_first_needed():
    import numba

    assert run(REPORT)[0] == f"False numba {numba.__version__} True"
    assert run(REPORT, HSTREE_FAST="0")[0] == "False numpy False"


@needs_numba
@pytest.mark.parametrize(
    "name", ["HierarchicalSoftmaxClassifier", "ProbabilisticLabelTreeClassifier"]
)
def test_a_small_classifier_is_fitted_without_numba(name):
    assert run(CLASSIFIED.format(name))[0] == "False"


#: Have hstree choose the folder of machine code.
NO_FOLDER = "import os; del os.environ['NUMBA_CACHE_DIR']\n"
IF_EMPTY_NO_FOLDER = (
    "import os; os.environ['NUMBA_CACHE_DIR'] or os.environ.pop('NUMBA_CACHE_DIR')\n"
)


@pytest.fixture
def copied(tmp_path):
    """Return a copy of the package, a folder for its machine code, and what runs a step there."""
    package, code = tmp_path / "copy" / "hstree", tmp_path / "code"
    shutil.copytree(Path(hstree.__file__).parent, package)
    environment = {"PYTHONPATH": str(package.parent), "PYTHONSAFEPATH": "1"}
    return package, code, lambda: run(SUMMED, NUMBA_CACHE_DIR=str(code), **environment)[0]


@needs_numba
def test_a_constant_of_another_file_is_compiled_anew(copied):
    package, code, step = copied
    before = step()
    file = package / "kernels" / "arithmetic.py"
    text = file.read_text()
    file.write_text(text.replace("ZERO = np.float32(0)", "ZERO = np.float32(1)"))
    assert step() != before
    file.write_text(text)
    assert step() == before
    assert len(list(code.iterdir())) == 2


@needs_numba
@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_empty_files_of_machine_code_are_compiled_anew(copied, suffix):
    """A power failure may leave them."""
    _, code, step = copied
    before = step()
    files = list(code.rglob(f"*.{suffix}"))
    assert files
    for file in files:
        file.write_bytes(b"")
    assert step() == before
    assert all(file.stat().st_size for file in code.rglob("*.nb?"))


@needs_numba
def test_a_disk_that_is_nearly_full_gets_no_machine_code(tmp_path):
    limit = """
import shutil
shutil.disk_usage = lambda path: type("Usage", (), {"free": 1000})
"""
    unlimited, _ = run(SUMMED)
    printed, warned = run(
        NO_FOLDER + limit + SUMMED, HSTREE_CACHE=str(tmp_path), NUMBA_CACHE_DIR=""
    )
    assert (printed, warned) == (unlimited, "")
    assert not list(tmp_path.rglob("*.nbc"))


@on_posix
@needs_numba
@pytest.mark.parametrize("variable", ["HSTREE_CACHE", "NUMBA_CACHE_DIR"])
def test_a_cache_folder_that_cannot_be_written_is_no_fault(tmp_path, variable):
    """numba would write beside the sources instead."""
    (tmp_path / "file").write_text("")
    kept = set(Path(hstree.__file__).parent.rglob("*.nbi"))
    code = (
        "import os; os.environ['NUMBA_CACHE_DIR'] or os.environ.pop('NUMBA_CACHE_DIR')\n" + SUMMED
    )
    environment = {"NUMBA_CACHE_DIR": "", variable: str(tmp_path / "file")}
    assert run(code, **environment) == run(SUMMED)
    assert set(Path(hstree.__file__).parent.rglob("*.nbi")) == kept


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
    code = OPEN + IF_EMPTY_NO_FOLDER + SUMMED
    expected, _ = run(SUMMED)
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
    expected, _ = run(SUMMED, NUMBA_CACHE_DIR=str(tmp_path))
    path = min(tmp_path.glob(pattern))
    path.chmod(0o777)
    for file in tmp_path.rglob("*.nbc"):
        file.write_bytes(b"code of somebody else")
    printed, warned = run(SUMMED, NUMBA_CACHE_DIR=str(tmp_path))
    assert printed == expected
    (said,) = re.findall(r"UserWarning: (.*)", warned)
    assert said.startswith(f"compiled kernels are not kept: others own {path} or can write to it")
    assert {file.read_bytes() for file in tmp_path.rglob("*.nbc")} == {b"code of somebody else"}


@needs_numba
def test_compiling_is_said_once(tmp_path):
    code = f"""
from hstree import progress
class Sink(progress.Silent):
    def say(self, line):
        print(line)
with progress.shown_by(Sink()):
    import numba{SUMMED.replace(chr(10), chr(10) + "    ")}
print(numba.config.CACHE_DIR == {str(tmp_path)!r})
"""
    said, _, unchanged = run(code, NUMBA_CACHE_DIR=str(tmp_path))[0].splitlines()
    assert said.startswith("compiling kernels, once for this machine")
    assert unchanged == "True"
    assert len(run(code, NUMBA_CACHE_DIR=str(tmp_path))[0].splitlines()) == 2


@on_posix
@needs_numba
def test_ctrl_c_is_answered_while_kernels_compile(tmp_path):
    code = f"""
from hstree import progress
class Sink(progress.Silent):
    def say(self, line):
        print(line[:17], flush=True)
with progress.shown_by(Sink()):{COMPILED.replace(chr(10), chr(10) + "    ")}
"""
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment}
    with subprocess.Popen(command, **how) as process:
        assert process.stdout.readline() == b"compiling kernels\n"
        time.sleep(0.2)
        began, before = time.monotonic(), computed(process.pid)
        used = before
        while process.poll() is None:
            # Python drops an exception that is raised in a destructor or in a callback from C,
            # where the compiler spends some of its time, so that one signal can be lost.
            process.send_signal(signal.SIGINT)
            used = max(used, computed(process.pid))
            time.sleep(0.1)
        assert process.returncode == -signal.SIGINT
        # on a busy machine, the clock says little
        assert min(time.monotonic() - began, used - before) < 1


@needs_numba
@pytest.mark.parametrize(
    ("variable", "work", "is_compiled"),
    [
        ("", (WORTH_TOKENS - 1,), False),
        ("", (WORTH_TOKENS,), True),
        ("", (10**9, 59.0), False),
        ("", (1, 60.0), True),
        ("1", (1,), True),
        ("0", (10**9,), False),
    ],
)
def test_kernels_do_long_work(monkeypatch, variable, work, is_compiled):
    monkeypatch.setenv("HSTREE_FAST", variable)
    with numpy_for_short_runs(*work):
        assert (backend_name() != "numpy") == is_compiled


@needs_numba
def test_work_within_work_is_done_likewise(monkeypatch):
    monkeypatch.delenv("HSTREE_FAST")
    with numpy_for_short_runs(1), numpy_for_short_runs(10**9):
        assert backend_name() == "numpy"
    with numpy_for_short_runs(10**9), numpy_for_short_runs(1):
        assert backend_name() != "numpy"


@needs_numba
def test_numpy_alone_ends_with_its_block_and_can_be_nested():
    fast = backend_name()
    with numpy_only():
        assert backend_name() == "numpy"
        with numpy_only(False):
            assert backend_name() == "numpy"
    with numpy_only(False):
        assert backend_name() == fast != "numpy"


@pytest.mark.parametrize(
    ("value", "cores"), [("", None), ("1", 1), ("1,4", 1), ("many", None), ("100000", None)]
)
def test_threads_are_those_of_openmp_and_at_most_the_cores(monkeypatch, value, cores):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    all_cores = n_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert n_threads() == (cores or all_cores)
