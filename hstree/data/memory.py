"""Memory of this machine."""

import os
import sys
from contextlib import suppress
from pathlib import Path


def free_memory() -> int:
    """Return the bytes of memory that are available for new arrays; a huge number if unknown.

    This is the memory that is available on the system, limited by that of the container.
    """
    free = [sys.maxsize]
    with suppress(OSError, ValueError, AttributeError):  # Windows
        free.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError, IndexError):  # Linux, including memory in caches
        kib = Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()[0]
        free[1:] = [int(kib) << 10]
    with suppress(OSError, ValueError):  # "max" where there is no limit
        group = Path("/sys/fs/cgroup")
        limit, used = ((group / f"memory.{name}").read_text() for name in ("max", "current"))
        free.append(max(0, int(limit) - int(used)))
    return min(free)


def peak_memory() -> int:
    """Return the peak memory of this process in bytes; 0 if it is unknown."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
