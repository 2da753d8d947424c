"""Figures as JSON that every reader takes."""

import json

import pytest

from hstree._jsonfile import DEEPEST, nested_too_deep, write_json
from hstree.errors import FileFormatError


def test_what_is_no_number_becomes_null(tmp_path):
    path = tmp_path / "figures.json"
    write_json(path, {"a": float("nan"), "b": [1.5, float("-inf")], "é": {"c": (True, None, "x")}})
    found = json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert found == {"a": None, "b": [1.5, None], "é": {"c": [True, None, "x"]}}


def test_a_place_that_cannot_be_written(tmp_path):
    with pytest.raises(FileFormatError, match="cannot write"):
        write_json(tmp_path / "missing" / "figures.json", {})


@pytest.mark.parametrize("wrap", [lambda x: [x], lambda x: {"a": 0, "b": x}, lambda x: (0, x)])
def test_how_deep_values_may_be_nested(wrap):
    value = [] if wrap([]) == [[]] else wrap(0)
    for _ in range(DEEPEST - 1):
        value = wrap(value)
    assert not nested_too_deep(value)
    assert nested_too_deep(wrap(value))
    assert not nested_too_deep(3)


def test_half_a_character_is_written_as_its_escape(tmp_path):
    """A word that was typed may hold one: Python reads a byte that is not UTF-8 as such."""
    path = tmp_path / "figures.json"
    write_json(path, {"context": ["caf\udce9", "é"]})
    assert json.loads(path.read_bytes()) == {"context": ["caf\udce9", "é"]}
    assert "caf\\udce9" in path.read_text(encoding="utf-8")
