"""`python -m hstree` runs the program, which `cli/` holds."""


def run() -> None:
    """Run the command line."""
    from hstree_cli.__main__ import run as run_program

    run_program()


if __name__ == "__main__":
    run()
