"""Builders by name, including those of other packages, and `build`, which runs a builder.

Another package adds a builder through the entry-point group ``hstree.builders``::

    [project.entry-points."hstree.builders"]
    zigzag = "their_package.trees:zigzag"
"""

import hashlib
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hstree._files import open_regular
from hstree._options import effective, parse_options, typed_words
from hstree._parallel import doing_jobs
from hstree._plugins import PACKAGE, Registry, titled
from hstree._text import named_error, recorded_name
from hstree._version import __version__
from hstree.builders.builder import (
    FROM,
    SHORT_LIST,
    Builder,
    BuilderInput,
    convert_input,
    open_input,
)
from hstree.data.corpus import Corpus
from hstree.data.provenance import Text, collect_sources
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.data.word_files import texts_of_file
from hstree.errors import (
    FileFormatError,
    InputError,
    MissingExtraError,
    OptionError,
    PluginError,
    explained,
)
from hstree.tree import Tree, load
from hstree.tree.files import dump_meta

#: Built-in builders: method -> module and function. A builder is imported when it is used, so that
#: a method does not import the libraries of other methods.
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
    "classes": "hstree.builders.classes.builder:classes",
}

BUILDERS = Registry("builder", "hstree.builders", NATIVE, Builder.of, called="method")
builder = BUILDERS.get
builders = BUILDERS.all
broken_builders = BUILDERS.broken


def parse_method(method: str) -> tuple[Builder, dict[str, Any]]:
    """Return the builder and the options that a text such as "gmm epsilon=0.4" names.

    Raises OptionError if there is no such builder, or if an option has an invalid value.
    """
    if not isinstance(method, str):
        raise OptionError(f"the method is {method!r}; it must be text, such as 'huffman'")
    name, *pairs = typed_words(method) or [""]
    if "+" in pairs:
        command = shlex.join(["hstree", "compare", "CORPUS", method, "-o", "DIR"])
        raise OptionError(
            f"{method!r} includes an output layer, which a tree cannot have; `{command}` trains it"
        )
    chosen = BUILDERS.get(name)
    return chosen, parse_options(name, chosen.options, pairs)


