"""The record of a builder (name, input, options), and conversion of its input."""

import inspect
import os
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from msgspec import Meta

from hstree._files import UNPACK
from hstree._options import Option, effective, read_options
from hstree._plugins import PACKAGE, read_summary, unusable
from hstree.data.arrays import count_axes
from hstree.data.corpus import Corpus
from hstree.data.vectors import KeyedVectorsLike, WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError, OptionError
from hstree.tree import Tree

BuilderInput = Vocabulary | Corpus | WordVectors

#: Type of the main input -> its name in messages, and a list of the inputs that users can give.
_INPUTS: dict[type, tuple[str, str]] = {
    Vocabulary: (
        "a vocabulary",
        "give counts (a dict, a Series, an array), a corpus, or a file written by "
        "`Vocabulary.save`",
    ),
    Corpus: (
        "a corpus",
        "give running text: lines, lists of tokens, a .txt or .txt.gz file, nltk:NAME or "
        "builtin:python",
    ),
    WordVectors: (
        "word vectors",
        "give an array (V, d), gensim's KeyedVectors or a file of vectors (.npy, word2vec or "
        "GloVe), or train vectors with `hstree.CBOW`",
    ),
}
_COUNT_EXTENSIONS = (".tsv", ".csv")
_VECTOR_EXTENSIONS = (".npy", ".bin", ".vec")

#: Names that options of builders must not have: parameters of `build` and of the command line.
_RESERVED = {
    "method",
    "input",
    "vocabulary",
    "labels",
    "counts",
    "output",
    "seed",
    "force",
    "train_split_only",
    "quiet",
    "help",
    "min_count",
    "max_size",
    "unk",
    "lower",
    "text",
}

#: Option with which `build` grows a tree instead of running the builder.
FROM = Option.of(
    "from",
    Path | None,
    help="File of a tree to grow instead of building one. New words get leaves beside similar "
    "words, labels that are not in the input are removed, and all other nodes stay; see "
    "hstree.grow.",
)

#: Option of builders that have no short list of their own. The builder makes a tree of the less
#: frequent words, and `build` puts the most frequent words beside it (`shared.short_list`).
SHORT_LIST = Option.of(
    "short_list",
    Annotated[int, Meta(ge=0)],
    0,
    help="Number of most frequent words that become children of the root, in order of frequency. "
    "The tree of the other words is the last child of the root; with several trees, each tree is a "
    "child.",
)


