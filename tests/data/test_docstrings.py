"""Built-in corpus: read without importing, without duplicates, reproducibly."""

import platform
import subprocess
import sys
import textwrap
from itertools import pairwise

import pytest

from hstree.data import docstrings as docstrings_module
from hstree.data.corpus import Corpus
from hstree.data.docstrings import Docstrings, docstrings
from hstree.data.encoding import encode
from hstree.data.sources import open_source
from hstree.errors import InputError


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Put a small package instead of networkx."""
    folder = tmp_path / "package"
    for name, code in {
        "b.py": '"""The second module of two."""\n',
        "a/__init__.py": '''
            """The first module of two."""
            import this_does_not_exist
            raise SystemExit
            class A:
                """A class of no use."""
                def f(self):
                    "One line of the method."
                async def g(self):
                    """The second module of two."""
                    def h():
                        """The innermost of all functions."""
            add_newdoc("x", ("y", """
                Added from the outside here.
                """))
        ''',
        "a/tests/test_a.py": '"""A test is left out."""\n',
        "bad.py": '"""It cannot be parsed at all."""\nprint "x"\n',
        "nul.py": '"""It cannot be parsed at all."""\0\n',
        "latin.py": '# coding: latin-1\n"""Read by the coding of caf\u00e9s."""\n',
        "data.txt": '"""No source file at all."""\n',
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(textwrap.dedent(code).encode("latin-1"))
    monkeypatch.setattr(docstrings_module, "_folder", lambda name: folder)
    return folder


def test_docstrings_in_the_order_of_the_file(package):
    assert docstrings(package / "a" / "__init__.py") == [
        "The first module of two.",
        "A class of no use.",
        "One line of the method.",
        "The second module of two.",
        "The innermost of all functions.",
        "Added from the outside here.",
    ]
    assert docstrings(package / "none.py") == []


def test_lines_by_file_without_duplicates(package):
    assert list(Docstrings("networkx").lines()) == [
        "the first module of two .",
        "a class of no use .",
        "one line of the method .",
        "the second module of two .",
        "the innermost of all functions .",
        "added from the outside here .",
        "read by the coding of caf\u00e9s .",
    ]


def test_a_paragraph_is_read_once_and_a_sentence_as_often_as_it_stands(package):
    said = "Give it back again. It was read before."
    text = f'def f():\n    """{said}"""\n\ndef g():\n    """{said}"""\n\n'
    other = 'def h():\n    """Give it back again. It was not."""\n'
    (package / "twice.py").write_text(text + other)
    lines = list(Docstrings("networkx").lines())
    assert lines.count("it was read before .") == 1
    assert lines.count("give it back again .") == 2


def test_files_are_read_by_name_whatever_their_order_on_the_disk(package):
    names = [f"{letter}{n}.py" for n in range(3) for letter in "zmc"]
    for name in names:
        (package / name).write_text(f'"""This is the file {name[:2]}."""\n')
    said = [line for line in Docstrings("networkx").lines() if line.startswith("this is")]
    assert said == [f"this is the file {name[:2]} ." for name in sorted(names)]


def test_the_topics_are_read_from_their_table(tmp_path):
    path = tmp_path / "pydoc_data" / "topics.py"
    path.parent.mkdir()
    path.write_text(
        'topics = {"a": "A title\\n*******\\n\\nWhat it\\n" "is about.\\n", "b": "b"}\n'
    )
    assert docstrings(path) == ["A title\n*******\n\nWhat it\nis about."]


def test_the_key_follows_files_versions_and_rules(package, monkeypatch):
    def key():
        return Docstrings("networkx").key()

    keys = [key()]
    assert key() == keys[0]
    (package / "b.py").write_text('"""Another text than before."""\n')
    keys.append(key())
    (package / "b.py").rename(package / "c.py")
    keys.append(key())
    monkeypatch.setattr(docstrings_module, "RULES_VERSION", -1)
    keys.append(key())
    monkeypatch.setattr(docstrings_module, "_version", lambda name: (name, "0.0"))
    keys.append(key())
    assert len(set(keys)) == len(keys)


def test_a_package_without_source_files(package, tmp_path, monkeypatch):
    monkeypatch.setattr(docstrings_module, "_folder", lambda name: tmp_path / "none")
    with pytest.raises(InputError, match="reads the source files of stdlib, and there are none"):
        Docstrings("stdlib")


def test_a_package_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(docstrings_module.PACKAGES, "no-such-package", "no_such_package")
    for check in (docstrings_module._version, docstrings_module._folder):
        with pytest.raises(InputError, match="`pip install no-such-package`"):
            check("no-such-package")


def test_an_unknown_package():
    with pytest.raises(InputError, match=r"there are builtin:python, .*, builtin:stdlib"):
        Docstrings("perl")


def test_all_packages_are_named_by_version():
    assert sorted(Docstrings("python").versions) == [
        "networkx", "nltk", "numpy", "python", "scikit-learn", "scipy",
    ]  # fmt: skip
    assert list(Docstrings("stdlib").versions) == ["python"]


@pytest.mark.slow
def test_the_standard_library_is_english_prose(tmp_path):
    corpus = Corpus.read("builtin:stdlib", cache=tmp_path)
    assert len(corpus) > 250_000
    assert (corpus.vocabulary.counts >= 5).sum() > 2_500
    assert corpus.versions == {"python": platform.python_version()}
    words = corpus.vocabulary.words
    assert {"the", "of", "to", "is", "a"} < set(words[:10])
    assert not {">>>", "array_like", ":class:", "``"} & set(words[:2_000])
    said = [words[i] for i in corpus.ids(slice(None))]
    text = [" ".join(said[a:b]) for a, b in pairwise(corpus.line_start)]
    assert len(set(text)) > 0.9 * len(text)
    assert not any("://" in line or "\\" in line for line in text)
    # The second use reads the cache: no source file is parsed.
    source = open_source("builtin:stdlib")
    source.blocks = None
    assert encode(source, cache=tmp_path).sha256 == corpus.sha256


def test_nothing_is_imported():
    code = """
        import sys
        from hstree.data.docstrings import Docstrings
        before = set(sys.modules)
        lines = Docstrings("networkx").lines()
        first = next(lines)
        new = {name.split(".")[0] for name in set(sys.modules) - before}
        print(len(first) > 0, sorted(new & {"networkx", "numpy", "nltk", "scipy", "sklearn"}))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "True []"
