"""A builder as a record: its name, what it takes and its options."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hstree._options import Option, effective, options_of
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import OptionError, PluginError
from hstree.tree import Tree

#: Types that a builder may take as its main input, and their names in messages.
INPUTS: dict[type, str] = {
    Vocabulary: "a vocabulary",
    Corpus: "a corpus",
    WordVectors: "word vectors",
}

#: The package of hstree's own builders.
OWN = "hstree"

#: Parameters and options of `build` itself, here and on the command line.
_RESERVED = frozenset(
    [
        *("method", "input", "output", "seed", "force", "train_split_only", "quiet", "help"),
        *("vocabulary", "labels", "min_count", "max_size", "lower"),
    ]
)


@dataclass(frozen=True)
class Builder:
    """A registered tree-building strategy.

    Attributes
    ----------
    name : str
        The method's name.
    function : callable
        From the main input, and options by keyword, to a `Tree`.
    takes : type
        `Vocabulary`, `Corpus` or `WordVectors`; `takes_text` is its name for people.
    summary : str
        The first line of the docstring.
    options : tuple of Option
    package : str
        Who provides it.
    """

    name: str
    function: Callable[..., Tree]
    takes: type
    summary: str
    options: tuple[Option, ...]
    package: str

    @property
    def takes_text(self) -> str:
        """What it takes, in words."""
        return INPUTS[self.takes]

    @classmethod
    def of(cls, name: str, function: Callable[..., Tree], package: str = OWN) -> Builder:
        """Describe a builder function.

        Raises
        ------
        PluginError
            When the function does not look like a builder.
        """

        def refuse(what: str) -> PluginError:
            return PluginError(
                f"the builder {name!r} of the package {package} cannot be used: {what}"
            )

        try:
            main, *others = inspect.signature(function).parameters.values()
            hints = typing.get_type_hints(function)
        except (TypeError, ValueError, NameError, AttributeError) as error:
            raise refuse(f"its signature cannot be read ({error})") from error
        takes = hints.get(main.name)
        if takes not in INPUTS:
            raise refuse("its first parameter must be annotated Vocabulary, Corpus or WordVectors")
        for parameter in others:
            if parameter.kind is not parameter.KEYWORD_ONLY or parameter.name in _RESERVED:
                raise refuse(f"{parameter.name!r} must be keyword-only, and not a name of build's")
            if parameter.default is parameter.empty:
                raise refuse(f"the option {parameter.name!r} needs a default")
        try:
            options = options_of(function)
        except TypeError as error:
            raise refuse(str(error)) from error
        try:
            effective(options, {}, name)
        except OptionError as error:
            raise refuse(f"by default, {error}") from error
        summary = (inspect.getdoc(function) or "").partition("\n")[0]
        return cls(name, function, takes, summary, options, package)

    def effective(self, given: Mapping[str, object]) -> dict[str, Any]:
        """Return the value of every option: the given one, checked, or the default.

        Raises
        ------
        OptionError
            For an unknown name, or a value that an option cannot have.
        """
        return effective(self.options, given, self.name)
