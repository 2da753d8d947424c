"""Provenance: records of texts collected from JSON, compared by lines, read from a first line."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hstree.data.provenance import collect_sources
from hstree.data.splits import read_before
from hstree.data.word_files import parse_header, word_lines
from hstree.errors import InputError

TEXT = {"name": "c.txt", "sha256": "ab"}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "sha256", "lines", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(json_values)
def test_any_json_has_texts_and_theirs_are_the_same(record):
    found = collect_sources(record)
    assert collect_sources(found) == found
    line = word_lines("f", [], None, {"texts": found}).decode()
    assert parse_header(line, "f") == {"texts": found}


def test_lines_that_overlap_or_follow_are_one_entry():
    record = [{**TEXT, "lines": lines} for lines in ([5, 8], [0, 3], [3, 4], [6, 7])]
    other = {"name": "d.txt", "sha256": "cd", "lines": [0, 3]}
    assert [text["lines"] for text in collect_sources([record, {"x": other}])] == [
        [0, 4],
        [5, 8],
        [0, 3],
    ]


@pytest.mark.parametrize("lines", [None, 3, [1], [1, 1], [2, 1], [-1, 4], ["1", "2"], [0, 1, 2]])
def test_what_are_no_lines_is_no_text(lines):
    assert collect_sources({**TEXT, "lines": lines}) == []


def test_lines_read_before_are_known_by_content_whatever_the_name():
    def read(record, *lines):
        return read_before(SimpleNamespace(source={**TEXT, "lines": list(lines)}), training=record)

    part = {**TEXT, "lines": [8, 10]}
    assert "on lines 9 to 10 of c.txt, " in read({"vocabulary": {**part, "name": "x"}}, 8, 10)
    assert read({**TEXT, "lines": [0, 8]}, 8, 10) is None
    assert read({**part, "sha256": "cd"}, 8, 10) is None
    some = [{**TEXT, "lines": [0, 2]}, {**TEXT, "lines": [5, 9]}]
    assert "on line 2 of c.txt and line 6 of c.txt, " in read(some, 1, 6)


@pytest.mark.parametrize(
    "said",
    [
        "",
        '"texts": [{"sha256": "ab"}]}',
        '"texts": [{"lines": [3, 1], "name": "c", "sha256": "ab"}]}',
        '"texts": [{"lines": [0, 1], "name": "\\ud800", "sha256": "ab"}]}',
        '"a": ' + "[" * 100_000,
        '"a": "' + " " * (1 << 20) + '"}',
    ],
)
def test_a_damaged_record_is_refused_in_one_line(said):
    damaged = r"f.tsv, line 1: .* is damaged; .*delete the line"
    with pytest.raises(InputError, match=damaged) as error:
        parse_header("# hstree\t{" + said, "f.tsv")
    assert "\n" not in str(error.value)
