"""`hstree stats`: the size and code lengths of a tree."""

from __future__ import annotations

from hstree_cli.options import JsonFile, Quiet, TreeFile
from hstree_cli.outputs import check_file, written
from hstree_cli.tables import facts, input_facts
from hstree_cli.terminal import say, showing_progress


def stats(tree: TreeFile, json: JsonFile = None, quiet: Quiet = False) -> None:
    """Print a tree's size, code lengths and cost."""
    from hstree._files import write_json
    from hstree.tree import load

    check_file(json, "--json", reads=[tree])
    with showing_progress(quiet):
        loaded = load(tree)
        statistics = loaded.stats()
    with written((json, lambda path: write_json(path, {"tree": statistics.as_dict()}))):
        say(facts([*statistics.facts(), *input_facts(loaded)]))
