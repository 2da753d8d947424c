"""The errors that hstree raises on purpose: one clear line each.

Every message says what was given, where, and what to do next, so that the command line
can print it as it is. Anything else that escapes is a bug.
"""


class HstreeError(Exception):
    """Base of every error that hstree raises on purpose."""


class TreeError(HstreeError):
    """A tree breaks one or more of the format's rules (see ``docs/tree-format.md``)."""


class FileFormatError(HstreeError):
    """A file cannot be read or written as what it should be."""


class InputError(HstreeError):
    """A corpus, a vocabulary or word vectors cannot be used as given."""


class OptionError(HstreeError):
    """An option has a value that it cannot have, or an unknown name.

    Attributes
    ----------
    option : str or None
        The Python name of the option, where the error is about one option.
    reason : str or None
        What is wrong, to follow the option's name: "must be 1 or more, not 0". The command line
        spells the option as it was typed and appends this.
    """

    def __init__(
        self, message: str, *, option: str | None = None, reason: str | None = None
    ) -> None:
        super().__init__(message)
        self.option, self.reason = option, reason


class TrainingError(HstreeError):
    """A training went wrong: its loss is no longer a finite number."""


class PluginError(HstreeError):
    """A builder of another package cannot be used, failed, or made something else than a tree."""


class MissingExtraError(HstreeError):
    """An optional package is not installed; the message gives the command that installs it."""
