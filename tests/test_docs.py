"""The pages of docs/: each is in the site, and the reference has all public names."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from scripts.draw_frontier import PICTURE, picture
from tests import needs
from tests.test_rooms import ROOMS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def entries(page):
    """Return the entries of the page's tables of contents."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(r"^ *([\w./-]+)$", text, re.M)


def names_of_pages():
    """Return the paths of all pages in docs/, without their suffix."""
    return sorted(path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md"))


def test_the_site_has_every_page():
    """The sidebar has all but the results, which their summary links."""
    results = [page for page in names_of_pages() if page.startswith("results/")]
    assert sorted([*entries("index.md"), *results, "index"]) == names_of_pages()
    summary = (DOCS / "results.md").read_text(encoding="utf-8")
    assert all(f"({page}.md" in summary for page in results)


@pytest.mark.parametrize("page", names_of_pages())
def test_a_page_has_at_most_300_lines(page):
    assert len((DOCS / f"{page}.md").read_text(encoding="utf-8").splitlines()) <= 300


def headings(page):
    """Return the names that a forge gives to the headings of a page, in links to them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = (title.lower() for title in re.findall(r"^#+ (.*)$", text, re.M))
    return {re.sub(r"[^\w -]", "", title).replace(" ", "-") for title in titles}


@pytest.mark.parametrize(
    "page", ["README", "CONTRIBUTING", *(f"docs/{n}" for n in names_of_pages())]
)
def test_links_lead_to_files_and_headings(page):
    path = ROOT / f"{page}.md"
    for link in re.findall(r"\]\(([^):\s]+)\)", path.read_text(encoding="utf-8")):
        name, _, heading = link.partition("#")
        target = path.parent / name if name else path
        is_drawn = name == "_static/tree.svg"  # when the site is built
        assert is_drawn or target.exists(), link
        assert not heading or heading in headings(target), link


@pytest.mark.parametrize("package", ["", ".interop.sklearn", ".interop.torch", ".metrics"])
def test_the_reference_has_all_public_names(package):
    if package == ".interop.torch":
        pytest.importorskip("torch", reason=needs.TORCH)
    module = import_module(f"hstree{package}")
    names = getattr(module, "__all__", [name for name in dir(module) if name[0] != "_"])
    assert len(names) >= 2
    assert {f"{module.__name__}.{name}" for name in names} <= set(entries("api.md"))


def test_the_architecture_has_all_rooms_in_order():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    rooms = re.findall(r"^\| `([\w/]+)/` \|", text, re.M)
    assert tuple(room.replace("/", ".") for room in rooms) == ROOMS


def test_the_changes_of_the_architecture_apply():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    changes = re.findall(r"^--- a/(.*)\n\+\+\+ .*\n@@ .*\n((?:[ +-].*\n|\n)+)", text, re.M)
    assert len(changes) == 4
    for name, lines in changes:
        before = "".join(f"{line[1:]}\n" for line in lines.splitlines() if line[:1] != "+")
        assert before in (ROOT / name).read_text(encoding="utf-8"), name


def test_the_picture_is_that_of_the_readme_s_table():
    assert PICTURE.read_text(encoding="utf-8") == picture()
