"""Builders of other packages that go wrong: one line that names them, a traceback if wanted."""

import sys

import pytest

from hstree.data.vocabulary import Vocabulary
from hstree_cli.main import exit_status
from tests.plugins import install

MODULE = """
from hstree.data.corpus import Corpus
from hstree.errors import OptionError
from hstree.tree import Tree
from hstree.data.vocabulary import Vocabulary

def raises(words: Vocabulary) -> Tree:
    '''Take [/it] apart.'''
    return words.nowhere

def leaves(words: Vocabulary) -> Tree:
    raise SystemExit(3)

def lists(words: Vocabulary) -> Tree:
    return []

def invalid(words: Vocabulary) -> Tree:
    return Tree(words.words, [0, 1], [0])

def others(words: Vocabulary) -> Tree:
    return Tree.from_children(["x", "y", "z"], [[~0, ~1, ~2]])

def odd_meta(words: Vocabulary) -> Tree:
    return Tree.from_children(words.words, [[~0, ~1, ~2]], meta={"by": {1, 2}})

def refuses(words: Vocabulary, *, arity: int = 2) -> Tree:
    raise OptionError("arity must be 3")

def odd_default(words: Vocabulary, *, arity: int = "two") -> Tree:
    '''Have a default that is no number.'''
"""
NAMES = ("raises", "leaves", "lists", "invalid", "others", "odd_meta", "refuses", "odd_default")
WHOSE = "of the package their-trees"


@pytest.fixture(autouse=True)
def their_package(tmp_path, monkeypatch):
    site = tmp_path / "site"
    builders = {name: f"failing_trees:{name}" for name in NAMES}
    install(site, "their-trees", {"hstree.builders": builders | {"exits": "exiting_trees:build"}})
    (site / "failing_trees.py").write_text(MODULE)
    (site / "exiting_trees.py").write_text("import sys\nsys.exit('no licence')\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # `refused` sees every new file
    Vocabulary(["a", "b", "c"], [3, 2, 1]).save(tmp_path / "vocab.tsv")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("raises", "failed: AttributeError: 'Vocabulary' object has no attribute 'nowhere'"),
        ("leaves", "failed: SystemExit: 3"),
        ("lists", "returned a list, not a Tree"),
        ("invalid", "failed: TreeError: not a valid tree: "),
        ("others", "returned a tree over other words: 3 labels for the 3 words of its input"),
        ("odd_meta", "the tree's meta cannot be written as JSON"),
        ("exits", "cannot be loaded: SystemExit: no licence; update or uninstall their-trees"),
        ("odd_default", "by default, odd_default: arity is 'two'; it must be a whole"),
    ],
)
def test_a_failing_builder_is_named_with_its_package(refused, name, said):
    ran = refused("build", "-m", name, "vocab.tsv", saying=said)
    assert f"the builder '{name}' {WHOSE}" in ran.err
    assert ("`hstree --debug COMMAND ...`" in ran.err) == (" returned " not in ran.err)


def test_what_a_builder_says_to_its_user_is_left_as_it_is(refused):
    ran = refused("build", "-m", "refuses", "vocab.tsv", status=2, saying="arity must be 3")
    assert WHOSE not in ran.err


def test_a_docstring_is_shown_as_it_is(hstree):
    ran = hstree("methods", "raises")
    assert "Take [/it] apart." in ran.out


def test_a_module_that_exits_is_a_warning_in_the_list_of_methods(hstree):
    ran = hstree("methods", warns=True)
    assert any("'exits'" in line and "SystemExit" in line for line in ran.warnings)


def test_debug_prints_the_traceback(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert exit_status(["--debug", "build", "-m", "raises", "vocab.tsv"]) == 1
    err = capsys.readouterr().err
    assert "failing_trees.py" in err
    assert "return words.nowhere" in err
    assert err.splitlines()[-1].startswith("hstree: error: the builder 'raises'")
    assert exit_status(["--debug", "check", "missing.json"]) == 1
    assert "FileNotFoundError" in capsys.readouterr().err
