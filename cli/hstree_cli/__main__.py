"""`python -m hstree_cli` is `hstree`."""

from hstree_cli.main import run

run()
