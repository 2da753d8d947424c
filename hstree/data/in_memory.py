"""Texts that a program has, as type ids: lines, lists of tokens, and token ids.

They are not kept in the cache folder. An array of ids stays as it is, memory-mapped too.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sized
from itertools import chain, count, islice
from numbers import Integral
from typing import Any, TypeVar

import numpy as np

from hstree import progress
from hstree._arrays import Array, Int32, Int64, offsets
from hstree._text import plural, quoted
from hstree.data.arrays import as_array, as_words, count_axes
from hstree.data.encoding import EncodedText, encode_pieces
from hstree.data.vocabulary import EOS
from hstree.errors import InputError

T = TypeVar("T")

#: Lines and ids that are looked at together.
_LINES, _IDS = 4096, 1 << 20
#: Without labels, ids are below the larger of this and ten times their number.
_MOST_UNNAMED = 1 << 20
#: Without labels, the id that ends lines is below this.
_MOST_EOS = 1 << 24


def is_no_list(value: object) -> bool:
    """Return whether a value is one text, has no order, as a set, or cannot be iterated over."""
    if isinstance(value, str | bytes | Mapping | set | frozenset):
        return True
    return not hasattr(value, "__iter__")


def iterated(lines: Iterable[T], name: str) -> Iterator[T]:
    """Iterate over lines; InputError where they are no list, such as one text or a set."""
    if is_no_list(lines):
        raise InputError(
            f"{name} of type {type(lines).__name__}; give a list of lines (a file is read by "
            "`Corpus.read`)"
        )
    return iter(lines)


def encode_lines(lines: Iterable[str], name: str, *, lower: bool = False) -> EncodedText:
    """Encode lines of text; the hash is that of a file of them."""
    about: dict[str, Any] = {}
    pieces = list(encode_pieces(name, _blocks(lines, name), lower, about))
    ids = np.concatenate([np.empty(0, np.int32), *(ids for ids, _ in pieces)])
    start = np.concatenate([[0], *(ends for _, ends in pieces)])
    types = about["words"].decode().split(" ")
    return _encoded(name, about["sha256"], types, ids, start, lower)


def _blocks(lines: Iterable[str], name: str) -> Iterator[bytes]:
    """Yield the text of lines, some at a time; one of several lines is each of them."""
    n, rest = 0, iterated(lines, name)
    with progress.task(f"reading {name}", unit="lines") as task:
        while some := list(islice(rest, _LINES)):
            if not all(map(str.__instancecheck__, some)):
                at = next(i for i, line in enumerate(some) if not isinstance(line, str))
                raise InputError(
                    f"{name}: line {n + at + 1} is of type {type(some[at]).__name__}, not str; "
                    "`Corpus.from_tokens` takes lists of tokens, `from_ids` of ids"
                )
            text = "\n".join(line.removesuffix("\n") for line in some)
            yield f"{text}\n".encode("utf-8", "surrogatepass")
            n += len(some)
            task.advance(len(some))


def encode_tokens(lines: Iterable[Iterable[str | int]], name: str) -> EncodedText:
    """Encode lists of tokens, which may hold white space; whole numbers become text.

    Where no token holds white space, the hash is that of a file with spaces between them.
    """
    number_of = defaultdict[Any, int](count(1).__next__, {EOS: 0})
    types = list[str]()
    digest, ids, lengths = hashlib.sha256(), [np.empty(0, np.int32)], list[int]()
    rest = iterated(lines, name)
    while some := list(islice(rest, _LINES)):
        for number, line in enumerate(some, len(lengths) + 1):
            if is_no_list(line):
                raise InputError(
                    f"{name}: line {number} is of type {type(line).__name__}, no list of tokens; "
                    "`Corpus.from_lines` takes lines, `from_ids` ids; of a table, give one column"
                )
        ended = [[*line, EOS] for line in some]
        lengths += map(len, ended)
        tokens = list(chain.from_iterable(ended))
        try:
            if any(issubclass(kind, tuple) for kind in set(map(type, tokens))):
                raise TypeError("tuple")  # whose hash may recurse too deep for Python
            ids.append(np.fromiter(map(number_of.__getitem__, tokens), np.int32, len(tokens)))
        except TypeError as error:  # what cannot be a key of a dict
            raise InputError(f"{name}: tokens must be text or whole numbers ({error})") from error
        types += as_words(list(islice(number_of, len(types), None)), "token")
        words = map(types.__getitem__, ids[-1].tolist())
        text = "".join(f"{' '.join(list(islice(words, len(line)))[:-1])}\n" for line in ended)
        digest.update(text.encode("utf-8", "surrogatepass"))
    texts = [isinstance(token, str) for token in number_of][1:]
    if any(texts) and not all(texts):
        word, digits = (quoted(types[1 + texts.index(is_text)]) for is_text in (True, False))
        raise InputError(
            f"{name}: tokens are text ({word}) and numbers ({digits}); give all as one of them, "
            "and (word, count) pairs as a dict of counts"
        )
    tokens_ids = np.concatenate(ids)
    if any(word.split() != [word] for word in types):
        digest.update(tokens_ids.data)
    return _encoded(name, digest.hexdigest(), types, tokens_ids, offsets(np.array(lengths, int)))


def encode_ids(ids: Any, labels: Any, eos: int | str | None, name: str) -> EncodedText:
    """Encode token ids, one array or a list of lines; see `Corpus.from_ids`.

    The type of an id is its label, or its digits; that of `eos` is ``<eos>``.
    """
    types = None if labels is None else list(as_words(labels))
    eos = _id_of_end(eos, types)
    array, length = (as_array(ids, name), None) if count_axes(ids)[0] == 1 else _joined(ids, name)
    if array.ndim != 1 or array.dtype.kind not in "iu" or not array.size:
        what = f"ids of type {array.dtype}, {plural(array.ndim, 'axis', 'axes')}"
        raise _no_ids(name, what if array.size else "no ids")
    array = array.view(np.int64) if array.dtype == np.uint64 else array
    counts, ends, digest = _looked_at(array, eos, types, name)
    if types is None:
        types = list(map(str, range(max(len(counts), -1 if eos is None else eos + 1))))
    eos = len(types) if eos is None else eos
    types[eos : eos + 1] = [EOS]
    counts = np.pad(counts, (0, len(types) - len(counts)))
    if length is None:
        start = np.unique(np.concatenate([[0], *ends, [len(array)]]))
    else:
        stop = np.cumsum(length)
        lacks = (length == 0) | (array[np.maximum(stop, 1) - 1] != eos)  # (L,) whose end is put in
        wide = array if eos <= np.iinfo(array.dtype).max else array.astype(np.int64)
        array, start = np.insert(wide, stop[lacks], eos), offsets(length + lacks)
        counts[eos] += np.count_nonzero(lacks)
    digest.update(start.data)
    digest.update("\0".join(types).encode("utf-8", "surrogatepass"))
    return EncodedText(name, digest.hexdigest(), False, types, counts, array, start)


def _id_of_end(eos: int | str | None, types: list[str] | None) -> int | None:
    """Return the id that ends lines: a given one, that of a given label, or that of ``<eos>``."""
    name = EOS if eos is None else eos
    if isinstance(name, str) and name in (types or ()):
        return (types or []).index(name)
    if eos is None:
        return None
    most = _MOST_EOS if types is None else len(types)
    if not (isinstance(eos, Integral) and 0 <= eos < most):
        known = f"from 0 to {most - 1:,}{', without labels' if types is None else ', or its label'}"
        raise InputError(f"eos is {eos!r}; it is the id that ends a line, {known}")
    return int(eos)


def _encoded(
    name: str, sha256: str, types: list[str], ids: Int32, start: Int64, lower: bool = False
) -> EncodedText:
    """Return a text of which ids and offsets of lines are known; InputError where it is empty."""
    if not len(ids):
        raise InputError(f"{name} is empty; give at least one line")
    counts = np.bincount(ids, minlength=len(types))
    return EncodedText(name, sha256, lower, types, counts, ids, start)


def _joined(lines: Any, name: str) -> tuple[Array, Int64]:
    """Return the ids of lines, one after the other, and the number of each."""
    try:
        lines = list(lines)
        length = np.fromiter(map(len, lines), np.int64, len(lines))
        if all(isinstance(line, list | tuple) for line in lines):
            return as_array(list(chain.from_iterable(lines)), name), length
        arrays = [as_array(line, name) for line in lines if len(line)]
        return np.concatenate(arrays or [np.empty(0)]), length
    except (TypeError, ValueError) as error:
        raise _no_ids(name, "no ids") from error


def _no_ids(name: str, what: str) -> InputError:
    return InputError(
        f"{name}: {what}; give an array of whole numbers, or a list of such arrays; "
        "`Corpus.from_tokens` takes words"
    )


def _looked_at(
    ids: Array, eos: int | None, labels: Sized | None, name: str
) -> tuple[Int64, list[Int64], Any]:
    """Return the counts of ids, the offsets behind those that end lines, and a hash of the ids.

    Raises InputError for ids outside the labels.
    """
    most = max(_MOST_UNNAMED, 10 * len(ids)) if labels is None else len(labels)
    counts, ends, digest = np.zeros(0, np.int64), list[Int64](), hashlib.sha256()
    for first in range(0, len(ids), _IDS):
        block = ids[first : first + _IDS].astype("<i8")
        if block.min() < 0 or block.max() >= most:
            at = int(np.argmax((block < 0) | (block >= most)))
            wrong = f"{name}: token {first + at} has the id {block[at]}"
            if labels is not None or block[at] < 0:
                known = "from 0" if labels is None else f"from 0 to {most - 1}"
                raise InputError(f"{wrong}; ids are {known}, and padding is left out")
            raise InputError(
                f"{wrong}, far above the number of tokens; give labels, number the ids from 0 "
                "(`numpy.unique` does), or give them as tokens to `Corpus.from_tokens`"
            )
        before, counts = counts, np.bincount(block, minlength=len(counts))
        counts[: len(before)] += before
        digest.update(block.data)
        if eos is not None:
            ends.append(first + 1 + np.flatnonzero(block == eos))
    return counts, ends, digest
