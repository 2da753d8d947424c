"""Formatting of numbers, links that contain a file, and the templates."""

import base64
import math
from importlib.resources import files
from typing import NamedTuple, Self

from jinja2 import Environment, PackageLoader, StrictUndefined

from hstree._text import format_change, plural

DASH = "\N{EN DASH}"
TIMES = "\N{MULTIPLICATION SIGN}"
#: Media types by the extension of a file; other files are JSON.
_TYPES = {"svg": "image/svg+xml", "csv": "text/csv"}


def number(value: float | None, least: int = 0, most: int = 2, *, is_short: bool = False) -> str:
    """Format a number with thousands separators: 9.45, 13.4, 10,000; if `is_short`, 129k, 1.35M.

    Numbers from 100 on have `least` decimals, numbers from 10 to 100 one more, and numbers below 10
    two more, with a maximum of `most`. An unknown number is a dash.
    """
    if value is None:
        return DASH
    if is_short and value >= 9_950:
        return f"{value / 1e3:,.0f}k" if value < 999_500 else f"{value / 1e6:,.2f}M"
    # The bounds apply after rounding: 99.95 is 100, not 100.0
    digits = least + (abs(value) < 99.95) + (abs(value) < 9.995)
    return f"{value:,.{min(digits, most)}f}"


class Link(NamedTuple):
    """A link that contains a file."""

    name: str
    href: str
    size: int

    @classmethod
    def to(cls, name: str, content: bytes) -> Self:
        """Return a link that contains a file."""
        kind = _TYPES.get(name.rpartition(".")[2], "application/json")
        return cls(name, f"data:{kind};base64,{base64.b64encode(content).decode()}", len(content))


#: Folder of the templates, scripts and style sheets.
ASSETS = files("hstree.report") / "assets"
#: The templates, which escape all values.
TEMPLATES = Environment(
    loader=PackageLoader("hstree.report", "assets"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
for _format in (number, format_change, plural):
    TEMPLATES.filters[_format.__name__] = _format
TEMPLATES.filters["or_infinite"] = lambda value: math.inf if value is None else value
