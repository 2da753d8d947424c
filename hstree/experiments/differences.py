"""The comparison that a folder holds: whether another can continue it, and its candidates.

A comparison in a folder continues only with the same text, words, model and rule. Differences are
described in words of the command line.
"""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hstree._options import spelled
from hstree.data.corpus import Corpus
from hstree.data.splits import SPLITS, SplitName, Splits
from hstree.data.vocabulary import EOS, UNK, Vocabulary
from hstree.errors import HstreeError, InputError
from hstree.experiments.candidate import Candidate
from hstree.experiments.results import WORDS, Comparison, Epochs, Halving, Seconds, Stop
from hstree.experiments.setting import Setting
from hstree.experiments.store import Store
from hstree.models import kind_of
from hstree.tree import load
from hstree.tree.files import ENDINGS

#: Options of models that the command line takes by themselves; others are in the text of --model.
_FLAGS = ("dim", "context", "batch_size", "learning_rate", "dropout")


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
        warnings.warn(f"{error}; its candidates are left out", stacklevel=3)
        return list(candidates)
    differing = differences(kept, store.home, setting.splits, setting.options, setting.stop)
    if differing:
        if force:
            return list(candidates)
        raise InputError(
            f"{store.home} holds a comparison that cannot share a table with this one: "
            f"{described(differing)}, choose another folder, or force its replacement"
        )
    return list(candidates) if only else _merged(candidates, kept, setting, store)


def _merged(
    candidates: Sequence[Candidate], kept: Comparison, setting: Setting, store: Store
) -> list[Candidate]:
    """Return the candidates of a kept comparison in their order, and then the others."""
    named = {candidate.name: candidate for candidate in candidates}
    pending = [name for name in kept.pending if name not in named]
    merged: list[Candidate] = []
    for one in kept.candidates:
        if one.name in named:
            merged.append(named.pop(one.name))
            continue
        # a tree file that is gone is replaced by the copy in the folder
        output = shlex.split(one.name)[0 if one.models == 1 else 2]
        is_gone = output.endswith(ENDINGS) and not Path(output).exists()
        # a candidate is left out where what it names is gone, and its tree, too
        with suppress(HstreeError):
            tree = load(store.home / str(one.tree_file)) if is_gone else None
            merged.append(Candidate.parse(one.name, tree))

    # candidates that were finished before they were to train anew, which was interrupted
    for name in pending:
        with suppress(HstreeError):
            candidate = Candidate.parse(name)
            if store.has_results(setting.jobs(candidate)):
                merged.append(candidate)
    return [*merged, *named.values()]


class Difference(NamedTuple):
    """A difference, and what to type so that there is none."""

    text: str
    remedy: str


def differences(
    kept: Comparison, folder: Path, splits: Splits, options: Mapping[str, Any], stop: Stop
) -> list[Difference]:
    """Return all differences of splits, options of a model and a rule to a kept comparison."""
    differing = list(_text_differences(kept, splits))
    if not differing:  # other texts have other words
        differing += _word_differences(kept, folder, splits.train)
    differing += _option_differences(kept.options, options)
    if kept.stop != stop:
        text = f"its rule is {kept.stop}, this one's {stop}"
        differing.append(Difference(text, _typed_rule(kept.stop)))
    return differing


def described(differences: Sequence[Difference]) -> str:
    """Return differences, and what to type instead, as one sentence without its end."""
    texts = "; ".join(difference.text for difference in differences)
    remedies = list(dict.fromkeys(one.remedy for one in differences if one.remedy))
    return f"{texts}; give {', '.join(remedies)}" if remedies else texts


def _text_differences(kept: Comparison, splits: Splits) -> Iterator[Difference]:
    """Yield the splits that are of another text, of other lines or in another case."""
    parts: dict[SplitName, Corpus] = dict(zip(SPLITS, splits, strict=True))
    changed = {
        split: kept.corpus[split]
        for split, part in parts.items()
        if (kept.corpus[split].get("sha256"), kept.corpus[split].get("lines"))
        != (part.sha256, list(part.lines))
    }
    for split, source in changed.items():
        part = parts[split]
        text = (
            f"its {split} split is of {source.get('name')}, lines {source.get('lines')}, "
            f"this one's of {part.name}, lines {list(part.lines)}"
        )
        yield Difference(text, _typed_text(kept, splits, split))
    was_lower = bool(kept.corpus["train"].get("lower"))
    is_lower = bool(splits.train.source.get("lower"))
    if was_lower != is_lower:
        cases = ("as it is", "in lower case")
        text = f"its text is read {cases[was_lower]}, this one's {cases[is_lower]}"
        yield Difference(text, "--lower" if was_lower else "no --lower")


