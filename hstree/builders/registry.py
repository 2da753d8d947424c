"""The builders by name, those of other packages too, and `build`, which runs one of them.

Another package adds its own through the entry-point group ``hstree.builders``::

    [project.entry-points."hstree.builders"]
    zigzag = "their_package.trees:zigzag"
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from hstree._files import open_regular, recorded_name
from hstree._version import __version__
from hstree.builders.shared.inputs import BuilderInput, as_taken, open_input
from hstree.builders.shared.join import over_vocabulary
from hstree.builders.shared.signature import OWN, Builder
from hstree.data.corpus import Corpus
from hstree.data.provenance import Text, texts
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.data.word_files import texts_of_file
from hstree.errors import (
    FileFormatError,
    HstreeError,
    InputError,
    MissingExtraError,
    OptionError,
    PluginError,
)
from hstree.tree import Tree
from hstree.tree.json_format import dump_meta

GROUP = "hstree.builders"

#: hstree's own builders: method -> module and function. Imported when asked for, so that one
#: method does not wait for the libraries of another.
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


def builders() -> dict[str, Builder]:
    """Return every builder that works: hstree's own, then those of other packages by name."""
    native = {method: _native(method) for method in NATIVE}
    return native | {name: found for name, found in _plugins() if isinstance(found, Builder)}


def broken_builders() -> dict[str, str]:
    """Return the builders of other packages that cannot be used, and why: one line each."""
    return {name: str(found) for name, found in _plugins() if isinstance(found, HstreeError)}


