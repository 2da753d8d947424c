"""`python -m hstree_cli` is `hstree`."""

from hstree_cli.start import run

run()
