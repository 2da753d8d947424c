"""Strict decoding of texts, and formatting of counts, times, quotations and tables."""

import math
import os
import re
import reprlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from hstree.errors import InputError

#: Characters that move the cursor, change colours or reorder text: C0 and C1 control characters,
#: DEL, line and paragraph separators, bidirectional embeddings, overrides and isolates; and lone
#: surrogates, which no terminal can show.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def strict_text(data: bytes, name: str, *, line: int = 1, offset: int = 0) -> str:
    """Decode a part of a file as UTF-8 without NUL bytes; `line` and `offset` are its beginning."""
    if offset == 0 and data.startswith((b"\xff\xfe", b"\xfe\xff")):
        remedy = "convert the file first, for example with `iconv -f utf-16 -t utf-8`"
        raise InputError(f"{name} is UTF-16, not UTF-8; {remedy}")
    # Position of the first invalid byte: NUL, or not UTF-8
    at = data.find(b"\0")
    byte = "a NUL byte"
    fault = ": not a text file; give plain UTF-8 text"
    if at < 0:
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            at = error.start
            byte = f"byte 0x{data[at]:02x}"
            remedy = "convert the file first, for example with `iconv -f latin1 -t utf-8`"
            fault = f" is not UTF-8; {remedy}"
    line += data.count(b"\n", 0, at)
    raise InputError(f"{name}: {byte} at line {line}, byte offset {offset + at}{fault}")


def recorded_name(path: str | os.PathLike[str]) -> str:
    r"""Return a path as valid text; bytes that are not UTF-8 become ``\xNN``."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def plural(count: int, singular: str, plural_form: str | None = None) -> str:
    """Format a count with its noun; the plural has an s by default."""
    return f"{count:,} {singular if count == 1 else plural_form or singular + 's'}"


def one_line(error: BaseException) -> str:
    """Return the message of an error on one line, or the type of the error without a message."""
    return " ".join(str(error).split()) or type(error).__name__


def named_error(error: BaseException) -> str:
    """Return the type and the message of an error on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")


def quoted(text: str, width: int = 40) -> str:
    """Quote a text, shortened to `width` characters."""
    return repr(text if len(text) <= width else f"{text[:width]}...")


def brief(value: object) -> str:
    """Return a shortened representation of a value on one line."""
    try:
        return " ".join(reprlib.repr(value).split())
    except ValueError:  # an integer with too many digits for Python
        return f"a number of more than {sys.get_int_max_str_digits():,} digits"


def duration(seconds: float) -> str:
    """Format a time in seconds, minutes or hours, rounded up."""
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def printable(text: str, keep: str = "") -> str:
    r"""Escape the control characters in a text, except those in `keep`."""
    return _UNSAFE.sub(lambda match: match[0] if match[0] in keep else repr(match[0])[1:-1], text)


@dataclass(frozen=True)
class TextTable:
    """A table of texts, with a left-aligned first column and right-aligned other columns."""

    columns: Sequence[str]  #: titles; empty for a table of names and values
    rows: Sequence[Sequence[str]]
    note: str = ""  #: text below the table

    def __str__(self) -> str:
        lines = [self.columns, *self.rows] if self.columns else self.rows
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        texts = [
            "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip()
            for line in lines
        ]
        return "\n".join([*texts, *filter(None, [self.note])])

    def _repr_html_(self) -> str:
        def row(texts: Sequence[str], tag: str) -> str:
            first, *others = map(escape, texts)
            left = f'<{tag} style="text-align: left">{first}</{tag}>'
            return f"<tr>{left}{''.join(f'<{tag}>{text}</{tag}>' for text in others)}</tr>"

        head = f"<thead>{row(self.columns, 'th')}</thead>" if self.columns else ""
        body = "".join(row(texts, "td") for texts in self.rows)
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return f"<table>{head}<tbody>{body}</tbody></table>{note}"


def format_number(value: float | None, digits: int = 2) -> str:
    """Format a number with thousands separators; None and NaN are a dash."""
    return "-" if value is None or value != value else f"{value:,.{digits}f}"


def signed(value: float, form: str = ".2f") -> str:
    """Format a number with its sign, such as "+0.52"; zero has no sign."""
    text = f"{value:+{form}}".replace("-", "\N{MINUS SIGN}")
    return text if any(digit in text for digit in "123456789") else text[1:]


def format_change(ratio: float | None) -> str:
    """Format a ratio as a difference from 1, such as "+29.4%"; None is a dash."""
    return "-" if ratio is None else signed(ratio - 1, ".1%")


def in_notebook() -> bool:
    """Return whether this process is a notebook, which displays HTML."""
    ipython = sys.modules.get("IPython")  # imported in every notebook
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")


def show(result: object) -> None:
    """Display a result in a notebook; print it anywhere else."""
    if in_notebook():
        sys.modules["IPython"].display.display(result)
    else:
        print(result)
