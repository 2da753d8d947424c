"""What every test needs: a cache folder, as many threads as cores; what a run says of skips."""

import os
import signal
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings
from joblib import cpu_count

if "PYTEST_XDIST_WORKER" in os.environ:
    # More threads than cores would make all workers slow.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Short texts, too, are trained on by compiled kernels where there are any.
os.environ.setdefault("HSTREE_FAST", "1")

# Workers share the machine code of compiled kernels, so that it is made once.
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir(), "hstree-kernels")))

# What a shell starts in the background ignores Ctrl-C, and so do its processes.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine must not fail a test: what is too slow, the benchmarks tell.
settings.register_profile("hstree", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=30)
settings.load_profile("hstree")


@pytest.fixture(autouse=True, scope="session")
def cache_folder(tmp_path_factory):
    """Encoded texts go here, not into the home folder of whoever runs the tests."""
    folder = tmp_path_factory.getbasetemp()
    # Workers, whose folders lie in one of the run, share the texts.
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "cache"
    os.environ["HSTREE_CACHE"] = str(folder)
    return folder


@pytest.fixture(scope="session")
def short_turns():
    """Have `compare` measure speeds for a moment: none of these tests depends on how long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hstree.experiments.speed.TURN", 0.01)
        patch.setattr("hstree.experiments.speed.TESTING_TURN", 0.001)
        yield


def pytest_addoption(parser):
    group = parser.getgroup("hstree")
    group.addoption("--slow", action="store_true", help="run the slow tests, too")
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
    """Start a worker more than there are cores: some tests wait for processes that they started.

    Start none for tests that were named: they would take longer to start than to run.
    """
    return 0 if config.args_source is config.ArgsSource.ARGS else cpu_count() + 1


def pytest_collection_modifyitems(config, items):
    # Slow tests first, so that no worker is left with them when the others have ended.
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    if not config.getoption("--slow"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow, needs python -m pytest --slow"))
    if config.getoption("--leave-out"):
        names = set(Path(config.getoption("--leave-out")).read_text(encoding="utf-8").splitlines())
        items[:] = [item for item in items if item.nodeid not in names]


def reports(config, outcome):
    reporter = config.pluginmanager.get_plugin("terminalreporter")  # xdist's workers have none
    return reporter.stats.get(outcome, []) if reporter else []


def skipped(config):
    """Return the counts of (reason, "test" or "file") over everything that was skipped."""
    counts = Counter()
    for report in reports(config, "skipped"):
        _, _, reason = report.longrepr
        unit = "file" if isinstance(report, pytest.CollectReport) else "test"
        counts[reason.removeprefix("Skipped: "), unit] += 1
    return counts


def is_forbidden(reason, config):
    allowed = config.getoption("--only-skip")
    return allowed is not None and not reason.startswith(allowed)


def pytest_sessionfinish(session):
    if any(is_forbidden(reason, session.config) for reason, _ in skipped(session.config)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    passed = [report.nodeid for report in reports(session.config, "passed")]
    if passed and session.config.getoption("--passed-to"):
        names = "".join(f"{name}\n" for name in passed)
        Path(session.config.getoption("--passed-to")).write_text(names, encoding="utf-8")


def pytest_terminal_summary(terminalreporter, config):
    counts = skipped(config)
    if counts:
        terminalreporter.write_sep("=", "skipped, and what lets it run")
    for (reason, unit), n in sorted(counts.items()):
        forbidden = is_forbidden(reason, config)
        fault = "ERROR: must not be skipped here: " if forbidden else ""
        line = f"{fault}{n} {unit}{'s' * (n > 1)}: {reason}"
        terminalreporter.write_line(line, red=forbidden, yellow=not forbidden)
