"""Memory of this machine."""

import os
import sys
from contextlib import suppress
from pathlib import Path


def free_memory() -> int:
    """Return the bytes of memory that new arrays may take; a huge number where it is not known.

    That is what the system has left for programs, and at most what a container has.
    """
    free = [sys.maxsize]
    with suppress(OSError, ValueError, AttributeError):  # no such thing on Windows
        free.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError, IndexError):  # Linux, including caches that can be freed
        kib = Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()[0]
        free[1:] = [int(kib) << 10]
    with suppress(OSError, ValueError):  # "max" where there is no limit
        group = Path("/sys/fs/cgroup")
        limit, used = ((group / f"memory.{name}").read_text() for name in ("max", "current"))
        free.append(max(0, int(limit) - int(used)))
    return min(free)


def peak_memory() -> int:
    """Return the maximum memory of this process so far, in bytes; 0 if it is not known."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
