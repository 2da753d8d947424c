"""The page itself: results, plots and packed trees put into the template, nothing fetched.

A content security policy names the page's own scripts by their hashes and forbids everything
else, the network first of all; what comes from a corpus is data that no script would run.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from bokeh.resources import Resources
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from hstree._version import __version__
from hstree.builders.registry import builder
from hstree.data.vectors import WordVectors
from hstree.errors import FileFormatError, HstreeError
from hstree.experiments.results import Comparison
from hstree.report import plots
from hstree.report.answer import answers_of
from hstree.report.conditions import conditions_of, title_of
from hstree.report.packing import pack
from hstree.report.rows import Row, best_tree, flat_row, recommended, rows_of
from hstree.report.table import columns_of
from hstree.tree import Tree
from hstree.tree import load as load_tree

_ASSETS = files("hstree.report") / "assets"
_SCRIPTS = ("treedata.js", "treeview.js", "codes.js", "explorer.js", "page.js")

#: Words that stand in several places of the language; the first that is known is proposed.
_EXAMPLES = ("bank", "returns", "plant", "spring", "light", "file", "table")

#: What a comparison's trees of vectors are grown from.
_GROWN = (
    "Grown over each word\u2019s mean predicted vector, from the same model trained on a random "
    "tree."
)


@dataclass(frozen=True)
class Plot:
    """A plot on the page: where, what it is called, how to read it, what bokeh draws."""

    id: str
    title: str
    caption: str
    item: dict[str, Any]


def page_of(results: Comparison, folder: Path) -> str:
    """Return the page of a comparison.

    Parameters
    ----------
    results : Comparison
    folder : path
        Where the trees are that it names.

    Raises
    ------
    FileFormatError
        When a tree is missing, or not the one that the results speak of.
    """
    rows = rows_of(results)
    trees = {row.name: _tree(row, folder) for row in rows if row.is_tree}
    chosen, drawn = recommended(results, rows), _plots(results, rows)
    scripts = [_bokeh(), *(_asset(name) for name in _SCRIPTS)]
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    page: str = environment.from_string(_asset("page.html")).render(
        title=title_of(results),
        version=__version__,
        policy=_policy(scripts),
        scripts=[Markup(script) for script in scripts],
        style=Markup(_asset("page.css")),
        answers=answers_of(results),
        rows=rows,
        columns=columns_of(rows, oov=bool(results.oov["test"])),
        chosen=None if chosen is None else chosen.index,
        conditions=conditions_of(results),
        plots=drawn,
        plot_items=_embedded([plot.item for plot in drawn]),
        has_explorer=bool(trees),
        explorer=_embedded(_explorer(rows, trees, chosen) if trees else None),
    )
    return page


def _embedded(value: object) -> Markup:
    """Return a value as JSON that no word in it can end, whatever the word.

    The order of keys is kept: bokeh names an object where it first stands, and refers to it after.
    """
    return Markup(json.dumps(value).replace("<", "\\u003c"))


def _tree(row: Row, folder: Path) -> Tree:
    path = folder / (row.result.tree_file or "")
    tree = load_tree(path)
    if row.result.tree is None or tree.sha256 != row.result.tree.sha256:
        raise FileFormatError(
            f"{path} is not the tree that the results speak of; run the comparison again"
        )
    return tree


def _plots(results: Comparison, rows: Sequence[Row]) -> list[Plot]:
    bands, flat = results.bands, flat_row(rows)
    level = flat if flat is not None and flat.result.by_band else best_tree(rows)
    drawn = [
        (
            "epochs", "Perplexity against epochs",
            "One line a run. Lower is better; a steep line learns much from each pass over the "
            "text. Counted models, which have no epochs, are dashed levels.",
            plots.against_epochs(rows),
        ),
        (
            "seconds", "Perplexity against time",
            "The same runs against the seconds that their training passes took: at a given "
            "time, the lowest line is the tree to have. Validation is not counted. These seconds "
            "are those of the training runs; the table\u2019s speeds were measured afterwards, all "
            "trees in turns.",
            plots.against_seconds(rows),
        ),
        (
            "speed", "What a perplexity costs in speed",
            "Down and to the right is better. The dashed staircase is the Pareto front: no row "
            "on it is beaten at both speed and perplexity. Bars: one standard deviation over "
            "seeds.",
            plots.against_speed(rows, max(400, plots.height_of(rows))),
        ),
        (
            "lengths", "How long the codes are",
            "Bars: the share of a tree\u2019s codes of each length. "
            "Line: the share of running text that they stand for. Each strip is scaled to its "
            "own tallest. Text far left of the codes means short codes for frequent words.",
            plots.code_lengths(rows),
        ),
        (
            "bands", "Which words are predicted well",
            "Test perplexity over the targets of each band alone: how hard words are that the "
            "training text holds so often.",
            plots.by_band(rows, bands),
        ),
        (
            "bands-level", "Which words each tree helps",
            f"The same as a multiple of {level.name if level else 'the level'}, the dashed "
            "line: below it a tree predicts the words of a band better, above it worse.",
            plots.by_band_to(rows, bands, level) if level else None,
        ),
    ]  # fmt: skip
    return [
        Plot(f"plot-{name}", title, caption, plots.embedded(found))
        for name, title, caption, found in drawn
        if found is not None
    ]


def _explorer(rows: Sequence[Row], trees: dict[str, Tree], chosen: Row | None) -> dict[str, Any]:
    """Return what the tree explorer reads: the packed trees, and what to say of each."""
    packed = pack(trees)
    made = {row.name: _made(row) for row in rows}
    for entry in packed["trees"]:
        entry["made"] = made[entry["name"]]
    # The flat softmax is no tree to explore; where it is the answer, the best tree comes first.
    first = best_tree(rows) if chosen is None or chosen.is_flat else chosen
    names = list(trees)
    known = set(trees[names[0]].labels)
    return {
        **packed,
        "first": names.index(first.name) if first is not None and first.name in names else 0,
        "example": next((word for word in _EXAMPLES if word in known), None),
    }


def _made(row: Row) -> str:
    """Say how a tree was made."""
    method = row.result.method
    if method is None:
        return "Read from a tree file that does not say how it was made."
    try:
        made_by = builder(method)
        said, of_vectors = made_by.summary, made_by.takes is WordVectors
    except HstreeError:
        said, of_vectors = f"Built by {method}.", False
    chosen = ", ".join(
        name if value is True else f"{name} {value}"
        for name, value in row.result.options.items()
        if value is not None and value is not False
    )
    grown = f" {_GROWN}" if of_vectors and _built_here(row) else ""
    return (f"{said} ({chosen})" if chosen else said) + grown


def _built_here(row: Row) -> bool:
    """Tell whether the comparison built a tree: its row is called as the method is typed."""
    return row.name.split()[:1] == [row.result.method]


def _bokeh() -> str:
    return "\n".join(Resources(mode="inline", components=["bokeh"]).js_raw)


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _policy(scripts: Sequence[str]) -> str:
    """Return the content security policy: these scripts, inline styles, and nothing fetched."""
    hashes = [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts
    ]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
