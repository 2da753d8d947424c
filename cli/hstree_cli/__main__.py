"""Entry point of `hstree` and `python -m hstree_cli`.

Ctrl-C and SIGTERM end the program in one line from its first moment on, so imports that take time
are inside the function.
"""

from __future__ import annotations

import signal
import sys
import threading
from typing import NoReturn


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM.

    Python notes a plain KeyboardInterrupt that leaves code compiled from a string, as the imports
    of many packages run it, and in the end kills itself, whatever the exit status.
    """


#: Seconds after which a signal whose exception Python discarded comes again.
AGAIN = 0.05
_came: list[int] = []  # signals for which an exception was raised
_again: list[threading.Timer] = []
_is_discarding = False  # whether what a handler raises now would be discarded


def run() -> None:
    """Run the program on the command line's arguments."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(number, _interrupt)
        sys.unraisablehook = _deliver_again
        from hstree_cli import main

        main.run()
    except KeyboardInterrupt:
        _end_interrupted()
    except SystemExit as end:
        if end.code or not _came:
            raise
        _end_interrupted()  # some code of others has caught the exception
    finally:
        # While Python shuts down, the exception could only print a traceback.
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is _interrupt:
                signal.signal(number, signal.SIG_DFL)
        for timer in _again:
            timer.cancel()


def _end_interrupted() -> NoReturn:
    # `hstree_cli.terminal` may be what was being imported.
    print("hstree: error: interrupted", file=sys.stderr)
    sys.exit(130)


def _interrupt(number: int, _: object) -> None:
    _came.append(number)
    if not _is_discarding:
        raise Interrupted
    _come_again()


def _deliver_again(discarded: sys.UnraisableHookArgs) -> None:
    """Raise a signal again whose exception Python discards, in a finaliser or a callback.

    In this function it would be discarded, too; so it comes a moment later.
    """
    global _is_discarding
    if not issubclass(discarded.exc_type, Interrupted):
        sys.__unraisablehook__(discarded)
        return
    _is_discarding = True
    _come_again()
    _is_discarding = False


def _come_again() -> None:
    """Send the last signal once more in a moment."""
    _again.append(threading.Timer(AGAIN, signal.raise_signal, [_came[-1]]))
    _again[-1].start()


if __name__ == "__main__":
    run()
