"""Entry point of `hstree` and `python -m hstree_cli`.

Ctrl-C and SIGTERM end the program with one line, even during its start. Slow imports are therefore
inside the function.
"""

from __future__ import annotations

import signal
import sys
import threading
from typing import NoReturn


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM.

    Many packages run code that is compiled from a string when they are imported. If a plain
    KeyboardInterrupt leaves such code, Python later kills itself, regardless of the exit status.
    """


#: Seconds until a signal is sent again after Python discarded its exception.
RETRY_DELAY = 0.05
_received: list[int] = []  # signals for which an exception was raised
_retries: list[threading.Timer] = []
_is_discarding = False  # whether Python would discard an exception that a handler raises now


def run() -> None:
    """Run the program on the command line's arguments."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(number, _interrupt)
        sys.unraisablehook = _handle_discarded
        from hstree_cli import main

        main.run()
    except KeyboardInterrupt:
        _end_interrupted()
    except SystemExit as end:
        if end.code or not _received:
            raise
        _end_interrupted()  # a library has caught the exception
    finally:
        # While Python shuts down, the exception would only print a traceback.
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is _interrupt:
                signal.signal(number, signal.SIG_DFL)
        for timer in _retries:
            timer.cancel()


def _end_interrupted() -> NoReturn:
    # `hstree_cli.terminal` may not be imported completely.
    print("hstree: error: interrupted", file=sys.stderr)
    sys.exit(130)


def _interrupt(number: int, _: object) -> None:
    _received.append(number)
    if not _is_discarding:
        raise Interrupted
    _send_again()


def _handle_discarded(discarded: sys.UnraisableHookArgs) -> None:
    """Send a signal again if Python discarded its exception in a finaliser or a callback.

    An exception raised here would also be discarded, so the signal is sent after a delay.
    """
    global _is_discarding
    if not issubclass(discarded.exc_type, Interrupted):
        sys.__unraisablehook__(discarded)
        return
    _is_discarding = True
    _send_again()
    _is_discarding = False


def _send_again() -> None:
    """Send the last signal again after a short delay."""
    timer = threading.Timer(RETRY_DELAY, signal.raise_signal, [_received[-1]])
    _retries.append(timer)
    timer.start()


if __name__ == "__main__":
    run()
