"""Contexts as arguments of models: checks, and conversion of words to label ids."""

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from hstree._arrays import Array, Int32, Int64, Integer
from hstree._text import brief
from hstree.data.arrays import as_array
from hstree.data.vocabulary import EOS, UNK, Vocabulary
from hstree.errors import InputError

#: Lines, lists of words or of label ids, or an array of label ids (B, n).
Contexts = Iterable[str] | Iterable[Iterable[str]] | Iterable[Iterable[int]] | Integer


def ids_or_words(contexts: Any, vocabulary: Vocabulary) -> Array | list[list[str]]:
    """Return an array or a tensor of label ids as an array, and other contexts as lists of words.

    Lines are split at white space, and lists of label ids are replaced by their words. Raises
    InputError for anything else.
    """
    if hasattr(contexts, "detach"):
        contexts = as_array(contexts, "contexts")
    if isinstance(contexts, np.ndarray) and (contexts.dtype.kind not in "OU" or contexts.ndim != 1):
        return contexts
    if isinstance(contexts, str) or not hasattr(contexts, "__iter__"):
        raise InputError(
            f"contexts of type {type(contexts).__name__}; give a list of lines, of lists of words, "
            "or of lists of label ids"
        )
    return [_words(context, vocabulary.words) for context in contexts]


def word_lists(contexts: Contexts, vocabulary: Vocabulary) -> list[list[str]]:
    """Return contexts as lists of words, also those in an array of label ids (B, n) of any n.

    Raises InputError for an array that has no such ids.
    """
    lists = ids_or_words(contexts, vocabulary)
    if not isinstance(lists, np.ndarray):
        return lists
    if lists.ndim != 2:
        raise InputError(f"contexts of shape {lists.shape}; this model takes (B, n)")
    check_ids(lists, len(vocabulary))
    return [[vocabulary.words[label] for label in context] for context in lists.tolist()]


def _words(context: Any, labels: Sequence[str]) -> list[str]:
    """Return the words of a line, a list of words, or a list or an array of label ids."""
    if isinstance(context, str):  # split at ASCII white space, as a corpus is
        return [word.decode() for word in context.encode().split()]
    if hasattr(context, "__iter__"):
        words = context.tolist() if hasattr(context, "tolist") else list(context)
        if all(map(str.__instancecheck__, words)):
            return words
        if all(isinstance(word, Integral) and not isinstance(word, bool) for word in words):
            check_ids(np.array(words), len(labels))
            return [labels[label] for label in words]
    raise InputError(
        f"a context is {brief(context)}; give each as a line, a list of words or a list of label "
        "ids, or give all contexts as an integer array of label ids"
    )


def check_ids(ids: Array, n_labels: int, lowest: int = 0, what: str = "contexts") -> None:
    """Check that an array contains whole numbers from `lowest` to `n_labels` - 1."""
    if ids.dtype.kind not in "iu":
        raise InputError(f"{what} of type {ids.dtype}; label ids are whole numbers")
    if ids.size and not lowest <= ids.min() <= ids.max() < n_labels:
        raise InputError(f"{what} have ids outside {lowest} to {n_labels - 1}")


def checked_ids(contexts: Integer, n: int, n_labels: int) -> Int64:
    """Return an array of label ids (B, n) as int64. Raises InputError for other values."""
    ids = np.asarray(contexts)
    if ids.ndim != 2 or ids.shape[1] != n:
        raise InputError(f"contexts of shape {ids.shape}; this model needs the shape (B, {n})")
    check_ids(ids, n_labels)
    return ids.astype(np.int64)


def word_ids(words: Sequence[str], vocabulary: Vocabulary) -> Int32:
    """Return the ids of words, with the id of ``<unk>`` for unknown words.

    Raises InputError for an unknown word if the vocabulary has no ``<unk>``.
    """
    ids = vocabulary.ids(words)
    unknown = np.flatnonzero(ids < 0)
    if unknown.size:
        word = words[unknown[0]]
        raise InputError(f"{word!r} is not among the labels, and there is no {UNK}")
    return ids


def ids_before(contexts: Contexts, n: int, vocabulary: Vocabulary) -> Int64:
    """Return the label ids (B, n) of the last n words of each context.

    Shorter contexts are padded with ``<eos>`` on the left. Raises InputError if the contexts are
    not lines, lists or an array (B, n) of label ids, or if a word is unknown and there is no
    ``<unk>``.
    """
    lists = ids_or_words(contexts, vocabulary)
    if isinstance(lists, np.ndarray):
        return checked_ids(lists, n, len(vocabulary))
    # The last n words of each context
    padded = [[EOS] * (n - len(words)) + words[-n:] for words in lists]
    ids = word_ids([word for words in padded for word in words], vocabulary)
    return ids.astype(np.int64).reshape(-1, n)
