"""Compiled code, all of it, on plain arrays: what numba compiles in place of NumPy's loops.

`compiled` is the one seam. A caller asks for the module of compiled functions, and computes with
NumPy where there is none::

    if (fast := compiled()) is not None and fast.is_supported(weight, hidden):
        return fast.tree_nll(...)

This package imports no other one. Each function has a counterpart in NumPy, next to its callers;
``tests/kernels`` compares all pairs, and ``docs/architecture.md`` lists how much each one gains.
"""

from hstree._arrays import NARROW
from hstree.kernels.backend import backend_name, compiled, numpy_for_short_runs, numpy_only

__all__ = ["NARROW", "backend_name", "compiled", "numpy_for_short_runs", "numpy_only"]
