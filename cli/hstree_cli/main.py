"""The program: its commands, its exit statuses and its error messages."""

import inspect
import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from hstree_cli.options import TYPED, flag, option
from hstree_cli.start import compare, demo, report
from hstree_cli.terminal import BAD_INPUT, INTERRUPTED, WRONG_USAGE, complain, running
from hstree_cli.train import bootstrap, classify, embed, evaluate
from hstree_cli.trees import build, check, convert, methods, show, stats, vocab
from hstree_cli.usage import Command, Group, UsageError, usage_message
from hstree_cli.use import predict, sample, score

#: Commands by the panel of the help page that lists them.
PANELS = {
    "Start here": (demo, compare, report),
    "Build trees": (methods, vocab, build, check, stats, show, convert),
    "Train": (evaluate, bootstrap, embed, classify),
    "Use a trained model": (predict, sample, score),
}
#: Text that `hstree` prints without arguments.
START = """\
hstree finds the output layer for a large vocabulary.
Start with one of these commands:

  hstree demo
      Compare trees and the flat softmax on a built-in text.
  hstree compare corpus.txt -o which
      Compare output layers on your text in ten minutes.
  hstree build --method huffman corpus.txt
      Build a tree from the words in a text.
  hstree evaluate tree.json corpus.txt --save model
      Train a language model with this tree.

`hstree --help` lists all commands.
"""
#: Examples at the end of the help pages; each page shows the examples of its command.
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
        int | None,
        option("--threads", "Maximum number of threads (default: all cores).", "N", min=1),
    ] = None,
    quiet: Annotated[bool, option("--quiet -q", "Do not show progress.")] = False,
    debug: Annotated[bool, option("--debug", "Print the traceback of an error.")] = False,
) -> None:
    """Find the best output layer for a large vocabulary: a hierarchical-softmax tree, or another.

    Build trees with many methods, train the same model with each, and compare cost and perplexity.
    """


def _add_commands() -> None:
    """Add the commands, with their examples below their help."""
    for panel, commands in PANELS.items():
        for command in commands:
            call = ["hstree", command.__name__]
            examples = [line for line in EXAMPLES.splitlines() if line.split()[:2] == call]
            title = "[bold]Examples:[/bold]" if len(examples) > 1 else "[bold]Example:[/bold]"
            # Each paragraph becomes one line, which terminals of any width wrap.
            paragraphs = (inspect.getdoc(command) or "").split("\n\n")
            app.command(
                cls=Command,
                help="\n\n".join(" ".join(text.split()) for text in paragraphs),
                epilog="\n\n".join([title, *examples]),
                rich_help_panel=panel,
            )(command)


_add_commands()

#: Environment variable by which a shell asks for completions.
COMPLETE = "_HSTREE_COMPLETE"


def exit_status(arguments: Sequence[str]) -> int:
    """Run the program with these arguments and return its exit status."""
    program: Any = typer.main.get_command(app)
    try:
        if COMPLETE in os.environ:
            program.main(prog_name="hstree")  # raises SystemExit
        if not arguments:
            typer.echo(START, nl=False)
            sys.stdout.flush()
            return 0
        # `program.main` would print errors, interruptions and closed pipes differently.
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
        complain(usage_message(error))
        return WRONG_USAGE
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        return 0  # the reader of the output has closed it
    except OSError as error:
        # Standard output; the library raises its own error for other files
        complain(f"{error.filename or 'standard output'}: {error.strerror or error}")
        return BAD_INPUT
    except MemoryError:
        complain("not enough memory")
        return BAD_INPUT
    except Exception as error:
        # Only the library raises other exceptions, so it is loaded already
        from hstree.errors import HstreeError, OptionError, PluginError

        if not isinstance(error, HstreeError):
            raise
        is_foreign = isinstance(error, PluginError) and error.__cause__ is not None
        hint = "; `hstree --debug COMMAND ...` prints the traceback" if is_foreign else ""
        complain(f"{_with_flag(error, program)}{hint}")
        return WRONG_USAGE if isinstance(error, OptionError) else BAD_INPUT


def _with_flag(error: Exception, program: Any) -> str:
    """Return the message of an error, with the flag of an option in place of its Python name."""
    name = getattr(error, "option", None)
    if name is None or error.owner:  # type: ignore[attr-defined]
        return str(error)
    typed = TYPED.get(name, name)
    commands = program.commands.values()
    if any(param.name == typed for command in commands for param in command.params):
        return f"{flag(name)} {error.reason}"  # type: ignore[attr-defined]
    return str(error)


def run() -> None:
    """Run the program on the command line's arguments."""
    # If standard output is closed, Python has no stream for it. Writing must fail nevertheless.
    if sys.stdout is None:
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
