"""Sources of text: files, folders, standard input, NLTK corpora and the built-in text.

A source yields the bytes of a text, and a key that changes if the text may have changed. `encoding`
splits the bytes into words.
"""

import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from glob import glob, has_magic
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from hstree import progress
from hstree._files import (
    BYTE_ORDER_MARK,
    UNPACK,
    open_regular,
    refuse_containers,
    unpacking_reader,
)
from hstree._text import named_error, plural, recorded_name
from hstree.errors import InputError, explained

if TYPE_CHECKING:
    from hstree.data.builtin import PythonDocs

BLOCK_BYTES = 1 << 20
#: Name of the text that ``-`` means.
STANDARD_INPUT = "standard input"
_BLOCK_LINES = 4096
_WHITES = " \t\n\r\v\f"
_WHITE = re.compile(f"[{_WHITES}]+")
_KINDS = (
    "a text file (.txt, .txt.gz), a folder or a pattern (*.txt) of files, - (standard input), "
    "nltk:NAME or builtin:python"
)
_VECTORS = "word vectors (which builders such as gmm and kmeans read)"
#: Two lines with a word and five or more decimal numbers, possibly after a line of sizes.
_VECTOR_LINES = re.compile(rb"(\d+ \d+\s+)?(\S+([ \t]+-?\d+\.\d+(e-?\d+)?){5,}\s*\n){2}")
#: Extensions of files that are not texts, and the kind of each file.
_NOT_TEXTS = {
    ".tsv": "a vocabulary or a table",
    ".csv": "a table",
    ".parquet": "a table (read it with pandas and give one column)",
    ".vec": _VECTORS,
    ".npy": _VECTORS,
    ".bin": _VECTORS,
    ".json": "a tree",
    ".npz": "a tree",
    ".paths": "a tree",
    ".jsonl": "JSON lines (`jq -r .text` extracts the texts)",
    ".xml": "XML",
    ".pdf": "a PDF (`pdftotext` extracts the text)",
    ".zip": "an archive (`unzip` extracts it)",
}


#: A text: UTF-8 bytes, one sentence per line, words separated by white space.
Source: TypeAlias = "TextFile | NltkCorpus | PythonDocs"


def open_source(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, text: bool = False
) -> Source:
    """Return the source with a name; a `Path` is always a file or a folder, a list names files.

    If `text`, files are read as text regardless of their extensions. Raises InputError if there is
    no such text; the message explains how to get it.
    """
    if not isinstance(source, str | os.PathLike):
        if not source:
            raise InputError(f"an empty list of files; a corpus is {_KINDS}")
        first, *others = map(Path, source)
        name = first.name + (f" and {plural(len(others), 'other')}" if others else "")
        return TextFile(first, *others, name=name, text=text)
    if isinstance(source, str):
        if source.startswith("nltk:"):
            return NltkCorpus(source)
        if source.startswith("builtin:"):
            from hstree.data.builtin import PythonDocs  # rarely needed

            if source != PythonDocs.name:
                raise InputError(
                    f"{source}: no such built-in text; the built-in text is {PythonDocs.name}"
                )
            return PythonDocs()
        if source == "-":
            return StandardInput(text)
        # An existing file with such characters in its name is not a pattern
        is_pattern = has_magic(source) and not os.path.exists(source)
        if is_pattern and (matches := sorted(glob(source, recursive=True))):
            return TextFile(*map(Path, matches), name=Path(source).name, text=text)
    return TextFile(Path(source), text=text)


class TextFile:
    """One or more text files: a list, or the files in a folder in the order of their paths.

    Files are decompressed by their extensions, and byte order marks are skipped.
    """

    _kept: BinaryIO | None = None  #: an open file that is read instead

    def __init__(self, *paths: Path, name: str = "", text: bool = False) -> None:
        self._files: list[Path] = []
        for path in paths:
            # For an invalid file name, os.path returns False, but Path raises an error
            if not os.path.exists(path):
                raise InputError(f"no such file: {path}; a corpus is {_KINDS}")
            if os.path.isdir(path):
                # Skip hidden files and files in hidden folders
                inside = [(file.relative_to(path).as_posix(), file) for file in path.rglob("*")]
                files = sorted(f for name, f in inside if f.is_file() and "/." not in f"/{name}")
                if not files:
                    raise InputError(f"the folder {path} contains no file; a corpus is {_KINDS}")
                self._files += files
                name = name or path.resolve().name
            elif os.path.isfile(path):
                self._files.append(path)
            else:
                raise InputError(f"{path} is not a regular file; a corpus is {_KINDS}")
        self.name = recorded_name(name or paths[0].name)
        self._key = ""
        self._is_text = text
        # Refuse other kinds of files, whose content is not words
        for file in [] if text else self._files:
            name = file.name.lower()
            name = name.removesuffix(next(filter(name.endswith, UNPACK), ""))
            if kind := _NOT_TEXTS.get(Path(name).suffix):
                raise _no_text(file, kind)

    def key(self) -> str:
        """Return the sha256 of the uncompressed text."""
        if not self._key:
            deque(self.blocks(), maxlen=0)
        return self._key

    def blocks(self) -> Iterator[bytes]:
        """Yield the uncompressed text; refuse other content, and changes since the key was read."""
        digest = hashlib.sha256()
        size = sum(file.stat().st_size for file in self._files if file.exists())
        with progress.task(f"reading {self.name}", total=size or None, unit="bytes") as task:
            for number, (block, n_read) in enumerate(_read(self._files, self._kept)):
                # Saved models and vectors are common mistakes; vectors begin with word and numbers
                if number == 0 and not self._is_text:
                    refuse_containers(self.name, block)
                if number == 0 and not self._is_text and _VECTOR_LINES.match(block):
                    raise _no_text(self.name, _VECTORS)
                digest.update(block)
                yield block
                task.advance(n_read)
        if self._key not in ("", digest.hexdigest()):
            raise InputError(f"{self.name} changed while it was read; try again")
        self._key = digest.hexdigest()


