"""The entry point: Ctrl-C and SIGTERM end the program in one line, from its first moment on.

What takes time to import is imported inside.
"""

from __future__ import annotations

import signal
import sys

from hstree_cli.exits import INTERRUPTED
from hstree_cli.messages import complain


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
        complain("interrupted")
        sys.exit(INTERRUPTED)
    finally:
        # While Python itself ends, a traceback is all that an exception would be.
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is _interrupt:
                signal.signal(number, signal.SIG_DFL)


def _interrupt(*_: object) -> None:
    raise Interrupted
