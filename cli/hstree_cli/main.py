"""The program: its commands, and its exit statuses and error messages."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from hstree_cli.commands.bootstrap import bootstrap
from hstree_cli.commands.build import build
from hstree_cli.commands.check import check
from hstree_cli.commands.compare import compare
from hstree_cli.commands.convert import convert
from hstree_cli.commands.demo import demo
from hstree_cli.commands.embed import embed
from hstree_cli.commands.evaluate import evaluate
from hstree_cli.commands.methods import methods
from hstree_cli.commands.predict import predict
from hstree_cli.commands.report import report
from hstree_cli.commands.sample import sample
from hstree_cli.commands.score import score
from hstree_cli.commands.show import show
from hstree_cli.commands.stats import stats
from hstree_cli.commands.vocab import vocab
from hstree_cli.options import UsageError, flag, option
from hstree_cli.terminal import (
    BAD_INPUT,
    INTERRUPTED,
    WRONG_USAGE,
    complain,
    limited_threads,
    tracebacks,
)


def _without_metavars(params: list[Any]) -> list[Any]:
    """Leave out the value "<bool>" that Typer shows for switches, which take none."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


class Command(TyperCommand):
    """A command whose help page shows switches without a value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, those of ``--help`` among them."""
        return _without_metavars(super().get_params(ctx))


class Group(TyperGroup):
    """The program, whose help page shows switches without a value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, those of ``--help`` among them."""
        return _without_metavars(super().get_params(ctx))


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
    """Find out which hierarchical-softmax tree to use, or which output layer without a tree.

    Build trees by many methods, train the same model on each, and compare cost and perplexity.
    """


#: Commands by the panel of the help page that lists them, each with the ends of its help page.
PANELS: dict[str, tuple[tuple[Callable[..., Any], tuple[str, ...]], ...]] = {
    "Start here": (
        (demo, ("hstree demo -o demo",)),
        (
            compare,
            (
                "hstree compare corpus.txt -o which",
                'hstree compare corpus.txt huffman "gmm epsilon=0.4" mine.json flat kn5 -o which',
                "hstree compare corpus.txt approximations --seconds 240 -o survey",
            ),
        ),
        (report, ("hstree report which", "hstree report which --follow")),
    ),
    "Build trees": (
        (methods, ("hstree methods", "hstree methods gmm")),
        (vocab, ("hstree vocab builtin:python --min-count 5 -o vocab.tsv",)),
        (
            build,
            (
                "hstree build --method huffman builtin:python -o huffman.json",
                'hstree build --method "gmm epsilon=0.4 trees=4" vectors.npy',
            ),
        ),
        (check, ("hstree check huffman.json",)),
        (stats, ("hstree stats huffman.json --json stats.json",)),
        (
            show,
            ("hstree show huffman.json --depth 3", "hstree show huffman.json --word the"),
        ),
        (
            convert,
            (
                "hstree convert huffman.json huffman.dot",
                "hstree convert linkage.npy tree.json --labels words.txt",
            ),
        ),
    ),
    "Train": (
        (
            evaluate,
            (
                "hstree evaluate huffman.json corpus.txt --save model",
                'hstree evaluate "sampled samples=500" corpus.txt --epochs 5',
            ),
        ),
        (
            bootstrap,
            (
                'hstree bootstrap corpus.txt "gmm epsilon=0.4" --rounds 2 -o rounds',
                'hstree bootstrap corpus.txt gmm "classes cluster_by=vectors" -o rounds',
            ),
        ),
        (
            embed,
            (
                "hstree embed corpus.txt gmm.json -o vectors.vec",
                'hstree embed corpus.txt "negative samples=5" --model skipgram -o vectors.bin',
            ),
        ),
    ),
    "Use a trained model": (
        (
            predict,
            (
                'hstree predict model "the stock market" -k 5',
                "hstree predict model --with other --contexts lines.txt --json answers.json",
            ),
        ),
        (sample, ("hstree sample model --words 50 --seed 1",)),
        (
            score,
            ("hstree score model other.txt", "hstree score model other.txt --per-word -o w.tsv"),
        ),
    ),
}
for _panel, _commands in PANELS.items():
    for _command, _examples in _commands:
        _title = f"[bold]Example{'s' * (len(_examples) > 1)}:[/bold]"
        _epilog = "\n\n".join([_title, *_examples])
        app.command(cls=Command, rich_help_panel=_panel, epilog=_epilog)(_command)

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
        complain(_usage(error))
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
        if isinstance(error, OptionError) and error.option is not None and not error.owner:
            message = f"{flag(error.option)} {error.reason}"
        complain(f"{message}{hint}")
        return WRONG_USAGE if isinstance(error, OptionError) else BAD_INPUT


#: Options that are gone, and what to type instead.
_GONE = {
    "compare": {
        **dict.fromkeys(
            ("--method", "-m", "--layer", "--tree", "--baseline"),
            'rows are arguments: `hstree compare CORPUS huffman "gmm epsilon=0.4" mine.json kn5 '
            "-o DIR`",
        ),
        "--equal-seconds": "--seconds S trains every row for the same time",
    },
    "evaluate": {
        "--layer": 'the first argument is a row: `hstree evaluate "sampled samples=500" CORPUS`',
        "--no-train": "`hstree score MODEL_DIR TEXT` scores a saved model",
    },
    "bootstrap": dict.fromkeys(
        ("--method", "-m", "--then"), "rows are arguments: `hstree bootstrap CORPUS gmm -o DIR`"
    ),
    "embed": dict.fromkeys(
        ("--tree", "--layer"), "the row is an argument: `hstree embed CORPUS huffman.json -o FILE`"
    ),
}


def _usage(error: Any) -> str:
    """Return the message of wrong usage, with what to type instead where that is known."""
    command = error.ctx.command_path if error.ctx else "hstree"
    typed = str(getattr(error, "option_name", ""))
    message = error.format_message().strip().rstrip(".")
    if typed in ("--threads", "--debug"):
        return f"{typed} goes before the command; see `hstree --help`"
    if type(error).__name__ == "NoSuchOption":
        if instead := _GONE.get(command.removeprefix("hstree "), {}).get(typed):
            return f"no option {typed}: {instead}"
        if command == "hstree build":
            message += f'; options of a method go into its text: --method "gmm {typed[2:]}=..."'
    return f"{message}; see `{command} --help`"


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
