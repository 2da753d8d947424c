"""The page on taxonomies runs as it stands."""

import pytest

from tests import needs
from tests.scripts import ROOT, run_python, scripts_of


def test_the_page(tmp_path):
    printed = run_python(["-c", "".join(scripts_of("taxonomies.md"))], tmp_path).splitlines()
    assert printed[:2] == [
        "('cat', 'dog', 'oak', 'car', 'pen')",
        "(None, 'living', 'animal', 'thing')",
    ]
    assert printed[2].startswith("the taxonomy has a cycle: 'animal' under 'cat' under 'animal'")
    assert printed[5] == "2 ['animal', 'plant', 'car', 'pen']"
    assert "'plant'" in printed[10]  # of one child


def test_the_part_on_torch(tmp_path):
    pytest.importorskip("torch", reason=needs.TORCH)
    page = (ROOT / "docs" / "taxonomies.md").read_text(encoding="utf-8")
    script = page.rpartition("```py\n")[2].partition("```")[0]
    run_python(["-c", scripts_of("taxonomies.md")[0] + script], tmp_path)
