"""Continuation of the comparison that a folder holds, with its candidates and with new ones."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from hstree.errors import HstreeError, InputError
from hstree.experiments.candidate import Candidate
from hstree.experiments.differences import describe, differences
from hstree.experiments.results import Comparison
from hstree.experiments.setting import Setting
from hstree.experiments.store import Store, problem
from hstree.tree import load
from hstree.tree.files import ENDINGS


def with_kept_candidates(
    candidates: Sequence[Candidate],
    setting: Setting,
    store: Store,
    *,
    only: bool = False,
    force: bool = False,
) -> list[Candidate]:
    """Return the candidates that the folder holds and then the others, if they can share a table.

    With `only` no candidates are added.

    Raises InputError when the folder holds a comparison of something else, unless `force`.
    """
    if not store.has_comparison:
        return list(candidates)
    try:
        kept = store.load_comparison()
    except HstreeError as error:
        warnings.warn(f"{problem(error)}; its candidates are left out", stacklevel=3)
        return list(candidates)
    if not kept.candidates:
        return list(candidates)
    differing = differences(kept, store.home, setting.splits, setting.options, setting.stop)
    if differing:
        if force:
            return list(candidates)
        raise InputError(
            f"{store.home} holds a comparison that cannot share a table with this one: "
            f"{describe(differing)}, choose another folder, or force its replacement"
        )
    return list(candidates) if only else _merged(candidates, kept, setting, store)


def _merged(
    candidates: Sequence[Candidate], kept: Comparison, setting: Setting, store: Store
) -> list[Candidate]:
    """Return the candidates of a kept comparison in their order, and then the others."""
    named = {candidate.name: candidate for candidate in candidates}
    # the order of the same comparison is its own, also where another one finished first
    if named.keys() >= {result.name for result in kept.candidates} | set(kept.pending):
        return list(candidates)

    pending = [name for name in kept.pending if name not in named]
    merged: list[Candidate] = []
    for result in kept.candidates:
        if result.name in named:
            merged.append(named.pop(result.name))
            continue
        # a tree file that is gone is replaced by the copy in the folder
        output = shlex.split(result.name)[0 if result.models == 1 else 2]
        is_gone = output.endswith(ENDINGS) and not Path(output).exists()
        # a candidate is left out where what it names is gone, and its tree, too
        with suppress(HstreeError):
            tree = load(store.home / str(result.tree_file)) if is_gone else None
            merged.append(Candidate.parse(result.name, tree))

    # candidates that were finished before they were to train again, which was interrupted
    for name in pending:
        with suppress(HstreeError):
            candidate = Candidate.parse(name)
            if store.has_results(setting.jobs(candidate)):
                merged.append(candidate)
    return [*merged, *named.values()]
