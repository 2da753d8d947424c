"""Errors that hstree raises deliberately.

Each message is one line that states what is wrong, where, and what to do next. The command line
prints the message unchanged. Any other exception that escapes is a bug.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches


class HstreeError(Exception):
    """Base class of all errors that hstree raises deliberately."""


class TreeError(HstreeError, ValueError):
    """A tree violates rules of the format (see ``docs/tree-format.md``)."""


class FileFormatError(HstreeError):
    """A file cannot be read or written, is damaged, or has another format."""


class InputError(HstreeError, ValueError):
    """A corpus, a vocabulary, vectors or other input cannot be used."""


class OptionError(HstreeError, ValueError):
    """An option has an invalid value or an unknown name.

    Attributes
    ----------
    option : str or None
        The Python name of the option, if the error is about one option.
    reason : str or None
        Description that follows the name of the option: "is 0; it must be 1 or more". It does not
        mention None, which cannot be typed on the command line.
    owner : str
        Object with the option, such as a method; "" if it is obvious.
    """

    def __init__(
        self, message: str, *, option: str | None = None, reason: str | None = None, owner: str = ""
    ) -> None:
        super().__init__(message)
        self.option = option
        self.reason = reason
        self.owner = owner

    @classmethod
    def about(cls, option: str, reason: str) -> OptionError:
        """Return the error for an option from its name and a description of the fault."""
        return cls(f"{option} {reason}", option=option, reason=reason)


class TrainingError(HstreeError):
    """Training or scoring failed, for example because the loss is not finite."""


class DivergenceError(TrainingError):
    """Training ended with a loss that is not finite, for example if its learning rate is high."""


class WorkerError(HstreeError):
    """A job failed in another process, or a cluster cannot be used."""


class PluginError(HstreeError):
    """A plugin in another package cannot be used, failed, or returned a wrong result."""


class MissingExtraError(HstreeError, ImportError):
    """An optional package is not installed; the message contains the command for installing it."""


@contextmanager
def explained(
    action: str, error: type[HstreeError] = InputError, remedy: str = ""
) -> Iterator[None]:
    """Convert an `OSError` in the body to an error "cannot {action}: {reason}; {remedy}"."""
    try:
        yield
    except OSError as caught:
        # Replace reasons of Python that do not explain what to do
        end = f"; {remedy}" if remedy else ""
        reason = caught.strerror or str(caught)
        if isinstance(caught, FileNotFoundError) and caught.filename:
            reason = missing(caught.filename)
        elif isinstance(caught, IsADirectoryError):
            reason = "it is a folder"
        raise error(f"cannot {action}: {reason}{end}") from caught


def missing(path: str | os.PathLike[str]) -> str:
    """Return a description of a missing file or folder, with the name of a similar file."""
    # If the folder is missing, name the folder
    folder, name = os.path.split(os.fspath(path))
    if folder and not os.path.isdir(folder):
        return f"there is no folder {folder}"
    with suppress(OSError):
        if close := get_close_matches(name, os.listdir(folder or "."), n=1):
            return f"there is no such file; did you mean {os.path.join(folder, close[0])}?"
    return "there is no such file"


@contextmanager
def naming(path: object) -> Iterator[None]:
    """Prefix the message of an `InputError` in the body with the name of a file."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
