"""Built-in corpus: the English prose in the docstrings of an installation.

The docstrings are those of the Python standard library (`pydoc_data.topics` included), numpy,
scipy, scikit-learn, networkx and nltk. Source files are parsed with `ast`; nothing is imported or
run. `prose` separates prose from code, tables and signatures.

The text depends on the installed versions, which are part of its key; figures do not compare
between machines. With Python 3.11, numpy 2.4, scipy 1.17, scikit-learn 1.9, networkx 3.6 and nltk
3.10 it has 99,223 sentences, 1,568,000 tokens (``<eos>`` included) and 9,320 words that occur five
times or more; the standard library alone has 360,000 tokens.
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
from contextlib import suppress
from pathlib import Path

from hstree import progress
from hstree.data.prose import RULES_VERSION, paragraphs, sentences_of
from hstree.errors import InputError

STANDARD_LIBRARY = "stdlib"
#: Name of the package that each distribution installs.
PACKAGES = {name: name for name in ("networkx", "nltk", "numpy", "scikit-learn", "scipy")}
PACKAGES["scikit-learn"] = "sklearn"

_SKIPPED_FOLDERS = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"}


class Docstrings:
    """The docstrings of one or all packages, as sentences.

    `name` is ``"python"`` for all, ``"stdlib"`` for the standard library, or one of `PACKAGES`.
    `versions` has the version of each package, that of the standard library under ``"python"``.
    Raises InputError when the name is unknown, or source files are not installed.
    """

    def __init__(self, name: str) -> None:
        packages = [*PACKAGES, STANDARD_LIBRARY]
        if name not in ["python", *packages]:
            known = ", ".join(f"builtin:{each}" for each in ["python", *packages])
            raise InputError(f"builtin:{name}: no such built-in corpus; there are {known}")
        chosen = packages if name == "python" else [name]
        self.versions = dict(sorted(_version(package) for package in chosen))
        self._files = [file for package in chosen for file in _source_files(package)]

    def key(self) -> str:
        """Return a hash of the versions, the extraction rules and the source files."""
        digest = hashlib.sha256(f"{RULES_VERSION}\n{sorted(self.versions.items())}\n".encode())
        for name, path in self._files:
            content = _content(path)
            digest.update(f"{name}\t{len(content)}\n".encode())
            digest.update(content)
        return digest.hexdigest()

    def lines(self) -> Iterator[str]:
        """Yield the sentences, lower-cased and tokenised, by package, file and line.

        A paragraph that occurs in several docstrings is read once.
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
    """Return the docstrings of a source file, in order.

    They include the strings passed to ``add_newdoc`` (numpy, scipy) and the topics of
    ``pydoc_data``. A file that this Python cannot parse has none.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(_content(path))
    except (SyntaxError, ValueError):
        return []
    if path.parent.name == "pydoc_data":
        return _strings(module)
    by_line: list[tuple[int, str]] = []
    for node in _statements(module):
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                if docstring := ast.get_docstring(node):
                    by_line.append((node.body[0].lineno, docstring))
            case ast.Expr(value=ast.Call(func=ast.Name(id="add_newdoc"))):
                by_line += [(node.lineno, text) for text in _strings(node)]
    return [docstring for _, docstring in sorted(by_line, key=lambda entry: entry[0])]


def _statements(module: ast.Module) -> Iterator[ast.AST]:
    """Yield a module and all statements in it, in any order: `ast.walk` without expressions."""
    pending: list[ast.AST] = [module]
    while pending:
        node = pending.pop()
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            pending += getattr(node, field, [])


def _content(path: Path) -> bytes:
    """Return the content of a file; nothing if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _strings(node: ast.AST) -> list[str]:
    """Return the multi-line strings under `node`."""
    return [
        inspect.cleandoc(inner.value)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str) and "\n" in inner.value
    ]


def _version(package: str) -> tuple[str, str]:
    if package == STANDARD_LIBRARY:
        return "python", platform.python_version()
    with suppress(importlib.metadata.PackageNotFoundError):
        return package, importlib.metadata.version(package)
    raise _missing(package)


def _missing(package: str) -> InputError:
    return InputError(f"the built-in corpus needs {package}; get it with `pip install {package}`")


def _source_files(package: str) -> list[tuple[str, Path]]:
    """Return the source files of a package with their names (``/`` everywhere), sorted."""
    root = _folder(package)
    sources: list[tuple[str, Path]] = []
    for folder, inner, files in os.walk(root):
        inner[:] = [name for name in inner if name not in _SKIPPED_FOLDERS]
        paths = [Path(folder, name) for name in files if name.endswith(".py")]
        sources += [(f"{package}/{path.relative_to(root).as_posix()}", path) for path in paths]
    if not sources:
        raise InputError(
            f"the built-in corpus reads the source files of {package}, and there are none in "
            f"{root}; give a text file instead"
        )
    return sorted(sources)


def _folder(package: str) -> Path:
    if package == STANDARD_LIBRARY:
        return Path(sysconfig.get_path("stdlib"))
    # For a name without a dot, find_spec does not import the package.
    spec = importlib.util.find_spec(PACKAGES[package])
    if spec is None or not spec.submodule_search_locations:
        raise _missing(package)
    return Path(spec.submodule_search_locations[0])
