"""The page: answers, table, plots and packed trees put into the template, with nothing to fetch.

The content security policy allows the page's scripts by their hashes and forbids all else, the
network above all; what comes from a corpus is data that no script runs.
"""

import base64
import gzip
import hashlib
import json
import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from markupsafe import Markup
from scipy.stats import ttest_ind_from_stats

from hstree._text import plural
from hstree._version import __version__
from hstree.experiments import results
from hstree.experiments.results import Choice, Comparison, RowResult
from hstree.models import config_of, kind_of
from hstree.report.explorer import explorer_of
from hstree.report.figure import draw, styles_of
from hstree.report.formats import ASSETS, TEMPLATES
from hstree.report.plots import plots_of
from hstree.report.recipe import Recipe, recipe_of
from hstree.report.table import table_of

_SCRIPTS = ("trees.js", "explorer.js", "page.js")
#: Content security policy: scripts of these hashes, inline styles, and nothing fetched.
_POLICY = (
    "default-src 'none'; script-src {}; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
#: Speeds of a row, and what each is of.
_SPEEDS = {
    "training": "in training",
    "nll": "for the probability of one word",
    "top_k": "for the ten most probable words",
}
#: Furthest that the chosen row may be above the lowest perplexity, and the step of its slider.
FURTHEST, STEP = 0.5, 0.001


class Offer(NamedTuple):
    """The answer from a distance to the lowest perplexity on, `within`, and how to get it."""

    within: float
    chosen: int | None
    answer: Markup
    recipe: Recipe | None = None
    downloads: Sequence[dict[str, Any]] = ()  #: files inside the page, as links that hold them


def page_of(comparison: Comparison, folder: Path) -> str:
    """Return the page of a comparison, whose trees are in `folder`; rows without theirs have none.

    Raises InputError when trees are over different words, OptionError when its model is not known.
    """
    rows, choice = comparison.rows, comparison.choice
    styles = styles_of(rows)
    noun = "output layer" if any(row.kind == "layer" for row in rows) else "tree"
    explorer, lacking = explorer_of(comparison, folder)
    offers = _offers(comparison, folder, noun)
    columns, cells = table_of(rows, oov=bool(comparison.oov["test"]))
    within = 0.0 if choice is None else choice.within
    options = config_of(comparison.options)
    model, training = kind_of(options).model.describe(options)
    scripts = [(ASSETS / name).read_text("utf-8") for name in _SCRIPTS]
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    # JSON that no word in it can end, with bytes as base64 of gzip
    packed = json.dumps(
        explorer, default=lambda data: base64.b64encode(gzip.compress(data, mtime=0)).decode()
    ).replace("<", "\\u003c")
    return TEMPLATES.get_template("page.html").render(
        version=__version__,
        policy=_POLICY.format(hashes),
        scripts=[Markup(script) for script in scripts],
        style=Markup((ASSETS / "page.css").read_text("utf-8")),
        title=str(comparison.corpus["train"].get("name") or "this text"),
        noun=noun,
        comparison=comparison,
        warnings=comparison.read_before(),
        offers=offers,
        offered=max((i for i, offer in enumerate(offers) if offer.within <= within), default=0),
        slider=None if choice is None else {"value": within, "max": FURTHEST, "step": STEP},
        styles=styles,
        columns=columns,
        cells=cells,
        model=model,
        training=training,
        plots=[(figure, draw(figure, styles)) for figure in plots_of(comparison)],
        words=sorted(comparison.words, key=lambda t: choice is None or t.row != choice.chosen),
        lacking=lacking,
        has_explorer=explorer is not None,
        explorer=Markup(packed),
    )


def _offers(comparison: Comparison, folder: Path, noun: str) -> list[Offer]:
    """Return the answer for every distance to the lowest perplexity at which it changes."""
    stored, rows = comparison.choice, comparison.rows
    choosable = [row for row in rows if row.kind != "ngram" and row.seen is None]
    if stored is None:
        return [Offer(0.0, None, _answer(comparison, choosable, noun))]
    if len(choosable) != stored.among:  # of a halving, the rows that trained longest
        named = {stored.chosen, stored.best, stored.rival, *stored.tied}
        choosable = [row for row in choosable if row.name in named]
    # Steps of the slider at which another row is near enough.
    lowest = comparison.row(stored.best).valid
    steps = {math.ceil(round((row.valid / lowest - 1) / STEP, 6)) for row in choosable
             if row.valid < math.inf and lowest < math.inf}  # fmt: skip
    choices: dict[float, Choice] = {}
    for within in [0.0, *(STEP * n for n in sorted(steps) if 0 < STEP * n <= FURTHEST)]:
        choice = results.choose(choosable, within)
        last = next(reversed(choices.values()), None)
        if choice and (last is None or choice != msgspec.structs.replace(last, within=within)):
            choices[within] = choice
    # The stored choice has been compared to its rival, too.
    choices[max((w for w in choices if w <= stored.within), default=0.0)] = stored
    offers = []
    for within, choice in sorted(choices.items()):
        row = comparison.row(choice.chosen)
        answer = _answer(msgspec.structs.replace(comparison, choice=choice), choosable, noun)
        # The files of the tree and of the table, where they are there, as links that hold them.
        downloads = []
        for path in [folder / name for name in (row.tree_file, results.CSV) if name is not None]:
            with suppress(OSError, ValueError):  # a path with a null character is a ValueError
                content = path.read_bytes()
                kind = "application/json" if path.suffix == ".json" else "text/csv"
                href = f"data:{kind};base64,{base64.b64encode(content).decode()}"
                downloads.append({"name": path.name, "href": href, "size": len(content)})
        recipe = recipe_of(row, comparison, folder)
        offers.append(Offer(within, rows.index(row), answer, recipe, downloads))
    return offers


def _answer(comparison: Comparison, choosable: Sequence[RowResult], noun: str) -> Markup:
    """Return the questions that the results can answer, the main one first."""
    # How many rows the answer was chosen from; flat is no tree.
    flat = sum(row.tree is not None and row.tree.nodes <= 1 for row in choosable if noun == "tree")
    among = plural(len(choosable) - flat, noun)
    if flat:
        among += " and the flat softmax" if flat == 1 else f" and {flat} flat softmaxes"
    compared = sum(row.kind != "ngram" and row.seen is None for row in comparison.rows)
    if len(choosable) < compared:
        among += f", which trained longest of {compared} rows"
    # For the fastest rows what is fast, its words/s, and these over the chosen's.
    best, fastest = comparison.best, dict[str, list[tuple[str, float, Any]]]()
    for name, what in _SPEEDS.items():
        speeds = {row.name: s.median for row in comparison.rows if (s := getattr(row, name))}
        if speeds and best is not None:
            first = max(speeds, key=speeds.__getitem__)
            ratio = speeds[first] / speeds[best.name] if best.name in speeds else None
            fastest.setdefault(first, []).append((what, speeds[first], ratio))
    # p value of the answer's difference from its rival over seeds
    p, choice = None, comparison.choice
    if choice is not None and choice.rival is not None:
        one, other = (comparison.row(r).perplexity["test"] for r in (choice.chosen, choice.rival))
        if one.mean and one.sd and other.mean and other.sd:
            figures = (one.mean, one.sd, one.n, other.mean, other.sd, other.n)
            p = float(ttest_ind_from_stats(*figures, equal_var=False).pvalue)
    html = TEMPLATES.get_template("answer.html").render(
        comparison=comparison,
        noun=noun,
        among=among,
        fastest=[(row, fastest[row.name]) for row in comparison.rows if row.name in fastest],
        p=p,
    )
    return Markup(html)
