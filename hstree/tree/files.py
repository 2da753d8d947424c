"""Tree files of format 1 (``docs/tree-format.md``), with one of three extensions.

``.json`` is for people and diffs (one label, count, node and name per line), ``.json.gz`` is
smaller, ``.npz`` is fast: a zip of uncompressed ``.npy`` members, with a fixed date and without
pickles. Messages about content continue the name of the file.
"""

import gzip
import json
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from reprlib import repr as brief
from typing import Any, BinaryIO

import numpy as np

from hstree import progress
from hstree._files import largest_unpacked, open_regular, parse_json, read_regular, replacing
from hstree._ragged import offsets
from hstree._text import one_line
from hstree._typing import Array, Int64
from hstree.errors import FileFormatError, explained
from hstree.tree.arrays import TreeArrays
from hstree.tree.content import Content, unpack
from hstree.tree.npy import read_array, write_array

#: Maximum nesting of lists and objects in a tree's meta, so that recursive functions on them
#: (Python's `repr` and `json` too) end.
DEEPEST = 100
#: Extensions of tree files.
ENDINGS = (".json", ".json.gz", ".npz")
_GZIP_LEVEL = 6


def save(tree: TreeArrays, path: str | os.PathLike[str]) -> None:
    """Write a tree as ``.json``, ``.json.gz`` or ``.npz``, by the extension of `path`.

    An existing file is replaced once the new one is complete. The same tree gives the same
    bytes.

    Raises
    ------
    FileFormatError
        When the extension is unknown, the file cannot be written, or JSON cannot hold the meta.
    """
    ending = _ending(path)
    with progress.task(f"writing {path}"), replacing(path) as file:
        if ending == ".npz":
            to_npz(tree, file)
        elif ending == ".json":
            file.writelines(to_json(tree))
        else:  # without a file name or time in the header, so that the bytes are the same
            with gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0) as packed:
                packed.writelines(to_json(tree))
                size = packed.tell()
            if size > largest_unpacked(file.tell()):
                raise FileFormatError(
                    "cannot write the tree as .json.gz: its text packs to so little that a reader "
                    "would take it for a compression bomb; write .json or .npz"
                )


def read_content(path: str | os.PathLike[str]) -> Content:
    """Read the content of a tree file, without checking the rules of trees.

    Raises FileFormatError when the file cannot be read or is not of this format.
    """
    ending = _ending(path)
    with progress.task(f"reading {path}"), explained(f"read {path}", FileFormatError):
        is_npz = ending == ".npz"
        data = b"" if is_npz else read_regular(path, FileFormatError, unpack=True)
        with open_regular(path) as file:
            try:
                return from_npz(file) if is_npz else from_json(data)
            except FileFormatError as error:
                raise FileFormatError(f"{path} {error}") from error


def _ending(path: str | os.PathLike[str]) -> str:
    for ending in ENDINGS:
        if Path(path).name.endswith(ending):
            return ending
    if Path(path).is_dir():
        inside = Path(path) / "tree.json"
        remedy = f"name {inside}" if inside.is_file() else "it has no tree.json"
        raise FileFormatError(f"{path} is a folder, as of a model, and no tree file; {remedy}")
    raise FileFormatError(f"{path} has no known ending; a tree file ends in {', '.join(ENDINGS)}")


#: Versions of the format that are read; the last one is written.
VERSIONS = (1,)

_KEYS = ("format", "version", "labels", "counts", "children", "names", "meta")
_REQUIRED = ("format", "version", "labels", "children")
_NODES_AT_ONCE = 1 << 17
#: Maximum number of opening brackets per byte, and the number that is always allowed. A node of
#: two children takes six bytes, ``[1,2],``; empty lists take three, and 30 times that in memory.
MOST_BRACKETS, FEW_BRACKETS = 1 / 5, 1000