def build(
    method: str | Callable[..., Tree],
    input: Any,
    *,
    labels: Sequence[str] | Sequence[int] | str | os.PathLike[str] | None = None,
    counts: Any = None,
    vocabulary: Vocabulary | str | os.PathLike[str] | None = None,
    from_tree: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> Tree:
    """Build a tree.

    Parameters
    ----------
    method : str or callable
        Name of a builder (see `builders`), also with options as on the command line, such as "gmm
        epsilon=0.4"; or a function of your own that has the signature of a builder
        (``docs/add-a-builder.md``).
    input : counts, vectors, text, str or path
        Counts: a dict, a `Counter`, a Series with its index, an array, list or tensor (V,), or a
        Vocabulary; floats must be whole numbers. Vectors: an array, tensor or DataFrame (V, d),
        gensim's ``KeyedVectors``, or WordVectors. Text: a Corpus, or anything that `Corpus.of`
        accepts. Methods that take counts also accept a text, or vectors with counts. A file is read
        as the input that the method takes; see `hstree.builders.open_input`.
    labels : sequence of str or int, optional
        Labels of counts or vectors (default: the index of a Series or a DataFrame, else "0" to
        "V - 1"). For a file of vectors, the file of labels.
    counts : array_like of int, dict or Series, optional
        Counts for vectors, in the order of the labels or by label.
    vocabulary : Vocabulary, str or path, optional
        Words of the tree. A corpus is encoded with them. Words without a vector form a Huffman tree
        beside the tree of the other words; meta["input"] has the number of words without a vector.
    from_tree : str or path, optional
        File of a tree that is pruned and grown (`hstree.grow`) until it has the words, instead of
        building a new tree. The method decides whether vectors or counts are used. On the command
        line, this is the option ``from=FILE``.
    n_jobs : int, optional
        Number of parallel jobs, for gmm, kmeans and semantic; -1 uses all cores, as in
        scikit-learn. The tree does not depend on it.
    **options
        Options of the method. They replace those in the text of the method.

    Returns
    -------
    Tree
        Its meta has the entries of the builder, and records the method, the value of each option,
        the random state, the version of hstree and the input.

    Raises
    ------
    OptionError
        When a method or an option is unknown, or the value of an option is illegal.
    InputError
        When the input cannot be read, or the method does not take it.
    PluginError
        When a builder that is not part of hstree fails, does not have the signature of a builder,
        or does not return a tree over the words of its input.

    Examples
    --------
    >>> tree = build("huffman", {"a": 1, "b": 5, "c": 2}, arity=2)
    >>> tree.meta["method"], tree.meta["options"]
    ('huffman', {'arity': 2})
    >>> rows = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]
    >>> build("gmm", rows, labels=["cat", "dog", "car"], counts=[5, 2, 4])
    Tree(3 labels, 2 nodes, method='gmm')
    >>> def star(words: Vocabulary) -> Tree:
    ...     return Tree.from_children(words.words, [[~i for i in range(len(words))]])
    >>> build(star, {"a": 1, "b": 5, "c": 2})
    Tree(3 labels, 1 nodes, method='star')
    """
    if callable(method):
        chosen = _builder_of(method)
    else:
        chosen, typed_options = parse_method(method)
        options = typed_options | options
    if from_tree is not None:
        options[FROM.name] = from_tree
    values = effective(chosen.options, options, chosen.name)
    old_tree_file = values.pop(FROM.name, None)
    n_frequent = 0
    if any(option is SHORT_LIST for option in chosen.options) and old_tree_file is None:
        # Without a short list, the tree and its meta come from the builder alone
        n_frequent = values.pop(SHORT_LIST.name)

    # Convert the input to the type that the builder takes
    if isinstance(vocabulary, str | os.PathLike):
        vocabulary = Vocabulary.from_file(vocabulary)
    if isinstance(input, str | os.PathLike):
        labels_file = labels if isinstance(labels, str | os.PathLike) else None
        input = open_input(input, chosen, vocabulary=vocabulary, labels=labels_file)
        labels = labels if labels_file is None else None
    input = convert_input(input, chosen, vocabulary, labels=labels, counts=counts)

    # Record the options; files by name, hash and the texts from which they were made
    recorded = values if old_tree_file is None else {FROM.name: old_tree_file}
    used_options = dict[str, Any]()
    file_hashes = dict[str, str]()
    file_texts = list[Text]()
    for name, value in recorded.items():
        used_options[name] = recorded_name(value.name) if isinstance(value, Path) else value
        if isinstance(value, Path) and not value.is_dir():
            with explained(f"read {value} ({name})"), open_regular(value) as file:
                file_hashes[name] = hashlib.file_digest(file, "sha256").hexdigest()
            file_texts += texts_of_file(value)
    if n_frequent:
        used_options[SHORT_LIST.name] = n_frequent
    random_state = used_options.pop("random_state", None)
    input_meta: dict[str, object] = {"files": file_hashes} if file_hashes else {}
    if file_texts:
        input_meta["texts_of_files"] = collect_sources(file_texts)

    # Build the tree
    function = chosen.function if chosen.package == PACKAGE else partial(_run_plugin, chosen)
    run = partial(function, **values)
    with doing_jobs(n_jobs):
        if old_tree_file is not None:
            tree = _grow_file(chosen, old_tree_file, values, input, vocabulary)
            input_meta |= tree.meta["input"]
        elif n_frequent:
            from hstree.builders.shared.short_list import build_with_short_list

            n_trees = values.get("trees", 1) if chosen.package == PACKAGE else 1
            tree, coverage = build_with_short_list(run, input, vocabulary, n_frequent, n_trees)
            input_meta |= coverage
        elif isinstance(input, WordVectors) and vocabulary is not None:
            from hstree.builders.shared.coverage import build_over_vocabulary

            tree, coverage = build_over_vocabulary(run, input, vocabulary)
            input_meta |= coverage
        else:
            tree = run(input)

    # A builder may replace the value of an option by its result, such as a version
    replaced = tree.meta.get("options")
    if isinstance(replaced, dict):
        used_options |= replaced
    source = input.record if isinstance(input, Corpus) else input.source
    meta = {
        "method": chosen.name,
        "options": used_options,
        "random_state": random_state,
        "hstree": __version__,
        "input": source | input_meta,
    }
    return tree.with_meta(tree.meta | meta)


def _builder_of(function: Callable[..., Tree]) -> Builder:
    """Return the record of a function. Raises PluginError if its signature is not a builder's."""
    name = getattr(function, "__name__", type(function).__name__)
    module = function.__module__ or "__main__"  # None for a function made by exec
    return Builder.of(name, function, module.partition(".")[0])


def _grow_file(
    chosen: Builder,
    file: Path,
    values: Mapping[str, Any],
    input: BuilderInput,
    vocabulary: Vocabulary | None,
) -> Tree:
    """Read a tree from a file; prune and grow it to the words of an input."""
    from hstree.builders.grow import grow_to_words  # other builds do not need it

    for option in chosen.options:
        is_used = option.name in (FROM.name, "random_state")
        if not is_used and values[option.name] != option.default:
            raise OptionError(
                f"{chosen.name}: {option.name} has no effect with from, which grows an existing "
                "tree; leave one of them out"
            )
    old = load(file)
    provenance = {"from": old.meta.get("input")}
    if vocabulary is not None:
        provenance["vocabulary"] = vocabulary.source
    return grow_to_words(old, input, vocabulary).with_meta({"input": provenance})


def _run_plugin(chosen: Builder, input: BuilderInput, **values: Any) -> Tree:
    """Run a builder of another package; raise PluginError if it fails."""
    title = titled("builder", chosen.name, chosen.package)
    word_list = input.vocabulary if isinstance(input, Corpus) else input
    words = word_list.labels if isinstance(word_list, WordVectors) else word_list.words
    try:
        tree: object = chosen.function(input, **values)
    except (OptionError, InputError, FileFormatError, MissingExtraError):
        raise  # errors that the user can fix
    except (Exception, SystemExit) as error:
        raise PluginError(f"{title} failed: {named_error(error)}") from error
    if not isinstance(tree, Tree):
        raise PluginError(f"{title} returned a {type(tree).__name__}, not a Tree")
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