@dataclass(frozen=True)
class Builder:
    """A tree-building method."""

    name: str
    function: Callable[..., Tree]  #: returns a `Tree` for the main input and keyword options
    takes: type  #: `Vocabulary`, `Corpus` or `WordVectors`
    summary: str  #: first line of the docstring
    options: tuple[Option, ...]
    package: str  #: package that provides it

    @property
    def takes_text(self) -> str:
        """Name of the input in messages, such as "a corpus"."""
        return _INPUTS[self.takes][0]

    @classmethod
    def of(cls, name: str, function: Callable[..., Tree], package: str = PACKAGE) -> Self:
        """Return the record of a function. Raises PluginError if it is not a builder."""
        refuse = partial(unusable, "builder", name, package)
        try:
            main, *others = inspect.signature(function).parameters.values()
            hints = typing.get_type_hints(function)
        except (TypeError, ValueError, NameError, AttributeError) as error:
            raise refuse(f"its signature cannot be read ({error})") from error

        # The first parameter is the input, the others are options
        takes = hints.get(main.name)
        if takes not in _INPUTS:
            raise refuse("its first parameter must be annotated Vocabulary, Corpus or WordVectors")
        for parameter in others:
            if parameter.kind is not parameter.KEYWORD_ONLY or parameter.name in _RESERVED:
                raise refuse(
                    f"{parameter.name!r} must be keyword-only, and not a parameter of build"
                )
            if parameter.default is parameter.empty:
                raise refuse(f"the option {parameter.name!r} needs a default")
        try:
            options = read_options(function, frozenset({"n_jobs"}))  # changes no tree
            effective(options, {}, name)
        except TypeError as error:
            raise refuse(str(error)) from error
        except OptionError as error:
            raise refuse(f"by default, {error}") from error
        # Options that `build` implements for these builders
        if package == PACKAGE and (takes is WordVectors or name == "huffman"):
            options += (FROM,)
        if all(option.name != SHORT_LIST.name for option in options):
            options += (SHORT_LIST,)
        return cls(name, function, takes, read_summary(function)[0], options, package)


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
        If the builder takes vectors, a file of vectors. If it takes a corpus, a corpus. If it takes
        a vocabulary, the extension decides: `.tsv` and `.csv` are words with counts; `.npy`, `.bin`
        and `.vec` are vectors; anything else is a corpus.
    method : Builder
    vocabulary : Vocabulary, optional
        Vocabulary that encodes a corpus.
    labels : str or path, optional
        File with the labels of a `.npy` file.
    **reading
        Options of `Corpus.read`: `min_count`, `max_size`, `unk`, `lower`, `text`, `cache`.

    Raises
    ------
    InputError
        When the builder does not take such a file.
    """
    # Named corpora, and files that the user declares as text
    name = os.fspath(source)
    is_named_corpus = name.startswith(("nltk:", "builtin:"))
    if reading.get("text") and method.takes is not WordVectors:
        return Corpus.read(source, vocabulary=vocabulary, **reading)

    # For other files, the extension decides
    is_counts = name.removesuffix(".gz").lower().endswith(_COUNT_EXTENSIONS)
    if method.takes is WordVectors:
        if is_named_corpus or is_counts:
            raise _input_error(method, name)
        return WordVectors.read(name, labels=labels)
    if method.takes is Vocabulary and not is_named_corpus:
        if is_counts:
            return Vocabulary.from_file(name)
        unpacked_name = name.removesuffix(next(filter(name.endswith, UNPACK), ""))
        if unpacked_name.endswith(_VECTOR_EXTENSIONS):
            return WordVectors.read(name, labels=labels)
    return Corpus.read(source, vocabulary=vocabulary, **reading)


def convert_input(
    input: Any,
    method: Builder,
    vocabulary: Vocabulary | None = None,
    *,
    labels: Any = None,
    counts: Any = None,
) -> BuilderInput:
    """Convert an input to the type that a builder takes.

    Counts, a text, and vectors with counts serve as a vocabulary. A text is encoded with
    `vocabulary`; vectors are returned unchanged. `labels` and `counts` belong to an array. Raises
    InputError when the input cannot be converted, and OptionError when `vocabulary`, `labels` or
    `counts` does not apply to it.
    """
    input = _as_typed_input(input, method, vocabulary, labels, counts)

    # A text
    if isinstance(input, Corpus) and method.takes is not WordVectors:
        corpus = input if vocabulary is None else input.with_vocabulary(vocabulary)
        return corpus if method.takes is Corpus else corpus.counted_vocabulary()

    # Vectors, or words with counts; vectors may have counts, too
    if isinstance(input, WordVectors) and method.takes is WordVectors:
        return input
    if isinstance(input, Vocabulary | WordVectors) and method.takes is Vocabulary:
        if vocabulary is not None:
            raise OptionError(
                f"{method.name} takes one vocabulary; give it as the input and leave vocabulary= "
                "out"
            )
        if isinstance(input, Vocabulary):
            return input
        if input.counts is None:
            raise InputError(
                f"{method.name} takes a vocabulary, and these vectors come without counts; "
                "add them (counts=, or for NAME.npy word<TAB>count in NAME.labels.tsv), or give a "
                "vocabulary"
            )
        return Vocabulary(input.labels, input.counts, source=input.source)

    # Any other input, such as vectors for a builder that takes a text
    kind = "array" if isinstance(input, np.ndarray) else type(input).__name__
    article = "an" if kind[0] in "aeiouAEIOU" else "a"
    raise _input_error(method, _INPUTS.get(type(input), (f"{article} {kind}",))[0])


def _as_typed_input(
    input: Any, method: Builder, vocabulary: Vocabulary | None, labels: Any, counts: Any
) -> Any:
    """Convert an object to vectors, a vocabulary or a corpus; return others unchanged.

    A mapping, or an array with one axis, holds counts. An array with two axes holds vectors, or
    lines of token ids if the builder takes no vectors. Other iterables are lines or lists of
    tokens.
    """
    # Decide between vectors, counts and text. A table of integers may hold vectors or token ids: it
    # holds vectors if the builder takes vectors or if counts are given
    is_typed = isinstance(input, BuilderInput | Mapping)
    axes, is_whole = (0, False) if is_typed else count_axes(input)
    is_table = hasattr(input, "columns") or hasattr(input, "toarray")  # DataFrame or sparse matrix
    is_vectors = isinstance(input, WordVectors | KeyedVectorsLike) or (
        axes == 2
        and (method.takes is WordVectors or counts is not None or not (is_whole or is_table))
    )
    is_counts = method.takes is Vocabulary and (
        isinstance(input, Vocabulary | Mapping) or axes == 1
    )

    # Refuse labels and counts that would not be used
    if labels is not None and not (is_vectors or is_counts):
        raise OptionError.about("labels", "are only for vectors and counts; leave them out")
    if counts is not None and not is_vectors:
        raise OptionError.about("counts", "are only for vectors; leave them out")

    if is_vectors:
        return WordVectors.of(input, labels, counts)
    shape = getattr(input, "shape", ())
    if method.takes is Vocabulary and axes == 2 and 1 in shape and not is_table:
        raise InputError(
            f"an array of shape {tuple(shape)} may be counts or token ids; give counts as "
            "array.ravel(), or lines of token ids as a list of arrays"
        )
    if is_counts:
        return Vocabulary.of(input, labels)
    is_text = method.takes is not WordVectors and hasattr(input, "__iter__")
    return Corpus.of(input, vocabulary) if is_text and not (is_typed or is_table) else input


def _input_error(method: Builder, input_name: str) -> InputError:
    """Return the error for an input that the builder does not take."""
    remedy = _INPUTS[method.takes][1]
    return InputError(f"{method.name} takes {method.takes_text}, not {input_name}; {remedy}")
