"""Gold files: what a page is made of, as it was when somebody looked at it."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "gold"


def same(name, content):
    """Compare with a gold file; with WRITE_GOLD in the environment, write it first."""
    content = content if isinstance(content, str) else content.decode()
    file = FOLDER / name
    if os.environ.get("WRITE_GOLD"):
        file.write_text(content, encoding="utf-8")
    assert content == file.read_text(encoding="utf-8"), (
        f"{file} is other; see WRITE_GOLD in gold.py"
    )
