"""Templates of the page, which are among its assets, and the filters that they format with."""

from __future__ import annotations

import math
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from hstree._text import plural
from hstree.report import formats


def asset(name: str) -> str:
    """Return the text of an asset."""
    return (files("hstree.report") / "assets" / name).read_text(encoding="utf-8")


#: The templates, whose values are escaped.
_ENVIRONMENT = Environment(
    loader=FunctionLoader(asset),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
for _name in ("number", "three_digits", "perplexity", "change", "signed", "signed_number"):
    _ENVIRONMENT.filters[_name] = getattr(formats, _name)
_ENVIRONMENT.filters["plural"] = plural
_ENVIRONMENT.filters["or_infinite"] = lambda value: math.inf if value is None else value


def rendered(name: str, **values: Any) -> Markup:
    """Return a template with its values, which are escaped."""
    return Markup(_ENVIRONMENT.get_template(name).render(values))
