"""Counts and quotations in messages."""

from hstree._text import duration, one_line, plural, printable, quoted


def test_counts_have_separators_and_the_right_noun():
    assert [plural(n, "code") for n in (0, 1, 1234)] == ["0 codes", "1 code", "1,234 codes"]
    assert plural(2, "leaf", "leaves") == "2 leaves"


def test_an_error_is_shown_on_one_line():
    assert one_line(ValueError("two\n  lines")) == "two lines"
    assert one_line(KeyError()) == "KeyError"


def test_times_are_rounded_up_to_what_people_say():
    assert [duration(s) for s in (44.2, 700, 12_000)] == ["45 s", "12 min", "3 h 20 min"]


def test_control_characters_are_escaped_but_for_those_to_keep():
    assert printable("\x1b[31mred\n", keep="\n") == r"\x1b[31mred" + "\n"


def test_quotations_escape_and_shorten():
    assert quoted("a\tb") == r"'a\tb'"
    assert quoted("x" * 41) == repr("x" * 40 + "...")
