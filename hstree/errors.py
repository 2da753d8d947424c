"""Errors that hstree raises on purpose.

Each message is one line that says what is wrong, where, and what to do next; the command line
prints it as it is. Any other exception that escapes is a bug.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches


class HstreeError(Exception):
    """Base of every error that hstree raises on purpose."""


class TreeError(HstreeError, ValueError):
    """A tree breaks one or more of the format's rules (see ``docs/tree-format.md``)."""


class FileFormatError(HstreeError):
    """A file cannot be read or written, or is damaged or of another format."""


class InputError(HstreeError, ValueError):
    """A corpus, a vocabulary, vectors or other input cannot be used."""


class OptionError(HstreeError, ValueError):
    """An option has a value that it cannot have, or an unknown name.

    Attributes
    ----------
    option : str or None
        The Python name of the option, where the error is about one option.
    reason : str or None
        Description to follow the option's name as it was typed: "is 0; it must be 1 or more". It
        does not name None, which cannot be typed.
    owner : str
        What has the option, such as a method; "" where that is clear.
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
        """Return the error of one option, from its name and what is wrong with it."""
        return cls(f"{option} {reason}", option=option, reason=reason)


class TrainingError(HstreeError):
    """A training or its scoring failed, such as by a loss that is not finite."""


class WorkerError(HstreeError):
    """A job could not be done by another process, or a cluster cannot be used."""


class PluginError(HstreeError):
    """A plugin of another package cannot be used, failed, or returned something wrong."""


class MissingExtraError(HstreeError, ImportError):
    """An optional package is not installed; the message gives the command that installs it."""


@contextmanager
def explained(
    action: str, error: type[HstreeError] = InputError, remedy: str = ""
) -> Iterator[None]:
    """Raise an `OSError` of the body as one line: "cannot {action}: {reason}; {remedy}"."""
    try:
        yield
    except OSError as caught:
        # Where Python's reason leaves open what to do, a plainer one
        end = f"; {remedy}" if remedy else ""
        reason = caught.strerror or str(caught)
        if isinstance(caught, FileNotFoundError) and caught.filename:
            reason = missing(caught.filename)
        elif isinstance(caught, IsADirectoryError):
            reason = "it is a folder"
        raise error(f"cannot {action}: {reason}{end}") from caught


def missing(path: str | os.PathLike[str]) -> str:
    """Say that there is no such file, or which folder is missing; name the file that is meant."""
    # A missing folder is a likelier mistake than a name in it
    folder, name = os.path.split(os.fspath(path))
    if folder and not os.path.isdir(folder):
        return f"there is no folder {folder}"
    with suppress(OSError):
        if close := get_close_matches(name, os.listdir(folder or "."), n=1):
            return f"there is no such file; did you mean {os.path.join(folder, close[0])}?"
    return "there is no such file"


@contextmanager
def naming(path: object) -> Iterator[None]:
    """Put the name of a file before the message of an `InputError` of the body."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
