"""Choice of the backend: NumPy, or functions that numba compiles (the extra `fast`)."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any

from hstree.kernels.jit import numba

#: Environment variable that switches compiled functions off when it is 0, and uses them for short
#: work, too, when it is 1.
VARIABLE = "HSTREE_FAST"
#: Number of tokens in training or scoring, and seconds of training with a time limit, from which on
#: compiling takes less time than it saves.
WORTH_TOKENS = 1_000_000
WORTH_SECONDS = 60.0

#: Whether NumPy computes; None before a decision.
_numpy_only: ContextVar[bool | None] = ContextVar("hstree numpy only", default=None)


def compiled() -> Any:
    """Return the module of compiled functions, or None if NumPy computes.

    numba is imported by the first call that needs it.
    """
    is_off = _numpy_only.get() or os.environ.get(VARIABLE) == "0"
    if is_off or numba() is None:
        return None
    return import_module("hstree.kernels.functions")


def backend_name() -> str:
    """Return the name of the backend: "numpy", or numba and its version."""
    return "numpy" if compiled() is None else f"numba {numba().__version__}"


@contextmanager
def numpy_only(condition: bool = True) -> Iterator[None]:
    """Compute with NumPy while the body runs; nothing changes if `condition` is False."""
    token = _numpy_only.set(condition or _numpy_only.get())
    try:
        yield
    finally:
        _numpy_only.reset(token)


@contextmanager
def numpy_for_short_runs(
    tokens: int, seconds: float | None = None, *, always: bool = False
) -> Iterator[None]:
    """Compute with NumPy while the body runs if its work is short.

    Parameters
    ----------
    tokens : int
        Number of tokens that the work reads.
    seconds : float, optional
        Time limit of the work, which then decides instead of `tokens`.
    always : bool
        Use compiled functions even for short work.

    Notes
    -----
    The choice depends on nothing else, so that results do not depend on what has been compiled
    before. An enclosing choice, by this function or by `numpy_only`, holds for the body, too.
    """
    is_short = tokens < WORTH_TOKENS if seconds is None else seconds < WORTH_SECONDS
    is_decided = always or _numpy_only.get() is not None or os.environ.get(VARIABLE) == "1"
    token = _numpy_only.set(_numpy_only.get() if is_decided else is_short)
    try:
        yield
    finally:
        _numpy_only.reset(token)
