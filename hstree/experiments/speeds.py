"""Kept speeds: rounds in which rows took turns, added to and never replaced.

Speeds of two rows are compared over the rounds that both took part in, on the same machine, with
the same threads and kernels: load on the machine affects the rows of a round alike.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hstree._compiled import kernels, n_threads
from hstree._files import read_json, write_json
from hstree._version import __version__
from hstree.errors import HstreeError
from hstree.experiments.results import Machine, decode

FORMAT, VERSION = "hstree speeds", 1
#: File in the folder of the runs.
SPEEDS = "speeds.json"

#: Tokens per second of each round, by row; and these by what was measured.
Rounds = dict[str, list[float]]
Speeds = dict[str, Rounds]


def machine() -> Machine:
    """Return the computer that this process runs on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return Machine(
        cores=len(affinity(0)) if affinity else os.cpu_count() or 1,
        system=platform.platform(),
        processor=platform.processor() or platform.machine(),
    )


@dataclass(frozen=True, kw_only=True)
class Session:
    """Rounds in which some rows took turns.

    Attributes
    ----------
    conditions : dict of str to Any
        What speeds depend on beside the rows: machine, threads, kernels, version.
    rows : dict of str to Speeds
        By the key of a row's run: tokens per second of each round, by what was measured.
    """

    conditions: dict[str, Any]
    rows: dict[str, dict[str, list[float]]]


class KeptSpeeds:
    """Sessions of a file; those of other conditions are kept and not used.

    A file that is missing or damaged counts as empty.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._conditions: dict[str, Any] = {
            **asdict(machine()),
            "threads": n_threads(),
            "kernels": kernels(),
            "hstree": __version__,
        }
        self._sessions = _read(file)

    def common(self, keys: Mapping[str, str]) -> Speeds:
        """Return the speeds of the rounds that all rows took part in.

        Parameters
        ----------
        keys : mapping of str to str
            Name of each row to the key of its run.

        Returns
        -------
        Speeds
            By what was measured, then by the rows that it was measured of.
        """
        speeds: Speeds = {}
        for session in self._sessions:
            if session.conditions != self._conditions or not session.rows.keys() >= {
                *keys.values()
            }:
                continue
            for name, key in keys.items():
                for measure, rounds in session.rows[key].items():
                    speeds.setdefault(measure, {}).setdefault(name, []).extend(rounds)
        return speeds

    def add(self, keys: Mapping[str, str], measured: Mapping[str, Rounds]) -> None:
        """Add the rounds of one session and write the file."""
        rows = {
            key: {measure: list(of[name]) for measure, of in measured.items() if name in of}
            for name, key in keys.items()
        }
        self._sessions.append(Session(conditions=self._conditions, rows=rows))
        sessions = [asdict(session) for session in self._sessions]
        write_json(self._file, {"format": FORMAT, "version": VERSION, "sessions": sessions})


def _read(file: Path) -> list[Session]:
    try:
        document = read_json(file, "")
        if (document.get("format"), document.get("version")) != (FORMAT, VERSION):
            return []
        return decode(document.get("sessions"), list[Session], "sessions")
    except HstreeError:
        return []
