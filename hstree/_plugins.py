"""Registries of named objects from hstree and other packages, and optional imports."""

import inspect
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class Registry(Generic[R]):
    """Objects by name, each described by a record."""

    noun: str  #: kind of object in messages ("builder")
    group: str  #: entry-point group for objects of other packages
    native: Mapping[str, str]  #: "module:attribute" of each object in hstree
    #: function from name, object and package to the record; raises PluginError for unusable objects
    describe: Callable[[str, Any, str], R]
    called: str = ""  #: another word for the kind that users know ("method")
    #: records of objects in hstree that have been loaded
    _described: dict[str, R] = field(default_factory=dict, init=False, repr=False)

    def get(self, name: str) -> R:
        """Return a record. Raises OptionError if it is unknown, PluginError if it is unusable."""
        # Objects of hstree are imported when they are used for the first time
        if name in self.native and name not in self._described:
            module, _, attribute = self.native[name].partition(":")
            named = getattr(import_module(module), attribute)
            self._described[name] = self.describe(name, named, PACKAGE)
        if name in self._described:
            return self._described[name]
        # Objects of other packages can be installed or removed at any time
        if (entry := self._plugins().get(name)) is not None:
            return self._load(entry)
        known = self.names()
        listed = f"{suggestion(name, known)}there are {', '.join(known)}"
        raise OptionError(f"there is no {self.called or self.noun} {name!r}; {listed}")

    def all(self) -> dict[str, R]:
        """Return all usable records: those of hstree, then those of other packages by name."""
        records = {}
        for name in self.native:
            with suppress(MissingExtraError):
                records[name] = self.get(name)
        for name, entry in self._plugins().items():
            with suppress(HstreeError):
                records[name] = self._load(entry)
        return records

    def __contains__(self, name: str) -> bool:
        """Return whether there is an object with this name, in hstree or in a plugin."""
        return name in self.native or name in self._plugins()

    def names(self) -> list[str]:
        """Return all names, hstree's own first, without importing what they name."""
        return list(dict.fromkeys([*self.native, *self._plugins()]))

    def broken(self) -> dict[str, str]:
        """Return {name: fault} for unusable objects of other packages."""
        reasons = {}
        for name, entry in self._plugins().items():
            try:
                self._load(entry)
            except HstreeError as error:
                reasons[name] = str(error)
        return reasons

    def _plugins(self) -> dict[str, EntryPoint]:
        """Return the entry points of objects in other packages, by name."""
        offered = sorted(
            entry_points(group=self.group), key=lambda entry: (entry.name, entry.value)
        )
        return {entry.name: entry for entry in offered}

    def _load(self, entry: EntryPoint) -> R:
        """Return the record of an object in another package. Raises PluginError on failure."""
        package = (entry.dist and entry.dist.name) or entry.module
        if entry.name in self.native:
            raise unusable(self.noun, entry.name, package, "hstree already has this name")
        try:
            return self.describe(entry.name, entry.load(), package)
        except HstreeError:
            raise
        except (Exception, SystemExit) as error:  # any failure of an import
            wrong = f"{titled(self.noun, entry.name, package)} cannot be loaded"
            remedy = f"update or uninstall {package}"
            raise PluginError(f"{wrong}: {named_error(error)}; {remedy}") from error


def titled(noun: str, name: str, package: str) -> str:
    """Return the description of an object from another package, for messages."""
    return f"the {noun} {name!r} of the package {package}"


def unusable(noun: str, name: str, package: str, reason: str) -> PluginError:
    """Return the error for an unusable object."""
    return PluginError(f"{titled(noun, name, package)} cannot be used: {reason}")


def read_summary(target: Callable[..., Any]) -> tuple[str, str]:
    """Return the first line of a numpydoc docstring, and its section "References" on one line."""
    text = inspect.getdoc(target) or ""
    first_line = text.partition("\n")[0]
    section = re.search(r"^References\n-+\n(.*?)(?=\n\n|\Z)", text, re.M | re.S)
    if section is None:
        return first_line, ""
    return first_line, " ".join(section[1].replace("`", "").split())


def require(module: str, *, at_least: str = "", package: str = "") -> ModuleType:
    """Import an optional module ("gensim.models") from a package (default: "gensim").

    Raises MissingExtraError if this fails, or if the package is older than `at_least` ("4.4").
    """
    package = package or module.partition(".")[0]
    # The command names the package, since the name of an extra depends on the source of hstree
    command = f"pip install --upgrade {package}"
    try:
        imported = import_module(module)
    except ImportError as error:
        wrong = f"installed but cannot be imported ({one_line(error)}); try `{command}`"
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            wrong = f"not installed; get it with `{command}`"
        raise MissingExtraError(f"{package} is {wrong}") from error
    version = str(getattr(import_module(package), "__version__", ""))
    if _version_numbers(version) < _version_numbers(at_least):
        remedy = f"get {at_least} or newer with `{command}`"
        raise MissingExtraError(f"{package} {version} is too old; {remedy}")
    return imported


def _version_numbers(version: str) -> list[int]:
    """Return the numbers of a version: [2, 13, 0] of "2.13.0+cpu"."""
    return [int(digits) for digits in re.findall(r"\d+", version)]
