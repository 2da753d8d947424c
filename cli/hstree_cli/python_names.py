"""Commands for the Python functions that messages of the library name."""

from __future__ import annotations

#: What messages name -> what does the same on the command line.
COMMANDS = {
    "`hstree.Corpus.read(..., text=True)`": "--text (of `hstree vocab` and all that read texts)",
    "`Vocabulary.save`": "`hstree vocab`",
    "`hstree.CBOW`": "`hstree embed`",
    "`hstree.bootstrap`": "`hstree bootstrap`",
    "`hstree.compare`": "`hstree compare`",
    "`hstree.experiments.survey.survey`": "`hstree survey`",
    "`hstree.formats.read`": "`hstree convert`",
    "`hstree.load`": "`hstree show` and `hstree evaluate`",
    "`hstree.tree.files.read_content(...).broken_rules()`": "`hstree check`",
}


def with_commands(message: str) -> str:
    """Return a message with the commands that do what the functions in it do.

    Examples
    --------
    >>> with_commands("no such file: results.json; make it with `hstree.compare`")
    'no such file: results.json; make it with `hstree compare`'
    """
    for function, command in COMMANDS.items():
        message = message.replace(function, command)
    return message
