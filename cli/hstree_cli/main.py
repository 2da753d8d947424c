"""The program: its commands, and its exit statuses and error messages."""

import inspect
import io
import os
import re
import shlex
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from hstree_cli.options import TYPED, UsageError, flag, option
from hstree_cli.start import compare, demo, report
from hstree_cli.terminal import BAD_INPUT, INTERRUPTED, WRONG_USAGE, complain, running
from hstree_cli.train import bootstrap, classify, embed, evaluate
from hstree_cli.trees import build, check, convert, methods, show, stats, vocab
from hstree_cli.use import predict, sample, score

#: Commands by the panel of the help page that lists them.
PANELS = {
    "Start here": (demo, compare, report),
    "Build trees": (methods, vocab, build, check, stats, show, convert),
    "Train": (evaluate, bootstrap, embed, classify),
    "Use a trained model": (predict, sample, score),
}
#: What `hstree` alone prints.
START = """\
hstree says which output layer a large vocabulary needs.
Start with one of these commands:

  hstree demo
      Compare trees with the flat softmax on built-in text.
  hstree compare corpus.txt -o which
      Compare them on your own text, in ten minutes.
  hstree build --method huffman corpus.txt
      Build a tree over the words of a text.
  hstree evaluate tree.json corpus.txt --save model
      Train a language model on it.

`hstree --help` lists all commands.
"""
#: Ends of the help pages: each command has its lines.
EXAMPLES = """
hstree demo -o demo
hstree compare corpus.txt -o which
hstree compare corpus.txt huffman "gmm epsilon=0.4" mine.json flat kn5 -o which
hstree compare corpus.txt approximations --seconds 240 -o survey
hstree compare corpus.txt trees --jobs 2 -o which
hstree compare corpus.txt trees --scheduler tcp://10.0.0.1:8786 -o which
hstree report which
hstree methods
hstree methods gmm
hstree vocab builtin:python --min-count 5 -o vocab.tsv
hstree build --method huffman builtin:python -o huffman.json
hstree build --method "gmm epsilon=0.4 trees=4" vectors.npy
hstree check huffman.json
hstree stats huffman.json --json stats.json
hstree show huffman.json --depth 3
hstree show huffman.json --word the
hstree convert huffman.json huffman.dot
hstree convert linkage.npy tree.json --labels words.txt
hstree evaluate huffman.json corpus.txt --save model
hstree evaluate "sampled samples=500" corpus.txt --epochs 5
hstree bootstrap corpus.txt "gmm epsilon=0.4" --rounds 2 -o rounds
hstree bootstrap corpus.txt gmm "classes cluster_by=vectors" -o rounds
hstree embed corpus.txt gmm.json -o vectors.vec
hstree embed corpus.txt "negative samples=5" --model skipgram -o vectors.bin
hstree classify train.txt test.txt --method "kmeans arity=16"
hstree predict model "the stock market" -k 5
hstree predict model --with other "the stock market" --json answer.json
hstree sample model --words 50 --seed 1
hstree score model other.txt
hstree score model other.txt --per-word -o words.tsv
"""


class _Pages:
    """Help pages that cut no option at 60 columns, and show switches without a value "<bool>"."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help page."""
        from typer import rich_utils

        # Typer pads both sides of every column, of empty ones, too.
        rich_utils.STYLE_OPTIONS_TABLE_PADDING = (0, 1, 0, 0)  # type: ignore[assignment]
        for param in self.get_params(ctx):  # type: ignore[attr-defined]
            if getattr(param, "is_flag", False):
                param.metavar = ""
        super().format_help(ctx, formatter)  # type: ignore[misc]


class Command(_Pages, TyperCommand):
    """A command of the program."""


class Group(_Pages, TyperGroup):
    """The program."""


