"""The page: its content as data, and the HTML that is rendered from the data.

The content security policy allows the scripts of the page by their hashes and forbids everything
else, in particular network requests. Words of a corpus are data that no script executes.
"""

import base64
import hashlib
from pathlib import Path

import msgspec
from markupsafe import Markup
from msgspec.structs import replace

from hstree._version import __version__
from hstree.experiments import results
from hstree.experiments.recommendation import rank
from hstree.experiments.results import Comparison
from hstree.models import config_of, kind_of
from hstree.report.answer import answer_markup, candidate_noun
from hstree.report.explorer import Trees, pack_trees
from hstree.report.formats import ASSETS, TEMPLATES, Link
from hstree.report.plot import Plot, draw, make_styles, plot_links
from hstree.report.plots import make_plots
from hstree.report.recipe import Recipe, make_recipe
from hstree.report.table import make_table

_SCRIPTS = ("trees.js", "explorer.js", "page.js")
#: Content security policy: scripts with these hashes and inline styles; no requests.
_POLICY = (
    "default-src 'none'; script-src {}; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)


class Page(msgspec.Struct, frozen=True):
    """All content of a page. The HTML is rendered from it, and the page contains it as JSON."""

    comparison: Comparison  #: the comparison, with ranked candidates
    recipe: Recipe | None  #: None if no candidate is recommended
    plots: list[Plot]
    trees: Trees | None
    missing: list[str]  #: one sentence per tree that cannot be shown


def make_page(comparison: Comparison, folder: Path) -> Page:
    """Return the page of a comparison, with the trees in `folder`."""
    comparison = replace(comparison, candidates=rank(comparison.candidates))
    trees, missing = pack_trees(comparison, folder)
    best = comparison.best
    recipe = None if best is None else make_recipe(best, comparison, folder)
    return Page(comparison, recipe, make_plots(comparison), trees, missing)


def render(page: Page, folder: Path) -> str:
    """Render a page as HTML, with the tree file of the recommended candidate in `folder`.

    Raises OptionError if the model of the comparison is unknown.
    """
    comparison = page.comparison
    styles = make_styles(comparison.candidates, comparison.best)
    columns, cells = make_table(comparison)
    options = config_of(comparison.options)
    model, training = kind_of(options).model.describe(options)
    scripts = [_read_asset(name) for name in _SCRIPTS]
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    # A "<" in the JSON could end the script element
    json = msgspec.json.encode(page).decode().replace("<", "\\u003c")
    return TEMPLATES.get_template("page.html").render(
        page=page,
        json=Markup(json),
        version=__version__,
        policy=_POLICY.format(hashes),
        scripts=[Markup(script) for script in scripts],
        style=Markup(_read_asset("plot.css") + _read_asset("page.css")),
        title=str(comparison.corpus["train"].get("name") or "this text"),
        noun=candidate_noun(comparison),
        comparison=comparison,
        answer=answer_markup(comparison, page.recipe, folder),
        styles=styles,
        columns=columns,
        cells=cells,
        csv=Link.to(results.CSV, results.csv_text(comparison)),
        model=model,
        training=training,
        plots=[(plot, draw(plot, styles), plot_links(plot, styles)) for plot in page.plots],
    )


def _read_asset(name: str) -> str:
    return (ASSETS / name).read_text("utf-8")
