"""Use of torch: the device, and the settings and errors of its computations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from hstree._parallel import n_threads
from hstree._text import named_error, one_line
from hstree.errors import HstreeError, OptionError, TrainingError

#: Words in torch's error messages if memory is not sufficient, on GPUs and on a CPU.
OUT_OF_MEMORY = re.compile("out of memory|not enough memory|can't allocate memory")


def find_device(name: str) -> torch.device | None:
    """Return the device of a name, or None if this machine does not have it."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(name)
    is_available = {
        "cpu": True,
        "cuda": torch.cuda.device_count() > (device.index or 0),
        "mps": torch.backends.mps.is_available(),
    }
    return device if is_available[device.type] else None


def require_device(name: str) -> torch.device:
    """Return the device of a name; raise OptionError if this machine has none."""
    device = find_device(name)
    if device is None:
        raise OptionError.about("device", f"is {name!r}, which torch does not find here")
    return device


@contextmanager
def torch_session(device: torch.device) -> Iterator[None]:
    """Use hstree's number of threads and unchecked sparse tensors; then restore torch's settings.

    The states of torch's random generators are restored, too. Exceptions of a network, a head or a
    device become TrainingError, in one line.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads())
    unchecked: Any = torch.sparse.check_sparse_tensor_invariants(enable=False)  # type: ignore[no-untyped-call]
    generators = torch.random.fork_rng([device] if device.type == "cuda" else [])
    try:
        with unchecked, generators:
            yield
    except (HstreeError, OSError):
        raise
    except Exception as error:  # the user's code may raise any exception
        if (memory_error := find_memory_error(error)) is not None:
            raise memory_error from error
        raise TrainingError(f"the network or its head failed: {named_error(error)}") from error
    finally:
        torch.set_num_threads(before)


def find_memory_error(error: Exception) -> TrainingError | None:
    """Return a TrainingError if memory was not sufficient; None for other errors."""
    message = one_line(error)
    is_torch_error = isinstance(error, RuntimeError) and OUT_OF_MEMORY.search(message)
    if not (is_torch_error or isinstance(error, MemoryError | torch.cuda.OutOfMemoryError)):
        return None
    size = re.search(r"allocate (\d[\d.]* \w+)", message)
    needed = "" if size is None else f" for {size[1]} more"
    return TrainingError(f"the memory is not enough{needed}; lower --batch-size (batch_size)")
