"""Tables in pipes, and on terminals of any width."""

import io

import pytest

from hstree_cli.tables import table
from hstree_cli.terminal import Output

NAMES = ["huffman", "gmm epsilon=0.4 trees=12", "adaptive-importance", "flat"]
TITLES = ("method", "train\ntokens/s", "vs flat", "test", "one score", "p")
NUMBERS = ["1,234,567", "0.123 [0.111,0.134]", "45.2 ± 0.3*", "12.5", "<0.001"]


@pytest.fixture
def drawn(monkeypatch):
    """Return the lines of a table of NAMES and NUMBERS; without a width, in a pipe."""

    def draw(width=None, *, answer=None, colours=None, first=()):
        monkeypatch.setenv("COLUMNS", str(width))
        if not width:
            monkeypatch.delenv("COLUMNS")
        lines = [[name, *NUMBERS] for name in NAMES]
        filled = table(TITLES, lines, TITLES[:1], bold=answer, first=first)
        file = io.StringIO()
        console = Output(file=file, width=width or 80, force_terminal=True, color_system=colours)
        console.print(filled, crop=False)
        return file.getvalue()

    return draw


@pytest.mark.parametrize("width", [36, 44, 50, 60, 67, 68, 79, 90])
def test_a_narrow_terminal_keeps_names_and_numbers_whole(drawn, width):
    text = drawn(width)
    assert max(map(len, text.splitlines())) <= width
    table, _, note = text.partition("Columns that do not fit: ")
    words = table.split()
    for name in NAMES:
        assert set(name.split()) <= set(words)
    left_out = " ".join(note.split()).removesuffix(".").split("; ")
    for title, number in zip(TITLES[1:], NUMBERS, strict=True):
        if " ".join(title.split()) not in left_out:
            assert all(words.count(part) >= len(NAMES) for part in number.split())


def test_a_narrow_terminal_has_the_columns_that_are_named_first(drawn):
    text = drawn(36, first=("one score", "test"))
    table, _, note = text.partition("Columns that do not fit: ")
    assert "12.5" in table
    assert "1,234,567" not in table
    assert "train tokens/s" in " ".join(note.split())


def test_a_wide_terminal_has_every_column(drawn):
    assert "do not fit" not in drawn(120)


def test_a_pipe_has_every_candidate_on_one_line(drawn):
    lines = drawn().splitlines()
    for name in NAMES:
        (line,) = (line for line in lines if line.startswith(f" {name} "))
        assert all(number in line for number in NUMBERS)


def test_the_candidate_of_the_answer_is_bold(drawn):
    lines = drawn(120, answer="flat", colours="standard").splitlines()[3:]
    (line,) = (line for line in lines if "\x1b[1m" in line)
    assert "flat" in line
