"""`python -m hstree` runs the program, which `cli/` holds."""

if __name__ == "__main__":
    from hstree_cli.__main__ import run

    run()
