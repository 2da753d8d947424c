"""Tables in pipes, and on terminals of any width."""

import io

import pytest

from hstree_cli.tables import narrow, table
from hstree_cli.terminal import Output

NAMES = ["huffman", "gmm --epsilon 0.4 --trees 12", "adaptive-importance", "flat"]
NUMBERS = ["1,234,567", "0.123 [0.111,0.134]", "45.2 ± 0.3*", "12.5", "<0.001"]


def drawn(width, *, terminal=True, answer="flat"):
    """Return what a table of NAMES and NUMBERS looks like."""
    titles = ("train\ntokens/s", "ratio to flat", "test", "one score", "p")
    filled = table("method", *titles, text=("method", "ratio to flat"))
    for name in NAMES:
        filled.add_row(name, *NUMBERS, style="bold" if name == answer else None)
    narrow(filled, *(title for title in titles if title != "ratio to flat"))
    file = io.StringIO()
    colours = "standard" if terminal else None
    console = Output(file=file, width=width, force_terminal=terminal, color_system=colours)
    console.print(filled, crop=False)
    return file.getvalue()


@pytest.mark.parametrize("width", [36, 44, 50, 60, 67, 68, 79, 90])
def test_a_narrow_terminal_keeps_names_and_numbers_whole(width):
    lines = drawn(width, answer=None).replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    for name in NAMES:
        assert set(name.split()) <= set(words)
    for number in NUMBERS:
        assert all(words.count(part) >= len(NAMES) for part in number.split())


def test_a_wide_terminal_has_one_table():
    assert drawn(120).count("method") == 1
    assert drawn(40).count("method") > 1


@pytest.mark.parametrize("width", [40, 80])
def test_a_pipe_has_every_row_on_one_line(width, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = drawn(width, terminal=False).splitlines()
    for name in NAMES:
        (line,) = (line for line in lines if line.startswith(f" {name} "))
        assert all(number in line for number in NUMBERS)
    monkeypatch.setenv("COLUMNS", str(width))
    assert max(map(len, drawn(width, terminal=False).splitlines())) <= width


def test_the_row_of_the_answer_is_bold():
    bold = [line for line in drawn(120).splitlines()[3:] if "\x1b[1m" in line]
    (line,) = bold
    assert "flat" in line
