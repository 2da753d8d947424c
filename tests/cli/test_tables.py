"""Tables in pipes, and on terminals of any width."""

import io

import pytest

from hstree_cli.tables import table
from hstree_cli.terminal import Output

NAMES = ["huffman", "gmm epsilon=0.4 trees=12", "adaptive-importance", "flat"]
NUMBERS = ["1,234,567", "0.123 [0.111,0.134]", "45.2 ± 0.3*", "12.5", "<0.001"]


def drawn(width=None, *, answer=None, colours=None):
    """Return what a table of NAMES and NUMBERS looks like."""
    titles = ("method", "train\ntokens/s", "ratio to flat", "test", "one score", "p")
    filled = table(
        titles, [[name, *NUMBERS] for name in NAMES], titles[:1], bold=answer, width=width
    )
    file = io.StringIO()
    console = Output(file=file, width=width or 200, force_terminal=True, color_system=colours)
    console.print(filled, crop=False)
    return file.getvalue()


@pytest.mark.parametrize("width", [36, 44, 50, 60, 67, 68, 79, 90])
def test_a_narrow_terminal_keeps_names_and_numbers_whole(width):
    lines = drawn(width).splitlines()
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    for name in NAMES:
        assert set(name.split()) <= set(words)
    for number in NUMBERS:
        assert all(words.count(part) >= len(NAMES) for part in number.split())


def test_a_wide_terminal_has_one_table():
    assert drawn(120).count("method") == 1
    assert drawn(40).count("method") > 1


def test_a_pipe_has_every_row_on_one_line(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = drawn().splitlines()
    for name in NAMES:
        (line,) = (line for line in lines if line.startswith(f" {name} "))
        assert all(number in line for number in NUMBERS)


def test_a_pipe_is_as_wide_as_columns_says(monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    assert all(len(line) <= 50 for line in drawn().splitlines())


def test_the_row_of_the_answer_is_bold():
    lines = drawn(120, answer="flat", colours="standard").splitlines()[3:]
    (line,) = (line for line in lines if "\x1b[1m" in line)
    assert "flat" in line
