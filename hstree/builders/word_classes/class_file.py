r"""Files of word classes: ``word<TAB>class`` lines, or the ``paths`` of Brown clustering."""

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from hstree._text import quoted
from hstree.data.word_files import read_lines, unexpected
from hstree.errors import InputError

#: Number of fields -> what a line must be.
_LINES = {
    2: (re.compile(r"(?P<word>[^\t]+)\t(?P<name>[^\t]+)"), "a word, a tab and a class"),
    3: (
        re.compile(r"(?P<name>[01]*)\t(?P<word>[^\t]+)\t(?P<count>[0-9]{1,19})"),
        "bits of 0 and 1, a tab, a word, a tab and a count",
    ),
}
_FORMS = "word<TAB>class lines, or bits<TAB>word<TAB>count lines as Brown clustering writes them"


@dataclass(frozen=True)
class ClassFile:
    """Content of a file of classes."""

    class_of: dict[str, str]  # word -> name of its class, or its bit string
    is_paths: bool  # whether the classes are bit strings, which form a hierarchy
    counts: tuple[int, ...]  # of the words, in that order; empty where `is_paths` is False


def read_classes(path: Path) -> ClassFile:
    """Read a file of classes: UTF-8, compressed if the name ends in ``.gz``.

    The first line decides between ``word<TAB>class`` and ``bits<TAB>word<TAB>count``. Empty lines
    are skipped. Raises InputError when a line is not of that form, a word occurs twice, or one bit
    string is a prefix of another.
    """
    class_of: dict[str, str] = {}
    line_of: dict[str, int] = {}
    counts: list[int] = []
    n_fields = 0
    for number, line in read_lines(path, "the classes"):
        n_fields = n_fields or line.count("\t") + 1
        if n_fields not in _LINES:
            raise InputError(f"{path}, line {number}: {quoted(line)}; give {_FORMS}")
        pattern, form = _LINES[n_fields]
        match = pattern.fullmatch(line)
        if match is None:
            raise unexpected(path, number, form, line)
        word, name = match["word"], match["name"]
        if n_fields == 3:
            counts.append(int(match["count"]))
        if word in class_of:
            raise InputError(
                f"{path}, line {number}: the word {word!r} is on line {line_of[word]} too; "
                "give each word one class"
            )
        class_of[word], line_of[word] = name, number
    if not class_of:
        raise InputError(f"{path}: no line in it; give {_FORMS}")
    strings = sorted(set(class_of.values())) if n_fields == 3 else []
    for before, after in pairwise(strings):
        if after.startswith(before):
            raise InputError(
                f"{path}: the bit string {before!r} is a prefix of {after!r}, so the code is not "
                "prefix-free; give the paths as the clustering wrote them"
            )
    return ClassFile(class_of, n_fields == 3, tuple(counts))
