"""The built-in corpus: the English that every installation of hstree already has.

It is the prose in the docstrings of the Python standard library (`pydoc_data.topics` included)
and of numpy, scipy, scikit-learn, networkx and nltk. Source files are parsed with `ast`; nothing
is imported or run. What is prose, and what is code, a table or a signature, is decided in `prose`.

The text depends on the versions installed, so they are part of its key, and every command that
uses it can print them. It is not for comparing figures between machines. With Python 3.11,
numpy 2.4, scipy 1.17, scikit-learn 1.9, networkx 3.6 and nltk 3.10 it has 99,223 sentences with
1,568,000 tokens (``<eos>`` included) and 9,320 words that stand five times or more; the standard
library alone has 360,000 tokens. A paragraph that stands in several docstrings is read once.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import importlib.util
import inspect
import os
import platform
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

from hstree import progress
from hstree.data.prose import RULES_VERSION, paragraphs, sentences_of
from hstree.errors import InputError

STANDARD_LIBRARY = "stdlib"
PACKAGES = {
    "networkx": "networkx",
    "nltk": "nltk",
    "numpy": "numpy",
    "scikit-learn": "sklearn",
    "scipy": "scipy",
}
"""Distribution -> the package that it installs."""

_LEFT_OUT = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Docstrings:
    """The docstrings of a part of what is installed, as sentences.

    Parameters
    ----------
    part : str
        ``"python"`` for all, ``"stdlib"`` for the standard library, or one of `PACKAGES`.

    Attributes
    ----------
    versions : dict of str to str
        The version of each package read; ``"python"`` stands for the standard library.

    Raises
    ------
    InputError
        When there is no such part, or its source files are not installed.
    """

    def __init__(self, part: str) -> None:
        parts = [*PACKAGES, STANDARD_LIBRARY]
        if part not in ["python", *parts]:
            known = ", ".join(f"builtin:{name}" for name in ["python", *parts])
            raise InputError(f"builtin:{part}: no such built-in corpus; there are {known}")
        self._parts = parts if part == "python" else [part]
        self.versions = dict(sorted(_version(name) for name in self._parts))
        self._files = [found for name in self._parts for found in _source_files(name)]

    def key(self) -> str:
        """Return a hash of the versions, the rules of extraction and the source files."""
        digest = hashlib.sha256(f"{RULES_VERSION}\n{sorted(self.versions.items())}\n".encode())
        for name, path in self._files:
            content = _content(path)
            digest.update(f"{name}\t{len(content)}\n".encode())
            digest.update(content)
        return digest.hexdigest()

    def lines(self) -> Iterator[str]:
        """Yield the sentences, lower-cased and tokenised; a paragraph stands once.

        They stand in the order of package, file and place in the file.
        """
        seen: set[bytes] = set()
        with progress.task("reading docstrings", total=len(self._files), unit="files") as task:
            for _, path in self._files:
                for docstring in docstrings(path):
                    for paragraph in paragraphs(docstring):
                        # A digest takes less memory than the paragraph.
                        digest = hashlib.blake2b(paragraph.encode(), digest_size=16).digest()
                        if digest not in seen:
                            seen.add(digest)
                            yield from sentences_of(paragraph)
                task.advance()


def docstrings(path: Path) -> list[str]:
    """Return the docstrings of a source file, in the order in which they stand in it.

    Documentation that a package keeps apart from what it documents counts as well: the strings
    given to ``add_newdoc`` (numpy, scipy) and the topics of ``pydoc_data``. A file that this
    Python cannot parse has none.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(_content(path))
    except (SyntaxError, ValueError):
        return []
    if path.parent.name == "pydoc_data":
        return _strings(module)
    found: list[tuple[int, str]] = []
    for node in _statements(module):
        if isinstance(node, _DOCUMENTED):
            docstring = ast.get_docstring(node)
            if docstring:
                found.append((node.body[0].lineno, docstring))
        elif isinstance(node, ast.Expr) and _is_called(node.value, "add_newdoc"):
            found += [(node.lineno, text) for text in _strings(node)]
    return [docstring for _, docstring in sorted(found, key=lambda entry: entry[0])]


def _is_called(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == name


def _statements(module: ast.Module) -> Iterator[ast.AST]:
    """Yield a module and all statements in it, in any order: `ast.walk` without expressions."""
    pending: list[ast.AST] = [module]
    while pending:
        node = pending.pop()
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            pending += getattr(node, field, [])


def _content(path: Path) -> bytes:
    """Return what is in a file; nothing where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _strings(node: ast.AST) -> list[str]:
    """Return the strings of several lines under `node`."""
    return [
        inspect.cleandoc(inner.value)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str) and "\n" in inner.value
    ]


def _version(part: str) -> tuple[str, str]:
    if part == STANDARD_LIBRARY:
        return "python", platform.python_version()
    try:
        return part, importlib.metadata.version(part)
    except importlib.metadata.PackageNotFoundError as error:
        raise InputError(
            f"the built-in corpus needs {part}; get it with `pip install {part}`"
        ) from error


def _source_files(part: str) -> list[tuple[str, Path]]:
    """Return the source files of a part, by name (with ``/`` everywhere), sorted by it."""
    root = _folder(part)
    found: list[tuple[str, Path]] = []
    for folder, inner, files in os.walk(root):
        inner[:] = [name for name in inner if name not in _LEFT_OUT]
        for name in files:
            path = Path(folder, name)
            if path.suffix == ".py":
                found.append((f"{part}/{path.relative_to(root).as_posix()}", path))
    if not found:
        raise InputError(
            f"the built-in corpus reads the source files of {part}, and there are none in {root}; "
            "give a text file instead"
        )
    return sorted(found)


def _folder(part: str) -> Path:
    if part == STANDARD_LIBRARY:
        return Path(sysconfig.get_path("stdlib"))
    # For a name without a dot this looks for the package, and does not import it.
    spec = importlib.util.find_spec(PACKAGES[part])
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"the built-in corpus needs {part}; get it with `pip install {part}`")
    return Path(spec.submodule_search_locations[0])
