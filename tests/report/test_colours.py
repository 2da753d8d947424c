"""Contrast of the style sheet's colours: 4.5:1 and more, in light, dark and print."""

import re
from importlib.resources import files

import pytest

from hstree.report.plot import COLOURS

ASSETS = files("hstree.report") / "assets"
FIGURE, PAGE = ((ASSETS / f"{name}.css").read_text() for name in ("plot", "page"))


def palette(theme):
    """The custom properties of a theme."""
    blocks = {
        "light": FIGURE,
        "dark": PAGE[: PAGE.index("* {")],
        "print": PAGE[PAGE.index("@media print") :],
    }
    short = re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{3,6});", blocks[theme])
    return {name: v if len(v) == 7 else "#" + "".join(2 * c for c in v[1:]) for name, v in short}


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_text_and_candidates_stand_out(theme):
    colours = palette(theme)
    candidates = [f"c{i}" for i in range(COLOURS)]
    for paper in ("paper", "raised"):
        for name in ("ink", "soft", "accent", *candidates):
            assert contrast(colours[name], colours[paper]) >= 4.5, (theme, name, paper)
    for ground in ("lit", "warn"):
        assert contrast(colours["ink"], colours[ground]) >= 4.5


def test_every_colour_of_a_candidate_has_its_class():
    assert {int(n) for n in re.findall(r"^\.c(\d+) \{", FIGURE, re.M)} == set(range(COLOURS))
