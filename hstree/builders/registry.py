"""Builders by name, those of other packages too, and `build`, which runs one.

Another package adds its own through the entry-point group ``hstree.builders``::

    [project.entry-points."hstree.builders"]
    zigzag = "their_package.trees:zigzag"
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hstree._files import current_file, explained, open_regular, recorded_name
from hstree._plugins import PACKAGE, Registry, titled
from hstree._text import named_error
from hstree._typing import Array
from hstree._version import __version__
from hstree.builders.shared.builder import Builder, BuilderInput, convert_input, open_input
from hstree.builders.shared.join import over_vocabulary
from hstree.data.corpus import Corpus
from hstree.data.provenance import Text, texts
from hstree.data.vectors import KeyedVectorsLike, WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.data.word_files import texts_of_file
from hstree.errors import FileFormatError, InputError, MissingExtraError, OptionError, PluginError
from hstree.tree import Tree
from hstree.tree.files import dump_meta

#: hstree's own builders: method -> module and function. Imported when used, so that a method does
#: not wait for the libraries of another.
NATIVE = {
    "random": "hstree.builders.random:random",
    "balanced": "hstree.builders.balanced:balanced",
    "huffman": "hstree.builders.huffman:huffman",
    "flat": "hstree.builders.flat:flat",
    "gmm": "hstree.builders.gmm:gmm",
    "kmeans": "hstree.builders.kmeans:kmeans",
    "linkage": "hstree.builders.linkage:linkage",
    "semantic": "hstree.builders.semantic:semantic",
    "wordnet": "hstree.builders.wordnet.builder:wordnet",
    "classes": "hstree.builders.classes:classes",
}
#: File of a trained model's folder.
MODEL_CONFIG = "config.json"

BUILDERS = Registry("builder", "hstree.builders", NATIVE, Builder.of, called="method")


def builders() -> dict[str, Builder]:
    """Return all working builders by name: hstree's own, then those of other packages."""
    return BUILDERS.all()


def broken_builders() -> dict[str, str]:
    """Return the error message of each builder of another package that cannot be used."""
    return BUILDERS.broken()


def builder(method: str) -> Builder:
    """Return a builder by name; OptionError if there is none, PluginError if it cannot be used."""
    return BUILDERS.get(method)


def build(
    method: str,
    input: BuilderInput | Mapping[str, int] | Array | KeyedVectorsLike | str | os.PathLike[str],
    *,
    vocabulary: Vocabulary | str | os.PathLike[str] | None = None,
    **options: Any,
) -> Tree:
    """Build a tree.

    Parameters
    ----------
    method : str
        Name of a builder: "huffman", "flat", ...; see `builders`.
    input : Vocabulary, Corpus, WordVectors, dict, array, KeyedVectors, str or path
        A corpus, a dict or `Counter` of words, or vectors with counts, serve as a vocabulary. An
        array (V, d) is vectors labelled "0" to "V - 1", its row numbers; gensim's ``KeyedVectors``
        are vectors, with their counts. A name is opened as what the method takes; see
        `hstree.builders.open_input`.
    vocabulary : Vocabulary, str or path, optional
        Words of the tree. A corpus is encoded with them. Words without a vector go into a Huffman
        tree beside the rest; meta["input"] has their number.
    **options
        Options of the method.

    Returns
    -------
    Tree
        Its meta records the method, the value of each option, the random state, hstree's version
        and the input, besides the builder's entries.

    Raises
    ------
    OptionError
        For an unknown method or option, or an illegal value of an option.
    InputError
        When the input cannot be read, or is not what the method takes.
    PluginError
        When the builder of another package fails, or returns something else than a tree over the
        words of its input.

    Examples
    --------
    >>> tree = build("huffman", {"a": 1, "b": 5, "c": 2}, arity=2)
    >>> tree.meta["method"], tree.meta["options"]
    ('huffman', {'arity': 2})
    """
    chosen = builder(method)
    values = chosen.effective(options)
    if isinstance(vocabulary, str | os.PathLike):
        vocabulary = Vocabulary.from_file(vocabulary)
    if isinstance(input, str | os.PathLike):
        input = open_input(input, chosen, vocabulary=vocabulary)
    input = convert_input(input, chosen, vocabulary)
    source = _source(input, values)

    meta = _meta(chosen, values, source)
    run = partial(_run, chosen, values)
    if isinstance(input, WordVectors) and vocabulary is not None:
        tree, coverage = over_vocabulary(run, input, vocabulary)
        source |= coverage
    else:
        tree = run(input)
    # A builder may replace the value of an option by what it led to, such as a version.
    if isinstance(options_used := tree.meta.get("options"), dict):
        meta["options"] |= options_used
    return tree.with_meta(tree.meta | meta)


