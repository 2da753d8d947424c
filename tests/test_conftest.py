"""CI lets no test be skipped; named tests start no workers; a run leaves out passed tests."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

TESTS = """
    import pytest

    def test_that_passes():
        pass

    @pytest.mark.slow
    def test_that_is_slow():
        pass

    @pytest.mark.parametrize("n", [1, 2])
    def test_on_a_gpu(n):
        pytest.skip("needs a GPU")
"""
WITHOUT_TORCH = """
    import pytest

    pytest.importorskip("no_such_package", reason="needs torch: how to get it")
"""


@pytest.fixture
def project(pytester, monkeypatch):
    """A folder with the tests above and this project's conftest.py."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setenv("HSTREE_CACHE", "restored after what the inner run sets")
    pytester.makeconftest((Path(__file__).parent / "conftest.py").read_text(encoding="utf-8"))
    pytester.makeini("[pytest]\naddopts = --numprocesses auto\nmarkers = slow: needs --slow\n")
    pytester.makepyfile(test_some=TESTS, test_torch=WITHOUT_TORCH)
    return pytester


@pytest.mark.slow
def test_workers_may_skip_no_more_than_is_allowed(project):
    ran = project.runpytest_subprocess("--only-skip", "needs a GPU")
    assert ran.ret == 1
    ran.assert_outcomes(passed=1, skipped=4)
    ran.stdout.fnmatch_lines(["* worker* [[]4 items]"])


def test_a_run_may_skip_for_the_reason_that_it_allows(project):
    ran = project.runpytest_inprocess("--only-skip", "needs a GPU", "--slow", "test_some.py")
    assert ran.ret == 0
    ran.assert_outcomes(passed=2, skipped=2)
    ran = project.runpytest_inprocess("--only-skip", "needs a GPU", "test_torch.py")
    assert ran.ret == 1


def test_a_test_chosen_by_name_starts_no_workers(project):
    chosen = ("--only-skip", "needs a GPU", "test_some.py::test_that_passes")
    ran = project.runpytest_inprocess(*chosen)
    assert ran.ret == 0
    ran.stdout.no_fnmatch_line("* worker*")


@pytest.mark.slow
def test_a_run_leaves_out_what_passed_in_another(project):
    first = project.runpytest_subprocess("--passed-to", "passed")
    first.assert_outcomes(passed=1, skipped=4)
    assert (project.path / "passed").read_text() == "test_some.py::test_that_passes\n"
    second = project.runpytest_subprocess("--slow", "--leave-out", "passed")
    second.assert_outcomes(passed=1, skipped=3)
