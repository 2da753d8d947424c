"""Figures as JSON that every reader takes."""

import json

import pytest

from hstree._files import parse_json, write_json
from hstree.errors import FileFormatError
from hstree.tree.files import DEEPEST, dump_meta


def test_what_json_cannot_hold_becomes_null_or_an_escape(tmp_path):
    """A typed word may hold half a character: Python reads a byte that is not UTF-8 as such."""
    path = tmp_path / "figures.json"
    write_json(
        path, {"a": float("nan"), "b": [1.5, float("-inf")], "é": {"c": (True, "caf\udce9")}}
    )
    document = json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert document == {"a": None, "b": [1.5, None], "é": {"c": [True, "caf\udce9"]}}


def test_a_folder_that_is_missing_is_refused(tmp_path):
    with pytest.raises(FileFormatError, match="cannot write"):
        write_json(tmp_path / "missing" / "figures.json", {})


@pytest.mark.parametrize("wrap", [lambda x: [x], lambda x: {"a": 0, "b": x}, lambda x: (0, x)])
def test_how_deep_values_may_be_nested(wrap):
    value = [] if wrap([]) == [[]] else wrap(0)
    for _ in range(DEEPEST - 2):
        value = wrap(value)
    assert json.loads(dump_meta({"a": value})) == json.loads(json.dumps({"a": value}))
    with pytest.raises(FileFormatError, match=f"more than {DEEPEST} deep"):
        dump_meta({"a": wrap(value)})


BAD = [
    (b"", "is empty; fix it"),
    (b"\xef\xbb\xbf{}", "is not JSON: .*BOM"),
    (b'{"a": "\xff"}', "is not JSON: .*utf-8.* in position 7: .*; fix it"),
    (b'{"a": 1', "is not JSON: .*line 1 column 8 .*; fix it"),
    (b"[" * 10_000, "nested too deep; fix it"),
    (b'{"a": %s}' % (b"9" * 5000), "is not JSON: .* 5000 digits; fix it"),
    (b"[1]", r"holds \[1\], not a JSON object"),
    (b'{"a": NaN}', "holds NaN"),
    (b'{"a": -Infinity}', "holds -Infinity"),
]


@pytest.mark.parametrize(("data", "says"), BAD)
def test_damaged_json_is_refused(data, says):
    with pytest.raises(FileFormatError, match=says):
        parse_json(data, "fix it")


def test_sound_json_is_read():
    assert parse_json(b'{"a": [1, 2.5, null, "\xc3\xa9"]}', "") == {"a": [1, 2.5, None, "é"]}
