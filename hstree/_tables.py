"""Tables of results that Python users read: as text, and as HTML in notebooks."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class TextTable:
    """A table of texts: the first column left-aligned, the others right-aligned."""

    columns: Sequence[str]  #: titles; none for a table of names and values
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


def figure(value: float | None, digits: int = 2) -> str:
    """Return a number with its thousands separated; a dash for None and NaN."""
    return "-" if value is None or value != value else f"{value:,.{digits}f}"


def in_notebook() -> bool:
    """Return whether this is the process of a notebook, which shows HTML."""
    ipython = sys.modules.get("IPython")  # a notebook has imported it
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")


def show(result: object) -> None:
    """Display a result in a notebook; print it anywhere else."""
    if in_notebook():
        sys.modules["IPython"].display.display(result)
    else:
        print(result)
