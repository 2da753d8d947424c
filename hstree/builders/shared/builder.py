"""A builder as a record (name, input, options), and its input from files and other objects."""

from __future__ import annotations

import inspect
import os
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from hstree._options import Option, effective, options_of
from hstree._plugins import OWN, unusable
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError, OptionError
from hstree.tree import Tree

BuilderInput = Vocabulary | Corpus | WordVectors

#: Types that a builder may take as its main input, and their names in messages.
INPUTS: dict[type, str] = {
    Vocabulary: "a vocabulary",
    Corpus: "a corpus",
    WordVectors: "word vectors",
}
_HOW = {
    Vocabulary: "give a corpus, or a vocabulary as `hstree vocab` writes it",
    Corpus: "give running text: a .txt or .txt.gz file, nltk:NAME or builtin:python",
    WordVectors: "give vectors (.npy, word2vec or GloVe), or train some with `hstree embed`",
}
_VECTOR_EXTENSIONS = (".npy", ".bin", ".bin.gz", ".vec", ".vec.gz")

#: Parameters and options of `build` itself, here and on the command line.
_RESERVED = frozenset(
    [
        *("method", "input", "output", "seed", "force", "train_split_only", "quiet", "help"),
        *("vocabulary", "labels", "min_count", "max_size", "lower"),
    ]
)


@dataclass(frozen=True)
class Builder:
    """A tree-building method.

    Attributes
    ----------
    name : str
        Name of the method.
    function : callable
        Makes a `Tree` from the main input and keyword options.
    takes : type
        `Vocabulary`, `Corpus` or `WordVectors`.
    summary : str
        First line of the docstring.
    options : tuple of Option
    package : str
        Package that provides it.
    """

    name: str
    function: Callable[..., Tree]
    takes: type
    summary: str
    options: tuple[Option, ...]
    package: str

    @property
    def takes_text(self) -> str:
        """Name of the type that it takes: "a corpus"."""
        return INPUTS[self.takes]

    @classmethod
    def of(cls, name: str, function: Callable[..., Tree], package: str = OWN) -> Builder:
        """Read the record of a builder function.

        Raises
        ------
        PluginError
            When the function is not a builder.
        """
        refuse = partial(unusable, "builder", name, package)
        try:
            main, *others = inspect.signature(function).parameters.values()
            hints = typing.get_type_hints(function)
        except (TypeError, ValueError, NameError, AttributeError) as error:
            raise refuse(f"its signature cannot be read ({error})") from error
        takes = hints.get(main.name)
        if takes not in INPUTS:
            raise refuse("its first parameter must be annotated Vocabulary, Corpus or WordVectors")
        for parameter in others:
            if parameter.kind is not parameter.KEYWORD_ONLY or parameter.name in _RESERVED:
                raise refuse(f"{parameter.name!r} must be keyword-only, and not a name of build's")
            if parameter.default is parameter.empty:
                raise refuse(f"the option {parameter.name!r} needs a default")
        try:
            options = options_of(function)
        except TypeError as error:
            raise refuse(str(error)) from error
        try:
            effective(options, {}, name)
        except OptionError as error:
            raise refuse(f"by default, {error}") from error
        summary = (inspect.getdoc(function) or "").partition("\n")[0]
        return cls(name, function, takes, summary, options, package)

    def effective(self, options: Mapping[str, object]) -> dict[str, Any]:
        """Return the value of each option, checked; its default where `options` lacks it.

        Raises
        ------
        OptionError
            For an unknown name, or a value that an option cannot have.
        """
        return effective(self.options, options, self.name)


def open_input(
    source: str | os.PathLike[str],
    method: Builder,
    *,
    vocabulary: Vocabulary | None = None,
    labels: str | os.PathLike[str] | None = None,
    **reading: Any,
) -> BuilderInput:
    """Open a file or a named corpus as the input of a builder.

    Parameters
    ----------
    source : str or path
        A file of vectors for a builder that takes vectors; a corpus for one that takes a corpus.
        For one that takes a vocabulary, the extension decides: `.tsv` is a vocabulary; `.npy`,
        `.bin` and `.vec` are vectors; anything else is a corpus.
    method : Builder
    vocabulary : Vocabulary, optional
        Words that a corpus is encoded with.
    labels : str or path, optional
        Labels file of a `.npy`.
    **reading
        Options of `Corpus.read`: `min_count`, `max_size`, `lower`, `cache`.

    Returns
    -------
    Vocabulary, Corpus or WordVectors
        See `convert_input`.

    Raises
    ------
    InputError
        When the file cannot be read as that.
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
        if name.endswith(_VECTOR_EXTENSIONS):
            return WordVectors.read(name, labels=labels)
    return Corpus.read(name, vocabulary=vocabulary, **reading)


def convert_input(input: object, method: Builder, vocabulary: Vocabulary | None) -> BuilderInput:
    """Convert an input to the type that a builder takes.

    A corpus, or vectors with counts, serve as a vocabulary.

    Parameters
    ----------
    input : object
    method : Builder
    vocabulary : Vocabulary, optional
        Words of the tree. A corpus is encoded with them; vectors stay as they are.

    Raises
    ------
    InputError
        When it is neither of that type nor convertible to it.
    OptionError
        When `vocabulary` is given and the input is the vocabulary.
    """
    if isinstance(input, Corpus):
        corpus = input if vocabulary is None else input.with_vocabulary(vocabulary)
        if method.takes is Corpus:
            return corpus
        if method.takes is Vocabulary:
            return corpus.counted_vocabulary()
    elif method.takes is WordVectors and isinstance(input, WordVectors):
        return input
    elif method.takes is Vocabulary and isinstance(input, Vocabulary | WordVectors):
        if vocabulary is not None:
            raise OptionError(
                f"{method.name} takes a vocabulary: give that alone, as the input, "
                "not beside another one"
            )
        return input if isinstance(input, Vocabulary) else _vocabulary_of(input, method)
    what = INPUTS.get(type(input), f"a {type(input).__name__}")
    raise InputError(f"{method.name} takes {method.takes_text}, not {what}; {_HOW[method.takes]}")


def _vocabulary_of(vectors: WordVectors, method: Builder) -> Vocabulary:
    if vectors.counts is None:
        raise InputError(
            f"{method.name} takes a vocabulary, and these vectors come without counts; "
            "add them to NAME.labels.tsv beside NAME.npy (word<TAB>count), or give vocab.tsv"
        )
    return Vocabulary(vectors.labels, vectors.counts, source=vectors.source)