app = typer.Typer(
    name="hstree",
    cls=Group,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def hstree(
    version: Annotated[bool, option("--version", "Print the version.")] = False,
    threads: Annotated[
        int | None, option("--threads", "Threads at most; all cores by default.", "N", min=1)
    ] = None,
    quiet: Annotated[bool, option("--quiet -q", "Show no progress.")] = False,
    debug: Annotated[bool, option("--debug", "Print the traceback of an error, too.")] = False,
) -> None:
    """Find out which hierarchical-softmax tree to use, or which output layer without a tree.

    Build trees by many methods, train the same model on each, and compare cost and perplexity.
    """


for _panel, _commands in PANELS.items():
    for _command in _commands:
        _typed = [line for line in EXAMPLES.splitlines() if _command.__name__ in line.split()[1:2]]
        _title = f"[bold]Example{'s' * (len(_typed) > 1)}:[/bold]"
        _epilog = "\n\n".join([_title, *_typed])
        # A line for each paragraph, which terminals of any width wrap.
        _paragraphs = (inspect.getdoc(_command) or "").split("\n\n")
        _help = "\n\n".join(" ".join(text.split()) for text in _paragraphs)
        app.command(cls=Command, help=_help, epilog=_epilog, rich_help_panel=_panel)(_command)

#: Environment variable by which a shell asks for completions.
COMPLETE = "_HSTREE_COMPLETE"


def exit_status(arguments: Sequence[str]) -> int:
    """Run the program with these arguments and return its exit status."""
    program: Any = typer.main.get_command(app)
    try:
        if COMPLETE in os.environ:
            program.main(prog_name="hstree")  # exits
        if not arguments:
            typer.echo(START, nl=False)
            sys.stdout.flush()
            return 0
        # Not `main`, which prints errors, interruptions and closed pipes differently.
        with program.make_context("hstree", list(arguments)) as context:
            if context.params.pop("version"):
                from hstree._version import __version__

                typer.echo(f"hstree {__version__}")
                return 0
            with running(**context.params):
                program.invoke(context)
        sys.stdout.flush()
        return 0
    except typer.Exit as done:
        return done.exit_code
    except SystemExit as done:  # of completions
        return int(done.code or 0)
    except UsageError as error:
        complain(_usage(error, arguments))
        return WRONG_USAGE
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        return 0  # the reader of the output has enough
    except OSError as error:
        # The library names all other files that cannot be written.
        complain(f"{error.filename or 'standard output'}: {error.strerror or error}")
        return BAD_INPUT
    except MemoryError:
        complain("there is not enough memory for this")
        return BAD_INPUT
    except Exception as error:
        # Whatever raised this has loaded the library already.
        from hstree.errors import HstreeError, OptionError, PluginError

        if not isinstance(error, HstreeError):
            raise
        is_foreign = isinstance(error, PluginError) and error.__cause__ is not None
        hint = "; `hstree --debug COMMAND ...` prints its traceback" if is_foreign else ""
        complain(f"{_as_typed(error, program)}{hint}")
        return WRONG_USAGE if isinstance(error, OptionError) else BAD_INPUT


def _as_typed(error: Exception, program: Any) -> str:
    """Return the message of an error, with an option of a command as its flag."""
    name = getattr(error, "option", None)
    if name is None or error.owner:  # type: ignore[attr-defined]
        return str(error)
    typed = TYPED.get(name, name)
    commands = program.commands.values()
    if any(param.name == typed for command in commands for param in command.params):
        return f"{flag(name)} {error.reason}"  # type: ignore[attr-defined]
    return str(error)


#: What Typer says of wrong usage, as patterns, and plainer words for it.
PLAINER = (
    (r"^Invalid value for '(.*?)'(?: / '.*?')?: ", r"\1: "),
    (r"Input should be greater than or equal to (\S+)", r"it must be \1 or more"),
    (r"Input should be less than or equal to (\S+)", r"it must be \1 or less"),
    (r"Input should be a valid integer.*", "it must be a whole number"),
    (r"Input should be a valid number.*", "it must be a number"),
    (r"^Missing (?:argument|option) '(.*?)'.*", r"\1 is missing"),
    (r"^Got unexpected extra arguments?(?:\(s\))? \((.*)\)", r"one argument too many: \1"),
    (r"^Option '(.*?)' requires an argument", r"\1 needs a value"),
    (r"^No such (option|command):? ", r"there is no \1 "),
    (r" \(Possible options: (.*)\)", r"; did you mean \1?"),
    (r"\. Did you mean ", "; did you mean "),
)


def _usage(error: Any, arguments: Sequence[str]) -> str:
    """Return the message of wrong usage, with what to type instead where that is known."""
    command = error.ctx.command_path if error.ctx else "hstree"
    name, kind = command.removeprefix("hstree "), type(error).__name__
    typed = str(getattr(error, "option_name", ""))
    message = error.format_message().strip().rstrip(".")
    for pattern, plain in PLAINER:
        message = re.sub(pattern, plain, message)
    if typed in ("--threads", "--debug", "--quiet", "-q"):
        return f"{typed} goes before the command: `hstree {typed} {name} ...`"
    if kind == "NoSuchOption" and name == "build" and "did you mean" not in message:
        message += f'; options of a method go into its text: --method "gmm {typed[2:]}=..."'
    if name == "build" and "too many" in message and "=" in message:
        return f'{message}; options stand in the quotes of their method: "gmm epsilon=0.4"'
    if kind == "MissingParameter" and name == "build" and error.param.name == "method":
        return f"the method is missing; type `{_with_method(arguments)}`"
    # the arguments and the required options of the command, as its help names them
    parts = []
    for param in error.ctx.command.params if error.ctx else ():
        if param.param_type_name == "argument":
            part = param.metavar if param.required else f"[{param.metavar}]"
            parts.append(f"{part}..." if param.nargs < 0 else part)
        elif param.required:
            parts.append(f"{param.opts[0]} {param.metavar}")
    if parts and (kind in ("MissingParameter", "NoSuchOption") or "too many" in message):
        return f"{message}; type `{' '.join([command, *parts])}`"
    return f"{message}; see `{command} --help`"


def _with_method(arguments: Sequence[str]) -> str:
    """Return a `build` without a method as it is typed with one: an argument that names it."""
    from hstree_cli.options import builder_names

    words, names = list(arguments[arguments.index("build") + 1 :]), builder_names()
    method = next((word for word in words if word.split()[:1] and word.split()[0] in names), None)
    if method is not None:
        words.remove(method)
    return shlex.join(["hstree", "build", "--method", method or "huffman", *(words or ["INPUT"])])


def run() -> None:
    """Run the program on the command line's arguments."""
    if sys.stdout is None:  # closed when the program started: writing must fail
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    status = exit_status(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError:
        # Already reported; Python's own flush at exit must not report it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)
