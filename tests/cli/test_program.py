"""The program as a whole: help pages, exit statuses, full disks, closed pipes, start-up."""

import os
import re
import sys
from unittest.mock import Mock

import pytest
import typer

from hstree.builders import builders
from hstree.data.vocabulary import Vocabulary
from hstree.layers import LAYERS
from hstree.models import MODELS
from hstree.tree import Tree
from hstree_cli.main import app
from tests.limits import full_disk
from tests.scripts import run_python

COMMANDS = list(typer.main.get_command(app).commands)


def test_the_name_alone_shows_four_commands_to_start_with(hstree):
    ran = hstree()
    assert max(map(len, ran.out.splitlines())) <= 60
    typed = re.findall(r"^  hstree (\w+)", ran.out, re.M)
    assert len(typed) == 4
    assert set(typed) <= set(COMMANDS)


def test_help_lists_the_commands_in_groups(hstree):
    panels = re.split(r"^╭─ (.*?) ─+╮$", hstree("--help").out, flags=re.M)
    groups = dict(zip(panels[1::2], panels[2::2], strict=True))
    titles = ["Options", "Start here", "Build trees", "Train", "Use a trained model"]
    assert list(groups) == titles
    listed = re.findall(r"^│ (\w+) ", "".join(groups[title] for title in titles[1:]), re.M)
    assert sorted(listed) == sorted(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_and_cuts_nothing_at_60_columns(command, hstree, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    out = hstree(command, "-h").out
    assert f"hstree {command}" in out.split("Example")[1]
    assert "bool" not in out, "a switch has no value"
    assert "…" not in out


def test_methods_lists_and_describes_every_builder_layer_and_model(hstree):
    ran = hstree("methods")
    for name in (*builders(), *LAYERS.names(), *MODELS.names(), "kn2 to kn7", "trees"):
        assert re.search(rf"^  {name} ", ran.out, re.M)
    ran = hstree("methods", *builders())
    for builder in builders().values():
        for option in builder.options:
            assert f"{option.name}={option.spelled(option.default)}" in ran.out


@pytest.mark.parametrize(
    ("name", "saying"),
    [
        ("kn5", ["kn5  N-gram model", "A Kneser-Ney model of the last 4 words."]),
        ("trees", ["trees  Set of candidates", "gmm epsilon=0.4 trees=4"]),
        ("approximations", ["cnn delay=32", "flat"]),
    ],
)
def test_methods_describes_all_that_stands_in_a_candidate(name, saying, hstree):
    ran = hstree("methods", name)
    assert set(saying) <= {line.strip() for line in ran.out.splitlines()}


def test_there_are_at_most_17_commands_and_130_options_none_with_more_than_22():
    """Without those of how jobs are done, which are the same everywhere."""
    commands = [typer.main.get_command(app), *typer.main.get_command(app).commands.values()]
    job_options = {"jobs", "scheduler"}
    counts = [
        sum(p.param_type_name == "option" and p.name not in job_options for p in command.params)
        for command in commands
    ]
    assert len(commands) - 1 <= 17
    assert sum(counts) <= 130
    assert max(counts) <= 22


def test_the_program_is_started_by_the_library_too(process):
    ran = process("check", "missing.json", command=[sys.executable, "-m", "hstree"])
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("hstree: error: ")
    assert ran.stderr.count("\n") == 1


def test_version(hstree):
    assert re.fullmatch(r"hstree \d+\.\d+\.\d+\n", hstree("--version").out)


def test_too_little_memory_is_one_line(refused, corpus, monkeypatch):
    monkeypatch.setattr("hstree.Corpus.read", Mock(side_effect=MemoryError))
    refused("vocab", corpus, saying="memory")


def test_a_bug_is_not_hidden(hstree, corpus, monkeypatch):
    monkeypatch.setattr("hstree.Corpus.read", Mock(side_effect=ZeroDivisionError))
    with pytest.raises(ZeroDivisionError):
        hstree("vocab", corpus)


def test_a_full_disk_leaves_the_old_file(hstree, refused, tmp_path):
    Vocabulary(["a", "b"], [2, 1]).save(tmp_path / "vocab.tsv")
    for output in ("tree.json", "tree.json.gz", "tree.npz"):
        (tmp_path / output).write_text("mine")
        build = ("build", "-m", "huffman", "vocab.tsv", "-o", output, "--force")
        with full_disk(100):
            refused(*build, saying=f"hstree: error: cannot write {output}: ")


def test_a_full_disk_under_the_cache(refused, corpus, tmp_path, monkeypatch):
    monkeypatch.setenv("HSTREE_CACHE", str(tmp_path / "cache"))
    with full_disk(100):
        refused("vocab", corpus, saying="HSTREE_CACHE")


def test_a_closed_pipe_is_quiet(process):
    reader, writer = os.pipe()
    os.close(reader)
    ran = process("methods", stdout=writer)
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_help_does_not_wait_for_the_library(tmp_path):
    """NumPy, SciPy and similar packages take most of the time of a start."""
    code = (
        "import sys; from hstree_cli.main import exit_status; exit_status(['--help']); "
        "print([m for m in ('hstree', 'numpy', 'scipy', 'sklearn', 'nltk') if m in sys.modules])"
    )
    assert run_python(["-c", code], tmp_path).splitlines()[-1] == "[]"


def test_words_outside_the_terminals_encoding_are_escaped(process, tmp_path):
    Tree.from_children(["é漢", "b"], [[~0, ~1]]).save(tmp_path / "t.json")
    ran = process("show", "t.json", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert "\\xe9\\u6f22" in ran.stdout


def test_threads_are_limited_before_libraries_are_loaded(tmp_path):
    code = """
import sys
from hstree_cli.terminal import running
assert "numpy" not in sys.modules
with running(threads=1, quiet=False, debug=False):
    import numpy
    from threadpoolctl import threadpool_info
    assert {pool["num_threads"] for pool in threadpool_info()} == {1}
"""
    run_python(["-c", code], tmp_path)


def test_quiet_goes_before_the_command(hstree, refused, corpus):
    hstree("--quiet", "vocab", corpus)
    refused("vocab", corpus, "-q", status=2, saying="`hstree -q vocab ...`")


def test_building_a_tree_loads_little_of_the_project_and_no_experiments(corpus, tmp_path):
    code = (
        "import sys\nfrom hstree_cli.__main__ import run\n"
        "try: run()\nfinally: print(*(m for m in sys.modules if m.startswith('hstree')))"
    )
    build = ["build", "-m", "huffman", corpus]
    modules = run_python(["-c", code, *build], tmp_path).splitlines()[-1].split()
    assert len(modules) <= 60
    assert not [name for name in modules if name.startswith("hstree.experiments")]
