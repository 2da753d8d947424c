"""Published ratios of a layer's perplexity to that of the flat softmax, beside the measured ones.

They are of other texts, models and budgets: a figure to look at, none to compare with exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Published:
    """Published test perplexity divided by that of the full softmax: one figure, or a range.

    Attributes
    ----------
    low, high : float
        Equal for a single figure.
    source : str
        Authors and year.
    remark : str
        What else is published, if anything.
    """

    low: float
    high: float
    source: str
    remark: str = ""

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.low:g}"
        return f"{self.low:.2f}-{self.high:.2f}"


#: By the name of the layer.
PUBLISHED = {
    "adaptive": Published(low=0.99, high=1.02, source="Grave et al. 2017"),
    "differentiated": Published(low=0.98, high=1.02, source="Chen et al. 2016"),
    "target": Published(low=1.0, high=1.01, source="Jean et al. 2015"),
    "sampled": Published(low=1.0, high=1.01, source="Jean et al. 2015"),
    "nce": Published(
        low=1.045, high=1.045, source="Mnih & Teh 2012", remark="others report 1.10 to 1.19"
    ),
    "self-normalised": Published(low=1.005, high=1.005, source="Devlin et al. 2014"),
    "infrequent": Published(low=1.005, high=1.005, source="Andreas & Klein 2015"),
}


def published(layer: str, options: Mapping[str, Any]) -> Published | None:
    """Return the published ratio of a layer with these options, or None."""
    # The figures are of binary NCE, and of bands that are projections of the whole hidden vector.
    if options.get("ranking") or options.get("projected") is False:
        return None
    return PUBLISHED.get(layer)
