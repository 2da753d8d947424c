"""Figures as JSON that every reader takes."""

import json
from typing import Any

import pytest

from hstree._files import read_json, write_json
from hstree.errors import FileFormatError


def test_what_json_cannot_hold_becomes_null_or_an_escape(tmp_path):
    """A typed word may hold half a character: Python reads a byte that is not UTF-8 as such."""
    path = tmp_path / "figures.json"
    write_json(
        path, {"a": float("nan"), "b": [1.5, float("-inf")], "é": {"c": (True, "caf\udce9")}}
    )
    document = json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert document == {"a": None, "b": [1.5, None], "é": {"c": [True, "caf\udce9"]}}


BAD = [
    (b"", "truncated"),
    (b"\xef\xbb\xbf{}", "malformed"),
    (b'{"a": "\xff"}', "(?i:utf-8)"),
    (b'{"a": 1', "truncated"),
    (b'{"a": ' + b"[" * 100_000, "(recursion|overflow)"),
    (b"[1]", "Expected `object`, got `array`"),
    (b'{"a": NaN}', "malformed"),
    (b'{"a": -Infinity}', "invalid"),
]


@pytest.mark.parametrize(("data", "says"), BAD)
def test_damaged_json_is_refused_in_one_line(tmp_path, data, says):
    path = tmp_path / "config.json"
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=f"^{path} is damaged: .*{says}.*; fix it$"):
        read_json(path, dict[str, Any], "fix it")
