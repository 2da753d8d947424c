r"""Files of word classes: ``word<TAB>class`` lines, or the ``paths`` of Brown clustering."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from hstree._text import quoted
from hstree.data.word_files import read_lines, unexpected
from hstree.errors import InputError

_BITS = re.compile("[01]*")
_COUNT = re.compile("[0-9]{1,19}")
_FORMS = "word<TAB>class lines, or bits<TAB>word<TAB>count lines as Brown clustering writes them"


@dataclass(frozen=True)
class ClassFile:
    """Content of a file of classes.

    Attributes
    ----------
    class_of : dict
        Word -> name of its class, or its bit string.
    is_paths : bool
        Whether the classes are bit strings, which form a hierarchy.
    counts : tuple of int
        Counts of the words, in the order of `class_of`; empty where `is_paths` is False.
    """

    class_of: dict[str, str]
    is_paths: bool
    counts: tuple[int, ...] = ()


def read_classes(path: Path) -> ClassFile:
    r"""Read a file of classes.

    Parameters
    ----------
    path : Path
        UTF-8; compressed if the name ends in ``.gz``. Lines ``word<TAB>class``, or ``paths`` of
        Brown clustering, ``bits<TAB>word<TAB>count``; the first line decides. Empty lines are
        skipped.

    Raises
    ------
    InputError
        When a line is not of that form, a word occurs twice, or one bit string is a prefix of
        another; the message names the line.
    """
    class_of: dict[str, str] = {}
    line_of: dict[str, int] = {}
    counts: list[int] = []
    n_fields = 0
    for number, line in read_lines(path, "the classes"):
        fields = line.split("\t")
        n_fields = n_fields or len(fields)
        if n_fields not in (2, 3):
            raise InputError(f"{path}, line {number}: {quoted(line)}; give {_FORMS}")
        is_right = _is_path(fields) if n_fields == 3 else len(fields) == 2 and all(fields)
        if not is_right:
            path_form = "bits of 0 and 1, a tab, a word, a tab and a count"
            form = path_form if n_fields == 3 else "a word, a tab and a class"
            raise unexpected(path, number, form, line)
        word, name = (fields[1], fields[0]) if n_fields == 3 else fields
        counts += map(int, fields[2:])
        if word in class_of:
            raise InputError(
                f"{path}, line {number}: the word {word!r} is on line {line_of[word]} too; "
                "give each word one class"
            )
        class_of[word], line_of[word] = name, number
    if not class_of:
        raise InputError(f"{path}: no line in it; give {_FORMS}")
    if n_fields == 3:
        _check_prefixes(path, set(class_of.values()))
    return ClassFile(class_of, n_fields == 3, tuple(counts))


def _is_path(fields: list[str]) -> bool:
    """Return whether fields are bits, a word and a count."""
    if len(fields) != 3:
        return False
    bits, word, count = fields
    return bool(_BITS.fullmatch(bits) and word and _COUNT.fullmatch(count))


def _check_prefixes(path: Path, strings: set[str]) -> None:
    """Refuse bit strings of which one is a prefix of another."""
    for before, after in pairwise(sorted(strings)):
        if after.startswith(before):
            raise InputError(
                f"{path}: the bit string {before!r} is a prefix of {after!r}, so the code is not "
                "prefix-free; give the paths as the clustering wrote them"
            )
