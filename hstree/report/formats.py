"""Figures as text, where one that is not known is a dash, and the templates that they are for."""

import math
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from hstree._text import plural

DASH, TIMES = "\N{EN DASH}", "\N{MULTIPLICATION SIGN}"


def number(value: float | None, digits: int = 0) -> str:
    """Format a number with thousands separators."""
    return DASH if value is None else f"{value:,.{digits}f}"


def three_digits(value: float | None) -> str:
    """Format a number to three significant digits, whole from 100 on: 9.45, 13.4, 10,000."""
    if value is None or abs(value) >= 99.95:
        return number(value)
    return f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"


def short_number(value: float) -> str:
    """Format a number to some four digits: 8,120, 129k, 1.35M."""
    if value >= 999_500:
        return f"{value / 1e6:,.2f}M"
    return f"{value / 1e3:,.0f}k" if value >= 9_950 else number(value)


def perplexity(value: float | None) -> str:
    """Format a perplexity: one decimal, but two below 100."""
    return number(value, 1 if value is None or value >= 99.95 else 2)


def signed(ratio: float) -> str:
    """Format a ratio as a signed percentage: "+3.5%"."""
    per_cent = signed_number(100 * (ratio - 1), 1)
    return "0.0%" if per_cent[1:] == "0.0" else f"{per_cent}%"


def signed_number(value: float, digits: int = 2) -> str:
    """Format a number with its sign: "+0.52"."""
    return f"{value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")


# Templates, and scripts and styles, which are among the assets


def asset(name: str) -> str:
    """Return the text of an asset."""
    return (files("hstree.report") / "assets" / name).read_text(encoding="utf-8")


def rendered(name: str, **values: Any) -> Markup:
    """Return a template with its values, which are escaped."""
    return Markup(_ENVIRONMENT.get_template(name).render(values))


_ENVIRONMENT = Environment(
    loader=FunctionLoader(asset),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
for _format in (number, three_digits, perplexity, signed, signed_number, plural):
    _ENVIRONMENT.filters[_format.__name__] = _format
_ENVIRONMENT.filters["or_infinite"] = lambda value: math.inf if value is None else value