def to_json(tree: TreeArrays) -> Iterator[bytes]:
    """Yield a tree as UTF-8 JSON, in pieces; the same tree gives the same bytes.

    Raises FileFormatError when JSON cannot hold `tree.meta`.
    """
    meta = dump_meta(tree.meta)
    yield f'{{"format": "hstree", "version": {VERSIONS[-1]}'.encode()
    for key in ("labels", "counts", "children", "names"):
        yield f',\n"{key}": '.encode()
        if key != "children":  # one value a line
            values = getattr(tree, key)
            values = values.tolist() if isinstance(values, np.ndarray) else values and list(values)
            text = json.dumps(values, ensure_ascii=False, separators=(",\n", ": "))
            yield (f"[\n{text[1:-1]}\n]" if values else text).encode()
            continue
        yield b"["
        for first in range(0, tree.n_nodes, _NODES_AT_ONCE):
            start = tree.child_start[first : first + _NODES_AT_ONCE + 1]
            child = tree.child[start[0] : start[-1]]
            is_last = np.zeros(len(child), np.intp)  # (e,) 1 for the last child of each node
            is_last[start[1:] - start[0] - 1] = 1
            pieces = [""] * (2 * len(child))  # numbers, and what stands behind each
            pieces[::2] = map(str, child.tolist())
            pieces[1::2] = np.array([", ", "],\n["], object)[is_last].tolist()
            pieces[-1] = "]"
            yield f"{',' if first else ''}\n[{''.join(pieces)}".encode()
        yield b"\n]"
    yield f',\n"meta": {meta}}}\n'.encode()


def from_json(data: bytes) -> Content:
    """Read the content of a tree from UTF-8 JSON.

    Raises FileFormatError when the bytes are not a JSON object of this format and version.
    """
    document = _parse_document(data)
    missing = [key for key in _REQUIRED if key not in document]
    unknown = [key for key in document if key not in _KEYS]
    if missing or unknown:
        fault = f'has no "{missing[0]}"' if missing else f"has the unknown key {brief(unknown[0])}"
        raise FileFormatError(f"{fault}; a tree has the keys {', '.join(_KEYS)}")

    for key in ("labels", "children", "counts", "names"):
        values = document.get(key)
        if type(values) is not list and (values is not None or key in _REQUIRED):
            raise FileFormatError(f'has {brief(values)} as "{key}"; that wants a list')
    children, counts = document["children"], document.get("counts")
    if not set(map(type, children)) <= {list}:
        node = next(i for i, items in enumerate(children) if type(items) is not list)
        raise FileFormatError(f"node {node} is {brief(children[node])}, not a list of children")
    start = offsets(np.fromiter(map(len, children), np.int64, len(children)))
    arrays: dict[str, Int64] = {}
    for key, numbers in (("children", list(chain.from_iterable(children))), ("counts", counts)):
        if numbers is None:
            continue
        with suppress(OverflowError):
            if set(map(type, numbers)) <= {int}:
                arrays[key] = np.array(numbers, np.int64)
                continue
        fits = (type(value) is int and -(1 << 63) <= value < 1 << 63 for value in numbers)
        at = next(i for i, fit in enumerate(fits) if not fit)
        fault = "more than 64 bits hold" if type(numbers[at]) is int else "not an integer"
        node = int(np.searchsorted(start, at, "right")) - 1
        holder = f"node {node} holds" if key == "children" else f"label {at} has the count"
        raise FileFormatError(f"{holder} {brief(numbers[at])}, {fault}")
    return Content(
        document["labels"],
        start,
        arrays["children"],
        arrays.get("counts"),
        document.get("names"),
        document["meta"],
    )


def _parse_document(data: bytes) -> dict[str, Any]:
    r"""Parse a tree's JSON object, with {} as "meta" if it has none.

    Refuses other formats, versions that are not read, and a "meta" that could not be written again:
    ``1e999``, which is infinite, or ``"\ud800"``, a lone surrogate.
    """
    if data.count(b"[") + data.count(b"{") > MOST_BRACKETS * len(data) + FEW_BRACKETS:
        raise FileFormatError("holds little but brackets, so not a tree; build it again")
    document = parse_json(data, "build it again")
    if document.get("format") != "hstree":
        name = brief(document.get("format"))
        raise FileFormatError(f'is not a tree file: its "format" is {name}, not "hstree"')
    version = document.get("version")
    if type(version) is not int or version not in VERSIONS:
        read = ", ".join(map(str, VERSIONS))
        raise FileFormatError(
            f"is of version {brief(version)}; this hstree reads version {read}: "
            "upgrade hstree or build the tree again"
        )
    meta = document.setdefault("meta", {})
    if type(meta) is not dict:
        raise FileFormatError(f'has {brief(meta)} as "meta"; that wants a JSON object')
    dump_meta(meta, 'has a "meta" that no file can hold')
    return document


