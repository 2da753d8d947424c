"""What the samples of each class weigh in an objective: scikit-learn's `class_weight`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from hstree._typing import Array, Float64, Int64
from hstree.errors import OptionError

#: A weight for some classes, 1 for the others; or all classes alike.
ClassWeight = Mapping[Any, float] | Literal["balanced"] | None


def check_class_weight(given: Any) -> None:
    """Refuse what no classes could have.

    Raises
    ------
    OptionError
        When it is none of what `ClassWeight` says, or a weight is no number from 0.
    """
    if given is None or (isinstance(given, str) and given == "balanced"):
        return
    if not isinstance(given, Mapping):
        raise OptionError(
            f"class_weight is {given!r}; it is 'balanced', None or a mapping of classes to weights"
        )
    for name, weight in given.items():
        if not isinstance(weight, int | float | np.number) or not 0 <= weight < np.inf:
            raise OptionError(
                f"class_weight of {name!r} is {weight!r}; a weight is a number, 0 or more"
            )


def weights_of_classes(
    given: ClassWeight, classes: Array, number: Int64, sample_weight: Float64
) -> Float64:
    """Return the weight (V,) of the samples of each class.

    Parameters
    ----------
    given : mapping, "balanced" or None
    classes : array (V,)
    number : int64 array (n,)
        The class of each sample.
    sample_weight : float64 array (n,)

    Raises
    ------
    OptionError
        When a mapping has a class that is not there while a class that is has no weight: as for
        scikit-learn, more likely a slip than samples of that class left out.
    """
    if given is None:
        return np.ones(len(classes))
    if isinstance(given, str):
        total = np.bincount(number, sample_weight, minlength=len(classes))
        present = np.count_nonzero(total)
        balanced: Float64 = total.sum() / (present * np.where(total > 0, total, 1))
        return balanced
    names = classes.tolist()
    without = [name for name in names if name not in given]
    known = set(names)
    unknown = [name for name in given if name not in known]
    if without and unknown:
        raise OptionError(
            f"class_weight has a weight for {unknown[0]!r}, which is no class, and none for "
            f"{without[0]!r}, which is one; its keys are classes"
        )
    return np.array([given.get(name, 1.0) for name in names], np.float64)
