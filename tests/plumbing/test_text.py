"""Counts and quotations in messages; tables as text and as HTML, and where `show` shows them."""

import sys
from types import SimpleNamespace

from hstree import _text
from hstree._text import TextTable, duration, format_number, one_line, plural, printable, quoted


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


def test_html_is_escaped():
    table = TextTable(["<row>"], [["a & b"]], "1 < 2")
    assert table._repr_html_() == (
        '<table><thead><tr><th style="text-align: left">&lt;row&gt;</th></tr></thead>'
        '<tbody><tr><td style="text-align: left">a &amp; b</td></tr></tbody></table><p>1 &lt; 2</p>'
    )


def test_names_and_values_have_no_header():
    facts = TextTable((), [("depth", "3"), ("labels", "1,000")])
    assert str(facts) == "depth       3\nlabels  1,000"
    assert "<thead>" not in facts._repr_html_()


def test_a_table_may_be_empty():
    assert str(TextTable(["row", "test"], [])) == "row  test"
    assert str(TextTable((), [])) == ""


def test_figures():
    assert list(map(format_number, [1234.5, None, float("nan")])) == ["1,234.50", "-", "-"]
    assert format_number(2.0, 0) == "2"


def test_show_prints_but_displays_in_a_notebook(capsys, monkeypatch):
    _text.show("a table")
    assert capsys.readouterr().out == "a table\n"
    shell = SimpleNamespace()  # IPython on a terminal has no kernel
    displayed = []
    ipython = SimpleNamespace(
        get_ipython=lambda: shell, display=SimpleNamespace(display=displayed.append)
    )
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    _text.show("a table")
    assert capsys.readouterr().out == "a table\n"
    shell.kernel = None
    _text.show("a table")
    assert (displayed, capsys.readouterr().out) == (["a table"], "")
