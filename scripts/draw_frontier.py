"""Draw the picture of the README from the table of the README: perplexity against seconds.

python scripts/draw_frontier.py
"""

import re
from pathlib import Path
from types import SimpleNamespace

from hstree.report.plot import Axis, Mark, Plot, draw, make_styles

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "_static" / "frontier.svg"


def picture() -> str:
    """Return the picture of the rows of the table, under the names of its first column."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| `[^`]+` \| ([\d.]+) \| [\d.]+ \| ([\d,]+) \|", text, re.M)
    # Without the papers, the names are short enough to fit beside the plot.
    names = [re.sub(r" \(.*\)", "", row[0]).replace("n-gram features", "n-grams") for row in rows]
    marks = []
    for i, (_, perplexity, seconds) in enumerate(rows):
        point = float(seconds.replace(",", "")), float(perplexity)
        marks.append(Mark(i, "dot", [point], [names[i], *point]))
    plot = Plot(
        "frontier",
        "Perplexity against time",
        "",
        Axis("total seconds (log scale)", "log"),
        Axis("test perplexity, Penn Treebank"),
        ["output layer", "seconds", "test perplexity"],
        marks,
        front=True,
    )
    styles = make_styles(SimpleNamespace(name=name, is_trained=True, models=1) for name in names)
    return str(draw(plot, styles, is_separate=True, longest=max(map(len, names))))


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
