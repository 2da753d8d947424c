"""Imports of optional packages."""

from __future__ import annotations

import importlib
import re
from types import ModuleType

from hstree._text import one_line
from hstree.errors import MissingExtraError


def require(module: str, extra: str, *, at_least: str | None = None) -> ModuleType:
    """Import an optional module ("gensim.models"), which the extra `extra` of hstree installs.

    Raises MissingExtraError when it is missing, cannot be imported, or its package is older than
    `at_least` ("4.4"); the message gives the command that installs it.
    """
    package = module.partition(".")[0]
    command = f"pip install --upgrade 'hstree[{extra}]'"
    try:
        imported = importlib.import_module(module)
    except ImportError as error:
        wrong = f"installed but cannot be imported ({one_line(error)}); try `{command}`"
        if isinstance(error, ModuleNotFoundError) and error.name == package:
            wrong = f"not installed; get it with `pip install 'hstree[{extra}]'`"
        raise MissingExtraError(f"{package} is {wrong}") from error
    version = str(getattr(importlib.import_module(package), "__version__", ""))
    if at_least is not None and _numbers(version) < _numbers(at_least):
        remedy = f"get {at_least} or newer with `{command}`"
        raise MissingExtraError(f"{package} {version} is too old; {remedy}")
    return imported


def _numbers(version: str) -> tuple[int, ...]:
    """Return the release of a version as numbers: "2.13.0+cpu" is (2, 13, 0)."""
    release = re.match(r"[0-9]+(\.[0-9]+)*", version)
    return tuple(map(int, release[0].split("."))) if release else ()