def builder(method: str) -> Builder:
    """Return a builder by name.

    Raises
    ------
    OptionError
        When there is none of that name.
    HstreeError
        When there is one, in another package, that cannot be used.
    """
    if method in NATIVE:
        return _native(method)
    plugins = dict(_plugins())
    found = plugins.get(method)
    if isinstance(found, Builder):
        return found
    if found is not None:
        raise found
    known = [*NATIVE, *plugins]
    close = get_close_matches(method, known, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise OptionError(f"there is no method {method!r}; {hint}there are {', '.join(known)}")


def build(
    method: str,
    input: BuilderInput | str | os.PathLike[str],
    *,
    vocabulary: Vocabulary | str | os.PathLike[str] | None = None,
    **options: Any,
) -> Tree:
    """Build a tree.

    Parameters
    ----------
    method : str
        One of `builders()`: "huffman", "flat", ...
    input : Vocabulary, Corpus, WordVectors, str or path
        A corpus, or vectors with counts, serve where a vocabulary is needed. A name is opened
        as what the method takes; see `hstree.builders.open_input`.
    vocabulary : Vocabulary, str or path, optional
        The words of the tree. With vectors, words that have none go into a Huffman tree of their
        own beside the rest, and meta["input"] says how many they are; with a corpus, it is seen
        through this vocabulary.
    **options
        The method's own.

    Returns
    -------
    Tree
        Its meta records the method, every option's value, the random state, hstree's version
        and the input, beside what the builder itself put there.

    Raises
    ------
    OptionError
        For an unknown method or option, or a value that an option cannot have.
    InputError
        When the input cannot be read, or is not what the method takes.
    PluginError
        When the builder of another package fails, or makes something else than a tree over the
        words that it was given.

    Examples
    --------
    >>> tree = build("huffman", Vocabulary(["a", "b", "c"], [1, 5, 2]), arity=2)
    >>> tree.meta["method"], tree.meta["options"]
    ('huffman', {'arity': 2})
    """
    chosen = builder(method)
    values = chosen.effective(options)
    if isinstance(vocabulary, str | os.PathLike):
        vocabulary = Vocabulary.from_file(vocabulary)
    if isinstance(input, str | os.PathLike):
        input = open_input(input, chosen, vocabulary=vocabulary)
    given = as_taken(input, chosen, vocabulary)
    source = _source(given, values)

    make = partial(_made, chosen, values)
    if isinstance(given, WordVectors) and vocabulary is not None:
        tree, coverage = over_vocabulary(make, given, vocabulary)
        source |= coverage
    else:
        tree = make(given)
    made = _meta(chosen, values, source)
    # A builder may record what an option led to, where the option says only where to find it.
    if isinstance(own := tree.meta.get("options"), dict):
        made["options"] |= own
    return tree.with_meta(tree.meta | made)


def _made(chosen: Builder, values: Mapping[str, Any], given: BuilderInput) -> Tree:
    """Run a builder; what another package's does wrong is reported by its name.

    Raises
    ------
    PluginError
    """
    if chosen.package == OWN:
        return chosen.function(given, **values)
    whose = f"the builder {chosen.name!r} of the package {chosen.package}"
    try:
        tree: object = chosen.function(given, **values)
    except (OptionError, InputError, FileFormatError, MissingExtraError):
        raise  # what a builder says to its user
    except (Exception, SystemExit) as error:
        raise PluginError(f"{whose} failed: {_told(error)}") from error
    if not isinstance(tree, Tree):
        raise PluginError(f"{whose} returned a {type(tree).__name__}, not a Tree")
    words = given.labels if isinstance(given, WordVectors) else _vocabulary(given).words
    if len(tree.labels) != len(words) or set(tree.labels) != set(words):
        raise PluginError(
            f"{whose} returned a tree over other words: {tree.n_labels:,} labels for the "
            f"{len(words):,} words of its input"
        )
    try:
        dump_meta(tree.meta)
    except FileFormatError as error:
        raise PluginError(f"{whose}: {error}") from error
    return tree


def _vocabulary(given: Corpus | Vocabulary) -> Vocabulary:
    return given.vocabulary if isinstance(given, Corpus) else given


def _told(error: BaseException) -> str:
    """Return what an error is and says, on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")


def recorded(method: str, input: BuilderInput, **options: Any) -> dict[str, Any]:
    """Return what `build` would record of how a tree is made, without making it.

    Parameters
    ----------
    method, input, **options
        As `build` takes them; the input is opened already.

    Returns
    -------
    dict
        The tree's meta, but for what the builder itself puts there.

    Raises
    ------
    OptionError, InputError
        As `build` raises them for a wrong option, or an input that does not fit.
    """
    chosen = builder(method)
    values = chosen.effective(options)
    return _meta(chosen, values, _source(as_taken(input, chosen, None), values))


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


def _source(given: BuilderInput, values: Mapping[str, Any]) -> dict[str, object]:
    """Return what a tree's meta says of its input and of the files that options name."""
    return (given.record if isinstance(given, Corpus) else given.source) | _files(values)


def _files(values: Mapping[str, Any]) -> dict[str, object]:
    """Return the hash of each file that an option names, and the texts these were made from.

    A file's content is input, its path is not.
    """
    hashes = {}
    made_from: list[Text] = []
    for name, value in values.items():
        if not isinstance(value, Path) or value.is_dir():
            continue
        try:
            with open_regular(value) as file:
                hashes[name] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(f"cannot read {value} ({name}): {reason}") from error
        made_from += texts_of_file(value)
    found: dict[str, object] = {"files": hashes} if hashes else {}
    return {**found, "texts_of_files": texts(made_from)} if made_from else found


def _native(method: str) -> Builder:
    module, _, function = NATIVE[method].partition(":")
    return Builder.of(method, getattr(import_module(module), function))


def _plugins() -> list[tuple[str, Builder | HstreeError]]:
    """Load what other packages offer; for one that cannot be used, the error instead."""
    offered = sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value))
    return [(entry.name, _plugin(entry)) for entry in offered]


def _plugin(entry: EntryPoint) -> Builder | HstreeError:
    package = (entry.dist and entry.dist.name) or entry.module
    try:
        if entry.name in NATIVE:
            return PluginError(
                f"the builder {entry.name!r} of the package {package} cannot be used: "
                "hstree has one of that name"
            )
        return Builder.of(entry.name, entry.load(), package)
    except HstreeError as error:
        return error
    except (Exception, SystemExit) as error:  # whatever a foreign module does when imported
        failure = PluginError(
            f"the builder {entry.name!r} of the package {package} cannot be loaded: "
            f"{_told(error)}; update or uninstall {package}"
        )
        failure.__cause__ = error
        return failure
