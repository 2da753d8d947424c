"""The built-in text: sentences from the documentation that is part of every CPython.

The sources are the topics of ``help()`` (``pydoc_data``) and the docstrings of the modules in the
standard library, without its packages. With Python 3.11, the text has 182,000 tokens (``<eos>``
included) and 2,450 words that occur five times or more. The text depends on the version of Python,
so results from different versions cannot be compared.
"""

import ast
import hashlib
import platform
import re
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

from hstree import progress
from hstree.errors import InputError

#: Part of the key; it is increased if the same files give another text.
_RULES_VERSION = 4
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+")
_TOKEN = re.compile(r"\w+(?:[-'.]\w+)*|[^\w\s]")
#: Strings that occur in code, tables, headings, addresses and data, but not in prose.
_NO_PROSE = ("***", "===", "---", "~~~", "://", "\\", "|", "\0")


class PythonDocs:
    """Sentences from the documentation of Python. Raises InputError if its source is missing."""

    name = "builtin:python"

    def __init__(self) -> None:
        root = Path(sysconfig.get_path("stdlib"))
        self._files = [root / "pydoc_data" / "topics.py", *sorted(root.glob("*.py"))]
        if not all(file.is_file() for file in self._files) or len(self._files) == 1:
            raise InputError(
                f"{self.name} reads the source files of Python's standard library, which are not "
                f"in {root}; give a text file instead"
            )

    def key(self) -> str:
        """Return a hash of the files, the version of Python and the rules for reading."""
        digest = hashlib.sha256(f"{_RULES_VERSION} {platform.python_version()}".encode())
        for file in self._files:
            content = file.read_bytes()
            digest.update(f"\n{file.name} {len(content)}\n".encode() + content)
        return digest.hexdigest()

    def blocks(self) -> Iterator[bytes]:
        """Yield the sentences of each file, one per line, lower-cased and split into tokens.

        A repeated paragraph is read once.
        """
        # Paragraphs of all files that have been read
        read: set[str] = set()
        with progress.task("reading Python's documentation", len(self._files), "files") as task:
            for file in self._files:
                paragraphs = (part for text in _texts(file) for part in text.split("\n\n"))
                new = [part for part in dict.fromkeys(paragraphs) if part not in read]
                read.update(new)
                lines = (line for paragraph in new for line in sentences(paragraph))
                yield "".join(f"{line}\n" for line in lines).encode()
                task.advance()


def _texts(file: Path) -> Iterator[str]:
    """Yield the topics or the docstrings in a source file, without running it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = ast.parse(file.read_bytes())
    if file.name == "topics.py":
        strings = (str(node.value) for node in ast.walk(module) if isinstance(node, ast.Constant))
        yield from (text for text in strings if "\n" in text)
        return
    statements: list[ast.AST] = [module]
    for node in statements:  # grows by the statements inside each statement
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
        statements += (n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.expr))


def sentences(paragraph: str) -> Iterator[str]:
    """Yield the sentences of a paragraph as tokens and spaces; skip code and headings.

    Examples
    --------
    >>> list(sentences("Return the mean.  It isn't robust."))
    ['return the mean .', "it isn't robust ."]
    """
    if not paragraph[:1].strip(" >") or any(sign in paragraph for sign in _NO_PROSE):
        return
    for sentence in _SENTENCE_END.split(paragraph.replace("\u2019", "'")):
        tokens = _TOKEN.findall(sentence.lower())
        if sum(token[0].isalpha() for token in tokens) >= max(3, len(tokens) / 2):
            yield " ".join(tokens)
