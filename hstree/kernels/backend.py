"""Choice of the backend: NumPy, or functions compiled by numba (the extra `fast`)."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any

from hstree.kernels.jit import numba

#: Environment variable that disables compiled functions if it is 0, and enables them also for short
#: runs if it is 1.
VARIABLE = "HSTREE_FAST"
#: Minimum number of tokens for training or scoring, and minimum seconds for training with a time
#: limit, for which compiling saves more time than it takes.
WORTH_TOKENS = 1_000_000
WORTH_SECONDS = 60.0

#: Whether NumPy is used; None if undecided.
_numpy_only: ContextVar[bool | None] = ContextVar("hstree numpy only", default=None)


def compiled() -> Any:
    """Return the module of compiled functions, or None if NumPy is used.

    The first call that needs numba imports it.
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
    """Use NumPy while the body runs; nothing changes if `condition` is False."""
    token = _numpy_only.set(condition or _numpy_only.get())
    try:
        yield
    finally:
        _numpy_only.reset(token)


@contextmanager
def numpy_for_short_runs(
    tokens: int, seconds: float | None = None, *, always: bool = False
) -> Iterator[None]:
    """Use NumPy while the body runs if the run is short.

    Parameters
    ----------
    tokens : int
        Number of tokens that the run reads.
    seconds : float, optional
        Time limit of the run; if given, it decides instead of `tokens`.
    always : bool
        Whether to use compiled functions for short runs, too.

    Notes
    -----
    The choice does not depend on earlier compilation, so that results do not depend on it either.
    An enclosing choice, by this function or by `numpy_only`, also applies to the body.
    """
    is_short = tokens < WORTH_TOKENS if seconds is None else seconds < WORTH_SECONDS
    is_decided = always or _numpy_only.get() is not None or os.environ.get(VARIABLE) == "1"
    token = _numpy_only.set(_numpy_only.get() if is_decided else is_short)
    try:
        yield
    finally:
        _numpy_only.reset(token)
