"""Tree files of format 1 (``docs/tree-format.md``), with one of three extensions.

``.json`` is readable and suits diffs (one label, count, node or name per line), ``.json.gz`` is
smaller, and ``.npz`` is fast: a zip file of uncompressed ``.npy`` members, with a fixed date and
without pickles. Error messages about the content follow the name of the file.
"""

import gzip
import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypeVar

import msgspec
import numpy as np

from hstree import progress
from hstree._arrays import Array, offsets
from hstree._files import (
    largest_unpacked,
    open_regular,
    refuse_containers,
    refuse_pickle,
    replacing,
    unpacking_reader,
)
from hstree._text import brief, one_line
from hstree.errors import FileFormatError, explained
from hstree.tree.arrays import TreeArrays
from hstree.tree.content import Content, unpack
from hstree.tree.npy import write_array

H = TypeVar("H", bound="_Head")

#: Extensions of tree files.
ENDINGS = (".json", ".json.gz", ".npz")
_GZIP_LEVEL = 6


def save(tree: TreeArrays, path: str | os.PathLike[str]) -> None:
    """Write a tree as ``.json``, ``.json.gz`` or ``.npz``, by the extension of `path`.

    An existing file is replaced when the new file is complete. Equal trees give equal bytes.

    Raises
    ------
    FileFormatError
        When the extension is unknown, the file cannot be written, or JSON cannot hold the meta.
    """
    name = Path(path).name
    if not name.endswith(ENDINGS):
        raise _no_tree_file(path)
    with progress.task(f"writing {path}"), replacing(path) as file:
        if name.endswith(".npz"):
            to_npz(tree, file)
        elif name.endswith(".json"):
            file.writelines(to_json(tree))
        else:  # without a file name or time in the header, so that the bytes are reproducible
            with gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0) as packed:
                packed.writelines(to_json(tree))
                size = packed.tell()
            if size > largest_unpacked(file.tell()):
                raise FileFormatError(
                    "cannot write the tree as .json.gz: its compressed size is so small that a "
                    "reader would take it for a compression bomb; write .json or .npz"
                )


def read_content(path: str | os.PathLike[str]) -> Content:
    """Read the content of a tree file, without checking the rules of trees.

    Raises FileFormatError when the file cannot be read or does not have this format, and InputError
    when it is a pickle, or a zip file of another ending.
    """
    name = Path(path).name
    if not name.endswith(ENDINGS):
        refuse_containers(path)
        raise _no_tree_file(path)
    with (
        progress.task(f"reading {path}"),
        explained(f"read {path}", FileFormatError),
        open_regular(path) as file,
    ):
        try:
            if name.endswith(".npz"):
                return from_npz(file)
            return from_json(unpacking_reader(file, Path(name).suffix)(-1))
        except FileFormatError as error:
            refuse_pickle(path)
            raise FileFormatError(f"{path} {error}") from error


def _no_tree_file(path: str | os.PathLike[str]) -> FileFormatError:
    """Return the error for a path that cannot be a tree file."""
    if Path(path).is_dir():
        inside = Path(path) / "tree.json"
        remedy = f"name {inside}" if inside.is_file() else "it has no tree.json"
        return FileFormatError(f"{path} is a folder, as of a model, and no tree file; {remedy}")
    return FileFormatError(f"{path} has no known ending; a tree file ends in {', '.join(ENDINGS)}")


#: Versions of the format that can be read; the last version is written.
VERSIONS = (1,)

_NODES_AT_ONCE = 1 << 17

_Number = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class _Head(msgspec.Struct):
    """Keys that both a JSON tree and the header of an ``.npz`` file have."""

    format: Any = None
    version: Any = None
    meta: dict[str, Any] = {}


class _Document(_Head, forbid_unknown_fields=True, kw_only=True):
    """JSON tree; the rules for trees are checked later, including the types of labels and names."""

    labels: list[Any]
    children: list[list[_Number]]
    counts: list[_Number] | None = None
    names: list[Any] | None = None


def to_json(tree: TreeArrays) -> Iterator[bytes]:
    """Yield a tree as UTF-8 JSON, in pieces; equal trees give equal bytes.

    Raises FileFormatError when JSON cannot hold `tree.meta`.
    """
    meta = dump_meta(tree.meta)
    yield f'{{"format": "hstree", "version": {VERSIONS[-1]}'.encode()
    for key in ("labels", "counts", "children", "names"):
        yield f',\n"{key}": '.encode()
        if key != "children":  # one value per line
            values = getattr(tree, key)
            values = values.tolist() if isinstance(values, np.ndarray) else values and list(values)
            text = json.dumps(values, ensure_ascii=False, separators=(",\n", ": "))
            yield (f"[\n{text[1:-1]}\n]" if values else text).encode()
            continue
        # One node per line
        yield b"["
        for first in range(0, tree.n_nodes, _NODES_AT_ONCE):
            start = tree.child_start[first : first + _NODES_AT_ONCE + 1]
            child = tree.child[start[0] : start[-1]].tolist()
            nodes = [child[a:b] for a, b in pairwise((start - start[0]).tolist())]
            text = json.dumps(nodes)[1:-1].replace("], [", "],\n[")
            yield f"{',' if first else ''}\n{text}".encode()
        yield b"\n]"
    yield f',\n"meta": {meta}}}\n'.encode()


def from_json(data: bytes) -> Content:
    """Read the content of a tree from UTF-8 JSON.

    Raises FileFormatError when the bytes are not a JSON object of this format and version.
    """
    tree = _decoded(data, _Document)
    return Content(
        tree.labels,
        offsets(np.fromiter(map(len, tree.children), np.int64, len(tree.children))),
        np.array(list(chain.from_iterable(tree.children)), np.int64),
        None if tree.counts is None else np.array(tree.counts, np.int64),
        tree.names,
        tree.meta,
    )


