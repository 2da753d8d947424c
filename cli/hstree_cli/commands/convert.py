"""`hstree convert`: trees from and to the formats of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hstree_cli.arguments import refuse_swapped
from hstree_cli.options import Force, Quiet, argument, option
from hstree_cli.outputs import check_file
from hstree_cli.tables import count, facts
from hstree_cli.terminal import say, showing_progress


def convert(
    ctx: typer.Context,
    source: Annotated[Path, argument("IN", "A tree in any format.")],
    target: Annotated[Path, argument("OUT", "The converted tree.")],
    from_: Annotated[
        str | None, option("--from", "Input format (default: from the extension).", "FORMAT")
    ] = None,
    to: Annotated[
        str | None, option("--to", "Output format (default: from the extension).", "FORMAT")
    ] = None,
    labels: Annotated[
        Path | None,
        option(
            "--labels",
            "Labels of a linkage or a napkinXC tree: lines of word or word<TAB>count.",
            "FILE",
        ),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Convert a tree to another format, or to a tree file.

    Formats and their extensions: tree (.json, .json.gz, .npz), dot (.dot, .gv),
    graphml (.graphml), newick (.nwk, .newick), brown (.paths), napkinxc
    (.napkinxc), linkage (.npy), nested (.nested.json). All except dot and newick
    can be read. What OUT cannot hold is refused, or named as not kept.
    """
    from hstree import formats

    refuse_swapped(ctx, source, target, Path.exists)
    read_as, written_as = formats.format_of(source, from_), formats.format_of(target, to)
    for path in written_as.files(target):
        check_file(path, "OUT", force=force, reads=[*read_as.files(source), labels])
    with showing_progress(quiet):
        tree = formats.read(source, read_as.name, labels=labels)
        formats.write(tree, target, written_as.name)
    rows = [
        ("read", f"{source} ({read_as.name})"),
        ("written", f"{', '.join(map(str, written_as.files(target)))} ({written_as.name})"),
        ("labels", count(tree.n_labels)),
        ("nodes", count(tree.n_nodes)),
        ("sha256", tree.sha256),
    ]
    if losses := written_as.losses(tree):
        rows.append(("not kept", ", ".join(losses)))
    say(facts(rows))
