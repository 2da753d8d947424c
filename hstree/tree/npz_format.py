"""Trees as ``.npz`` archives of format 1, for speed.

Converts between bytes and `Content`. The archive is a zip of uncompressed ``.npy`` members with a
fixed date and without pickles; ``docs/tree-format.md`` lists them.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from hstree._files import read_array
from hstree._text import one_line
from hstree._typing import Array
from hstree.errors import FileFormatError
from hstree.tree.arrays import TreeArrays
from hstree.tree.content import Content, content_arrays, unpack
from hstree.tree.json_format import VERSIONS, check_version, dump_meta, meta_of, parse_document

_BYTES, _INTEGERS = "|u1", "<i8"
_NAMES = {"named", "names", "name_start"}
_MEMBERS = {"header", "labels", "label_start", "counts", "child_start", "child", *_NAMES}
_EXPECTED = "docs/tree-format.md lists the members and their types"


def to_npz(tree: TreeArrays, file: BinaryIO) -> None:
    """Write a tree into an open file; the same tree gives the same bytes.

    Raises FileFormatError when JSON cannot hold `tree.meta`.
    """
    header = f'{{"format": "hstree", "version": {VERSIONS[-1]}, "meta": {dump_meta(tree.meta)}}}'
    arrays: dict[str, Array] = {"header": np.frombuffer(header.encode(), np.uint8)}
    arrays |= content_arrays(tree.labels, tree.counts, tree.child_start, tree.child, tree.names)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy")  # dated 1980, so that bytes are the same
            member.create_system = 3
            member.external_attr = 0o644 << 16
            buffer = io.BytesIO()
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            np.lib.format.write_array(buffer, little, version=(1, 0), allow_pickle=False)
            archive.writestr(member, buffer.getbuffer())


def from_npz(data: bytes) -> Content:
    """Read the content of a tree from the bytes of an ``.npz``.

    Raises FileFormatError when they are not an archive of this format and version. The message
    continues the name of the file.
    """
    arrays = _members(data)
    document = parse_document(_member(arrays, "header", _BYTES).tobytes())
    check_version(document)
    child_start = _member(arrays, "child_start", _INTEGERS)
    return Content(
        _strings(arrays, "labels", "label_start"),
        child_start,
        _member(arrays, "child", _INTEGERS),
        _member(arrays, "counts", _INTEGERS) if "counts" in arrays else None,
        _names(arrays, len(child_start) - 1) if arrays.keys() & _NAMES else None,
        meta_of(document),
    )


def _members(data: bytes) -> dict[str, Array]:
    """Return all arrays of the archive by name.

    Each must be a known member, occur once and not be compressed, which bounds the memory.
    """
    arrays: dict[str, Array] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.infolist():
                name = member.filename.removesuffix(".npy")
                if name not in _MEMBERS:
                    raise FileFormatError(f"has the unknown member {name!r}; {_EXPECTED}")
                if member.compress_type != zipfile.ZIP_STORED:
                    raise FileFormatError(f"has the member {name!r} compressed; {_EXPECTED}")
                if name in arrays:
                    raise FileFormatError(f"has the member {name!r} twice")
                content = archive.read(member)
                try:
                    arrays[name] = read_array(io.BytesIO(content), len(content))
                except FileFormatError as error:
                    raise FileFormatError(f"has a broken member {name!r}: {error}") from error
    except FileFormatError:
        raise
    except Exception as error:  # damaged bytes raise a dozen kinds in zipfile
        raise FileFormatError(f"is not a sound .npz: {one_line(error)}; build it again") from error
    return arrays


def _member(arrays: Mapping[str, Array], name: str, dtype: str) -> Any:
    """Return a vector of this type, in the machine's byte order."""
    if name not in arrays:
        raise FileFormatError(f"has no member {name!r}; {_EXPECTED}")
    array = arrays[name]
    if array.ndim != 1 or array.dtype.str != dtype:
        raise FileFormatError(
            f"has the member {name!r} as {array.dtype.str} of shape {array.shape}; "
            f"it must be a vector of {dtype}"
        )
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _strings(arrays: Mapping[str, Array], buffer: str, start: str) -> list[str]:
    try:
        return unpack(_member(arrays, buffer, _BYTES), _member(arrays, start, _INTEGERS))
    except ValueError as error:  # UnicodeDecodeError too
        raise FileFormatError(f"has a broken member {buffer!r} or {start!r}: {error}") from error


def _names(arrays: Mapping[str, Array], n_nodes: int) -> list[str | None]:
    """Return the name of each node, None for nodes without one."""
    strings = _strings(arrays, "names", "name_start")
    named = _member(arrays, "named", _INTEGERS)
    ascends = np.all(named[1:] > named[:-1])
    if len(named) != len(strings) or not ascends or np.any((named < 0) | (named >= n_nodes)):
        raise FileFormatError(
            f"has a broken member 'named': it must list {len(strings)} of {n_nodes} nodes, rising"
        )
    names: list[str | None] = [None] * n_nodes
    for node, name in zip(named.tolist(), strings, strict=True):
        names[node] = name
    return names
