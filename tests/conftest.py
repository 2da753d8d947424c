"""Settings of all tests: a cache folder, threads, the backend, and which tests are run."""

import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from joblib import cpu_count

if "PYTEST_XDIST_WORKER" in os.environ:
    # More threads than cores would make all workers slow.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Workers share the machine code of compiled functions, so that it is made once.
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir(), "hstree-kernels")))

# A process that a shell starts in the background ignores Ctrl-C, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)

#: Folders whose tests use compiled functions for short texts, too, where numba is installed. All
#: other tests have the default: NumPy for short texts. An HSTREE_FAST of the run holds for all.
COMPILED = ("builders", "data", "kernels", "layers", "models", "ngrams", "training")

# A busy machine must not fail a test: the benchmarks measure speed.
settings.register_profile("hstree", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=30)
settings.load_profile("hstree")


@pytest.fixture(autouse=True, scope="session")
def cache_folder(tmp_path_factory):
    """Keep encoded texts in the folder of the run, not in the home folder."""
    folder = tmp_path_factory.getbasetemp()
    # The folders of workers are in that of the run, so that they share the texts.
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "cache"
    os.environ["HSTREE_CACHE"] = str(folder)
    return folder


@pytest.fixture(autouse=True, scope="module")
def backend(request):
    """Use compiled functions for short texts, too, in the tests of the folders `COMPILED`."""
    folder = request.path.relative_to(Path(__file__).parent).parts[0]
    if folder not in COMPILED or "HSTREE_FAST" in os.environ:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        end_workers()
        patch.setenv("HSTREE_FAST", "1")
        yield
    end_workers()


def end_workers():
    """End the processes of joblib, which keep the environment in which they began."""
    loky = sys.modules.get("joblib.externals.loky.reusable_executor")
    if loky is not None and loky._executor is not None:
        loky._executor.shutdown(wait=True)


@pytest.fixture(scope="session")
def short_turns():
    """Have `compare` measure speeds for a moment only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hstree.experiments.speed.TURN", 0.01)
        patch.setattr("hstree.experiments.speed.TESTING_TURN", 0.001)
        yield


def pytest_addoption(parser):
    group = parser.getgroup("hstree")
    group.addoption("--slow", action="store_true", help="run the slow tests, too")
    group.addoption(
        "--campaigns",
        choices=("short", "full"),
        help="run tests/campaigns, too, in minutes or in hours",
    )
    group.addoption(
        "--only-skip",
        metavar="REASON",
        help="fail when a test was skipped for a reason that does not begin with REASON",
    )
    group.addoption("--passed-to", metavar="FILE", help="write the names of the passed tests there")
    group.addoption("--leave-out", metavar="FILE", help="leave out the tests that FILE names")


def pytest_configure(config):
    if not config.getoption("--slow"):
        settings.load_profile("quick")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Start one worker more than there are cores, since some tests wait for other processes.

    Start none for tests that are named: the start would take longer than the tests.
    """
    return 0 if config.args_source is config.ArgsSource.ARGS else cpu_count() + 1


def pytest_ignore_collect(collection_path, config):
    is_campaigns = collection_path == Path(__file__).parent / "campaigns"
    return True if is_campaigns and config.getoption("--campaigns") is None else None


def pytest_collection_modifyitems(config, items):
    # Slow tests come first, so that none is left at the end when other workers have nothing to do.
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    if not config.getoption("--slow"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow, needs python -m pytest --slow"))
    if config.getoption("--leave-out"):
        names = set(Path(config.getoption("--leave-out")).read_text(encoding="utf-8").splitlines())
        items[:] = [item for item in items if item.nodeid not in names]


def pytest_sessionfinish(session):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:  # a worker of xdist
        return
    allowed = session.config.getoption("--only-skip")
    reasons = {report.longrepr[2] for report in reporter.stats.get("skipped", [])}
    if allowed and not all(reason.startswith(f"Skipped: {allowed}") for reason in reasons):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    passed = [report.nodeid for report in reporter.stats.get("passed", [])]
    if passed and session.config.getoption("--passed-to"):
        names = "".join(f"{name}\n" for name in passed)
        Path(session.config.getoption("--passed-to")).write_text(names, encoding="utf-8")
