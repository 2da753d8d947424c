"""The page: answers, table, plots and packed trees put into the template, with nothing to fetch.

The content security policy allows the page's scripts by their hashes and forbids all else, the
network above all; what comes from a corpus is data that no script runs.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from hstree._version import __version__
from hstree.errors import FileFormatError
from hstree.experiments import results as results_files
from hstree.experiments import rows as row_figures
from hstree.experiments import words as word_files
from hstree.experiments.results import Choice, Comparison
from hstree.experiments.words import WordTable
from hstree.report.answer import Answer, answers_of, conditions_of, noun_of
from hstree.report.charts import OUTLINES, Chart
from hstree.report.explorer import explorer_of
from hstree.report.plots import plots_of
from hstree.report.recipe import Recipe, recipe_of
from hstree.report.table import PageRow, columns_of, row_class, row_named, rows_of, signed_number
from hstree.tree import Tree
from hstree.tree import load as load_tree

_ASSETS = files("hstree.report") / "assets"
_SCRIPTS = (
    *("charts.js", "treedata.js", "treeview.js", "icicle.js", "codes.js", "explorer.js"),
    "page.js",
)
#: Furthest that the chosen row may be above the lowest perplexity, and the step of its slider.
FURTHEST, STEP = 0.5, 0.001


@dataclass(frozen=True)
class Download:
    """A file inside the page, as a link that holds all of it."""

    name: str
    href: str
    size: int


@dataclass(frozen=True)
class Offer:
    """The answer from a distance to the lowest perplexity on, `within`, and how to get it."""

    within: float
    chosen: int | None
    answers: Sequence[Answer]
    recipe: Recipe | None = None
    downloads: Sequence[Download] = ()


def page_of(results: Comparison, folder: Path) -> str:
    """Return the page of a comparison, whose trees are in `folder` (else FileFormatError)."""
    rows, choice = rows_of(results), results.choice
    trees = {row.name: _tree(row, folder) for row in rows if row.is_tree}
    chosen = None if choice is None else row_named(rows, choice.chosen)
    return render(
        # the name of the text
        title=str(results.corpus["train"].get("name") or "this text"),
        question=f"Which {noun_of(rows)}",
        caption="Every row was trained on the same text with the same starting vectors, batches "
        "and schedule.",
        pending=results.pending,
        warnings=results.read_before(),
        offers=_offers(results, rows, folder),
        within=None if choice is None else choice.within,
        rows=rows,
        columns=columns_of(rows, oov=bool(results.oov["test"])),
        conditions=conditions_of(results),
        plots=plots_of(results, rows),
        words=_word_tables(folder, rows, chosen),
        explorer=explorer_of(rows, trees, chosen) if trees else None,
    )


def render(
    *,
    plots: Sequence[Chart],
    explorer: dict[str, Any] | None,
    offers: Sequence[Offer],
    within: float | None,
    **values: Any,
) -> str:
    """Return the page of a table and its plots; `values` are the other names of the template."""
    scripts = [_asset(name) for name in _SCRIPTS]
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    first = max((i for i, offer in enumerate(offers) if offer.within <= (within or 0.0)), default=0)
    page: str = environment.from_string(_asset("page.html")).render(
        version=__version__,
        policy=_policy(scripts),
        scripts=[Markup(script) for script in scripts],
        style=Markup(_asset("page.css")),
        outlines=OUTLINES,
        row_class=row_class,
        signed_number=signed_number,
        plots=plots,
        offers=offers,
        offered=first,
        chosen=offers[first].chosen,
        within=within,
        furthest=FURTHEST,
        step=STEP,
        has_explorer=explorer is not None,
        explorer=_embedded(explorer),
        **values,
    )
    return page


# The answers


def _offers(results: Comparison, rows: Sequence[PageRow], folder: Path) -> list[Offer]:
    """Return the answer for every distance to the lowest perplexity at which it changes."""
    stored = results.choice
    if stored is None:
        return [Offer(0.0, None, answers_of(results, rows))]
    choices: list[tuple[float, Choice]] = []
    for within in _distances(results):
        choice = row_figures.choice(results.rows, within)
        if choice is not None and (not choices or _differ(choice, choices[-1][1])):
            choices.append((within, choice))
    # The stored choice has been compared to its rival, too.
    at = max((i for i, (within, _) in enumerate(choices) if within <= stored.within), default=None)
    if at is None:
        choices = [(0.0, stored)]
    else:
        choices[at] = (choices[at][0], stored)
    table = _download(folder / results_files.CSV)
    return [
        _offer(replace(results, choice=choice), rows, choice.chosen, within, folder, table)
        for within, choice in choices
    ]


def _distances(results: Comparison) -> list[float]:
    """Return the distances of the rows to the lowest perplexity, in steps of the slider."""
    valid = [row.validation_perplexity for row in results.rows if row.kind != "baseline"]
    lowest = min(valid)
    steps = {
        math.ceil(round((value / lowest - 1) / STEP, 6)) for value in valid if value < math.inf
    }
    return [0.0, *(STEP * n for n in sorted(steps) if 0 < STEP * n <= FURTHEST)]


def _differ(one: Choice, other: Choice) -> bool:
    return replace(one, within=0.0) != replace(other, within=0.0)


def _offer(
    results: Comparison,
    rows: Sequence[PageRow],
    name: str,
    within: float,
    folder: Path,
    table: Download | None,
) -> Offer:
    chosen = row_named(rows, name)
    recipe = recipe_of(chosen, results, folder)
    tree = None if recipe.tree_file is None else _download(folder / recipe.tree_file)
    downloads = [one for one in (tree, table) if one is not None]
    return Offer(within, chosen.index, answers_of(results, rows), recipe, downloads)


def _download(path: Path) -> Download | None:
    """Return a link that holds a file; None where there is no such file."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    kind = "application/json" if path.suffix == ".json" else "text/csv"
    encoded = base64.b64encode(content).decode()
    return Download(path.name, f"data:{kind};base64,{encoded}", len(content))


# The words


def _word_tables(
    folder: Path, rows: Sequence[PageRow], chosen: PageRow | None
) -> list[tuple[WordTable, bool]]:
    """Return the tables of words of these rows, those of the chosen one first, and which it is."""
    names = {row.name for row in rows}
    tables = [
        (table, chosen is not None and table.row == chosen.name)
        for table in word_files.load(folder).tables
        if {table.row, table.against} <= names
    ]
    return sorted(tables, key=lambda pair: not pair[1])


# The file


def _embedded(value: object) -> Markup:
    """Return a value as JSON that no word in it can end."""
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
