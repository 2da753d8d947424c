"""When compiled kernels are used: what is installed, what is asked for, where they are kept."""

import os
import shutil
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from hstree import _compiled
from tests.needs import NUMBA

#: Prints what kernels are used, and whether numba was imported before that was asked.
REPORT = """
import sys
import hstree, hstree_cli
before = "numba" in sys.modules
from hstree._compiled import kernels, twins
print(before, kernels(), twins("layers") is not None)
"""
STEP = """
import numpy as np
from hstree.layers.kernels import adagrad_rows
adagrad_rows(np.ones((2, 3), "f"), np.ones(2, "f"), slice(0, 2), np.ones((2, 3), "f"), 0.1, None)
"""
#: Prints how far a step moves a weight.
MOVED = """
import numpy as np
from hstree.layers.kernels import adagrad_rows
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


@pytest.fixture
def fresh():
    """Forget whether numba is there, before and after."""
    cached = (_compiled._numba, _compiled._twins, _compiled._is_wanted, _compiled._folder)
    for function in cached:
        function.cache_clear()
    yield
    for function in cached:
        function.cache_clear()


def test_without_numba_numpy_computes_alone(fresh, monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "numba")
    monkeypatch.setattr(sys, "meta_path", [_Missing(), *sys.meta_path])
    for name in [name for name in sys.modules if name.startswith("numba.")]:
        monkeypatch.delitem(sys.modules, name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _compiled.kernels() == "numpy"
    assert _compiled.twins("layers") is None


class _Missing:
    """An import hook under which numba is not installed."""

    def find_spec(self, name, path=None, target=None):
        if name == "numba":
            raise ModuleNotFoundError("No module named 'numba'", name="numba")


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("raise ImportError('Numba needs NumPy 1.5 or less')", "Numba needs NumPy 1.5 or less"),
        ("raise SystemError('initialization failed')", "initialization failed"),
        ("version_info, __version__ = (0, 60, 0), '0.60.0'", "version 0.60.0 is older than 0.61"),
    ],
)
def test_a_numba_that_cannot_be_used_is_said_once(tmp_path, module, why):
    (tmp_path / "numba.py").write_text(module)
    path = f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    printed, warned = run(REPORT + "\nkernels()", PYTHONPATH=path)
    assert printed == "False numpy False"
    assert warned.count("RuntimeWarning") == 1
    assert f"numba is installed but not used: {why}; upgrade it, or set HSTREE_FAST=0" in warned


def test_numba_is_imported_when_it_is_first_needed():
    numba = pytest.importorskip("numba", reason=NUMBA)
    assert run(REPORT)[0] == f"False numba {numba.__version__} True"
    assert run(REPORT, HSTREE_FAST="0")[0] == "False numpy False"


def test_machine_code_is_kept_in_the_cache_folder(tmp_path):
    pytest.importorskip("numba", reason=NUMBA)
    environment = {"HSTREE_CACHE": str(tmp_path), "NUMBA_CACHE_DIR": ""}
    code = "import os; del os.environ['NUMBA_CACHE_DIR']\n" + STEP
    run(code, **environment)
    kept = sorted((tmp_path / "kernels").rglob("*.nbc"))
    assert kept
    times = [file.stat().st_mtime_ns for file in kept]
    run(code, **environment)
    assert [file.stat().st_mtime_ns for file in kept] == times


@pytest.fixture
def copied(tmp_path):
    """Return a copy of the package, a folder for its machine code, and what runs a step there."""
    pytest.importorskip("numba", reason=NUMBA)
    package = tmp_path / "copy" / "hstree"
    shutil.copytree(Path(_compiled.__file__).parent, package)
    environment = {
        "PYTHONPATH": str(package.parent),
        "PYTHONSAFEPATH": "1",
        "NUMBA_CACHE_DIR": str(tmp_path / "code"),
    }

    def step():
        return run(MOVED, **environment)[0]

    return package, tmp_path / "code", step


def test_a_constant_of_another_file_is_compiled_anew(copied):
    package, code, step = copied
    before = step()
    file = package / "layers" / "kernels.py"
    text = file.read_text()
    file.write_text(text.replace("TINY = 1e-10", "TINY = 1e-2"))
    assert step() != before
    file.write_text(text)
    assert step() == before
    assert len(list(code.iterdir())) == 2


def test_damaged_machine_code_is_compiled_anew(copied):
    _, code, step = copied
    before = step()
    for suffix, kept in (("nbi", 0), ("nbc", 40)):
        files = list(code.rglob(f"*.{suffix}"))
        assert files
        for file in files:
            file.write_bytes(file.read_bytes()[:kept])
        assert step() == before


def test_machine_code_that_was_long_not_used_is_removed(fresh, monkeypatch, tmp_path):
    numba = pytest.importorskip("numba", reason=NUMBA)
    names = (f"hstree-{16 * '0'}", f"hstree-{16 * '1'}", "hstree-thesis", f"hstree-{17 * '0'}")
    old, young, *others = (tmp_path / name for name in names)
    for folder, days in ((old, 31), (young, 29), *((other, 31) for other in others)):
        folder.mkdir()
        os.utime(folder, (time.time() - days * 86400,) * 2)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    folder = _compiled._folder()
    assert set(tmp_path.iterdir()) == {folder, young, *others}


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
def test_a_full_disk_costs_machine_code_alone(tmp_path):
    pytest.importorskip("numba", reason=NUMBA)
    limit = """
