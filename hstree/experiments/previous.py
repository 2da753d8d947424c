"""The comparison that a folder holds: whether another may go on in it, and its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hstree._files import read_json
from hstree.errors import HstreeError, InputError
from hstree.experiments import results
from hstree.experiments.entries import Entry, check_names, entry_of
from hstree.experiments.evaluation import Splits
from hstree.experiments.results import Row, Split, VocabularyFigures, decode

E = TypeVar("E", bound=Entry)

#: File, its part that is a comparison, and options that bound its trainings in their own way.
_FILES: tuple[tuple[str, str | None, tuple[str, ...]], ...] = (
    (results.JSON, None, ()),
    ("survey.json", "equal_epochs", ()),
    ("survey.json", "equal_seconds", ("epochs", "seconds")),
)


@dataclass(frozen=True, kw_only=True)
class _Subject:
    """What the figures of a comparison are of."""

    corpus: dict[Split, dict[str, Any]]
    vocabulary: VocabularyFigures
    options: dict[str, Any]


def may_share(
    folder: Path, splits: Splits, config: Mapping[str, Any], *, force: bool = False
) -> bool:
    """Return whether what a folder holds is of the same text, model and budget.

    Parameters
    ----------
    folder : Path
        Folder of a comparison or a survey. Missing and damaged files are ignored.
    splits : Splits
        Text of the new comparison.
    config : mapping
        Options of its models without the random state.
    force : bool
        Whether the new one may replace another.

    Raises
    ------
    InputError
        When it is of another and may not be replaced; the message says what differs.
    """
    for name, part, bounds in _FILES:
        try:
            document: Any = read_json(folder / name, "")
            kept = decode(document if part is None else document.get(part), _Subject)
        except HstreeError:
            continue
        compared = {key: value for key, value in config.items() if key not in bounds}
        if (difference := _difference(kept, splits, compared)) is not None:
            if force:
                return False
            raise InputError(
                f"{folder} holds a comparison ({name}) that cannot share a table with this one: "
                f"{difference}; choose another folder, or force its replacement"
            )
    return True


def _difference(kept: _Subject, splits: Splits, config: Mapping[str, Any]) -> str | None:
    """Return the first difference between two comparisons."""
    words = splits.train.vocabulary
    if kept.vocabulary.sha256 != words.sha256:
        return (
            f"it is over {kept.vocabulary.size:,} words (sha256 {kept.vocabulary.sha256[:16]}), "
            f"this one over {len(words):,} (sha256 {words.sha256[:16]})"
        )
    for split, corpus in splits.as_dict().items():
        source = kept.corpus[split]
        if (source.get("sha256"), source.get("lines")) != (corpus.sha256, list(corpus.lines)):
            return (
                f"its {split} split is of {source.get('name')}, lines {source.get('lines')}, this "
                f"one's of {corpus.name}, lines {list(corpus.lines)}"
            )
    for name, value in config.items():
        if name != "random_state" and kept.options.get(name) != value:
            return f"its {name} is {kept.options.get(name)}, this one's {value}"
    return None


def with_kept(named: Sequence[E], kept: Sequence[Row], folder: Path) -> list[E]:
    """Return the entries of kept rows and, in their places or after them, those named.

    A row whose entry cannot be made again, as a file is gone, is left out. Raises OptionError when
    two of them have one name.
    """
    by_slug = {entry.slug: entry for entry in named}
    entries: list[E] = []
    for row in kept:
        try:
            entry: Any = entry_of(row.entry, folder / row.runs[0].folder)
        except HstreeError:
            continue
        entries.append(by_slug.pop(entry.slug, entry))
    entries += by_slug.values()
    check_names(entries)
    return entries
