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
    known = {*kills.COMMANDS, *interrupts.COMMANDS}
    parser.add_argument("--commands", nargs="+", choices=known, metavar="NAME")
    chosen = parser.parse_args()
    if chosen.only == "interrupts":
        return bool(interrupts.run(chosen.commands or interrupts.COMMANDS))
    bad = 0
    if chosen.only != "kills":
        keep = Path(tempfile.gettempdir()) / f"hstree-campaign-{os.getpid()}"
        n_files = 1_000_000 if chosen.full else 50_000
        happened = mutations.run(n_files, chosen.seed, keep, os.cpu_count() or 1)
        print(mutations.table(happened))
        bad = sum(counts[what] for counts in happened.values() for what in mutations.BAD)
        print(f"seed {chosen.seed}: {bad} files went wrong{f', see {keep}' if bad else ''}")
    if chosen.only != "mutations":
        usual = kills.COMMANDS if chosen.full else kills.OF_SEVERAL_FILES
        n_kills = 200 if chosen.full else 10
        faults = kills.run(n_kills, chosen.seed, list(chosen.commands or usual))
        print(f"{n_kills} kills, {len(faults)} faults", *faults, sep="\n")
        bad += len(faults)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
