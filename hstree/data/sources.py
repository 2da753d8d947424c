"""Sources of text: files, NLTK corpora and the built-in text.

A source yields the bytes of a text, and a key that changes whenever the text may have changed.
`encoding` turns the bytes into words.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

from hstree import progress
from hstree._files import BYTE_ORDER_MARK, recorded_name
from hstree._text import named_error
from hstree.data.builtin import PythonDocs
from hstree.data.vector_files import numbers_per_word
from hstree.errors import InputError

BLOCK_BYTES = 1 << 20
_BLOCK_LINES = 4096
_KINDS = "a text file (.txt, .txt.gz), nltk:NAME or builtin:python"
_VECTORS = ("word vectors", "vectors are for builders such as gmm and kmeans")
_TREE = ("a tree", "trees are for `hstree.load`")
#: Endings of files that are not texts: what they are, and what to do with them.
_NOT_TEXTS = {
    ".tsv": ("a vocabulary", "a vocabulary is given beside the corpus"),
    **dict.fromkeys((".vec", ".vec.gz", ".npy", ".bin", ".bin.gz"), _VECTORS),
    **dict.fromkeys((".json", ".json.gz", ".npz"), _TREE),
    ".paths": ("words' paths in a tree", "`hstree.formats.read` makes a tree of them"),
}


class Source(Protocol):
    """A text: UTF-8 bytes, one sentence per line, words separated by white space."""

    name: str  #: without a folder
    versions: dict[str, str]  #: of the packages that the text was taken from; empty for a file

    def key(self) -> str:
        """Return a hash that changes whenever the text may have changed."""

    def blocks(self) -> Iterator[bytes]:
        """Yield the text in blocks of any length."""


def open_source(source: str | Path) -> Source:
    """Return the source with a name; a `Path` is always a file.

    Raises InputError when there is no such text; the message says how to get it.
    """
    if isinstance(source, str) and source.startswith("nltk:"):
        return NltkCorpus(source)
    if isinstance(source, str) and source.startswith("builtin:"):
        if source != PythonDocs.name:
            raise InputError(f"{source}: no such built-in text; there is {PythonDocs.name}")
        return PythonDocs()
    return TextFile(Path(source))


class TextFile:
    """A text file, gzipped if its name ends in ``.gz``; a byte order mark is skipped."""

    def __init__(self, path: Path) -> None:
        # os.path returns False, where Path raises, for a name that no file can have.
        if not os.path.exists(path):
            raise InputError(f"no such file: {path}; a corpus is {_KINDS}")
        if not os.path.isfile(path):
            raise InputError(f"{path} is not a regular file; a corpus is {_KINDS}")
        for ending, (what, instead) in _NOT_TEXTS.items():  # they would be read as nonsense words
            if path.name.lower().endswith(ending):
                wrong = f"{path} looks like {what} ({ending})"
                raise InputError(f"{wrong}; a corpus is {_KINDS}, and {instead}")
        self.name = recorded_name(path.name)
        self.versions: dict[str, str] = {}
        self._path = path
        self._key = ""

    def key(self) -> str:
        """Return the sha256 of the (uncompressed) text."""
        if not self._key:
            self._key = _sha256(self._read())
        return self._key

    def blocks(self) -> Iterator[bytes]:
        """Yield the (uncompressed) text, and check that its hash is the key."""
        expected, digest = self.key(), hashlib.sha256()
        for block in self._read():
            digest.update(block)
            yield block
        if digest.hexdigest() != expected:
            raise InputError(f"{self._path} changed while it was read; try again")

    def _read(self) -> Iterator[bytes]:
        try:
            size = self._path.stat().st_size
            with (
                progress.task(f"reading {self.name}", total=size, unit="bytes") as task,
                self._path.open("rb") as raw,
                gzip.open(raw) if self._path.suffix == ".gz" else raw as file,
            ):
                before, skip = 0, BYTE_ORDER_MARK
                while block := file.read(BLOCK_BYTES):
                    if before == 0 and block.startswith(b"%PDF-"):
                        raise InputError(
                            f"{self._path} is a PDF, not a text; give the text alone, such as "
                            "`pdftotext FILE.pdf FILE.txt` makes of it"
                        )
                    if before == 0 and (numbers := numbers_per_word(block)):
                        what, instead = _VECTORS
                        raise InputError(
                            f"{self._path} looks like {what} ({numbers} numbers after each word); "
                            f"a corpus is {_KINDS}, and {instead}"
                        )
                    yield block.removeprefix(skip)
                    skip = b""
                    task.advance(raw.tell() - before)
                    before = raw.tell()
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"cannot read {self._path}: {reason}") from error


class NltkCorpus:
    """An NLTK corpus with sentences, read by NLTK's reader.

    White space inside a word becomes ``_``, since white space separates words here.
    """

    def __init__(self, source: str) -> None:
        # NLTK takes over a second to import, and most runs do not need it.
        import nltk.corpus
        from nltk.corpus.reader.api import CorpusReader
        from nltk.corpus.util import LazyCorpusLoader

        self.name = source
        self.versions = {"nltk": nltk.__version__}
        self._corpus = source.removeprefix("nltk:")
        reader = getattr(nltk.corpus, self._corpus, None)
        if not isinstance(reader, LazyCorpusLoader | CorpusReader):
            raise InputError(f"{source}: NLTK knows no corpus {self._corpus!r}; try nltk:brown")
        with self._reading():
            reader.ensure_loaded()
        if not hasattr(reader, "sents"):
            raise InputError(f"{source} has no sentences; choose another one, such as nltk:brown")
        self._reader: Any = reader

    def key(self) -> str:
        """Return a hash of the corpus's files, its reader and the version of NLTK."""
        with self._reading():
            about = [self.name, self.versions, type(self._reader).__name__, *self._reader.fileids()]
            lines = (f"{line}\n".encode() for line in about)
            return _sha256(chain(lines, map(_file_hash, self._reader.abspaths())))

    def blocks(self) -> Iterator[bytes]:
        """Yield the sentences, one per line."""
        with self._reading(), progress.task(f"reading {self.name}", unit="sentences") as task:
            for block, n_lines in _blocks(map(_line, self._reader.sents())):
                yield block
                task.advance(n_lines)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Raise InputError for anything that an NLTK reader raises on missing or bad data."""
        try:
            yield
        except InputError:
            raise
        except Exception as error:
            missing = re.search(r"nltk\.download\('([^']+)'\)", str(error))
            if missing or "sentence tokenizer" in str(error):
                resource = missing[1] if missing else "punkt_tab"
                raise InputError(
                    f"{self.name} needs NLTK's {resource}: get it with `python -m nltk.downloader "
                    f"{resource}`, or set NLTK_DATA to the folder that holds it"
                ) from error
            raise InputError(f"{self.name} cannot be read: {named_error(error)}") from error


def _sha256(blocks: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()


def _file_hash(path: Any) -> bytes:
    """Hash one file of an NLTK corpus, which may be inside a zip archive."""
    with path.open() as file:
        return hashlib.sha256(file.read()).digest()


def _line(words: Iterable[str]) -> str:
    return " ".join(re.sub(r"[ \t\n\r\v\f]+", "_", word.strip(" \t\n\r\v\f")) for word in words)


def _blocks(lines: Iterable[str]) -> Iterator[tuple[bytes, int]]:
    """Yield lines joined to blocks of bytes, and the number of lines in each."""
    rest = iter(lines)
    while block := list(islice(rest, _BLOCK_LINES)):
        yield "".join(f"{line}\n" for line in block).encode(), len(block)
