"""The range of random states: one for every builder, trainer and sampler.

It is that of scikit-learn and NumPy's older generators, so that any seed can be handed to any
library.
"""

from __future__ import annotations

from hstree.errors import OptionError

#: The largest random state, 4,294,967,295.
LARGEST_SEED = 2**32 - 1
#: The range in words, for messages.
SEED_RANGE = f"a whole number from 0 to {LARGEST_SEED}"


def is_seed(value: int) -> bool:
    """Return whether a whole number is in the range of random states."""
    return 0 <= value <= LARGEST_SEED


def check_seed(random_state: int) -> None:
    """Refuse a random state out of range.

    Raises
    ------
    OptionError
        When it is not a whole number from 0 to `LARGEST_SEED`.
    """
    if not is_seed(random_state):
        raise OptionError(f"random_state must be {SEED_RANGE}, not {random_state}")
