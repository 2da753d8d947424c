"""The pages of docs/: each is in the site, and the reference has all rooms in their order."""

import re
from pathlib import Path

from tests.test_rooms import ROOMS

DOCS = Path(__file__).parents[1] / "docs"


def entries(page):
    """Return the entries of the page's last table of contents."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(r"^ *([\w./-]+)$", text, re.M)


def test_the_site_has_every_page():
    assert sorted([*entries("index.md"), "index"]) == sorted(
        path.stem for path in DOCS.glob("*.md")
    )


def test_the_reference_has_all_rooms_in_order():
    plumbing = ("hstree", "hstree.errors", "hstree.progress")
    assert entries("api.md") == [*plumbing, *(f"hstree.{room}" for room in ROOMS)]


def test_the_architecture_has_all_rooms_in_order():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\| `(\w+)/` \|", text, re.M)) == ROOMS
