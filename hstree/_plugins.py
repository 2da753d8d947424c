"""Other packages: registries of named objects, hstree's own among them, and optional imports."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, Generic, TypeVar

from hstree._options import suggestion
from hstree._text import named_error, one_line
from hstree.errors import HstreeError, MissingExtraError, OptionError, PluginError

#: Package of the objects that are part of hstree.
PACKAGE = "hstree"

R = TypeVar("R")


class Registry(Generic[R]):
    """Objects by name, each described by a record.

    `noun` ("builder") is the kind of object in messages, or `called` ("method") where users know it
    by that. Other packages offer theirs in the entry-point group `group`; `native` maps the names
    of hstree's to "module:attribute". `describe` makes the record from name, object and package;
    it raises PluginError for an object that cannot be used.
    """

    def __init__(
        self,
        noun: str,
        group: str,
        native: Mapping[str, str],
        describe: Callable[[str, Any, str], R],
        *,
        called: str | None = None,
    ) -> None:
        self.noun, self.group, self.native, self._describe = noun, group, native, describe
        self.called = called or noun

    def get(self, name: str) -> R:
        """Return the record of a name.

        Raises OptionError when there is no object of that name, and PluginError when another
        package offers one that cannot be used.
        """
        if name in self.native:
            return self._native(name)
        plugins = dict(self._plugins())
        if name not in plugins:
            known = [*self.native, *plugins]
            listed = f"{suggestion(name, known)}there are {', '.join(known)}"
            raise OptionError(f"there is no {self.called} {name!r}; {listed}")
        if isinstance(record := plugins[name], HstreeError):
            raise record
        return record

    def all(self) -> dict[str, R]:
        """Return every record that can be used: hstree's own, then other packages' by name."""
        native = {name: self._native(name) for name in self.native}
        return native | {n: r for n, r in self._plugins() if not isinstance(r, HstreeError)}

    def names(self) -> list[str]:
        """Return all names, hstree's own first, without importing what they name."""
        return [*self.native, *(entry.name for entry in entry_points(group=self.group))]

    def broken(self) -> dict[str, str]:
        """Return what is wrong with the objects of other packages that cannot be used."""
        return {name: str(r) for name, r in self._plugins() if isinstance(r, HstreeError)}

    def _native(self, name: str) -> R:
        module, _, attribute = self.native[name].partition(":")
        return self._describe(name, getattr(import_module(module), attribute), PACKAGE)

    def _plugins(self) -> list[tuple[str, R | HstreeError]]:
        offered = entry_points(group=self.group)
        ordered = sorted(offered, key=lambda entry: (entry.name, entry.value))
        return [(entry.name, self._plugin(entry)) for entry in ordered]

    def _plugin(self, entry: EntryPoint) -> R | HstreeError:
        package = (entry.dist and entry.dist.name) or entry.module
        try:
            if entry.name in self.native:
                return unusable(self.noun, entry.name, package, "hstree has one of that name")
            return self._describe(entry.name, entry.load(), package)
        except HstreeError as error:
            return error
        except (Exception, SystemExit) as error:  # whatever a foreign module does when imported
            wrong = f"{titled(self.noun, entry.name, package)} cannot be loaded"
            remedy = f"update or uninstall {package}"
            failure = PluginError(f"{wrong}: {named_error(error)}; {remedy}")
            failure.__cause__ = error
            return failure


def titled(noun: str, name: str, package: str) -> str:
    """Return what messages call an object of another package."""
    return f"the {noun} {name!r} of the package {package}"


def unusable(noun: str, name: str, package: str, reason: str) -> PluginError:
    """Return the error of an object that cannot be used."""
    return PluginError(f"{titled(noun, name, package)} cannot be used: {reason}")


def summary_of(target: Callable[..., Any]) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(target) or "").partition("\n")[0]


def references_of(target: Callable[..., Any]) -> str:
    """Return the section "References" of a numpydoc docstring on one line; "" if there is none."""
    section = r"^References\n-+\n(.*?)(?=\n\n|\Z)"
    match = re.search(section, inspect.getdoc(target) or "", re.M | re.S)
    return " ".join(match[1].split()).replace("`", "") if match else ""


def require(module: str, extra: str, *, at_least: str | None = None) -> ModuleType:
    """Import an optional module ("gensim.models"), which the extra `extra` of hstree installs.

    Raises MissingExtraError when it is missing, cannot be imported, or its package is older than
    `at_least` ("4.4"); the message gives the command that installs it.
    """
    package = module.partition(".")[0]
    command = f"pip install --upgrade 'hstree[{extra}]'"
    try:
        imported = import_module(module)
    except ImportError as error:
        wrong = f"installed but cannot be imported ({one_line(error)}); try `{command}`"
        if isinstance(error, ModuleNotFoundError) and error.name == package:
            wrong = f"not installed; get it with `pip install 'hstree[{extra}]'`"
        raise MissingExtraError(f"{package} is {wrong}") from error
    version = str(getattr(import_module(package), "__version__", ""))
    if at_least is not None and _numbers(version) < _numbers(at_least):
        remedy = f"get {at_least} or newer with `{command}`"
        raise MissingExtraError(f"{package} {version} is too old; {remedy}")
    return imported


def _numbers(version: str) -> tuple[int, ...]:
    """Return the release of a version as numbers: "2.13.0+cpu" is (2, 13, 0)."""
    release = re.match(r"[0-9]+(\.[0-9]+)*", version)
    return tuple(map(int, release[0].split("."))) if release else ()
