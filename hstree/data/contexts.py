"""Contexts as their callers give them, lists of words or label ids, checked and as label ids."""

from __future__ import annotations

from collections.abc import Sequence
from reprlib import repr as brief
from typing import Any

import numpy as np

from hstree._typing import Array, Int32, Integer
from hstree.data.vocabulary import UNK, Vocabulary
from hstree.errors import InputError, OptionError

#: Lists of words, or label ids (B, n).
Contexts = Sequence[Sequence[str]] | Integer

#: The largest sizes that a model may have: far beyond what any of them gains from.
LARGEST = {"dim": 1 << 16, "context": 1 << 12, "window": 1 << 12}


def checked_size(name: str, value: Any) -> int:
    """Return the size of a model that an option gives.

    Raises
    ------
    OptionError
        When it is no whole number from 1 to what `LARGEST` says.
    """
    if not isinstance(value, int | np.integer) or not 1 <= value <= LARGEST[name]:
        expected = f"a whole number from 1 to {LARGEST[name]:,}"
        raise OptionError(f"{name} is {value!r}; it must be {expected}")
    return int(value)


def check_words(contexts: Sequence[Sequence[str]]) -> None:
    """Refuse what is not a list of lists of words.

    Raises
    ------
    InputError
    """
    odd = [c for c in contexts if isinstance(c, str) or not all(isinstance(w, str) for w in c)]
    if odd:
        raise InputError(
            f"a context is {brief(odd[0])}; give each as a list of words, "
            "or all of them as an integer array of label ids"
        )


def check_ids(ids: Array, n_labels: int, lowest: int = 0) -> None:
    """Refuse an array that does not hold label ids, or -1 where `lowest` is that.

    Raises
    ------
    InputError
    """
    if ids.dtype.kind not in "iu":
        raise InputError(f"contexts of type {ids.dtype}; label ids are whole numbers")
    if ids.size and not lowest <= ids.min() <= ids.max() < n_labels:
        raise InputError(f"contexts hold ids outside {lowest} to {n_labels - 1}")


def ids_of(words: Sequence[str], vocabulary: Vocabulary) -> Int32:
    """Return the ids of words, that of ``<unk>`` for those that are not in the vocabulary.

    Raises
    ------
    InputError
        When there is such a word and no ``<unk>``.
    """
    ids = vocabulary.ids(words)
    unknown = np.flatnonzero(ids < 0)
    if not unknown.size:
        return ids
    if vocabulary.unk is None:
        word = words[unknown[0]]
        raise InputError(f"{word!r} is not among the labels, and these hold no {UNK}")
    ids[unknown] = vocabulary.index(UNK)
    return ids
