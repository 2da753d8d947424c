"""Differences between a comparison and the one that a folder holds.

A comparison in a folder continues only with the same text, words, model and rule. Differences are
described in words of the command line.
"""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hstree._options import spelled
from hstree.data.corpus import Corpus
from hstree.data.splits import SPLITS, SplitName, Splits
from hstree.data.vocabulary import EOS, UNK, Vocabulary
from hstree.errors import HstreeError
from hstree.experiments.results import WORDS, Comparison, Epochs, Halving, Seconds, Stop
from hstree.models import kind_of

#: Options of models that the command line takes by themselves; others are in the text of --model.
_FLAGS = ("dim", "context", "batch_size", "learning_rate", "dropout")


class Difference(NamedTuple):
    """A difference, and what to type to remove it; empty where another remedy does."""

    text: str
    remedy: str


def differences(
    kept: Comparison, folder: Path, splits: Splits, options: Mapping[str, Any], stop: Stop
) -> list[Difference]:
    """Return all differences of splits, options of a model and a rule to a kept comparison."""
    differing = list(_text_differences(kept, splits))
    # another text has other words, which need no mention
    if not differing:
        differing += _word_differences(kept, folder, splits.train)
    differing += _option_differences(kept.options, options)
    if kept.stop != stop:
        text = f"its rule is {kept.stop}, this one's {stop}"
        differing.append(Difference(text, _command_for_rule(kept.stop)))
    return differing


def describe(differences: Sequence[Difference]) -> str:
    """Return differences and their remedies as one sentence without its full stop."""
    texts = "; ".join(difference.text for difference in differences)
    remedies = dict.fromkeys(difference.remedy for difference in differences)
    remedies.pop("", None)
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
        yield Difference(text, _command_for_text(kept, splits, split))
    was_lower = bool(kept.corpus["train"].get("lower"))
    is_lower = bool(splits.train.source.get("lower"))
    if was_lower != is_lower:
        cases = ("as it is", "in lower case")
        text = f"its text is read {cases[was_lower]}, this one's {cases[is_lower]}"
        yield Difference(text, "--lower" if was_lower else "no --lower")


def _command_for_text(kept: Comparison, splits: Splits, split: SplitName) -> str:
    """Return what to type for the text of a split; empty where that follows from another split."""
    source = kept.corpus[split]
    train = kept.corpus["train"]
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
        remedy = command_for_words(Vocabulary.from_file(folder / WORDS), train)
    except HstreeError:
        remedy = "the same --min-count or --vocabulary"
    text = f"it is over {words.size:,} words, this one over {len(vocabulary):,} others"
    yield Difference(text, remedy)


def command_for_words(words: Vocabulary, train: Corpus) -> str:
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
    kept_kind = kind_of(kept)
    kind = kind_of(options)
    if kept_kind.name != kind.name:
        text = f"its model is {kept_kind.name}, this one's {kind.name}"
        yield Difference(text, _command_for_model(kept, kept))
        return
    changed = [name for name in {**kept, **options} if kept.get(name) != options.get(name)]
    in_model = [name for name in changed if name not in _FLAGS]
    for name in changed:
        before = kept.get(name)
        flag = f"--{name.replace('_', '-')}"
        remedy = f"no {flag}" if before is None else f"{flag} {before}"
        if name in in_model:
            remedy = _command_for_model(kept, in_model)
        yield Difference(f"its {name} is {before}, this one's {options.get(name)}", remedy)


def _command_for_model(kept: Mapping[str, Any], names: Container[str]) -> str:
    """Return --model with the named options of a comparison."""
    kind = kind_of(kept)
    known = [option.name for option in kind.options]
    values = {name: kept[name] for name in known if name in names and name in kept}
    return f"--model {shlex.quote(spelled(kind.name, kind.options, values))}"


def _command_for_rule(stop: Stop) -> str:
    """Return the option of a stopping rule."""
    match stop:
        case Epochs():
            return f"--epochs {stop.epochs}"
        case Seconds():
            return f"--seconds {stop.seconds:g}"
        case Halving():
            return f"--minutes {stop.minutes:g}"
