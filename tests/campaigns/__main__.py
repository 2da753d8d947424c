"""Run the campaigns and print what they count: ``python -m tests.campaigns --help``."""

import argparse
import os
import sys
import tempfile
from pathlib import Path

# One thread a process, before NumPy is imported: more would wait for each other.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")


def main() -> int:
    """Run what the command line asks for; return 1 if anything went wrong."""
    from tests.campaigns import interrupts, kills, mutations

    parser = argparse.ArgumentParser(prog="python -m tests.campaigns")
    parser.add_argument("--full", action="store_true", help="1,000,000 files, and 200 kills")
    parser.add_argument("--only", choices=("mutations", "kills", "interrupts"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", type=int, default=0, help="another number of mutated files")
    parser.add_argument("--kills", type=int, default=0, help="another number of kills")
    known = {*kills.COMMANDS, *interrupts.COMMANDS}
    parser.add_argument("--commands", nargs="+", choices=known, metavar="NAME", default=())
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, help="the folder for files that went wrong")
    chosen = parser.parse_args()
    bad = 0
    if chosen.only == "interrupts":
        return bool(interrupts.run(chosen.commands))
    if chosen.only != "kills":
        keep = chosen.keep or Path(tempfile.gettempdir()) / f"hstree-campaign-{os.getpid()}"
        happened = mutations.run(
            chosen.full, chosen.seed, files=chosen.files, processes=chosen.processes, keep=keep
        )
        print(mutations.table(happened))
        bad = sum(counts[what] for counts in happened.values() for what in mutations.BAD)
        print(f"seed {chosen.seed}: {bad} files went wrong{f', see {keep}' if bad else ''}")
    if chosen.only != "mutations":
        summary = kills.run(chosen.full, chosen.seed, kills=chosen.kills, only=chosen.commands)
        print(summary)
        bad += len(summary.faults)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
