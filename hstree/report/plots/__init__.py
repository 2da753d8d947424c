"""The page's plots, one kind a file. Bokeh's names go no further than here.

Colours of text and lines are set in the browser (``page.js``), where light and dark are known;
what is drawn for a row bears the row's name, so that the page can show and hide it.
"""

from hstree.report.plots.bands import by_band, by_band_to
from hstree.report.plots.embedding import embedded
from hstree.report.plots.learning import against_epochs, against_seconds
from hstree.report.plots.lengths import code_lengths, height_of
from hstree.report.plots.speed import against_speed

__all__ = [
    "against_epochs",
    "against_seconds",
    "against_speed",
    "by_band",
    "by_band_to",
    "code_lengths",
    "embedded",
    "height_of",
]
