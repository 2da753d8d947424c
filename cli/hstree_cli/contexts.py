"""Contexts that are typed or read from a file: one a line, words between white space."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from hstree.data.vocabulary import UNK, Vocabulary
from hstree.errors import InputError
from hstree_cli.messages import warn

#: Unknown words that a warning names.
NAMED = 5


def split(text: str) -> list[str]:
    """Return the words of a text, between ASCII white space as in a corpus."""
    words = text.encode("utf-8", "surrogateescape").split()
    return [word.decode("utf-8", "surrogateescape") for word in words]


def read_contexts(name: str) -> Iterator[list[str]]:
    """Yield the words of each line of a file, of standard input for ``-``.

    Raises
    ------
    InputError
        When the file cannot be read or a line is no UTF-8.
    """
    if name == "-":
        yield from _words("standard input", sys.stdin.buffer)
        return
    try:
        with Path(name).open("rb") as file:
            yield from _words(name, file)
    except OSError as error:
        raise InputError(f"cannot read the contexts {name}: {error.strerror}") from error


def _words(name: str, lines: Iterable[bytes]) -> Iterator[list[str]]:
    for number, line in enumerate(lines, start=1):
        try:
            yield split(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise InputError(f"{name}, line {number}: not UTF-8; convert the file first") from error


def unknown(words: Iterable[str], vocabulary: Vocabulary) -> list[str]:
    """Return the words that are not in a vocabulary, each once, in order."""
    return list(dict.fromkeys(word for word in words if word not in vocabulary))


def warn_of_unknown(contexts: Sequence[Sequence[str]], vocabulary: Vocabulary) -> None:
    """Say which words are read as ``<unk>``; without one, the model refuses them itself."""
    if vocabulary.unk is None:
        return
    found = unknown((word for words in contexts for word in words), vocabulary)
    if not found:
        return
    named = ", ".join(map(repr, found[:NAMED]))
    more = f" and {len(found) - NAMED:,} more" if len(found) > NAMED else ""
    warn(f"not among the model's words, read as {UNK}: {named}{more}")
