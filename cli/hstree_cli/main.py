"""The program: its commands, and the exit statuses of errors.

An error is one line on standard error. Commands import the library inside their functions, so that
`hstree --help` does not wait for it.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from itertools import chain
from typing import Annotated

import typer

from hstree_cli.commands.bootstrap import bootstrap
from hstree_cli.commands.build import build
from hstree_cli.commands.check import check
from hstree_cli.commands.compare import compare
from hstree_cli.commands.convert import convert
from hstree_cli.commands.demo import demo
from hstree_cli.commands.embed import embed
from hstree_cli.commands.ensemble import ensemble
from hstree_cli.commands.evaluate import evaluate
from hstree_cli.commands.methods import layers, methods
from hstree_cli.commands.predict import predict
from hstree_cli.commands.recommend import recommend
from hstree_cli.commands.report import report
from hstree_cli.commands.sample import sample
from hstree_cli.commands.score import score
from hstree_cli.commands.show import show
from hstree_cli.commands.stats import stats
from hstree_cli.commands.survey import survey
from hstree_cli.commands.vocab import vocab
from hstree_cli.options import UsageError, flag, option
from hstree_cli.registered_options import Group, register, with_flags
from hstree_cli.terminal import (
    BAD_INPUT,
    INTERRUPTED,
    WRONG_USAGE,
    complain,
    limited_threads,
    tracebacks,
)

app = typer.Typer(
    name="hstree",
    cls=Group,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from hstree._version import __version__

        typer.echo(f"hstree {__version__}")
        raise typer.Exit


@app.callback()
def hstree(
    version: Annotated[
        bool, option("--version", "Print the version.", callback=_print_version, is_eager=True)
    ] = False,
    threads: Annotated[
        int | None,
        option(
            "--threads", "Compute in at most this many threads; all cores by default.", "N", min=1
        ),
    ] = None,
    debug: Annotated[bool, option("--debug", "Print the traceback of an error, too.")] = False,
) -> None:
    """Find out which hierarchical-softmax tree to use.

    Build trees by many methods, train the same model on each, and compare cost and perplexity.
    """


#: Commands by the panel of the help page that lists them.
PANELS = {
    "Start here": (demo, recommend, compare, report),
    "Build trees": (methods, vocab, build, check, stats, show, convert),
    "Train on trees and other output layers": (layers, evaluate, survey, bootstrap, embed),
    "Use a trained model": (predict, sample, score, ensemble),
}
for _panel, _commands in PANELS.items():
    for _command in _commands:
        register(app, _command, _panel)

#: Environment variable by which a shell asks for completions.
COMPLETE = "_HSTREE_COMPLETE"


def exit_status(arguments: Sequence[str]) -> int:
    """Run the program with these arguments and return its exit status."""
    program = typer.main.get_command(app)
    try:
        if COMPLETE in os.environ:
            program.main(prog_name="hstree")  # exits
        # Not `main`, which prints errors, interruptions and closed pipes differently.
        with (
            program.make_context("hstree", list(arguments) or ["--help"]) as context,
            tracebacks(context.params["debug"]),
            limited_threads(context.params["threads"]),
        ):
            program.invoke(context)
        sys.stdout.flush()
        return 0
    except typer.Exit as done:
        return done.exit_code
    except SystemExit as done:  # of completions
        return int(done.code or 0)
    except UsageError as error:
        command = error.ctx.command_path if error.ctx else "hstree"
        message = error.format_message().strip().rstrip(".")
        if getattr(error, "option_name", None) in ("--threads", "--debug"):
            message = f"{error.option_name} goes before the command"
            command = "hstree"
        complain(f"{message}; see `{command} --help`")
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
        message = str(error)
        if isinstance(error, OptionError) and error.option is not None:
            from hstree.builders import builders
            from hstree.layers import LAYERS
            from hstree.models import MODELS

            known = [builder.options for builder in builders().values()]
            known += [model.options for model in MODELS.all().values()]
            known += [layer.options for layer in LAYERS.all().values()]
            owner = f"{error.owner}: " if error.owner else ""
            reason = with_flags(str(error.reason), chain(*known))
            message = f"{owner}{flag(error.option)} {reason}"
        complain(f"{message}{hint}")
        return WRONG_USAGE if isinstance(error, OptionError) else BAD_INPUT


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
