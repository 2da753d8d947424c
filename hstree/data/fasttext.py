"""fastText files: one text per line, whose labels are words that begin with ``__label__``."""

import os
from itertools import chain
from typing import Any, NamedTuple

from hstree._arrays import Array
from hstree._files import read_unpacked
from hstree._text import strict_text
from hstree.data.multilabel import SampleFile, indicate_lists, parse_train_and_test
from hstree.errors import InputError

PREFIX = "__label__"
#: A word in a text: letters, digits and underscores, in lower case.
WORD = r"\w+"


class TextData(NamedTuple):
    """Texts and their labels."""

    X: Any  #: CSR array of float32 (N, D), number of occurrences of each word
    Y: Any  #: CSR array (N, L), 1 for each label of a text
    labels: list[list[str]]  #: labels of each text, without their prefix
    words: Array  #: (D,) the words of the training texts


def read_train_and_test(
    train: str | os.PathLike[str], test: str | os.PathLike[str]
) -> tuple[Any, Any]:
    """Read two files of samples as `TextData` if the first is a fastText file, or `MultilabelData`.

    They can be compressed (.gz, .xz, .bz2, .zst). Raises InputError if a file cannot be read; see
    also `count_words` and `parse_train_and_test`.
    """
    files = (train, read_unpacked(train)), (test, read_unpacked(test))
    parse = count_words if is_fasttext(files[0][1]) else parse_train_and_test
    return parse(*files)


def is_fasttext(text: bytes) -> bool:
    """Return whether a text contains a fastText label."""
    return PREFIX.encode() in text


def parse_fasttext(file: SampleFile) -> tuple[list[str], list[list[str]]]:
    """Return the texts in a fastText file, and the labels of each text.

    Labels can be anywhere in a line, and a line may have no label. Empty lines are skipped. Raises
    InputError if the file is not UTF-8, or if no line has a label.
    """
    texts = []
    labels = []
    path, content = file
    for words in filter(None, map(str.split, strict_text(content, os.fspath(path)).split("\n"))):
        texts.append(" ".join(word for word in words if not word.startswith(PREFIX)))
        labels.append([word.removeprefix(PREFIX) for word in words if word.startswith(PREFIX)])
    if not any(labels):
        raise InputError(f"{path}: no line has a label; a label is a word such as {PREFIX}sports")
    return texts, labels


def count_words(train: SampleFile, test: SampleFile) -> tuple[TextData, TextData]:
    """Convert two fastText files to counts of the words in the first file.

    The columns of labels are the training labels in ascending order, then the other labels. Raises
    InputError in the same cases as `parse_fasttext`, and if no training text has a word.
    """
    # Metrics and label trees do not need this import
    from sklearn.feature_extraction.text import CountVectorizer

    parsed = [parse_fasttext(file) for file in (train, test)]
    vectorizer = CountVectorizer(token_pattern=WORD, dtype="float32")
    try:
        vectorizer.fit(parsed[0][0])
    except ValueError as error:
        raise InputError(f"{train[0]}: no text has a word") from error
    words = vectorizer.get_feature_names_out()

    known, every = (set(chain.from_iterable(labels)) for _, labels in parsed)
    names = sorted(known) + sorted(every - known)
    train_data, test_data = (
        TextData(vectorizer.transform(texts), indicate_lists(labels, names), labels, words)
        for texts, labels in parsed
    )
    return train_data, test_data
