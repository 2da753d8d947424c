"""The prose of the project has none of the patterns that `tests/style.py` lists."""

import pytest

from tests import style


@pytest.mark.parametrize("pattern", style.PATTERNS + style.HEADINGS, ids=lambda p: p.example)
def test_each_pattern_finds_its_example(pattern, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{pattern.example}\n", encoding="utf-8")
    assert (3, pattern.instead) in [(line, instead) for line, _, instead in style.lapses(page)]


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("page.md", "```\nA share of code.\n```\n\nA `share of` code, a share\nof text.\n", 5),
        ("page.html", "<p>\nA share of the text.</p>\n", 2),
        ("module.py", '"""First line.\n\nA share of the text.\n"""\n', 3),
        ("module.py", "x = 1\n#: A comment, and a\n#: share of the text.\n", 3),
        ("module.py", 'option(help="A share "\n "of the text.")\n', 1),
        ("module.py", 'raise ValueError(f"{x} is a share of the text")\n', 1),
        ("run", "set -e\ntrue  # a share of the text\n", 2),
        (
            "notebook.ipynb",
            '{"cells": [{"cell_type": "code", "source": ["x"]},'
            ' {"cell_type": "markdown", "source": ["A share\\n", "of it.\\n"]}]}',
            2,
        ),
    ],
)
def test_patterns_are_found_in_all_prose(name, text, line, tmp_path):
    (tmp_path / name).write_text(text, encoding="utf-8")
    [(first, words, _)] = style.lapses(tmp_path / name)
    assert first == line
    assert words == "share of"


def test_the_prose_has_none_of_the_patterns():
    files = style.files()
    assert len(files) > 300
    places = [
        f"{path}:{line}: {words!r}: write: {instead}"
        for path in files
        for line, words, instead in style.lapses(path)
    ]
    assert not places, "\n".join(places)
