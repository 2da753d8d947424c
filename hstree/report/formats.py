"""Figures as text, where one that is not known is a dash, links that hold a file, and templates."""

import base64
import math
from importlib.resources import files
from typing import NamedTuple, Self

from jinja2 import Environment, FunctionLoader, StrictUndefined

from hstree._text import plural

DASH, TIMES = "\N{EN DASH}", "\N{MULTIPLICATION SIGN}"
#: Media type of a file by its ending; of others, JSON.
_TYPES = {"svg": "image/svg+xml", "csv": "text/csv"}


def number(value: float | None, least: int = 0, most: int = 2, *, is_short: bool = False) -> str:
    """Format a number with thousands separators: 9.45, 13.4, 10,000; if `is_short` 129k, 1.35M.

    It has `least` decimals from 100 on, one more from 10 on, else two more, and at most `most`.
    """
    if value is None:
        return DASH
    if is_short and value >= 9_950:
        return f"{value / 1e3:,.0f}k" if value < 999_500 else f"{value / 1e6:,.2f}M"
    # What would be rounded to 100.0 or 10.00 is not.
    digits = least + (abs(value) < 99.95) + (abs(value) < 9.995)
    return f"{value:,.{min(digits, most)}f}"


def signed(value: float, form: str = ".2f") -> str:
    """Format a number with its sign: "+0.52"; as a percentage "+3.5%", but "0.0%"."""
    text = f"{value:+{form}}".replace("-", "\N{MINUS SIGN}")
    return text[1:] if text[1:] == "0.0%" else text


class Link(NamedTuple):
    """A file inside the page, as a link that holds it."""

    name: str
    href: str
    size: int

    @classmethod
    def to(cls, name: str, content: bytes) -> Self:
        """Return the link to a file's content."""
        kind = _TYPES.get(name.rpartition(".")[2], "application/json")
        return cls(name, f"data:{kind};base64,{base64.b64encode(content).decode()}", len(content))


#: Folder of the templates, the scripts and the style.
ASSETS = files("hstree.report") / "assets"
#: The templates; values are escaped.
TEMPLATES = Environment(
    loader=FunctionLoader(lambda name: (ASSETS / name).read_text("utf-8")),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
for _format in (number, signed, plural):
    TEMPLATES.filters[_format.__name__] = _format
TEMPLATES.filters["or_infinite"] = lambda value: math.inf if value is None else value
