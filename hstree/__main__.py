"""Run the program in `cli/` with `python -m hstree`."""

if __name__ == "__main__":
    from hstree_cli.__main__ import run

    run()
