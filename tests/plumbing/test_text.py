"""Counts and quotations in messages."""

from hstree._text import one_line, plural, quoted


def test_counts_have_separators_and_the_right_noun():
    assert [plural(n, "code") for n in (0, 1, 1234)] == ["0 codes", "1 code", "1,234 codes"]
    assert plural(2, "leaf", "leaves") == "2 leaves"


def test_an_error_is_shown_on_one_line():
    assert one_line(ValueError("two\n  lines")) == "two lines"
    assert one_line(KeyError()) == "KeyError"


def test_quotations_escape_and_shorten():
    assert quoted("a\tb") == r"'a\tb'"
    assert quoted("x" * 41) == repr("x" * 40 + "...")
