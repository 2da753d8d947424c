"""Flat softmax over a vocabulary: the baseline for all other layers."""

from typing import Any

import numpy as np

from hstree._arrays import Integer
from hstree.builders.flat import flat
from hstree.data.vocabulary import Vocabulary
from hstree.layers.hierarchical import HierarchicalSoftmax


class FlatSoftmax(HierarchicalSoftmax):
    """Exact softmax over all labels: the tree of depth one.

    ``P(w | h) = exp(s_w) / Z`` with ``s = W h + b``. A target costs V scores, in training and
    testing; V (d + 1) parameters.

    References
    ----------
    Y. Bengio, R. Ducharme, P. Vincent & C. Jauvin, "A neural probabilistic language model",
    JMLR 3, 2003.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        dim: int,
        *,
        counts: Integer | None = None,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__(flat(vocabulary), dim, counts=counts, dtype=dtype)
