"""The page: answers, table, plots and packed trees put into the template, with nothing to fetch.

The content security policy allows the page's scripts by their hashes and forbids all else, the
network above all; what comes from a corpus is data that no script runs.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from bokeh.resources import Resources
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from hstree._version import __version__
from hstree.errors import FileFormatError
from hstree.experiments.results import Comparison
from hstree.report.answer import answers_of, conditions_of, noun_of
from hstree.report.explorer import explorer_of
from hstree.report.plots import Plot, plots_of
from hstree.report.table import PageRow, columns_of, row_named, rows_of
from hstree.tree import Tree
from hstree.tree import load as load_tree

_ASSETS = files("hstree.report") / "assets"
_SCRIPTS = ("treedata.js", "treeview.js", "codes.js", "explorer.js", "page.js")


def page_of(results: Comparison, folder: Path) -> str:
    """Return the page of a comparison, whose trees are in `folder` (else FileFormatError)."""
    rows, choice = rows_of(results), results.choice
    trees = {row.name: _tree(row, folder) for row in rows if row.is_tree}
    chosen = None if choice is None else row_named(rows, choice.fastest)
    return render(
        # the name of the text
        title=str(results.corpus["train"].get("name") or "this text"),
        question=f"Which {noun_of(rows)}",
        caption="Every row was trained on the same text with the same starting vectors, batches "
        "and schedule.",
        answers=answers_of(results, rows),
        rows=rows,
        columns=columns_of(rows, oov=bool(results.oov["test"])),
        chosen=None if chosen is None else chosen.index,
        conditions=conditions_of(results),
        plots=plots_of(results, rows),
        explorer=explorer_of(rows, trees, chosen) if trees else None,
    )


def render(*, plots: Sequence[Plot], explorer: dict[str, Any] | None, **values: Any) -> str:
    """Return the page of a table and its plots; `values` are the other names of the template."""
    bokeh = "\n".join(Resources(mode="inline", components=["bokeh"]).js_raw)
    scripts = [bokeh, *map(_asset, _SCRIPTS)]
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    page: str = environment.from_string(_asset("page.html")).render(
        version=__version__,
        policy=_policy(scripts),
        scripts=[Markup(script) for script in scripts],
        style=Markup(_asset("page.css")),
        plots=plots,
        plot_items=_embedded([plot.item for plot in plots]),
        has_explorer=explorer is not None,
        explorer=_embedded(explorer),
        **values,
    )
    return page


def _embedded(value: object) -> Markup:
    """Return a value as JSON that no word in it can end, with keys in their order.

    Bokeh defines an object where it first occurs, and refers to it after.
    """
    return Markup(json.dumps(value).replace("<", "\\u003c"))


def _tree(row: PageRow, folder: Path) -> Tree:
    path = folder / (row.result.tree_file or "")
    tree = load_tree(path)
    if row.tree is None or tree.sha256 != row.tree.sha256:
        raise FileFormatError(
            f"{path} is not the tree that the results name; run the comparison again"
        )
    return tree


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _policy(scripts: Sequence[str]) -> str:
    """Return the content security policy: these scripts, inline styles, and nothing fetched."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
