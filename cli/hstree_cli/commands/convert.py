"""`hstree convert`: trees from and to the formats of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hstree_cli.examples import examples
from hstree_cli.options import Force, Quiet


@examples(
    "hstree convert huffman.json huffman.dot",
    "hstree convert brown.paths brown.json",
    "hstree convert linkage.npy tree.json --labels words.txt",
)
def convert(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="IN", help="A tree in any format.", show_default=False, readable=False
        ),
    ],
    target: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="Where to write it.", show_default=False, readable=False
        ),
    ],
    from_: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="FORMAT", help="Input format (default: from the extension)."
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="FORMAT", help="Output format (default: from the extension)."),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            metavar="FILE",
            help="Labels of a linkage or a napkinXC tree: lines of word or word<TAB>count.",
            readable=False,
        ),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Turn a tree into another format, or into a tree file.

    Formats and their endings: tree (.json, .json.gz, .npz), dot (.dot, .gv),
    graphml (.graphml), newick (.nwk, .newick), brown (.paths), napkinxc
    (.napkinxc), linkage (.npy), nested (.nested.json). All but
    dot and newick are read, too. What OUT cannot hold is refused, or named.
    """
    from hstree import formats
    from hstree_cli.console import count, facts, say
    from hstree_cli.outputs import check_file
    from hstree_cli.progressbar import showing_progress

    read_as, written_as = formats.format_of(source, from_), formats.format_of(target, to)
    read = [*read_as.files(source), labels]
    for path in written_as.files(target):
        check_file(path, "OUT", force=force, apart_from=read)
    with showing_progress(quiet):
        tree = formats.read(source, read_as.name, labels=labels)
        formats.write(tree, target, written_as.name)
    lost = written_as.losses(tree)
    rows = [
        ("read", f"{source} ({read_as.name})"),
        ("written", f"{', '.join(map(str, written_as.files(target)))} ({written_as.name})"),
        ("labels", count(tree.n_labels)),
        ("nodes", count(tree.n_nodes)),
        ("sha256", tree.sha256),
    ]
    say(facts([*rows, ("not kept", ", ".join(lost))] if lost else rows))