def _no_text(name: object, kind: str) -> InputError:
    """Return the error for a file that is not a text."""
    return InputError(
        f"{name} looks like {kind}; a corpus is {_KINDS}; --text (in Python "
        "`Corpus.read(..., text=True)`) reads it anyway"
    )


def _read(files: Iterable[Path], kept: BinaryIO | None) -> Iterator[tuple[bytes, int]]:
    """Yield the blocks of files, each with the number of bytes that were read for it.

    If `kept` is given, it is read instead of the files.
    """
    end = b"\n"
    for path in files:
        with explained(f"read {path}"), nullcontext(kept) if kept else open_regular(path) as raw:
            raw.seek(0)
            read = unpacking_reader(raw, path.suffix, is_bounded=False)
            before = 0
            block = read(BLOCK_BYTES)
            # End the last line of the previous file
            line_end = b"" if end == b"\n" else b"\n"
            block = line_end + block.removeprefix(BYTE_ORDER_MARK)
            while block:
                position = raw.tell()
                yield block, position - before
                end = block[-1:]
                before = position
                block = read(BLOCK_BYTES)


def standard_input_blocks() -> Iterator[bytes]:
    """Yield standard input as it arrives, without storing it and without a byte order mark."""
    stdin: Any = sys.stdin.buffer
    with explained(f"read {STANDARD_INPUT}"):
        block = stdin.read1(BLOCK_BYTES)
    block = block.removeprefix(BYTE_ORDER_MARK)
    while block:
        yield block
        with explained(f"read {STANDARD_INPUT}"):
            block = stdin.read1(BLOCK_BYTES)


class StandardInput(TextFile):
    """Standard input, stored in a temporary file, because a text is read twice."""

    _read_before: BinaryIO | None = None

    def __init__(self, text: bool = False) -> None:
        if StandardInput._read_before is sys.stdin.buffer:
            raise InputError(
                "standard input can be read only once, and - is given twice; give the other text "
                "as a file"
            )
        StandardInput._read_before = sys.stdin.buffer
        self.name = STANDARD_INPUT
        self._key = ""
        self._is_text = text
        self._files = [Path(self.name)]
        self._kept = tempfile.TemporaryFile()  # noqa: SIM115  (kept as long as the text)
        shutil.copyfileobj(sys.stdin.buffer, self._kept)


class NltkCorpus:
    """An NLTK corpus with sentences, read by NLTK's reader.

    White space inside a word becomes ``_``, because white space separates words.
    """

    def __init__(self, source: str) -> None:
        # Importing NLTK takes more than a second, and few runs need it
        import nltk.corpus
        from nltk.corpus.reader.api import CorpusReader
        from nltk.corpus.util import LazyCorpusLoader

        self.name = source
        self._version = nltk.__version__
        self._corpus = source.removeprefix("nltk:")
        reader = getattr(nltk.corpus, self._corpus, None)
        if not isinstance(reader, LazyCorpusLoader | CorpusReader):
            raise InputError(f"{source}: NLTK has no corpus {self._corpus!r}; try nltk:brown")
        with self._reading():
            reader.ensure_loaded()
        if not hasattr(reader, "sents"):
            raise InputError(f"{source} has no sentences; choose another one, such as nltk:brown")
        self._reader: Any = reader

    def key(self) -> str:
        """Return a hash of the files of the corpus, its reader and the version of NLTK."""
        with self._reading():
            about = [self.name, self._version, type(self._reader).__name__, *self._reader.fileids()]
            digest = hashlib.sha256("".join(f"{line}\n" for line in about).encode())
            for path in self._reader.abspaths():
                with path.open() as file:  # it may be inside a zip archive
                    digest.update(hashlib.sha256(file.read()).digest())
            return digest.hexdigest()

    def blocks(self) -> Iterator[bytes]:
        """Yield the sentences, one per line."""
        with self._reading(), progress.task(f"reading {self.name}", unit="sentences") as task:
            lines = (
                " ".join(_WHITE.sub("_", word.strip(_WHITES)) for word in sentence)
                for sentence in self._reader.sents()
            )
            while block := list(islice(lines, _BLOCK_LINES)):
                yield "".join(f"{line}\n" for line in block).encode()
                task.advance(len(block))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Raise InputError for every error of an NLTK reader on missing or damaged data."""
        try:
            yield
        except InputError:
            raise
        except Exception as error:
            # The long message of NLTK contains the name of the resource to download
            missing = re.search(r"nltk\.download\('([^']+)'\)", str(error))
            if missing or "sentence tokenizer" in str(error):
                resource = missing[1] if missing else "punkt_tab"
                raise InputError(
                    f"{self.name} needs {resource} of NLTK: get it with `python -m nltk.downloader "
                    f"{resource}`, or set NLTK_DATA to the folder that contains it"
                ) from error
            raise InputError(f"{self.name} cannot be read: {named_error(error)}") from error
