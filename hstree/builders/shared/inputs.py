"""From what a person gives to what a builder takes: opening files, and the conversions that exist.

A corpus or vectors with counts serve where a vocabulary is needed. Nothing serves as a corpus or
as vectors but those.
"""

from __future__ import annotations

import os
from typing import Any

from hstree.builders.shared.signature import INPUTS, Builder
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError, OptionError

BuilderInput = Vocabulary | Corpus | WordVectors

_VECTOR_ENDINGS = (".npy", ".bin", ".bin.gz", ".vec", ".vec.gz")
_HOW = {
    Vocabulary: "give a corpus, or a vocabulary as `hstree vocab CORPUS -o vocab.tsv` writes it",
    Corpus: "give running text: a .txt or .txt.gz file, nltk:NAME or builtin:python",
    WordVectors: "give vectors (.npy, word2vec or GloVe), or make some of a corpus with "
    "`hstree evaluate TREE CORPUS --vectors-out vectors.npy`",
}


def open_input(
    source: str | os.PathLike[str],
    method: Builder,
    *,
    vocabulary: Vocabulary | None = None,
    labels: str | os.PathLike[str] | None = None,
    **reading: Any,
) -> BuilderInput:
    """Open a file, or a named corpus, as what a builder takes.

    Parameters
    ----------
    source : str or path
        For a builder that takes vectors, a file of vectors; for one that takes a corpus, a
        corpus. For one that takes a vocabulary, the ending decides: `.tsv` is a vocabulary;
        `.npy`, `.bin` and `.vec` are vectors; all else is a corpus.
    method : Builder
    vocabulary : Vocabulary, optional
        The words to see a corpus through.
    labels : str or path, optional
        The labels file of a `.npy`.
    **reading
        How to read a corpus: `min_count`, `max_size`, `lower`, `cache`, as in `Corpus.read`.

    Returns
    -------
    Vocabulary, Corpus or WordVectors
        Not yet converted; `as_taken` does that.

    Raises
    ------
    InputError
        When it cannot be read as that.
    """
    name = os.fspath(source)
    named_corpus = name.startswith(("nltk:", "builtin:"))
    if method.takes is WordVectors:
        if named_corpus or name.endswith(".tsv"):
            raise InputError(f"{method.name} takes word vectors, not {name}; {_HOW[WordVectors]}")
        return WordVectors.read(name, labels=labels)
    if method.takes is Vocabulary and not named_corpus:
        if name.endswith(".tsv"):
            return Vocabulary.from_file(name)
        if name.endswith(_VECTOR_ENDINGS):
            return WordVectors.read(name, labels=labels)
    return Corpus.read(name, vocabulary=vocabulary, **reading)


def as_taken(given: object, method: Builder, vocabulary: Vocabulary | None) -> BuilderInput:
    """Convert an input to what a builder takes.

    Parameters
    ----------
    given : object
    method : Builder
    vocabulary : Vocabulary, optional
        The words of the tree. A corpus is seen through it; vectors are left as they are, since
        it is for the caller to match them.

    Raises
    ------
    InputError
        When it is not that and cannot serve as it.
    OptionError
        When `vocabulary` is given where the input is the vocabulary.
    """
    if isinstance(given, Corpus):
        seen = given if vocabulary is None else given.with_vocabulary(vocabulary)
        if method.takes is Corpus:
            return seen
        if method.takes is Vocabulary:
            return seen.counted_vocabulary()
    elif method.takes is WordVectors and isinstance(given, WordVectors):
        return given
    elif method.takes is Vocabulary and isinstance(given, Vocabulary | WordVectors):
        if vocabulary is not None:
            raise OptionError(
                f"{method.name} takes a vocabulary: give that alone, as the input, "
                "not beside another one"
            )
        return given if isinstance(given, Vocabulary) else _vocabulary_of(given, method)
    what = INPUTS.get(type(given), f"a {type(given).__name__}")
    raise InputError(f"{method.name} takes {method.takes_text}, not {what}; {_HOW[method.takes]}")


def _vocabulary_of(vectors: WordVectors, method: Builder) -> Vocabulary:
    if vectors.counts is None:
        raise InputError(
            f"{method.name} takes a vocabulary, and these vectors come without counts; "
            "add them to NAME.labels.tsv beside NAME.npy (word<TAB>count), or give vocab.tsv"
        )
    return Vocabulary(vectors.labels, vectors.counts, source=vectors.source)
