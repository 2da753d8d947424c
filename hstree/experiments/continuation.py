"""Continuation of a comparison in a folder, with its candidates and with new ones.

A comparison continues only with the same texts, words, model and stopping rule.
"""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from hstree.data.splits import SPLITS
from hstree.errors import HstreeError, InputError
from hstree.experiments import results
from hstree.experiments.candidate import Candidate
from hstree.experiments.results import Comparison
from hstree.experiments.setting import Setting
from hstree.experiments.store import RESULT, Store, problem
from hstree.models import kind_of
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
    """Return the candidates in the folder, followed by the new candidates.

    With `only`, the candidates in the folder are not added. Raises InputError if the folder
    contains a comparison with other settings, unless `force`.
    """
    if not (store.home / results.JSON).exists():
        return list(candidates)
    try:
        kept = results.load(store.home)
    except HstreeError as error:
        warnings.warn(f"{problem(error)}; its candidates are ignored", stacklevel=3)
        return list(candidates)
    if not kept.candidates:
        return list(candidates)
    if differing := _differences(kept, setting):
        if force:
            return list(candidates)
        raise InputError(
            f"{store.home} contains a comparison with other settings: {'; '.join(differing)}; "
            "choose another folder, or force its replacement"
        )

    named = {candidate.name: candidate for candidate in candidates}
    # If no candidate is missing, keep the given order, and not the order in which they finished
    if only or named.keys() >= {result.name for result in kept.candidates} | set(kept.pending):
        return list(candidates)

    pending = [name for name in kept.pending if name not in named]
    merged: list[Candidate] = []
    for result in kept.candidates:
        if result.name in named:
            merged.append(named.pop(result.name))
            continue
        # The copy in the folder replaces a tree file that was deleted
        output = shlex.split(result.name)[0 if result.models == 1 else 2]
        is_gone = output.endswith(ENDINGS) and not Path(output).exists()
        # Skip a candidate if both its file and the copy are missing
        with suppress(HstreeError):
            tree = load(store.home / str(result.tree_file)) if is_gone else None
            merged.append(Candidate.parse(result.name, tree))

    # Candidates that were finished before an interrupted comparison trained them again
    for name in pending:
        with suppress(HstreeError):
            candidate = Candidate.parse(name)
            folders = [store.folder(job) for job in setting.jobs(candidate)]
            if all((folder / RESULT).exists() for folder in folders):
                merged.append(candidate)
    return [*merged, *named.values()]


def _differences(comparison: Comparison, setting: Setting) -> list[str]:
    """Describe the differences between a comparison in a folder and a setting."""
    # Names of differences, with the values in the folder and here
    differing: dict[str, tuple[object, object]] = {}
    for split, part in zip(SPLITS, setting.splits, strict=True):
        source = comparison.corpus[split]
        if any(source.get(key) != part.source.get(key) for key in ("sha256", "lines", "lower")):
            differing[f"{split} split"] = _describe_text(source), _describe_text(part.source)

    # Another text has another vocabulary, which needs no mention
    vocabulary = setting.splits.train.vocabulary
    if not differing and comparison.vocabulary.sha256 != vocabulary.sha256:
        here = f"{len(vocabulary):,} words; give the same --min-count or --vocabulary"
        differing["vocabulary"] = f"{comparison.vocabulary.size:,} words", here

    models = kind_of(comparison.options).name, kind_of(setting.options).name
    if models[0] != models[1]:
        differing["model"] = models
    else:
        for name in {**comparison.options, **setting.options}:
            values = comparison.options.get(name), setting.options.get(name)
            if values[0] != values[1]:
                differing[name] = values
        if hashes := differing.pop("source", None):
            # of the file of a network, whose name says more
            kept, here = (f"(sha256 {str(sha256)[:8]})" for sha256 in hashes)
            network = f"{comparison.options.get('network')} {kept}"
            differing.setdefault("network", (network, f"changed {here}; restore the file"))
    if comparison.stop != setting.stop:
        differing["rule"] = comparison.stop, setting.stop
    return [f"its {name} is {kept}, here it is {here}" for name, (kept, here) in differing.items()]


def _describe_text(source: dict[str, object]) -> str:
    """Describe a text by its name, lines and hash."""
    case = "in lower case, " if source.get("lower") else ""
    sha256 = str(source.get("sha256"))[:8]
    return f"lines {source.get('lines')} of {source.get('name')} ({case}sha256 {sha256})"