def _run(chosen: Builder, values: Mapping[str, Any], input: BuilderInput) -> Tree:
    """Run a builder; raise PluginError for what is wrong with that of another package."""
    if chosen.package == PACKAGE:
        return chosen.function(input, **values)
    title = titled("builder", chosen.name, chosen.package)
    try:
        tree: object = chosen.function(input, **values)
    except (OptionError, InputError, FileFormatError, MissingExtraError):
        raise  # meant for the user
    except (Exception, SystemExit) as error:
        raise PluginError(f"{title} failed: {named_error(error)}") from error
    if not isinstance(tree, Tree):
        raise PluginError(f"{title} returned a {type(tree).__name__}, not a Tree")
    has_words = input.vocabulary if isinstance(input, Corpus) else input
    words = has_words.labels if isinstance(has_words, WordVectors) else has_words.words
    if len(tree.labels) != len(words) or set(tree.labels) != set(words):
        raise PluginError(
            f"{title} returned a tree over other words: {tree.n_labels:,} labels for the "
            f"{len(words):,} words of its input"
        )
    try:
        dump_meta(tree.meta)
    except FileFormatError as error:
        raise PluginError(f"{title}: {error}") from error
    return tree


def recorded(method: str, input: BuilderInput, **options: Any) -> dict[str, Any]:
    """Return the meta that `build` would give a tree, but for the builder's entries.

    Parameters and errors are those of `build`, with an opened input; nothing is built.
    """
    chosen = builder(method)
    values = chosen.effective(options)
    return _meta(chosen, values, _source(convert_input(input, chosen, None), values))


def _meta(chosen: Builder, values: Mapping[str, Any], source: object) -> dict[str, Any]:
    options = {
        name: recorded_name(value.name) if isinstance(value, Path) else value
        for name, value in values.items()
        if name != "random_state"
    }
    return {
        "method": chosen.name,
        "options": options,
        "random_state": values.get("random_state"),
        "hstree": __version__,
        "input": source,
    }


def is_recorded(values: Mapping[str, Any]) -> bool:
    """Return whether the record of the input has all that options name: not so with a folder.

    The folder of a model is recorded by its config, which has the hashes of the rest.
    """
    return all(
        _file_of(value) is not None
        for value in values.values()
        if isinstance(value, str | Path) and os.path.isdir(value)
    )


def _file_of(value: str | Path) -> Path | None:
    """Return the file whose hash records what an option names; None for a folder of no model."""
    path = Path(value)
    if not path.is_dir():
        return path
    config = current_file(path, MODEL_CONFIG)
    return config if config.exists() else None


def _source(input: BuilderInput, values: Mapping[str, Any]) -> dict[str, object]:
    """Return the record of the input, and of files that options name: hashes, and their texts."""
    hashes, made_from = {}, list[Text]()
    for name, value in values.items():
        if not isinstance(value, Path) or (path := _file_of(value)) is None:
            continue
        with explained(f"read {path} ({name})"), open_regular(path) as file:
            hashes[name] = hashlib.file_digest(file, "sha256").hexdigest()
        if path == value:
            made_from += texts_of_file(value)
    record: dict[str, object] = dict(input.record if isinstance(input, Corpus) else input.source)
    record |= {"files": hashes} if hashes else {}
    return record | ({"texts_of_files": texts(made_from)} if made_from else {})