def _decoded(data: bytes, kind: type[H]) -> H:
    """Decode JSON; raise FileFormatError for another format or an unknown version.

    Format and version are checked first, since other versions may have other keys.
    """
    try:
        # msgspec ignores keys that the type does not have
        head = msgspec.json.decode(data, type=_Head)
        if head.format != "hstree":
            name = brief(head.format)
            raise FileFormatError(f'is not a tree file: its "format" is {name}, not "hstree"')
        if type(head.version) is not int or head.version not in VERSIONS:
            read = ", ".join(map(str, VERSIONS))
            raise FileFormatError(
                f"is of version {brief(head.version)}; this hstree reads version {read}: "
                "upgrade hstree or build the tree again"
            )
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else one_line(error)
        raise FileFormatError(f"holds no tree: {reason}; build it again") from error


def dump_meta(meta: Mapping[str, Any]) -> str:
    """Return a tree's meta as one line of JSON. Raises FileFormatError if it is not JSON."""
    try:
        text = json.dumps(meta, ensure_ascii=False, allow_nan=False)
        text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise FileFormatError(f"the tree's meta cannot be written as JSON: {error}") from error
    return text


#: NumPy type strings of the members.
_BYTES = "|u1"
_INTEGERS = "<i8"
_NAMES = {"named", "names", "name_start"}
_MEMBERS = {"header", "labels", "label_start", "counts", "child_start", "child", *_NAMES}
_EXPECTED = "docs/tree-format.md lists the members and their types"


def to_npz(tree: TreeArrays, file: BinaryIO) -> None:
    """Write a tree to an open file as ``.npz``; equal trees give equal bytes.

    Raises FileFormatError when JSON cannot hold `tree.meta`.
    """
    header = f'{{"format": "hstree", "version": {VERSIONS[-1]}, "meta": {dump_meta(tree.meta)}}}'
    arrays: dict[str, Array] = {"header": np.frombuffer(header.encode(), np.uint8)}
    arrays |= tree.content_arrays()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy")  # dated 1980, so that bytes are reproducible
            member.create_system = 3
            member.external_attr = 0o644 << 16
            member.file_size = array.nbytes + 128  # zipfile uses 64-bit sizes for large members
            with archive.open(member, "w") as stream:
                write_array(stream, array.astype(array.dtype.newbyteorder("<"), copy=False))


def from_npz(file: BinaryIO) -> Content:
    """Read the content of a tree from an open ``.npz`` file.

    Raises FileFormatError when it is not an archive in this format and version.
    """
    arrays = _members(file)
    head = _decoded(_member(arrays, "header", _BYTES).tobytes(), _Head)
    child_start = _member(arrays, "child_start", _INTEGERS)
    # Names of the nodes that have one
    names: list[str | None] | None = None
    if arrays.keys() & _NAMES:
        names = [None] * (len(child_start) - 1)
        strings = _strings(arrays, "names", "name_start")
        named = _member(arrays, "named", _INTEGERS)
        within = np.all((named >= 0) & (named < len(names)))
        if len(named) != len(strings) or not within or np.any(named[1:] <= named[:-1]):
            raise FileFormatError(
                f"has a broken member 'named': it must list {len(strings)} of {len(names)} nodes "
                "in ascending order"
            )
        for node, name in zip(named.tolist(), strings, strict=True):
            names[node] = name
    return Content(
        _strings(arrays, "labels", "label_start"),
        child_start,
        _member(arrays, "child", _INTEGERS),
        _member(arrays, "counts", _INTEGERS) if "counts" in arrays else None,
        names,
        head.meta,
    )


def _members(file: BinaryIO) -> dict[str, Array]:
    """Return all arrays of an archive; refuse compressed members, which bounds the memory."""
    arrays: dict[str, Array] = {}
    size = os.fstat(file.fileno()).st_size
    try:
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                name = member.filename.removesuffix(".npy")
                if name not in _MEMBERS:
                    raise FileFormatError(f"has the unknown member {name!r}; {_EXPECTED}")
                if member.compress_type != zipfile.ZIP_STORED:
                    raise FileFormatError(f"has the member {name!r} compressed; {_EXPECTED}")
                if member.compress_size > size:
                    raise FileFormatError(f"has a broken member {name!r}: it is truncated")
                # `frombuffer` allocates no memory; `reshape` refuses a shape of another size
                data = archive.read(member)
                stream = io.BytesIO(data)
                np.lib.format.read_magic(stream)
                shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
                arrays[name] = np.frombuffer(data, dtype, offset=stream.tell()).reshape(shape)
    except FileFormatError:
        raise
    except Exception as error:  # damaged bytes raise many kinds of errors in zipfile and NumPy
        raise FileFormatError(f"is not a sound .npz: {one_line(error)}; build it again") from error
    return arrays


def _member(arrays: dict[str, Array], name: str, dtype: str) -> Any:
    """Remove a vector of this type from the members; return it in native byte order."""
    if name not in arrays:
        raise FileFormatError(f"has no member {name!r}; {_EXPECTED}")
    array = arrays.pop(name)
    if array.ndim != 1 or array.dtype.str != dtype:
        raise FileFormatError(
            f"has the member {name!r} as {array.dtype.str} of shape {array.shape}; "
            f"it must be a vector of {dtype}"
        )
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _strings(arrays: dict[str, Array], buffer: str, start: str) -> Sequence[str]:
    try:
        return unpack(_member(arrays, buffer, _BYTES), _member(arrays, start, _INTEGERS))
    except ValueError as error:  # UnicodeDecodeError too
        raise FileFormatError(f"has a broken member {buffer!r} or {start!r}: {error}") from error
