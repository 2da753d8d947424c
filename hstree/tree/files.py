"""Tree files of format 1 (``docs/tree-format.md``), with one of three extensions.

``.json`` is for people and diffs (one node per line), ``.json.gz`` is smaller, ``.npz`` is fast.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from hstree import progress
from hstree._files import largest_unpacked, read_packed, read_regular, reading, replacing
from hstree.errors import FileFormatError
from hstree.tree.arrays import TreeArrays
from hstree.tree.content import Content
from hstree.tree.json_format import from_json, to_json
from hstree.tree.npz_format import from_npz, to_npz

#: Extensions of tree files.
ENDINGS = (".json", ".json.gz", ".npz")
_GZIP_LEVEL = 6


def save(tree: TreeArrays, path: str | os.PathLike[str]) -> None:
    """Write a tree; see `hstree.Tree.save`."""
    ending = _ending(path)
    with progress.task(f"writing {path}"), replacing(path) as file:
        if ending == ".npz":
            to_npz(tree, file)
        elif ending == ".json":
            file.writelines(to_json(tree))
        else:
            _write_gzip(to_json(tree), file)


def read_content(path: str | os.PathLike[str]) -> Content:
    """Read the content of a tree file, without checking the rules of trees.

    Raises FileFormatError when the file cannot be read or is not of this format.
    """
    ending = _ending(path)
    with progress.task(f"reading {path}"), reading(path, FileFormatError):
        try:
            if ending == ".json.gz":
                return from_json(read_packed(path))
            data = read_regular(path)
            return from_npz(data) if ending == ".npz" else from_json(data)
        except FileFormatError as error:
            raise FileFormatError(f"{path} {error}") from error
        except gzip.BadGzipFile as error:
            raise FileFormatError(f"{path} is not sound gzip: {error}") from error


def _ending(path: str | os.PathLike[str]) -> str:
    name = Path(path).name
    for ending in ENDINGS:
        if name.endswith(ending):
            return ending
    if Path(path).is_dir():
        inside = Path(path) / "tree.json"
        remedy = f"name {inside}" if inside.is_file() else "it has no tree.json"
        raise FileFormatError(f"{path} is a folder, as of a model, and no tree file; {remedy}")
    raise FileFormatError(f"{path} has no known ending; a tree file ends in {', '.join(ENDINGS)}")


def _write_gzip(pieces: Iterable[bytes], file: BinaryIO) -> None:
    """Compress without a file name or time in the header, so that the bytes are the same."""
    with gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0) as packed:
        packed.writelines(pieces)
        size = packed.tell()
    if size > largest_unpacked(file.tell()):
        raise FileFormatError(
            "cannot write the tree as .json.gz: its text packs to so little that a reader would "
            "take it for a compression bomb; write .json or .npz"
        )
