"""Contexts that callers pass to models: checks, and conversion of words to label ids."""

from collections.abc import Sequence
from reprlib import repr as brief

import numpy as np

from hstree._typing import Array, Int32, Int64, Integer
from hstree.data.vocabulary import EOS, UNK, Vocabulary
from hstree.errors import InputError

#: Lists of words, or label ids (B, n).
Contexts = Sequence[Sequence[str]] | Integer


def check_words(contexts: Sequence[Sequence[str]]) -> None:
    """Refuse contexts that are not lists of words; raises InputError with the first."""
    odd = [c for c in contexts if isinstance(c, str) or not all(isinstance(w, str) for w in c)]
    if odd:
        raise InputError(
            f"a context is {brief(odd[0])}; give each as a list of words, "
            "or all of them as an integer array of label ids"
        )


def check_ids(ids: Array, n_labels: int, lowest: int = 0) -> None:
    """Refuse an array of anything but whole numbers from `lowest` to `n_labels` - 1."""
    if ids.dtype.kind not in "iu":
        raise InputError(f"contexts of type {ids.dtype}; label ids are whole numbers")
    if ids.size and not lowest <= ids.min() <= ids.max() < n_labels:
        raise InputError(f"contexts hold ids outside {lowest} to {n_labels - 1}")


def checked_ids(contexts: Integer, n: int, n_labels: int) -> Int64:
    """Return an array of label ids (B, n) as int64; raises InputError for any other."""
    ids = np.asarray(contexts)
    if ids.ndim != 2 or ids.shape[1] != n:
        raise InputError(f"contexts of shape {ids.shape}; this model takes (B, {n})")
    check_ids(ids, n_labels)
    return ids.astype(np.int64)


def ids_of(words: Sequence[str], vocabulary: Vocabulary) -> Int32:
    """Return the ids of words, that of ``<unk>`` for words outside the vocabulary.

    Raises InputError when there is such a word and the vocabulary has no ``<unk>``.
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


def ids_before(contexts: Contexts, n: int, vocabulary: Vocabulary) -> Int64:
    """Return the label ids of the last n words of each context, (B, n).

    Shorter contexts are padded with ``<eos>`` on the left. Raises InputError when these are not
    lists of words or an array (B, n) of label ids, or a word is neither a label nor replaced by
    ``<unk>``.
    """
    if isinstance(contexts, np.ndarray):
        return checked_ids(contexts, n, len(vocabulary))
    check_words(contexts)
    padded = [[EOS] * (n - len(words)) + list(words[-n:]) for words in contexts]
    ids = ids_of([word for words in padded for word in words], vocabulary)
    return ids.astype(np.int64).reshape(-1, n)
