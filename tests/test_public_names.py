"""The names of `hstree` itself."""

import pydoc

import pytest

import hstree
from hstree import errors
from tests.scripts import run_python

#: Names of `hstree`. Its help has each of them.
NAMES = (
    *("CBOW", "Corpus", "Ensemble", "Epochs", "Halving", "HstreeError", "LanguageModel", "Seconds"),
    *("SkipGram", "Tree", "Vocabulary", "WordVectors", "bootstrap", "build", "builders"),
    *("carried_rows", "compare", "compare_models", "evaluate", "grow", "load", "load_model"),
    "prune",
)


def test_every_public_name_is_there_and_listed():
    assert [name for name in dir(hstree) if not name.startswith("__")] == sorted(NAMES)
    for name in NAMES:
        assert getattr(hstree, name) is not None, name
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        hstree.no_such_name  # noqa: B018


def test_errors_are_of_the_standard_kinds_too():
    for kind in (errors.TreeError, errors.InputError, errors.OptionError):
        assert issubclass(kind, ValueError)
        assert issubclass(kind, hstree.HstreeError)
    assert issubclass(errors.MissingExtraError, ImportError)


def test_names_and_packages_are_imported_when_they_are_read(tmp_path):
    program = (
        "import sys, hstree\n"
        "rooms = {'.'.join(name.split('.')[:2]) for name in sys.modules}\n"
        "late = {'hstree.models', 'hstree.experiments', 'hstree.training', 'sklearn', 'rich'}\n"
        "print(rooms & late, hstree.compare.__name__, hstree.models.load_model.__name__)"
    )
    assert run_python(["-c", program], tmp_path) == "set() compare load_model\n"


def test_help_fits_four_screens_and_names_every_name():
    lines = pydoc.plain(pydoc.render_doc(hstree)).splitlines()
    assert len(lines) <= 4 * 24
    assert max(map(len, lines[:-3])) <= 80  # the last one is the path of the file
    assert all(name in "\n".join(lines) for name in NAMES)
