"""Encoding of texts in memory: lines, lists of tokens, and token ids.

They are not stored in the cache folder. An array of ids is not copied and can be memory-mapped.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count, islice
from numbers import Integral
from typing import Any, TypeVar

import numpy as np

from hstree import progress
from hstree._arrays import Array, Int32, Int64, offsets
from hstree._text import brief, plural
from hstree.data.arrays import as_array, as_words, count_axes, is_no_list
from hstree.data.encoding import EncodedText, Encoder, count_ids
from hstree.data.vocabulary import EOS
from hstree.errors import InputError

T = TypeVar("T")

#: Lines and ids that are processed at a time.
_LINES = 4096
_IDS = 1 << 20
#: Column of token ids in the data sets of Hugging Face.
_INPUT_IDS = "input_ids"
#: Without labels, ids must be below this or below ten times the number of tokens.
_MOST_UNNAMED = 1 << 20
#: Ids of a tokenizer, and without labels the id that ends lines, must be below this.
_MOST_EOS = 1 << 24


def iterated(lines: Iterable[T], name: str) -> Iterator[T]:
    """Iterate over lines. Raises InputError for anything but a list, such as one text or a set."""
    if is_no_list(lines):
        raise InputError(
            f"{name} of type {type(lines).__name__}; give a list of lines (`Corpus.read` reads a "
            "file)"
        )
    return iter(lines)


def encode_lines(lines: Iterable[str], name: str, *, lower: bool = False) -> EncodedText:
    """Encode lines of text; the hash is that of a file with these lines."""
    encoder = Encoder(name, lower=lower)
    pieces = list(encoder.encode(_blocks(lines, name)))
    ids = np.concatenate([np.empty(0, np.int32), *(ids for ids, _ in pieces)])
    start = np.concatenate([[0], *(ends for _, ends in pieces)])
    return _encoded(name, encoder.sha256, encoder.types.split(" "), ids, start, lower)


def _blocks(lines: Iterable[str], name: str) -> Iterator[bytes]:
    """Yield the text of lines, many at a time; an item with line ends counts as more lines."""
    n_lines = 0
    rest = iterated(lines, name)
    with progress.task(f"reading {name}", unit="lines") as task:
        while block := list(islice(rest, _LINES)):
            # Check all types without a Python loop; a loop only finds the wrong line
            if not all(map(str.__instancecheck__, block)):
                at = next(i for i, line in enumerate(block) if not isinstance(line, str))
                raise InputError(
                    f"{name}: line {n_lines + at + 1} is of type {type(block[at]).__name__}, not "
                    "str; `Corpus.from_tokens` takes lists of tokens, `from_ids` of ids"
                )
            text = "\n".join(line.removesuffix("\n") for line in block)
            yield f"{text}\n".encode("utf-8", "surrogatepass")
            n_lines += len(block)
            task.advance(len(block))


def encode_tokens(lines: Iterable[Iterable[str | int]], name: str) -> EncodedText:
    """Encode lists of tokens, which may contain white space; whole numbers become text.

    If no token contains white space, the hash is that of a file with the tokens separated by
    spaces.
    """
    # An unknown token gets the next number
    numbers = defaultdict[Any, int](count(1).__next__, {EOS: 0})
    types = list[str]()
    blocks = [np.empty(0, np.int32)]
    lengths = list[int]()
    digest = hashlib.sha256()
    rest = iterated(lines, name)
    while block := list(islice(rest, _LINES)):
        for number, line in enumerate(block, len(lengths) + 1):
            if is_no_list(line):
                raise InputError(
                    f"{name}: line {number} is of type {type(line).__name__}, not a list of "
                    "tokens; use `Corpus.from_lines` for lines and `from_ids` for ids, and one "
                    "column of a table"
                )
        ended_lines = [[*line, EOS] for line in block]
        lengths += map(len, ended_lines)
        tokens = list(chain.from_iterable(ended_lines))

        # (t,) numbers of the tokens; values that cannot be keys of a dict raise TypeError
        try:
            ids = np.fromiter(map(numbers.__getitem__, tokens), np.int32, len(tokens))
        except TypeError as error:
            raise InputError(f"{name}: tokens must be text or whole numbers ({error})") from error
        blocks.append(ids)
        types += as_words(list(islice(numbers, len(types), None)), "token")

        # The hash is that of the lines as text, without <eos>
        words = map(types.__getitem__, ids.tolist())
        text = "".join(f"{' '.join(list(islice(words, len(line)))[:-1])}\n" for line in ended_lines)
        digest.update(text.encode("utf-8", "surrogatepass"))

    if len({isinstance(token, str) for token in islice(numbers, 1, None)}) > 1:
        raise InputError(
            f"{name}: tokens are both text and numbers; give all as one type, and pairs of words "
            "and counts as a dict"
        )
    all_ids = np.concatenate(blocks)
    if any(word.split() != [word] for word in types):
        digest.update(all_ids.data)
    return _encoded(name, digest.hexdigest(), types, all_ids, offsets(np.array(lengths, int)))


def encode_ids(ids: Any, labels: Any, eos: int | str | None, name: str) -> EncodedText:
    """Encode token ids, given as one array or as a list of lines; see `Corpus.from_ids`.

    The type of an id is its label, or its digits. The type of `eos` is ``<eos>``.
    """
    if hasattr(labels, "get_vocab"):
        eos = getattr(labels, "eos_token", None) if eos is None else eos
        labels = _token_names(labels.get_vocab())
    types = None if labels is None else list(as_words(labels))
    if types == []:
        raise InputError(f"{name}: no labels; give the name of each id")
    eos = _end_id(eos, types)
    ids = _row_ids(ids)
    is_flat = count_axes(ids)[0] == 1
    if is_flat:
        array = as_array(ids, name)
    else:
        array, length = _concatenate(ids, name)
    if array.ndim != 1 or array.dtype.kind not in "iu" or not array.size:
        wrong = f"ids of type {array.dtype}, {plural(array.ndim, 'axis', 'axes')}"
        raise _no_ids(name, wrong if array.size else "no ids")
    if array.dtype == np.uint64:
        array = array.view(np.int64)
    lowest = int(array.min())
    largest = int(array.max())
    n_ids = max(_MOST_UNNAMED, 10 * len(array)) if types is None else len(types)
    if lowest < 0 or largest >= n_ids:
        raise InputError(
            f"{name} has ids from {lowest} to {largest}; they must be from 0 to {n_ids - 1:,}, "
            "without padding; number other ids from 0 (as `numpy.unique` does), give labels, or "
            "use `Corpus.from_tokens`"
        )

    # The names of the ids; if none of them ends lines, the next id does
    if types is None:
        n_types = max(largest, -1 if eos is None else eos) + 1
        types = [str(number) for number in range(n_types)]
    if eos is None:
        eos = len(types)
    if EOS in types and types.index(EOS) != eos:
        raise InputError(
            f"{name}: lines end with id {eos}, {brief(types[eos])}, but the label {EOS} is id "
            f"{types.index(EOS)}; give eos={EOS!r}, or other labels"
        )
    types[eos : eos + 1] = [EOS]
    counts = count_ids(array, len(types))

    # The hash of the ids, and the offsets of the ends of lines
    digest = hashlib.sha256()
    ends = list[Int64]()
    for first in range(0, len(array), _IDS):
        block = array[first : first + _IDS].astype("<i8")
        digest.update(block.data)
        ends.append(first + 1 + np.flatnonzero(block == eos))

    # (L + 1,) offsets of the lines
    if is_flat:
        start = np.unique(np.concatenate([[0], *ends, [len(array)]]))
    else:
        # (L,) whether the end of each line is missing and must be inserted
        stop = np.cumsum(length)
        is_open = (length == 0) | (array[np.maximum(stop, 1) - 1] != eos)
        if eos > np.iinfo(array.dtype).max:
            array = array.astype(np.int64)
        array = np.insert(array, stop[is_open], eos)
        start = offsets(length + is_open)
        counts[eos] += np.count_nonzero(is_open)
    digest.update(start.data)
    digest.update("\0".join(types).encode("utf-8", "surrogatepass"))
    return EncodedText(name, digest.hexdigest(), False, types, counts, array, start)


def _token_names(token_ids: Mapping[str, int]) -> list[str]:
    """Return the token of each id, in order; an id without a token gets a name.

    Raises InputError if there are no tokens, or if an id is not a whole number
    from 0 to 2**24 - 1.
    """
    numbers = token_ids.values() if isinstance(token_ids, Mapping) else ()
    is_id = [isinstance(number, Integral) and 0 <= number < _MOST_EOS for number in numbers]
    if not is_id or not all(is_id):
        raise InputError(
            f"get_vocab() of the labels is {brief(token_ids)}; it must have tokens, and whole "
            f"numbers from 0 to {_MOST_EOS - 1:,} as their ids"
        )
    n_ids = 1 + max(token_ids.values())
    names = [f"<id {number}>" for number in range(n_ids)]
    for token, number in token_ids.items():
        names[number] = token
    return names


def _end_id(eos: int | str | None, types: list[str] | None) -> int | None:
    """Return the id that ends lines: a given id, the id of a given label, or that of ``<eos>``."""
    label = EOS if eos is None else eos
    if types is not None and isinstance(label, str) and label in types:
        return types.index(label)
    if eos is None:
        return None
    n_ids = _MOST_EOS if types is None else len(types)
    if isinstance(eos, Integral) and 0 <= eos < n_ids:
        return int(eos)
    raise InputError(
        f"eos is {eos!r}; it is the id that ends a line, from 0 to {n_ids - 1:,}, or one of the "
        "labels"
    )


def _encoded(
    name: str, sha256: str, types: list[str], ids: Int32, start: Int64, lower: bool = False
) -> EncodedText:
    """Return the text with these ids and line offsets. Raises InputError if it is empty."""
    if not len(ids):
        raise InputError(f"{name} is empty; give at least one line")
    counts = np.bincount(ids, minlength=len(types))
    return EncodedText(name, sha256, lower, types, counts, ids, start)


def _concatenate(lines: Any, name: str) -> tuple[Array, Int64]:
    """Return the ids of all lines, and the length of each line."""
    try:
        lines = [_row_ids(line) for line in lines]
        length = np.fromiter(map(len, lines), np.int64, len(lines))
        # Chaining lists before conversion is faster than converting each; arrays are joined
        if all(isinstance(line, list | tuple) for line in lines):
            return as_array(list(chain.from_iterable(lines)), name), length
        arrays = [as_array(line, name) for line in lines if len(line)]
        return np.concatenate(arrays or [np.empty(0)]), length
    except (TypeError, ValueError) as error:
        raise _no_ids(name, "no ids") from error


def _row_ids(row: Any) -> Any:
    """Return the ids in a row of a data set or an output of a tokenizer, or the row itself."""
    return row[_INPUT_IDS] if isinstance(row, Mapping) and _INPUT_IDS in row else row


def _no_ids(name: str, wrong: str) -> InputError:
    """Return the error of a text that does not consist of token ids."""
    return InputError(
        f"{name}: {wrong}; give an array of whole numbers, or a list of such arrays; "
        "`Corpus.from_tokens` takes words"
    )
