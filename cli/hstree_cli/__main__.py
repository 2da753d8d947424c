"""Entry point of `hstree` and `python -m hstree_cli`.

Ctrl-C and SIGTERM end the program in one line from its first moment on, so imports that take time
are inside the function.
"""

from __future__ import annotations

import signal
import sys


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM.

    Python notes a plain KeyboardInterrupt that leaves code compiled from a string, as the imports
    of many packages run it, and in the end kills itself, whatever the exit status.
    """


def run() -> None:
    """Run the program on the command line's arguments."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(number, _interrupt)
        from hstree_cli import main

        main.run()
    except KeyboardInterrupt:
        # `hstree_cli.terminal` may be what was being imported.
        print("hstree: error: interrupted", file=sys.stderr)
        sys.exit(130)
    finally:
        # While Python shuts down, the exception could only print a traceback.
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is _interrupt:
                signal.signal(number, signal.SIG_DFL)


def _interrupt(*_: object) -> None:
    raise Interrupted


if __name__ == "__main__":
    run()
