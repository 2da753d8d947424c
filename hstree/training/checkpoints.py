"""Checkpoints: saved states from which an unfinished training run can continue.

A run that was stopped at any moment and continues from its last checkpoint gives the same bits as
an uninterrupted run. A checkpoint is one file, written under a temporary name and then renamed. It
has a line with the SHA-256 hash of the rest, a line of JSON, and the arrays as safetensors. Two
checkpoints are kept, so that a damaged file costs only minutes.
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
#: Number of checkpoints that are kept.
KEPT = 2
#: Seconds after which checkpoints of other runs are removed, unless a process uses them.
ABANDONED = 30 * 24 * 3600
#: Pattern for file names, which sort in the order of writing.
NAMES = "[0-9]" * 9 + ".checkpoint"
R = TypeVar("R")


class State(NamedTuple):
    """State of an unfinished training run: arrays by name, and JSON values."""

    arrays: dict[str, Array]
    record: dict[str, Any]


def checkpoint_key(
    layer: Mapping[str, Any],
    model: Mapping[str, Any],
    batch_size: int,
    texts: Sequence[Corpus | None],
    start: Mapping[str, Array] | None = None,
) -> str:
    """Return a hash of everything that determines a training run, except versions and threads.

    Parameters
    ----------
    layer, model : mapping
        Configs of the output layer and of the model.
    batch_size : int
        Batch size of the trainer, which may differ from the option of the model.
    texts : sequence of Corpus or None
        Texts for training and validation.
    start : mapping, optional
        Initial arrays, if they are not drawn at random.
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
    """Checkpoints of one training run, in their own folder.

    Parameters
    ----------
    parent : path
        Parent folder. The first checkpoint of a run creates the folder of the run.
    key : str
        Hash of the run, from `checkpoint_key`.

    Attributes
    ----------
    due : float
        Time of the next checkpoint, by `time.monotonic`.
    """

    def __init__(self, parent: str | os.PathLike[str], key: str) -> None:
        self.folder = Path(parent, key[:16])
        self.key = key
        self._lock: BinaryIO | None = None  # held from the first checkpoint on
        # Versions and settings that affect the bits, in addition to the key
        self._made_by: dict[str, Any] = {
            "hstree": __version__,
            "numpy": np.__version__,
            "kernels": backend_name(),
            "threads": n_threads(),
        }
        self._seconds = 60 * MINUTES
        self.due = time.monotonic() + self._seconds

    def save(self, state: State) -> None:
        """Write a checkpoint; remove all except the newest two, and abandoned ones of other runs.

        If the folder cannot be written, there is a warning and no further attempt; training
        continues.
        """
        if self._seconds == math.inf:
            return

        # A line of JSON and the arrays, with a checksum of both
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

            # Write the checkpoint, then remove old ones, so that one is complete at any moment
            before = sorted(self.folder.glob(NAMES))
            number = int(before[-1].stem) + 1 if before else 0
            with replacing(self.folder / f"{number:09}.checkpoint") as file:
                file.writelines([digest.hexdigest().encode(), b"\n", line, tensors])
            for old in before[: 1 - KEPT]:
                old.unlink(missing_ok=True)

            # Remove abandoned checkpoints of other runs
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
        """Allow other processes to remove the checkpoints, since training has ended."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def remove(self) -> None:
        """Remove the checkpoints, unless another process uses them."""
        self.release()
        remove_unused(self.folder)

    def restore(self, apply: Callable[[State], R]) -> R | None:
        """Return the result of `apply` for the newest checkpoint; None if there is none.

        A checkpoint that is damaged, or for which `apply` raises, is removed with a warning, and
        the previous checkpoint is used. `apply` must therefore change nothing before it raises. A
        checkpoint by other versions or with another number of threads gives a warning, too, since
        the last digits of results may differ.
        """
        for file in sorted(self.folder.glob(NAMES), reverse=True):
            # Read and apply the checkpoint; skip one of another run with the same folder name
            try:
                with open_regular(file) as content:
                    checksum = content.readline().strip()
                    start = content.tell()
                    if checksum != hashlib.file_digest(content, "sha256").hexdigest().encode():
                        raise FileFormatError("its checksum does not match its content")
                    content.seek(start)
                    record = json.loads(content.readline())
                    arrays = content.read()
                state = State(tensors_from_bytes(arrays), record)
                if state.record.get("key") != self.key:
                    continue
                before = dict(state.record["made_by"])
                result = apply(state)
            except Exception as error:  # damage and other versions raise errors of any kind
                with suppress(OSError):
                    file.unlink()
                warnings.warn(
                    f"the training cannot continue from {file}; it continues from the checkpoint "
                    f"before it or starts over: {one_line(error)}",
                    stacklevel=2,
                )
                continue

            # Warn of versions and settings that have changed since the checkpoint was written
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
