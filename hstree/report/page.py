"""The page: all that it shows as data, which is in it as JSON, and the markup that is made of it.

The content security policy allows the page's scripts by their hashes and forbids all else, the
network above all; what comes from a corpus is data that no script runs.
"""

import base64
import hashlib
from pathlib import Path

import msgspec
from markupsafe import Markup

from hstree._version import __version__
from hstree.experiments import results
from hstree.experiments.results import Comparison
from hstree.models import config_of, kind_of
from hstree.report.answer import Answer, answer_markup, answer_of, noun_of
from hstree.report.explorer import Trees, pack_trees
from hstree.report.figure import Figure, draw, links_of, styles_of
from hstree.report.formats import ASSETS, TEMPLATES, Link
from hstree.report.plots import plots_of
from hstree.report.table import table_of

_SCRIPTS = ("trees.js", "explorer.js", "page.js")
#: Content security policy: scripts of these hashes, inline styles, and nothing fetched.
_POLICY = (
    "default-src 'none'; script-src {}; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)


class Page(msgspec.Struct, frozen=True):
    """All that a page shows; its JSON is in the page, and the markup is made of it alone."""

    comparison: Comparison
    answer: Answer
    figures: list[Figure]
    trees: Trees | None
    missing: list[str]  #: a sentence for each tree that cannot be shown


def page_of(comparison: Comparison, folder: Path) -> Page:
    """Return the page of a comparison; candidates whose trees are not in `folder` have none."""
    trees, missing = pack_trees(comparison, folder)
    answer = answer_of(comparison, folder)
    return Page(comparison, answer, plots_of(comparison), trees, missing)


def markup(page: Page, folder: Path) -> str:
    """Return a page as HTML, with the files of the recommended candidate from `folder`.

    Raises OptionError when the model of the comparison is not known.
    """
    comparison = page.comparison
    styles = styles_of(comparison.candidates, comparison.best)
    columns, cells = table_of(comparison)
    options = config_of(comparison.options)
    model, training = kind_of(options).model.describe(options)
    scripts = [(ASSETS / name).read_text("utf-8") for name in _SCRIPTS]
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return TEMPLATES.get_template("page.html").render(
        page=page,
        # no word in it can end it
        json=Markup(msgspec.json.encode(page).decode().replace("<", "\\u003c")),
        version=__version__,
        policy=_POLICY.format(hashes),
        scripts=[Markup(script) for script in scripts],
        style=Markup("".join((ASSETS / f"{n}.css").read_text("utf-8") for n in ("figure", "page"))),
        title=str(comparison.corpus["train"].get("name") or "this text"),
        noun=noun_of(comparison),
        comparison=comparison,
        answer=answer_markup(comparison, page.answer, folder),
        styles=styles,
        columns=columns,
        cells=cells,
        csv=Link.to(results.CSV, results.csv_text(comparison)),
        model=model,
        training=training,
        figures=[(f, draw(f, styles), links_of(f, styles)) for f in page.figures],
    )
