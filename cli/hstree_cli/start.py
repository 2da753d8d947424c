"""The entry point: Ctrl-C and SIGTERM end the program in one line, from its first moment on.

What takes time to import is imported inside.
"""

from __future__ import annotations

import signal
import sys

from hstree_cli.exits import INTERRUPTED
from hstree_cli.messages import complain


def run() -> None:
    """Run the program on the command line's arguments."""
    try:
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        from hstree_cli import main

        main.run()
    except KeyboardInterrupt:
        complain("interrupted")
        sys.exit(INTERRUPTED)
    finally:
        # While Python itself ends, a traceback is all that an exception would be.
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is signal.default_int_handler:
                signal.signal(number, signal.SIG_DFL)
