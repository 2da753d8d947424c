"""Project files agree: version, authors, and the lint of .ci/run and pre-commit."""

import re
import tokenize
import tomllib
from pathlib import Path

import hstree

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_versions_agree():
    [cited] = re.findall(r"^version: (.*)$", CITATION, re.M)
    assert cited == PROJECT["version"] == hstree.__version__


def test_authors_licence_and_keywords_agree():
    names = [author["name"] for author in PROJECT["authors"]]
    assert re.findall(r'^  - name: "(.*)"$', CITATION, re.M) == names
    assert re.findall(r"^license: (.*)$", CITATION, re.M) == [PROJECT["license"]]
    _, keywords = CITATION.split("keywords:\n")
    assert [line.removeprefix("  - ") for line in keywords.splitlines()] == PROJECT["keywords"]


def test_the_oldest_versions_are_those_that_the_project_allows():
    extras = PROJECT["optional-dependencies"]
    requirements = PROJECT["dependencies"] + [
        requirement for extra in ("fast", "gensim", "zstd", "test") for requirement in extras[extra]
    ]
    allowed = re.findall(r"^([\w.-]+)>=([\d.]+)", "\n".join(requirements), re.M)
    oldest = (ROOT / ".ci" / "oldest.txt").read_text(encoding="utf-8")
    assert sorted(set(allowed)) == sorted(re.findall(r"^([\w.-]+)==([\d.]+)$", oldest, re.M))


def test_every_package_of_the_wheel_is_typed():
    packages = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert len(packages) == 2
    for package in packages:
        assert (ROOT / package / "py.typed").exists(), package


def test_names_that_contributing_rules_out_are_not_used():
    rules = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    excluded = set(re.findall(r"`\w+`, not `(\w+)`", rules))
    assert {"found", "given", "place", "places"} <= excluded
    for path in (*ROOT.glob("hstree/**/*.py"), *ROOT.glob("cli/**/*.py")):
        with path.open("rb") as file:
            tokens = tokenize.tokenize(file.readline)
            names = {token.string for token in tokens if token.type == tokenize.NAME}
        assert not excluded & names, path


def test_pre_commit_runs_the_lint_of_ci():
    ci = (ROOT / ".ci/run").read_text(encoding="utf-8")
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    lint = re.search(r'^echo "== lint"\n(.*?)^$', ci, re.M | re.S)[1]
    commands = [line for line in lint.splitlines() if not line.startswith("#")]
    assert len(commands) >= 4
    assert sorted(re.findall(r"^ +entry: (.*)$", hooks, re.M)) == sorted(commands)
    assert set(re.findall(r"^ +language: (.*)$", hooks, re.M)) == {"system"}