def _typed_text(kept: Comparison, splits: Splits, split: SplitName) -> str:
    """Return what to type for the text of a split; empty where that follows from another split."""
    source, train = kept.corpus[split], kept.corpus["train"]
    name = shlex.quote(str(source.get("name")))
    if split == "train":
        return "" if source.get("sha256") == splits.train.sha256 else f"the corpus {name}"
    if source.get("sha256") != train.get("sha256"):
        return f"--{split} {name}"
    part = splits.valid if split == "valid" else splits.test
    return f"no --{split}" if part.sha256 != splits.train.sha256 else ""


def _word_differences(kept: Comparison, folder: Path, train: Corpus) -> Iterator[Difference]:
    """Yield the difference between the words of a comparison and those of a training split."""
    vocabulary = train.vocabulary
    words = kept.vocabulary
    if (words.size, words.sha256) == (len(vocabulary), vocabulary.sha256):
        return
    try:
        remedy = typed_words(Vocabulary.from_file(folder / WORDS), train)
    except HstreeError:
        remedy = "the same --min-count or --vocabulary"
    text = f"it is over {words.size:,} words, this one over {len(vocabulary):,} others"
    yield Difference(text, remedy)


def typed_words(words: Vocabulary, train: Corpus) -> str:
    """Return what to type so that a training split has these words."""
    text_words = train.select_vocabulary(min_count=1)
    # (words,) their counts in the training split, 0 for those that are not in it
    counts = train.with_vocabulary(words).counts
    is_special = np.isin(words.words, (EOS, UNK))
    kept_counts = counts[~is_special]
    # (words of the text,) whether each is left out
    is_left_out = (words.ids(text_words.words) < 0) & ~np.isin(text_words.words, (EOS, UNK))
    least_kept = int(kept_counts.min(initial=np.iinfo(np.int64).max))
    most_left_out = int(text_words.counts[is_left_out].max(initial=0))
    if most_left_out < least_kept:
        return f"--min-count {most_left_out + 1}"
    if 0 < least_kept == most_left_out:
        return f"a vocabulary of max_size {len(words)} (`hstree vocab --max-size`), by --vocabulary"
    return "the same --vocabulary or tree file"


def _option_differences(
    kept: Mapping[str, Any], options: Mapping[str, Any]
) -> Iterator[Difference]:
    """Yield the options of the model that have another value."""
    if kept.get("model") != options.get("model"):
        text = f"its model is {kept.get('model')}, this one's {options.get('model')}"
        yield Difference(text, _typed_model(kept, kept))
        return
    changed = [name for name in {**kept, **options} if kept.get(name) != options.get(name)]
    in_model = [name for name in changed if name not in _FLAGS]
    for name in changed:
        before = kept.get(name)
        flag = f"--{name.replace('_', '-')}"
        remedy = f"no {flag}" if before is None else f"{flag} {before}"
        if name in in_model:
            remedy = _typed_model(kept, in_model)
        yield Difference(f"its {name} is {before}, this one's {options.get(name)}", remedy)


def _typed_model(kept: Mapping[str, Any], names: Container[str]) -> str:
    """Return --model with some options of a comparison."""
    kind = kind_of(kept)
    known = [option.name for option in kind.options]
    values = {name: kept[name] for name in known if name in names and name in kept}
    return f"--model {shlex.quote(spelled(kind.name, kind.options, values))}"


def _typed_rule(stop: Stop) -> str:
    """Return a stopping rule as it is typed."""
    match stop:
        case Epochs():
            return f"--epochs {stop.epochs}"
        case Seconds():
            return f"--seconds {stop.seconds:g}"
        case Halving():
            return f"--minutes {stop.minutes:g}"
