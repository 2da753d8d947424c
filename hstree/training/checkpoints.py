"""Checkpoints: states of a training that is not finished, from which it goes on.

A training that was stopped at any moment and goes on from its last checkpoint ends with the same
bits as one that was never stopped. A checkpoint is one file, written beside and renamed: a line
with the SHA-256 of all that follows, a line of JSON, and the arrays as safetensors. Two are kept,
so that a damaged one costs minutes.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from safetensors.numpy import load as tensors_from_bytes
from safetensors.numpy import save as tensors_to_bytes

from hstree._compiled import kernels, n_threads
from hstree._files import make_folder, open_regular, replacing
from hstree._text import one_line
from hstree._typing import Array
from hstree._version import __version__
from hstree.errors import FileFormatError

#: Minutes between two checkpoints.
MINUTES = 5.0
#: Checkpoints that are kept.
KEPT = 2
#: Seconds after which the checkpoints of other work are removed.
ABANDONED = 30 * 24 * 3600
R = TypeVar("R")
_NAME = re.compile(r"(\d{9})\.checkpoint")
_FOLDER = re.compile(r"[0-9a-f]{16}")


class State(NamedTuple):
    """State of an unfinished training: arrays by name, and JSON values."""

    arrays: dict[str, Array]
    record: dict[str, Any]


class Checkpoints:
    """The checkpoints of one training, in a folder of their own.

    Parameters
    ----------
    parent : path
        Folder in which each has one of its own, made when its first checkpoint is written.
    key : str
        Hash of all that its bits depend on but versions and threads.
    minutes : float, optional
        Time between two checkpoints, by default `MINUTES`; 0 writes one after every step.
    """

    def __init__(
        self,
        parent: str | os.PathLike[str],
        key: str,
        minutes: float | None = None,
    ) -> None:
        self.folder, self.key = Path(parent, key[:16]), key
        self._seconds = 60 * (MINUTES if minutes is None else minutes)
        self._saved = time.monotonic()

    def is_due(self) -> bool:
        """Return whether the last checkpoint, or the beginning, is long enough ago."""
        return time.monotonic() - self._saved >= self._seconds

    def save(self, state: State) -> None:
        """Write a checkpoint; remove all but the newest two, and what others abandoned.

        Warns where the folder cannot be written, and tries no more: the work is worth more.
        """
        try:
            self._write(state)
        except FileFormatError as error:
            warnings.warn(
                "the state of the training cannot be saved, so that it would start anew after a "
                f"stop: {error}",
                stacklevel=2,
            )
            self._seconds = math.inf
        self._saved = time.monotonic()

    def _write(self, state: State) -> None:
        make_folder(self.folder)
        files = self._files()
        number = int(files[0].stem) + 1 if files else 0
        record = {"key": self.key, "made_by": made_by(), **state.record}
        arrays = {name: np.asarray(array, order="C") for name, array in state.arrays.items()}
        line, tensors = json.dumps(record).encode() + b"\n", tensors_to_bytes(arrays)
        with replacing(self.folder / f"{number:09}.checkpoint") as file:
            file.writelines([_checksum(line, tensors), line, tensors])
        for old in self._files()[KEPT:]:
            old.unlink(missing_ok=True)
        for other in self.folder.parent.iterdir():
            if _FOLDER.fullmatch(other.name) and time.time() - other.stat().st_mtime > ABANDONED:
                shutil.rmtree(other, ignore_errors=True)

    def restore(self, apply: Callable[[State], R]) -> R | None:
        """Return what `apply` makes of the newest checkpoint; None without one.

        One that is damaged, or from which `apply` raises, is removed with a warning, and the one
        before is taken; so `apply` changes nothing before it raises. Warns, too, where it was
        written by other versions or another number of threads, by which the last digits of what
        follows may differ.
        """
        for file in self._files():
            try:
                state = _read(file)
                if state.record.get("key") != self.key:
                    continue
                before = dict(state.record["made_by"])
                result = apply(state)
            except Exception as error:  # damage, and other versions, raise errors of any kind
                with suppress(OSError):
                    file.unlink()
                warnings.warn(
                    f"the training cannot go on from {file}, and goes on from the state before "
                    f"or starts anew: {one_line(error)}",
                    stacklevel=2,
                )
                continue
            now = made_by()
            changed = [f"{k} {before.get(k)} -> {v}" for k, v in now.items() if before.get(k) != v]
            if changed:
                warnings.warn(
                    f"the training goes on under other conditions: {', '.join(changed)}; "
                    "its last digits may differ",
                    stacklevel=2,
                )
            return result
        return None

    def remove(self) -> None:
        """Remove the folder, and the parent if nothing else is in it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):
            self.folder.parent.rmdir()

    def _files(self) -> list[Path]:
        """Return the files of checkpoints, the newest first."""
        if not self.folder.is_dir():
            return []
        files = (file for file in self.folder.iterdir() if _NAME.fullmatch(file.name))
        return sorted(files, reverse=True)


def _checksum(*parts: bytes) -> bytes:
    """Return the first line of a checkpoint of these parts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest().encode() + b"\n"


def _read(file: Path) -> State:
    """Return the state that a file holds; raises an error of any kind where it is damaged."""
    with open_regular(file) as content:
        checksum, line, tensors = content.readline(), content.readline(), content.read()
    if checksum != _checksum(line, tensors):
        raise FileFormatError("its checksum is not that of its content")
    return State(tensors_from_bytes(tensors), json.loads(line))


def made_by() -> dict[str, Any]:
    """Return what the bits of a training depend on beside its key: versions and threads."""
    return {
        "hstree": __version__,
        "numpy": np.__version__,
        "kernels": kernels(),
        "threads": n_threads(),
    }
