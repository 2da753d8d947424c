"""Files of fastText: one text per line, with its labels as words that begin with ``__label__``."""

import os
from itertools import chain
from typing import Any, NamedTuple

from hstree._arrays import Array
from hstree._files import read_unpacked
from hstree.errors import InputError, naming

PREFIX = "__label__"
#: Words of a text: letters, digits and underscores, in lower case.
WORD = r"\w+"


class TextData(NamedTuple):
    """Texts and their labels."""

    X: Any  #: CSR array of float32 (N, D), how often each word occurs
    Y: Any  #: CSR array (N, L), 1 for each label of a text
    labels: list[list[str]]  #: labels of each text, without their prefix
    words: Array  #: (D,) the words of the training texts


def is_fasttext(path: str | os.PathLike[str]) -> bool:
    """Return whether a file, which may be packed, has a label of fastText in any line."""
    return PREFIX.encode() in read_unpacked(path)


def read_fasttext(path: str | os.PathLike[str]) -> tuple[list[str], list[list[str]]]:
    """Read the texts of a file of fastText and the labels of each.

    The file may be packed (.gz, .xz, .bz2, .zst). Labels may be anywhere in a line, and a line may
    have none. Empty lines are skipped.

    Raises InputError when the file cannot be read, is not UTF-8, or no line has a label.
    """
    texts = []
    labels = []
    with naming(path):
        try:
            lines = read_unpacked(path).decode().split("\n")
        except UnicodeDecodeError as error:
            position = f"byte {error.start:,}"
            raise InputError(f"{position} is not UTF-8; save the file as UTF-8") from error
        for words in filter(None, map(str.split, lines)):
            texts.append(" ".join(word for word in words if not word.startswith(PREFIX)))
            labels.append([word.removeprefix(PREFIX) for word in words if word.startswith(PREFIX)])
        if not any(labels):
            raise InputError(f"no line has a label; a label is a word such as {PREFIX}sports")
    return texts, labels


def read_text_train_and_test(
    train: str | os.PathLike[str], test: str | os.PathLike[str]
) -> tuple[TextData, TextData]:
    """Read two files of fastText as counts of the words of the first.

    The columns of labels are those of the training texts, ascending, then the other ones.

    Raises InputError as `read_fasttext`, and when no training text has a word.
    """
    # which metrics and label trees do not need
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import MultiLabelBinarizer

    files = [read_fasttext(path) for path in (train, test)]
    vectorizer = CountVectorizer(token_pattern=WORD, dtype="float32")
    try:
        vectorizer.fit(files[0][0])
    except ValueError as error:
        raise InputError(f"{train}: no text has a word") from error
    words = vectorizer.get_feature_names_out()

    known, every = (set(chain.from_iterable(labels)) for labels in (files[0][1], files[1][1]))
    names = sorted(known) + sorted(every - known)
    binarizer = MultiLabelBinarizer(classes=names, sparse_output=True)
    train_data, test_data = (
        TextData(vectorizer.transform(texts), binarizer.fit_transform(labels), labels, words)
        for texts, labels in files
    )
    return train_data, test_data
