"""The built-in text: English prose, read without importing, reproducibly."""

import pytest

from hstree.data.builtin import PythonDocs, sentences
from hstree.data.corpus import Corpus
from hstree.errors import InputError


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A standard library of two modules and two topics."""
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    (tmp_path / "pydoc_data").mkdir()
    topics = 'topics = {"a": "A title\\n*******\\n\\nWhat it\\n" "is about.\\n", "b": "b"}\n'
    (tmp_path / "pydoc_data" / "topics.py").write_text(topics)
    (tmp_path / "b.py").write_text('"""The second module here."""\n')
    (tmp_path / "a.py").write_text(
        '"""The first module here."""\nimport nothing_such\nraise SystemExit\nclass A:\n'
        '    """Text of a class.\n\n    >>> print("code of the class")\n    """\n'
        '    def f(self):\n        "The second module here."\n'
    )
    return tmp_path


def text():
    return b"".join(PythonDocs().blocks()).decode().splitlines()


def test_topics_come_first_then_docstrings_by_file_each_paragraph_once(library):
    said = ["what it is about .", "the first module here .", "text of a class ."]
    assert text() == [*said, "the second module here ."]


@pytest.mark.parametrize(
    ("paragraph", "lines"),
    [
        ("One  sentence\nof words. And: its end!", ["one sentence of words ."]),
        ("It isn\u2019t 0.5 or so.", ["it isn't 0.5 or so ."]),
        ("    indented = code(of, a, block)", []),
        (">>> a doctest of words", []),
        ("A heading of words\n------------------", []),
        ("x = y + z[0] ** 2 (a formula)", []),
        ("See it at https://example.org for more", []),
        ("Two words.", []),
        ("A docstring of words with a byte \0 in it.", []),
        ("", []),
    ],
)
def test_sentences_of_prose_alone(paragraph, lines):
    assert list(sentences(paragraph)) == lines


def test_the_key_follows_the_files(library):
    keys = [PythonDocs().key(), PythonDocs().key()]
    (library / "b.py").write_text('"""Another text than before."""\n')
    keys.append(PythonDocs().key())
    (library / "b.py").rename(library / "c.py")
    keys.append(PythonDocs().key())
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


def test_a_python_without_source_files_says_so(library):
    for file in library.glob("*.py"):
        file.unlink()
    with pytest.raises(InputError, match=r"source files.*give a text file"):
        PythonDocs()


def test_it_is_english_of_this_python():
    corpus = Corpus.read("builtin:python")
    assert len(corpus) > 150_000
    assert (corpus.vocabulary.counts >= 5).sum() > 2_000
    assert {"the", "of", "to", "is", "a"} < set(corpus.vocabulary.words[:12])
