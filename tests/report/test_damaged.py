"""Damaged results: each change of ``results.json`` is refused in one line, or leaves a page."""

import copy
import json

import pytest

from hstree.errors import HstreeError
from hstree.experiments import results
from hstree.report import page
from tests.report.comparison import leave, small_trees

#: JSON that takes the place of a value.
REPLACEMENTS = [
    *("null", '"x"', '"\\ud800"', '"a\\u0000"', "true", "[]", "[null]", "{}", '{"a": null}'),
    *("-1", "0", "0.5", "NaN", "1e999", "1e308", "1e-310", "1" + "0" * 400, "1" + "0" * 4400),
    "[" * 900 + "]" * 900,
]
MARK = "to be replaced"


@pytest.fixture
def comparison(tmp_path):
    return leave(tmp_path / "compared", small_trees())


def places(value, path=()):
    """Yield the path to every value; of a list of values alike, to the first."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value[:1] if path != ("rows",) else value):
            yield from places(inner, (*path, i))


def changes(document):
    """Yield what was changed, and the text of the changed document."""
    for path in places(document):
        changed = copy.deepcopy(document)
        if not path:
            yield from ((path, text) for text in REPLACEMENTS)
            continue
        holder = changed
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = MARK
        text = json.dumps(changed)
        yield from ((path, text.replace(f'"{MARK}"', new)) for new in REPLACEMENTS)
        del holder[path[-1]]
        yield (path, json.dumps(changed))


def outcome(folder, *, draws):
    """Return whether results are read, and why not; drawing a page takes a moment."""
    try:
        found = results.load(folder)
        if draws:
            page.markup(page.page_of(found, folder), folder).encode()
    except HstreeError as error:
        return False, str(error)
    return True, ""


@pytest.mark.slow
def test_every_damage_is_refused_in_one_line_or_gives_a_page(comparison):
    file = comparison / "results.json"
    refused = read = 0
    for path, text in changes(json.loads(file.read_text())):
        file.write_text(text)
        found, said = outcome(comparison, draws=read % 100 == 0)
        assert "\n" not in said, path
        assert len(said.removeprefix(str(file))) < 250, path
        refused, read = refused + bool(said), read + found
    assert refused > 500
    assert read > 300
