"""Bad trees in JSON: each refused in one clear line that names the file."""

import gzip
import json

import pytest

from hstree.errors import FileFormatError, TreeError
from hstree.tree.files import read_content
from tests.tree.documents import DOCUMENT, refusal
from tests.tree.test_rules import ONCE


def changed(**fields):
    return json.dumps(DOCUMENT | fields)


def without(*keys):
    return json.dumps({key: value for key, value in DOCUMENT.items() if key not in keys})


BAD_JSON = [
    (
        changed(meta=None).replace("null", '{"a":' * 100_000 + "1" + "}" * 100_000),
        "nested too deep",
    ),
    (changed(format="other"), "\"format\" is 'other'"),
    (changed(version=2), "is of version 2; this hstree reads version 1"),
    (without("version"), "is of version None"),
    (changed(version=2, what="ever", labels=0), "is of version 2"),
    (without("labels"), "missing required field `labels`"),
    (changed(count=[1, 2, 3]), "unknown field `count`"),
    (changed(meta=[]), "Expected `object`, got `array` - at `$.meta`"),
    (changed(meta={}).replace("{}", '{"a": 1e999}'), "Number out of range - at `$.meta"),
    (changed(meta={"a": "\ud800"}), "holds no tree: "),
    (changed(children=7), "got `int` - at `$.children`"),
    (changed(children=[[], [-1, 1], [-2, True]]), "got `bool` - at `$.children[2][1]`"),
    (changed(children=[[-1, 2**63], [-2, -3]]), "<= 9223372036854775807 - at `$.children[0][1]`"),
    (changed(counts=[1, 2, 3.0]), "got `float` - at `$.counts[2]`"),
]


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
@pytest.mark.parametrize(("text", "says"), BAD_JSON)
def test_bad_json_is_refused(tmp_path, ending, text, says):
    data = text.encode() if isinstance(text, str) else text
    path = tmp_path / f"bad{ending}"
    path.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    assert says in refusal(path, FileFormatError)


@pytest.mark.parametrize(
    ("rule", "where", "content"), [broken for broken in ONCE if r"\u" not in broken[1]]
)
def test_a_broken_rule_is_named_with_the_file(tmp_path, rule, where, content):
    path = tmp_path / "broken.json"
    path.write_text(changed(**{"counts": None} | content))
    assert f"FILE: not a valid tree: {rule}: " in refusal(path, TreeError)


def test_read_content_lists_every_broken_rule(tmp_path):
    path = tmp_path / "broken.json"
    path.write_text(changed(labels=["a", "a", "c"], counts=[1], children=[[-1, -1], [-2]]))
    assert list(read_content(path).broken_rules()) == [
        "unique labels", "counts", "fan-out", "no child twice", "reachable", "every label placed",
    ]  # fmt: skip