import os, resource, signal
del os.environ["NUMBA_CACHE_DIR"]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))
"""
    unlimited, _ = run(MOVED)
    printed, warned = run(limit + MOVED, HSTREE_CACHE=str(tmp_path), NUMBA_CACHE_DIR="")
    assert (printed, warned) == (unlimited, "")
    assert not list(tmp_path.rglob("*.nbc"))


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
def test_a_read_only_home_is_no_fault(tmp_path):
    pytest.importorskip("numba", reason=NUMBA)
    (tmp_path / "file").write_text("")
    code = "import os; del os.environ['NUMBA_CACHE_DIR']\n" + STEP + "print('done')"
    printed, warned = run(code, HSTREE_CACHE=str(tmp_path / "file" / "x"), NUMBA_CACHE_DIR="")
    assert (printed, warned) == ("done", "")
    assert not stat.S_ISDIR((tmp_path / "file").stat().st_mode)


def test_a_folder_of_numba_that_cannot_be_written_is_not_used(fresh, monkeypatch, tmp_path):
    numba = pytest.importorskip("numba", reason=NUMBA)
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "file"))
    assert _compiled._folder() is None
    # numba would write beside the sources instead
    assert _compiled.jit(lambda x: x)._cache.cache_path is None


def test_compiling_is_a_task_of_progress_and_that_of_others_is_not(tmp_path):
    pytest.importorskip("numba", reason=NUMBA)
    code = f"""
import numpy as np, numba
from hstree import progress
from hstree._compiled import twins
class Sink(progress.Display):
    def start(self, title, total, unit):
        print(title)
        return progress.Task()
layers = twins("layers")
with progress.shown_by(Sink()):
    def theirs(x):
        return x + 1
    theirs.__module__ = None
    numba.njit(theirs)(1)
    print("theirs")
    layers.adagrad_rows(
        np.ones((2, 3), "f"), np.ones(2, "f"), slice(0, 2), np.ones((2, 3), "f"), 0.1, None
    )
print(numba.config.CACHE_DIR == {str(tmp_path)!r})
"""
    printed, _ = run(code, NUMBA_CACHE_DIR=str(tmp_path))
    compiling = "compiling kernels, once for this machine"
    assert printed.splitlines() == ["theirs", compiling, "True"]


def test_numpy_alone_ends_with_its_block_and_can_be_nested():
    pytest.importorskip("numba", reason=NUMBA)
    assert _compiled.twins("layers") is not None
    with _compiled.numpy_alone():
        assert _compiled.kernels() == "numpy"
        with _compiled.numpy_alone(False):
            assert _compiled.twins("layers") is None
    with _compiled.numpy_alone(False):
        assert _compiled.twins("layers") is not None


@pytest.mark.parametrize(
    ("value", "cores"), [("", None), ("1", 1), ("1,4", 1), ("many", None), ("100000", None)]
)
def test_threads_are_those_of_openmp_and_at_most_the_cores(monkeypatch, value, cores):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    all_cores = _compiled.n_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert _compiled.n_threads() == (cores or all_cores)


def test_twins_take_contiguous_float32_alone():
    single, double = np.ones((4, 4), np.float32), np.ones((4, 4))
    assert _compiled.takes(single, np.arange(3)[::2], 0.5, None)
    assert not _compiled.takes(double)
    assert not _compiled.takes(single.T[:2])
    assert not _compiled.takes(single[:, :2])
    assert not _compiled.takes(single.astype(single.dtype.newbyteorder()))


def test_a_thread_has_one_table_which_grows():
    slots = _compiled.Slots()
    small, large = slots.of(3), slots.of(10)
    assert (len(small), len(large), len(slots.of(4))) == (3, 10, 4)
    assert np.shares_memory(slots.of(4), large)
    assert (large == -1).all()