def dump_meta(
    meta: Mapping[str, Any], refusal: str = "the tree's meta cannot be written as JSON"
) -> str:
    """Return a tree's meta as one line of JSON, or raise FileFormatError, begun by `refusal`."""
    try:
        level, depth = [meta], 0  # the lists and objects of each depth
        while level := [one for one in level if isinstance(one, Mapping | list | tuple)]:
            if (depth := depth + 1) > DEEPEST:
                raise ValueError(f"it is nested more than {DEEPEST} deep")
            inner = (one.values() if isinstance(one, Mapping) else one for one in level)
            level = list(chain.from_iterable(inner))
        text = json.dumps(meta, ensure_ascii=False, allow_nan=False)
        text.encode("utf-8")
    except (TypeError, ValueError) as error:
        raise FileFormatError(f"{refusal}: {error}") from error
    return text


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
    arrays |= tree.content_arrays()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy")  # dated 1980, so that bytes are the same
            member.create_system = 3
            member.external_attr = 0o644 << 16
            member.file_size = array.nbytes + 128  # by which it chooses 64 bits for sizes
            with archive.open(member, "w") as stream:
                write_array(stream, array.astype(array.dtype.newbyteorder("<"), copy=False))


def from_npz(file: BinaryIO) -> Content:
    """Read the content of a tree from an open ``.npz``.

    Raises FileFormatError when it is not an archive of this format and version.
    """
    arrays = _members(file)
    document = _parse_document(_member(arrays, "header", _BYTES).tobytes())
    child_start = _member(arrays, "child_start", _INTEGERS)
    names: list[str | None] | None = None
    if arrays.keys() & _NAMES:
        names = [None] * (len(child_start) - 1)
        strings = _strings(arrays, "names", "name_start")
        named = _member(arrays, "named", _INTEGERS)
        within = np.all((named >= 0) & (named < len(names)))
        if len(named) != len(strings) or not within or np.any(named[1:] <= named[:-1]):
            raise FileFormatError(
                f"has a broken member 'named': it must list {len(strings)} of {len(names)} nodes, "
                "rising"
            )
        for node, name in zip(named.tolist(), strings, strict=True):
            names[node] = name
    return Content(
        _strings(arrays, "labels", "label_start"),
        child_start,
        _member(arrays, "child", _INTEGERS),
        _member(arrays, "counts", _INTEGERS) if "counts" in arrays else None,
        names,
        document["meta"],
    )


def _members(file: BinaryIO) -> dict[str, Array]:
    """Return all arrays of an archive; members may not be compressed, which bounds the memory."""
    arrays: dict[str, Array] = {}
    try:
        size = os.fstat(file.fileno()).st_size
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                name = member.filename.removesuffix(".npy")
                if name not in _MEMBERS:
                    raise FileFormatError(f"has the unknown member {name!r}; {_EXPECTED}")
                if member.compress_type != zipfile.ZIP_STORED:
                    raise FileFormatError(f"has the member {name!r} compressed; {_EXPECTED}")
                if name in arrays:
                    raise FileFormatError(f"has the member {name!r} twice")
                if member.file_size > size:  # nothing larger is allocated
                    raise FileFormatError(f"has a broken member {name!r}: it is cut off")
                try:
                    with archive.open(member) as stream:
                        arrays[name] = read_array(stream, member.file_size)
                except FileFormatError as error:
                    raise FileFormatError(f"has a broken member {name!r}: {error}") from error
    except FileFormatError:
        raise
    except Exception as error:  # damaged bytes raise a dozen kinds in zipfile
        raise FileFormatError(f"is not a sound .npz: {one_line(error)}; build it again") from error
    return arrays


def _member(arrays: dict[str, Array], name: str, dtype: str) -> Any:
    """Take a vector of this type out of the members, in the machine's byte order."""
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
