"""All compiled code: functions on plain arrays that numba compiles, as alternatives to NumPy.

`compiled` is the only entry point. A caller gets the module of compiled functions from it, and uses
NumPy if there is none::

    if (fast := compiled()) is not None and fast.is_supported(weight, hidden):
        return fast.tree_nll(...)

This package imports no other package of hstree. Each function has a counterpart in NumPy, next to
its callers. ``tests/kernels`` compares both, and ``docs/architecture.md`` lists the speed-ups.
"""

from hstree._arrays import NARROW
from hstree.kernels.backend import backend_name, compiled, numpy_for_short_runs, numpy_only

__all__ = ["NARROW", "backend_name", "compiled", "numpy_for_short_runs", "numpy_only"]
