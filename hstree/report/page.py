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
from pathlib import Path
from typing import NamedTuple

import msgspec
from markupsafe import Markup

from hstree._version import __version__
from hstree.errors import FileFormatError, HstreeError
from hstree.experiments import results
from hstree.experiments.results import Choice, Comparison
from hstree.report.answer import answer_of, choosable, conditions_of, noun_of
from hstree.report.explorer import explorer_of
from hstree.report.figure import draw, styles_of
from hstree.report.plots import plots_of
from hstree.report.recipe import Recipe, recipe_of
from hstree.report.table import table_of
from hstree.report.templates import asset, rendered
from hstree.tree import Tree, load

_SCRIPTS = ("trees.js", "explorer.js", "page.js")
#: Content security policy: scripts of these hashes, inline styles, and nothing fetched.
_POLICY = (
    "default-src 'none'; script-src {}; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
#: Furthest that the chosen row may be above the lowest perplexity, and the step of its slider.
FURTHEST, STEP = 0.5, 0.001


class Download(NamedTuple):
    """A file inside the page, as a link that holds all of it."""

    name: str
    href: str
    size: int


class Offer(NamedTuple):
    """The answer from a distance to the lowest perplexity on, `within`, and how to get it."""

    within: float
    chosen: int | None
    answer: Markup
    recipe: Recipe | None = None
    downloads: Sequence[Download] = ()


def page_of(comparison: Comparison, folder: Path) -> str:
    """Return the page of a comparison, whose trees are in `folder`; rows without theirs have none.

    Raises InputError when trees are over different words, OptionError when its model is not known.
    """
    rows, choice = comparison.rows, comparison.choice
    styles = styles_of(rows)
    trees, lacking = _trees(comparison, folder)
    explorer = explorer_of(comparison, trees) if trees else None
    offers = _offers(comparison, folder)
    columns, cells = table_of(rows, oov=bool(comparison.oov["test"]))
    within = 0.0 if choice is None else choice.within
    scripts = [asset(name) for name in _SCRIPTS]
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return rendered(
        "page.html",
        version=__version__,
        policy=_POLICY.format(hashes),
        scripts=[Markup(script) for script in scripts],
        style=Markup(asset("page.css")),
        title=str(comparison.corpus["train"].get("name") or "this text"),
        question=f"Which {noun_of(rows)}",
        comparison=comparison,
        warnings=comparison.read_before(),
        offers=offers,
        offered=max((i for i, offer in enumerate(offers) if offer.within <= within), default=0),
        slider=None if choice is None else {"value": within, "max": FURTHEST, "step": STEP},
        styles=styles,
        columns=columns,
        cells=cells,
        conditions=conditions_of(comparison),
        plots=[(figure, draw(figure, styles)) for figure in plots_of(comparison)],
        words=sorted(comparison.words, key=lambda t: choice is None or t.row != choice.chosen),
        lacking=lacking,
        has_explorer=bool(trees),
        # as JSON that no word in it can end
        explorer=Markup(json.dumps(explorer).replace("<", "\\u003c")),
    )


def _offers(comparison: Comparison, folder: Path) -> list[Offer]:
    """Return the answer for every distance to the lowest perplexity at which it changes."""
    stored, rows = comparison.choice, choosable(comparison)
    if stored is None:
        return [Offer(0.0, None, answer_of(comparison))]
    # Steps of the slider at which another row is near enough.
    lowest = comparison.row(stored.best).valid
    steps = {math.ceil(round((row.valid / lowest - 1) / STEP, 6)) for row in rows
             if row.valid < math.inf and lowest < math.inf}  # fmt: skip
    choices: dict[float, Choice] = {}
    for within in [0.0, *(STEP * n for n in sorted(steps) if 0 < STEP * n <= FURTHEST)]:
        choice = results.choose(rows, within)
        last = next(reversed(choices.values()), None)
        if choice and (last is None or choice != msgspec.structs.replace(last, within=within)):
            choices[within] = choice
    # The stored choice has been compared to its rival, too.
    choices[max((w for w in choices if w <= stored.within), default=0.0)] = stored
    table, offers = _download(folder / results.CSV), []
    for within, choice in sorted(choices.items()):
        row = comparison.row(choice.chosen)
        answer = answer_of(msgspec.structs.replace(comparison, choice=choice))
        tree = None if row.tree_file is None else _download(folder / row.tree_file)
        downloads = [file for file in (tree, table) if file is not None]
        recipe = recipe_of(row, comparison, folder)
        offers.append(Offer(within, comparison.rows.index(row), answer, recipe, downloads))
    return offers


def _download(path: Path) -> Download | None:
    """Return a link that holds a file; None where there is no such file."""
    try:
        content = path.read_bytes()
    except (OSError, ValueError):  # a path with a null character is a ValueError
        return None
    kind = "application/json" if path.suffix == ".json" else "text/csv"
    encoded = base64.b64encode(content).decode()
    return Download(path.name, f"data:{kind};base64,{encoded}", len(content))


def _trees(comparison: Comparison, folder: Path) -> tuple[dict[str, Tree], list[str]]:
    """Return the trees by their rows, and a sentence for each that cannot be shown."""
    trees, lacking = {}, []
    for row in comparison.rows:
        if row.tree is None or row.tree_file is None:
            continue
        try:
            tree = load(folder / row.tree_file)
            if tree.sha256 != row.tree.sha256:
                raise FileFormatError(f"{row.tree_file} is not the tree that the results name")
        except (HstreeError, ValueError) as error:
            lacking.append(f"{row.name}: {error}")
        else:
            trees[row.name] = tree
    return trees, lacking
