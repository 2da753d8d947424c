"""The names of `hstree` itself."""

import pydoc
import subprocess
import sys

import pytest

import hstree
from hstree import errors
from hstree.data.splits import Splits
from tests.texts import corpus_of

TEXT = [f"w{i % 7} w{i % 3} w{i % 5}" for i in range(60)]


@pytest.fixture
def corpus(tmp_path):
    return corpus_of(tmp_path, TEXT)


#: Names of `hstree`, of which each is in its help.
NAMES = (
    *("CBOW", "Corpus", "Ensemble", "Epochs", "Halving", "HstreeError", "LanguageModel", "Seconds"),
    *("SkipGram", "Tree", "Vocabulary", "WordVectors", "bootstrap", "build", "builders"),
    *("carried_rows", "compare", "evaluate", "grow", "load", "load_model", "prune"),
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


def test_importing_hstree_does_not_import_models_and_experiments():
    program = (
        "import sys, hstree\n"
        "rooms = {'.'.join(name.split('.')[:2]) for name in sys.modules}\n"
        "assert not rooms & {'hstree.models', 'hstree.experiments', 'hstree.training'}, rooms\n"
        "from hstree import LanguageModel, compare\n"
        "print(compare.__name__, LanguageModel.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("compare LanguageModel\n", "")


def test_help_fits_four_screens_and_names_every_name():
    lines = pydoc.plain(pydoc.render_doc(hstree)).splitlines()
    assert len(lines) <= 4 * 24
    assert max(map(len, lines[:-3])) <= 80  # the last one is the path of the file
    assert all(name in "\n".join(lines) for name in NAMES)


def test_what_is_no_text_or_row_is_refused(corpus, tmp_path):
    tree = hstree.build("huffman", corpus)
    with pytest.raises(hstree.HstreeError, match=r"no such file: c\.txt"):
        hstree.evaluate(tree, "c.txt")
    with pytest.raises(hstree.HstreeError, match="a text of type int"):
        hstree.compare(3, ["huffman"], tmp_path / "compared")
    with pytest.raises(hstree.HstreeError, match="3 cannot be compared"):
        hstree.compare(corpus, [3], tmp_path / "compared")


def test_a_split_that_cannot_be_read_is_refused_before_the_training(tmp_path, monkeypatch):
    train = corpus_of(tmp_path, ["a b c"] * 20)
    other = corpus_of(tmp_path, ["a b zebra"], "other.txt")
    monkeypatch.setattr(hstree.LanguageModel, "fit", lambda *arguments: pytest.fail("trained"))
    with pytest.raises(hstree.HstreeError, match="no <unk>"):
        hstree.evaluate("flat", Splits(train, train, other))


def test_packages_are_there_without_an_import_of_their_own():
    program = "import hstree; print(hstree.models.load.__name__, hstree.layers.__name__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("load hstree.layers\n", "")
