"""Checkpoints: states of a training that is not finished, from which it continues.

A training that was stopped at any moment and continues from its last checkpoint ends with the same
bits as one that was never stopped. A checkpoint is one file, written beside and renamed: a line
with the SHA-256 of all that follows, a line of JSON, and the arrays as safetensors. Two are kept,
so that a damaged one costs minutes.
"""

import hashlib
import json
import math
import os
import time
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np
from safetensors.numpy import load as tensors_from_bytes
from safetensors.numpy import save as tensors_to_bytes

from hstree._arrays import Array
from hstree._files import acquire_lock, json_hash, open_regular, remove_unused, replacing
from hstree._parallel import n_threads
from hstree._text import one_line
from hstree._version import __version__
from hstree.data.corpus import Corpus
from hstree.errors import FileFormatError
from hstree.kernels import backend_name

#: Minutes between two checkpoints.
MINUTES = 5.0
#: Checkpoints that are kept.
KEPT = 2
#: Seconds after which the checkpoints of other work are removed, unless a process is at it.
ABANDONED = 30 * 24 * 3600
#: Names of files, in the order in which they were written.
NAMES = "[0-9]" * 9 + ".checkpoint"
R = TypeVar("R")


class State(NamedTuple):
    """State of an unfinished training: arrays by name, and JSON values."""

    arrays: dict[str, Array]
    record: dict[str, Any]


def checkpoint_key(
    layer: Mapping[str, Any],
    model: Mapping[str, Any],
    batch_size: int,
    texts: Sequence[Corpus | None],
    start: Mapping[str, Array] | None = None,
) -> str:
    """Return the hash of all that the bits of a training depend on but versions and threads.

    Parameters
    ----------
    layer, model : mapping
        Configs of the output layer and of the model.
    batch_size : int
        That of the trainer, which may differ from the model's option.
    texts : sequence of Corpus or None
        Those that the model is trained and validated on.
    start : mapping, optional
        Arrays that the training begins with, where it does not draw them.
    """
    content = {
        **layer,
        "batch": batch_size,
        "model": model,
        "texts": [None if text is None else [text.sha256, list(text.lines)] for text in texts],
    }
    if start is not None:
        content["warm start"] = {
            name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in start.items()
        }
    return json_hash(content)


class Checkpoints:
    """The checkpoints of one training, in a folder of their own.

    Parameters
    ----------
    parent : path
        Folder in which each has one of its own, made when its first checkpoint is written.
    key : str
        Hash of all that its bits depend on but versions and threads.

    Attributes
    ----------
    due : float
        When the next one is, by `time.monotonic`.
    """

    def __init__(self, parent: str | os.PathLike[str], key: str) -> None:
        self.folder = Path(parent, key[:16])
        self.key = key
        self._lock: BinaryIO | None = None  # held from the first checkpoint on
        # What the bits depend on besides the key
        self._made_by: dict[str, Any] = {
            "hstree": __version__,
            "numpy": np.__version__,
            "kernels": backend_name(),
            "threads": n_threads(),
        }
        self._seconds = 60 * MINUTES
        self.due = time.monotonic() + self._seconds

    def save(self, state: State) -> None:
        """Write a checkpoint; remove all but the newest two, and what others abandoned.

        Where the folder cannot be written, it warns and does not try again: training continues.
        """
        if self._seconds == math.inf:
            return

        # A line of JSON and the arrays, with the checksum of both
        record = {"key": self.key, "made_by": self._made_by, **state.record}
        arrays = {name: np.asarray(array, order="C") for name, array in state.arrays.items()}
        line = json.dumps(record).encode() + b"\n"
        tensors = tensors_to_bytes(arrays)
        digest = hashlib.sha256(line)
        digest.update(tensors)

        try:
            # Other processes do not remove a folder that is locked
            if self._lock is None:
                self._lock = acquire_lock(self.folder, shared=True)
                weakref.finalize(self, self._lock.close)

            # Write it, then remove the old ones, so that one is whole at any moment
            before = sorted(self.folder.glob(NAMES))
            number = int(before[-1].stem) + 1 if before else 0
            with replacing(self.folder / f"{number:09}.checkpoint") as file:
                file.writelines([digest.hexdigest().encode(), b"\n", line, tensors])
            for old in before[: 1 - KEPT]:
                old.unlink(missing_ok=True)

            # Remove checkpoints of other trainings that were abandoned
            for other in self.folder.parent.glob("[0-9a-f]" * 16):
                if time.time() - other.stat().st_mtime > ABANDONED:
                    remove_unused(other)
        except (FileFormatError, OSError) as error:
            warnings.warn(
                "the state of the training cannot be saved, so that it would start over after a "
                f"stop: {error}",
                stacklevel=2,
            )
            self._seconds = math.inf
        self.due = time.monotonic() + self._seconds

    def release(self) -> None:
        """Let others remove the checkpoints: the training has ended."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def remove(self) -> None:
        """Remove the checkpoints, unless another process is at the same training."""
        self.release()
        remove_unused(self.folder)

    def restore(self, apply: Callable[[State], R]) -> R | None:
        """Return what `apply` makes of the newest checkpoint; None without one.

        One that is damaged, or from which `apply` raises, is removed with a warning, and the one
        before is taken; so `apply` changes nothing before it raises. Warns, too, where it was
        written by other versions or another number of threads, by which the last digits of what
        follows may differ.
        """
        for file in sorted(self.folder.glob(NAMES), reverse=True):
            # Read and apply it; pass over one of another training whose folder has the same name
            try:
                with open_regular(file) as content:
                    checksum = content.readline().strip()
                    start = content.tell()
                    if checksum != hashlib.file_digest(content, "sha256").hexdigest().encode():
                        raise FileFormatError("its checksum is not that of its content")
                    content.seek(start)
                    record = json.loads(content.readline())
                    arrays = content.read()
                state = State(tensors_from_bytes(arrays), record)
                if state.record.get("key") != self.key:
                    continue
                before = dict(state.record["made_by"])
                result = apply(state)
            except Exception as error:  # damage, and other versions, raise errors of any kind
                with suppress(OSError):
                    file.unlink()
                warnings.warn(
                    f"the training cannot continue from {file}; it continues from the checkpoint "
                    f"before it or starts over: {one_line(error)}",
                    stacklevel=2,
                )
                continue

            # Say which versions and settings have changed since it was written
            now = self._made_by.items()
            changed = [f"{k} {before.get(k)} -> {v}" for k, v in now if before.get(k) != v]
            if changed:
                warnings.warn(
                    f"the training continues under other conditions: {', '.join(changed)}; "
                    "its last digits may differ",
                    stacklevel=2,
                )
            return result
        return None
