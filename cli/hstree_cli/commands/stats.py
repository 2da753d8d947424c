"""`hstree stats`: what a tree's codes cost."""

from __future__ import annotations

from hstree_cli.examples import examples
from hstree_cli.options import JsonFile, Quiet, TreeFile


@examples("hstree stats huffman.json --json stats.json")
def stats(tree: TreeFile, json: JsonFile = None, quiet: Quiet = False) -> None:
    """Print a tree's size, code lengths and cost."""
    from hstree._files import write_json
    from hstree.tree import load
    from hstree_cli.console import facts, say
    from hstree_cli.outputs import check_file, written
    from hstree_cli.progressbar import showing_progress
    from hstree_cli.treefacts import input_facts, tree_facts

    if json is not None:
        check_file(json, "--json", apart_from=[tree])
    with showing_progress(quiet):
        loaded = load(tree)
        found = loaded.stats()
    with written((json, lambda path: write_json(path, {"tree": found.as_dict()}))):
        say(facts([*tree_facts(found), *input_facts(loaded)]))
