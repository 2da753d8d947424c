"""The prose of the project has none of the patterns that `tests/style.py` lists."""

import pytest

from tests import style


@pytest.mark.parametrize("pattern", style.PATTERNS + style.HEADINGS, ids=lambda p: p.example)
def test_each_pattern_finds_its_example(pattern, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{pattern.example}\n", encoding="utf-8")
    assert (3, pattern.instead) in [(line, instead) for line, _, instead in style.lapses(page)]
