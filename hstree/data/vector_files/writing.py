"""Word vectors as word2vec's files, text or binary, which gensim and most others read.

Both open with a line ``V d``. In text, every line after it is a word and its d numbers, written
with the fewest digits that give the same float32 back; in binary, a word, one space, d
little-endian float32 and a line end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from hstree import progress
from hstree._files import replacing
from hstree._typing import Float32
from hstree.errors import InputError

Rows = Callable[[Sequence[str], Float32], Iterator[bytes]]

#: Rows written at a time.
BLOCK = 4096
# Readers split at ASCII white space, the C program's `scanf` at all of it.
_STORABLE = re.compile(r"[^ \t\n\r\v\f\0\ud800-\udfff]+")


def write_text(name: str, words: Sequence[str], vectors: Float32) -> None:
    """Write word2vec text.

    Parameters
    ----------
    name : str
    words : sequence of str, length V
    vectors : float32 array (V, d)

    Raises
    ------
    InputError
        When a word is empty or holds white space, at which readers split; nothing is written.
    FileFormatError
        When the file cannot be written.
    """
    _write(name, words, vectors, _text_rows)


def write_binary(name: str, words: Sequence[str], vectors: Float32) -> None:
    """Write word2vec binary; see `write_text`."""
    _write(name, words, vectors, _binary_rows)


def check_words(name: str, words: Sequence[str]) -> None:
    """Refuse words that the files cannot hold; `name` is that of the file.

    Raises
    ------
    InputError
        When a word is empty or holds white space.
    """
    for word in words:
        if _STORABLE.fullmatch(word) is None:
            raise InputError(
                f"cannot write {name}: the word {word!r} is empty or holds white space or half a "
                "character, where readers of word2vec's files split; save it as .npy"
            )


def _write(name: str, words: Sequence[str], vectors: Float32, rows: Rows) -> None:
    check_words(name, words)
    with replacing(name) as file, progress.task(f"writing {name}", len(words), "words") as task:
        file.write(f"{len(words)} {vectors.shape[1]}\n".encode())
        for a in range(0, len(words), BLOCK):
            some = words[a : a + BLOCK]
            file.writelines(rows(some, vectors[a : a + BLOCK]))
            task.advance(len(some))


def _text_rows(words: Sequence[str], vectors: Float32) -> Iterator[bytes]:
    for word, numbers in zip(words, vectors.astype(np.str_), strict=True):
        yield f"{word} {' '.join(numbers)}\n".encode()


def _binary_rows(words: Sequence[str], vectors: Float32) -> Iterator[bytes]:
    for word, row in zip(words, vectors.astype("<f4"), strict=True):
        yield word.encode() + b" " + row.tobytes() + b"\n"
