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
    ("[],[]," * 100_000, "holds little but brackets"),
    (changed(meta={"a": json.loads("[" * 100 + "]" * 100)}), "nested more than 100 deep"),
    (changed(children=None).replace("null", "[      " * 1100 + "]" * 1100), "nested too deep"),
    (changed(format="other"), "\"format\" is 'other'"),
    (changed(version=2), "is of version 2; this hstree reads version 1"),
    (changed(version=1.0), "is of version 1.0"),
    (without("version"), "is of version None"),
    (changed(version=2, what="ever", labels=0), "is of version 2"),
    (without("labels"), 'has no "labels"'),
    (without("children"), 'has no "children"'),
    (changed(count=[1, 2, 3]), "has the unknown key 'count'"),
    (changed(meta=[]), 'has [] as "meta"'),
    (changed(meta=None), 'has None as "meta"'),
    (changed(meta={}).replace("{}", '{"a": 1e999}'), 'has a "meta" that no file can hold: '),
    (changed(meta={"a": "\ud800"}), 'has a "meta" that no file can hold: '),
    (changed(labels="abc"), "has 'abc' as \"labels\""),
    (changed(children=7), 'has 7 as "children"'),
    (changed(names="ab"), "has 'ab' as \"names\""),
    (changed(counts=3), 'has 3 as "counts"'),
    (changed(children=[[-1, 1], -2]), "node 1 is -2, not a list of children"),
    (changed(children=[[-1, 1], [-2.0, -3]]), "node 1 holds -2.0, not an integer"),
    (changed(children=[[], [-1, 1], [-2, True]]), "node 2 holds True, not an integer"),
    (changed(children=[[-1, [1]], [-2, -3]]), "node 0 holds [1], not an integer"),
    (changed(children=[[-1, 2**63], [-2, -3]]), "more than 64 bits hold"),
    (changed(counts=[1, 2, 3.0]), "label 2 has the count 3.0, not an integer"),
    (changed(counts=[1, 2**64, 3]), "label 1 has the count 18446744073709551616"),
]


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
@pytest.mark.parametrize(("text", "says"), BAD_JSON)
def test_bad_json_is_refused(tmp_path, ending, text, says):
    data = text.encode() if isinstance(text, str) else text
    path = tmp_path / f"bad{ending}"
    path.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    assert says in refusal(path, FileFormatError)


@pytest.mark.parametrize(("rule", "where", "content"), ONCE)
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
