"""Draw the picture of the README from the table of the README: perplexity against seconds.

python scripts/draw_frontier.py
"""

import re
from pathlib import Path
from types import SimpleNamespace

from hstree.report.figure import Axis, Figure, Mark, draw, styles_of

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Read the rows of the table, and write docs/_static/frontier.svg."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \| `([^`]+)` \| ([\d.]+) \| [\d.]+ \| ([\d,]+) \|", text, re.M)
    marks = []
    for i, (name, perplexity, seconds) in enumerate(rows):
        point = float(seconds.replace(",", "")), float(perplexity)
        marks.append(Mark(i, "dot", [point], [name, *point]))
    figure = Figure(
        "frontier",
        "Perplexity against time",
        "",
        Axis("seconds from the text to the model (log scale)", "log"),
        Axis("test perplexity, Penn Treebank"),
        ["row", "seconds", "test perplexity"],
        marks,
        front="left",
    )
    styles = styles_of(SimpleNamespace(name=name, kind="tree", models=1) for name, *_ in rows)
    picture = str(draw(figure, styles, is_alone=True))
    (ROOT / "docs" / "_static" / "frontier.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
