"""Run the campaigns and print what they count: ``python -m tests.campaigns --help``."""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

# One thread a process, before NumPy is imported: more would wait for each other.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")


def main() -> int:
    """Run what the command line asks for; return 1 if anything went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns")
    parser.add_argument("--full", action="store_true", help="1,000,000 files, and 200 kills")
    parser.add_argument("--only", choices=("mutations", "kills"), help="one of the two")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", type=int, default=0, help="another number of mutated files")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, help="the folder for files that went wrong")
    chosen = parser.parse_args()
    bad = 0
    if chosen.only != "kills":
        bad += _mutations(chosen)
    if chosen.only != "mutations":
        try:
            from tests.campaigns import kills
        except ImportError as error:
            print(f"kills: left out ({error})")
        else:
            found = kills.run(chosen.full, chosen.seed)
            print(found)
            bad += len(found.faults)
    return 1 if bad else 0


def _mutations(chosen: argparse.Namespace) -> int:
    from tests.campaigns import mutations

    keep = chosen.keep or Path(tempfile.gettempdir()) / f"hstree-campaign-{os.getpid()}"
    began = time.monotonic()
    happened = mutations.run(
        chosen.full, chosen.seed, files=chosen.files, processes=chosen.processes, keep=keep
    )
    print(mutations.table(happened))
    print(f"seed {chosen.seed}, {chosen.processes} processes, {time.monotonic() - began:.0f} s")
    bad = sum(counts[what] for counts in happened.values() for what in mutations.BAD)
    if bad:
        print(f"{bad} files went wrong; they are in {keep}")
    return bad


if __name__ == "__main__":
    sys.exit(main())
