"""Rows: whatever can stand in a comparison, written in one way everywhere.

::

    row    =  [K x] output [+ layer]
    output =  NAME key=value ...  |  a tree file  |  knN
    layer  =  NAME key=value ...

Keys and values are the Python names and values of a builder's or a layer's options; ``true`` and
``false`` for switches, ``none`` for nothing, quotes as in a shell around blanks. `Row.parse` reads
a row and `str` writes it, with the options that differ from their defaults, in their order.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from hstree._options import Option, Range, check_value, effective
from hstree.builders import Builder, build
from hstree.builders.registry import BUILDERS
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import EOS, Vocabulary
from hstree.errors import InputError, OptionError, owned_by
from hstree.layers.registry import LAYERS, TREE_LAYER, LayerKind, LayerSpec, layer_spec
from hstree.models import kind_of
from hstree.tree import Tree, load
from hstree.tree.files import ENDINGS

if TYPE_CHECKING:
    from hstree.experiments.results import JobResult
    from hstree.experiments.run import Job, Runner

FLAT = "flat"
#: Named sets of rows, which stand for their rows.
SETS = ("trees", "approximations")
#: Rows of a comparison that names none.
DEFAULT = (
    *("huffman", "huffman + ngrams", "gmm", "gmm + ngrams", "classes", "classes + ngrams"),
    *("sampled", FLAT, "kn5"),
)
_TREES = ("random", "huffman", "semantic", "gmm", "gmm epsilon=0.4 trees=4", "classes", FLAT)
_LONGEST_FOLDER = 80
#: A tree over which layers of trees that are not built yet are checked.
_SMALLEST = Tree.from_children([EOS, "a"], [[~0, ~1]])
#: Key of a file of word vectors to build from, of builders that take vectors.
_VECTORS_FILE = "vectors_file"


class Row(ABC):
    """Whatever can stand in a comparison.

    Kinds of rows differ by what these methods return. Rows are equal when they are spelled alike.

    Attributes
    ----------
    models : int
        Number of models whose probabilities are averaged.
    kind : {"tree", "layer", "ngram"}
        What the figures of the row are of.
    method : str
        Name of the builder, the layer or the n-gram model.
    layer : str or None
        Layer over a tree with its options, unless it is the hierarchical softmax.
    source : Row or None
        The row whose model learns the vectors that this one is built from.
    """

    models: int = 1
    kind: Literal["tree", "layer", "ngram"]
    layer: str | None = None
    source: Row | None = None

    @staticmethod
    def parse(text: str) -> Row:
        """Return the row of a text.

        Raises
        ------
        OptionError
            When there is no such builder, layer or option, or an option cannot have its value.

        Examples
        --------
        >>> row = Row.parse("2 x gmm trees=2 epsilon=0.40 + ngrams")
        >>> str(row), row.models, row.folder
        ('2 x gmm epsilon=0.4 trees=2 + ngrams', 2, '2-x-gmm-epsilon-0.4-trees-2-ngrams')
        """
        try:
            tokens = shlex.split(text)
        except ValueError as error:
            raise OptionError(f"{text!r} is no row: {str(error).lower()}") from error
        refuse_flags(text, tokens)
        if len(tokens) > 2 and tokens[1] == "x" and tokens[0].isdecimal():
            return Several(Row.parse(shlex.join(tokens[2:])), int(tokens[0]))
        parts = _split(tokens, "+")
        if not all(parts) or len(parts) > 2:
            raise OptionError(
                f'{text!r} is no row; a row is an output, as in "gmm epsilon=0.4", or an output '
                'and a layer, as in "gmm + ngrams"'
            )
        (name, *pairs), *more = parts
        if match := re.fullmatch(r"kn(\d+)", name):
            return NGram(int(match[1]), *_no_more(text, pairs, more))
        over = _named_layer(*more[0]) if more else (TREE_LAYER, {})
        if name.endswith(ENDINGS):
            return TreeRow(name, *_no_more(text, pairs, []), over=Over(*over))
        if name in BUILDERS.names() or name not in LAYERS.names():
            known = BUILDERS.get(name) if name in BUILDERS.names() else _unknown(name)
            return BuilderRow(known, _values(_options_of(known), pairs, name), Over(*over))
        return LayerRow(*_named_layer(name, *pairs), *_no_more(text, [], more))

    @staticmethod
    def of(entry: Row | str | Tree) -> Row:
        """Return a row as it is, that of a text, or that of a tree; else OptionError."""
        if isinstance(entry, Row):
            return entry
        if isinstance(entry, Tree):
            return TreeRow.of_tree(entry)
        if isinstance(entry, str):
            return Row.parse(entry)
        raise OptionError(
            f'{entry!r} cannot be compared; give a row as a text, such as "gmm epsilon=0.4", or '
            "a tree"
        )

    @abstractmethod
    def __str__(self) -> str: ...

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Row) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return f"Row.parse({str(self)!r})"

    @property
    @abstractmethod
    def method(self) -> str:
        """Name of the builder, the layer or the n-gram model."""

    @property
    @abstractmethod
    def options(self) -> dict[str, Any]:
        """Value of each option of the method, by their Python names."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """One sentence: what the method does."""

    @cached_property
    def folder(self) -> str:
        """Name of the row's folder: plain letters, with a hash where they may not be unique."""
        text = str(self).replace(" + ", " ")
        plain = re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.").lower()
        if len(plain) <= _LONGEST_FOLDER and re.fullmatch(r"[a-z0-9 ._=-]+", text):
            return plain
        return f"{plain[:_LONGEST_FOLDER]}-{_hash(str(self))}"

    @property
    def single(self) -> Row:
        """What each of its models is: the row itself, unless it has several."""
        return self

    @property
    def is_trained(self) -> bool:
        """Whether it is an output layer, not an n-gram model."""
        return self.kind != "ngram"

    @property
    def is_flat(self) -> bool:
        """Whether it is one plain flat softmax."""
        return str(self) == FLAT

    @property
    def tree_row(self) -> Row:
        """The row that shares its tree: this one without its layer."""
        return self

    def states(self, number: int, first: int) -> range:
        """Return the random states of the models of one seed, by its number from 0 on."""
        start = first + number * self.models
        return range(start, start + self.models)

    @abstractmethod
    def check(self, words: Vocabulary, config: Mapping[str, Any]) -> None:
        """Refuse a row that cannot be trained on a text with these words, by this model."""

    @abstractmethod
    def run(self, runner: Runner, job: Job, **limit: Any) -> JobResult:
        """Do one job of the row: train and score a model, or fit one."""


class OutputRow(Row):
    """A row that is trained: an output layer of a model."""

    def run(self, runner: Runner, job: Job, **limit: Any) -> JobResult:
        """Train and score the model."""
        return runner.train(job, **limit)

    @abstractmethod
    def spec(self, train: Corpus, tree: Tree | None) -> LayerSpec:
        """Return the output layer over the words of a training split, and over the built tree."""

    def build(self, train: Corpus, seed: int, vectors: Path | None) -> Tree | None:
        """Build the tree of a seed from a training split, or from vectors; None without a tree."""
        return None

    @abstractmethod
    def trial(self, words: Vocabulary) -> LayerSpec:
        """Return the output layer over few words, or as it is, to check its options."""

    def check(self, words: Vocabulary, config: Mapping[str, Any]) -> None:
        """Refuse a layer whose files cannot be read, or that the model gives no contexts to."""
        layer = self.trial(words).new(config["dim"])
        with owned_by(self.method):
            layer.check()
        if layer.needs_contexts:
            need_language_model(
                config,
                f"{self} needs the words before each target",
                "train a language model, or leave the row out",
            )


@dataclass(frozen=True, eq=False, repr=False)
class Over:
    """The layer over a tree."""

    name: str = TREE_LAYER
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a layer that takes no tree."""
        if LAYERS.get(self.name).takes is not Tree:
            raise OptionError(
                f"the output layer {self.name!r} is not over a tree; it is a row alone"
            )

    def __str__(self) -> str:
        return spelled(self.name, LAYERS.get(self.name).options, self.options)

    @property
    def text(self) -> str | None:
        """The layer as a row names it; None for the hierarchical softmax."""
        return None if str(self) == TREE_LAYER else str(self)

    @property
    def suffix(self) -> str:
        """What follows the output in a row."""
        return "" if self.text is None else f" + {self.text}"

    def spec(self, tree: Tree) -> LayerSpec:
        """Return the layer over a tree."""
        return layer_spec(tree, self.name, **self.options)


@dataclass(frozen=True, eq=False, repr=False)
class BuilderRow(OutputRow):
    """A builder with its options, and the layer over its tree."""

    builder: Builder
    values: Mapping[str, Any] = field(default_factory=dict)
    over: Over = field(default_factory=Over)

    kind = "tree"

    @classmethod
    def named(cls, name: str, **values: Any) -> Self:
        """Return the row of a builder and some options."""
        builder = BUILDERS.get(name)
        return cls(builder, effective(_options_of(builder), values, name) and values)

    def __str__(self) -> str:
        options = _options_of(self.builder)
        return spelled(self.builder.name, options, self.values) + self.over.suffix

    @property
    def method(self) -> str:
        """Name of the builder."""
        return self.builder.name

    @property
    def options(self) -> dict[str, Any]:
        """Value of each option of the builder."""
        return effective(_options_of(self.builder), self.values, self.builder.name)

    @property
    def layer(self) -> str | None:  # type: ignore[override]
        """Layer over the tree with its options; None for the hierarchical softmax."""
        return self.over.text

    @property
    def summary(self) -> str:
        """The first line of the builder's docstring, with that of the layer."""
        more = "" if self.layer is None else f" Over it: {LAYERS.get(self.over.name).summary}"
        return self.builder.summary + more

    @property
    def source(self) -> Row | None:  # type: ignore[override]
        """The random tree, whose model learns the vectors, where these come from no file."""
        options = self.options
        by_vectors = self.builder.takes is WordVectors or options.get("cluster_by") == "vectors"
        return RANDOM if by_vectors and options.get(_VECTORS_FILE) is None else None

    @property
    def tree_row(self) -> Row:
        """The same builder without a layer."""
        return BuilderRow(self.builder, self.values)

    def build(self, train: Corpus, seed: int, vectors: Path | None) -> Tree:
        """Build the tree of a seed."""
        options = dict(self.values)
        if any(option.name == "random_state" for option in self.builder.options):
            options.setdefault("random_state", seed)
        if self.builder.takes is not WordVectors:
            file = options.get(_VECTORS_FILE) or vectors
            return build(self.method, train, **options | ({_VECTORS_FILE: file} if file else {}))
        file = options.pop(_VECTORS_FILE, None)
        if file is None:
            return build(self.method, WordVectors.read(str(vectors)), **options)
        words = train.counted_vocabulary()
        return build(self.method, WordVectors.read(str(file)), vocabulary=words, **options)

    def spec(self, train: Corpus, tree: Tree | None) -> LayerSpec:
        """Return the layer over the built tree."""
        return self.over.spec(_SMALLEST if tree is None else tree)

    def trial(self, words: Vocabulary) -> LayerSpec:
        """Return the layer over a tree of two words."""
        return self.over.spec(_SMALLEST)


@dataclass(frozen=True, eq=False, repr=False)
class LayerRow(OutputRow):
    """An output layer over the words of the training split, and its options."""

    name: str
    values: Mapping[str, Any] = field(default_factory=dict)

    kind = "layer"

    def __post_init__(self) -> None:
        """Refuse a layer that takes a tree."""
        if self._kind.takes is not Vocabulary:
            instead = "name a builder or a tree instead"
            if self.name != TREE_LAYER:
                instead = f'name both, as in "gmm + {self.name}"'
            raise OptionError(f"the output layer {self.name!r} is over a tree; {instead}")

    @property
    def _kind(self) -> LayerKind:
        return LAYERS.get(self.name)

    def __str__(self) -> str:
        return spelled(self.name, self._kind.options, self.values)

    @property
    def method(self) -> str:
        """Name of the layer."""
        return self.name

    @property
    def options(self) -> dict[str, Any]:
        """Value of each option of the layer."""
        return effective(self._kind.options, self.values, self.name)

    @property
    def summary(self) -> str:
        """The first line of the layer's docstring."""
        return self._kind.summary

    def spec(self, train: Corpus, tree: Tree | None) -> LayerSpec:
        """Return the layer over the counted words of the training split."""
        return layer_spec(train.counted_vocabulary(), self.name, **self.values)

    def trial(self, words: Vocabulary) -> LayerSpec:
        """Return the layer over the words."""
        return layer_spec(words, self.name, **self.values)


@dataclass(frozen=True, eq=False, repr=False)
class TreeRow(OutputRow):
    """A tree that is there already, by the name of its file, and the layer over it."""

    name: str
    tree: Tree | None = None
    over: Over = field(default_factory=Over)

    kind = "tree"

    @classmethod
    def of_tree(cls, tree: Tree) -> Self:
        """Return the row of a tree in memory; its name has the beginning of the tree's hash."""
        return cls(f"tree-{tree.sha256[:8]}.json", tree)

    def __str__(self) -> str:
        return shlex.quote(self.name) + self.over.suffix

    @cached_property
    def content(self) -> Tree:
        """The tree, read when it is first asked for; FileFormatError when it cannot be read."""
        return load(self.name) if self.tree is None else self.tree

    @property
    def method(self) -> str:
        """Name of the builder that made the tree, if its file says so."""
        return str(self.content.meta.get("method") or "tree")

    @property
    def options(self) -> dict[str, Any]:
        """Options of that builder, as the file has them."""
        options = self.content.meta.get("options")
        return options if isinstance(options, dict) else {}

    @property
    def layer(self) -> str | None:  # type: ignore[override]
        """Layer over the tree with its options; None for the hierarchical softmax."""
        return self.over.text

    @property
    def summary(self) -> str:
        """How the tree was built."""
        known = BUILDERS.get(self.method).summary if self.method in BUILDERS.names() else ""
        return known or "A tree from a file."

    @cached_property
    def folder(self) -> str:
        """Name of the row's folder, with the beginning of the tree's hash."""
        stem = re.sub(r"[^A-Za-z0-9.]+", "-", Path(self.name).name.partition(".")[0])
        return f"tree-{stem}-{_hash(self.content.sha256 + self.over.suffix)}".lower()

    @property
    def is_flat(self) -> bool:
        """Whether all labels are children of the root, under the hierarchical softmax."""
        return self.layer is None and self.content.n_nodes <= 1

    def build(self, train: Corpus, seed: int, vectors: Path | None) -> Tree:
        """Return the tree."""
        return self.content

    @property
    def tree_row(self) -> Row:
        """The same tree without a layer."""
        return TreeRow(self.name, self.tree)

    def spec(self, train: Corpus, tree: Tree | None) -> LayerSpec:
        """Return the layer over the tree."""
        return self.over.spec(self.content)

    def trial(self, words: Vocabulary) -> LayerSpec:
        """Return the layer over the tree."""
        return self.over.spec(self.content)

    def check(self, words: Vocabulary, config: Mapping[str, Any]) -> None:
        """Refuse a tree over other words: perplexities could not be compared."""
        super().check(words, config)
        labels = self.content.labels
        if set(labels) == set(words.words) and len(labels) == len(words):
            return
        others = sorted(set(labels) ^ set(words.words))
        raise InputError(
            f"{self.name} is over {len(labels):,} words, the comparison over {len(words):,} "
            f"({others[0]!r} is in one alone); perplexities can be compared over the same words "
            "only: build it over those"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Several(Row):
    """Several models of one row, each with its own random state; their probabilities' mean.

    Models over trees that a builder draws, or builds from vectors, have a tree of their own each.
    """

    of_each: Row
    models: int = 2

    def __post_init__(self) -> None:
        """Check the row and the number of models."""
        if self.of_each.models > 1 or self.of_each.kind == "ngram":
            raise OptionError(f"{self.of_each} cannot be each of several models; give one row")
        check_value("K", self.models, Annotated[int, Range(2, 100)])

    def __str__(self) -> str:
        return f"{self.models} x {self.of_each}"

    @property
    def kind(self) -> Literal["tree", "layer", "ngram"]:  # type: ignore[override]
        """That of each of the models."""
        return self.of_each.kind

    @property
    def method(self) -> str:
        """That of each of the models."""
        return self.of_each.method

    @property
    def options(self) -> dict[str, Any]:
        """Those of each of the models."""
        return self.of_each.options

    @property
    def layer(self) -> str | None:  # type: ignore[override]
        """That of each of the models."""
        return self.of_each.layer

    @property
    def source(self) -> Row | None:  # type: ignore[override]
        """That of each of the models."""
        return self.of_each.source

    @property
    def summary(self) -> str:
        """What each of the models is."""
        return f"{self.models} models, whose probabilities are averaged. {self.of_each.summary}"

    @property
    def single(self) -> Row:
        """What each of the models is."""
        return self.of_each

    def check(self, words: Vocabulary, config: Mapping[str, Any]) -> None:
        """Refuse models of something else than a language."""
        self.of_each.check(words, config)
        need_language_model(config, f"{self} has several language models", "leave it out")

    def run(self, runner: Runner, job: Job, **limit: Any) -> JobResult:
        """Do one job of the models' row."""
        return self.of_each.run(runner, job, **limit)


@dataclass(frozen=True, eq=False, repr=False)
class NGram(Row):
    """A Kneser-Ney n-gram model; "kn3" is the usual name of a trigram model."""

    order: int

    kind = "ngram"

    def __post_init__(self) -> None:
        """Check the order."""
        if not 2 <= self.order <= 7:
            raise OptionError(f"there is no kn{self.order}; there are kn2 to kn7, Kneser-Ney")

    def __str__(self) -> str:
        return f"kn{self.order}"

    @property
    def method(self) -> str:
        """Name of the model."""
        return str(self)

    @property
    def options(self) -> dict[str, Any]:
        """Order and discounts."""
        return {"order": self.order, "discount": "modified"}

    @property
    def summary(self) -> str:
        """What it is."""
        return f"A Kneser-Ney model of the last {self.order - 1} words."

    def states(self, number: int, first: int) -> range:
        """Return one state for all seeds: nothing is drawn."""
        return range(first, first + 1)

    def check(self, words: Vocabulary, config: Mapping[str, Any]) -> None:
        """Refuse it beside models whose perplexities are of other events."""
        model = kind_of(config).model
        if not model.is_language_model:
            raise OptionError(
                f"{self} gives the perplexity of a word given the words before it, "
                f"{model.name} that of a {model.predicts}; leave out the n-gram models"
            )

    def run(self, runner: Runner, job: Job, **limit: Any) -> JobResult:
        """Fit and score the model."""
        return runner.fit_ngrams(job, self.order)


#: The row whose model learns the vectors that trees are built from.
RANDOM = BuilderRow(BUILDERS.get("random"))


def parse_rows(entries: Iterable[Row | str | Tree], config: Mapping[str, Any]) -> list[Row]:
    """Return the rows of a comparison, in their order, the names of sets replaced by their rows.

    Raises OptionError when there is none, or two are the same.
    """
    rows: list[Row] = []
    for entry in entries:
        several = rows_of_set(entry, config) if isinstance(entry, str) else None
        rows += [Row.of(one) for one in (several or [entry])]
    if not rows:
        raise OptionError('there is nothing to compare; name a row, such as "huffman"')
    names = [str(row) for row in rows]
    if twice := [name for name in names if names.count(name) > 1]:
        raise OptionError(f"{twice[0]} occurs twice in the comparison; name each row once")
    return rows


def rows_of_set(name: str, config: Mapping[str, Any]) -> list[str] | None:
    """Return the rows of a named set; None where there is no set of that name.

    ``approximations`` has some trees and every layer over a vocabulary but those that need the
    words before each target, where the model of the config has none.
    """
    if name == "trees":
        return list(_TREES)
    if name != "approximations":
        return None
    is_language_model = kind_of(config).model.is_language_model
    two_words = Vocabulary([EOS, "a"], [1, 1])
    layers = [
        "cnn delay=32" if name == "cnn" else name
        for name, kind in LAYERS.all().items()
        if kind.takes is Vocabulary
        and name != FLAT
        and (is_language_model or not layer_spec(two_words, name).new(1).needs_contexts)
    ]
    return ["huffman", "gmm", "gmm epsilon=0.4 trees=4", "classes", *layers, FLAT]


def need_language_model(config: Mapping[str, Any], why: str, instead: str) -> None:
    """Refuse a model that does not predict each word of a text from the words before it."""
    model = kind_of(config).model
    if not model.is_language_model:
        raise OptionError(f"{why}; {model.name} predicts a {model.predicts}: {instead}")


def spelled(name: str, options: Sequence[Option], values: Mapping[str, Any]) -> str:
    """Return a name with the options that differ from their defaults, in their order.

    A random state is always spelled: one that is not given is that of the seed.
    """
    words = [name]
    for option in options:
        if option.name not in values:
            continue
        value = option.checked(values[option.name], name)
        if value != option.default or option.name == "random_state":
            words.append(f"{option.name}={option.spelled(value)}")
    return " ".join(map(shlex.quote, words))


def parse_options(name: str, options: Sequence[Option], text: str) -> dict[str, Any]:
    """Return the options in a text of pairs ``key=value``; OptionError where one is none."""
    tokens = shlex.split(text)
    refuse_flags(text, tokens)
    return _values(options, tokens, name)


def _values(options: Sequence[Option], pairs: Sequence[str], owner: str) -> dict[str, Any]:
    """Return the values of pairs ``key=value``, checked."""
    known = {option.name: option for option in options}
    values: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise OptionError(
                f"{owner}: {pair!r} is no option; write key=value, as in "
                f'"{owner} {next(iter(known), "key")}=..."'
            )
        if key in values:
            raise OptionError(f"{owner}: {key} is given twice; give it once")
        try:
            values[key] = known[key].parsed(text) if key in known else text
        except ValueError:
            values[key] = text  # which `effective` refuses with the legal values
    return {key: effective(options, values, owner)[key] for key in values} if values else {}


def refuse_flags(text: str, tokens: Sequence[str]) -> None:
    """Refuse options that are spelled as flags; the message has the row as it is spelled now."""
    if not any(token.startswith("--") for token in tokens):
        return
    words: list[str] = []
    for token, following in zip(tokens, [*tokens[1:], "--"], strict=True):
        if token.startswith("--"):
            key, equals, value = token[2:].partition("=")
            is_switch = not equals and (following.startswith("--") or following == "+")
            off = is_switch and key.startswith("no-")
            value = ("false" if off else "true") if is_switch else value
            words.append(
                f"{key.removeprefix('no-') if off else key}".replace("-", "_") + f"={value}"
            )
        elif words and words[-1].endswith("="):
            words[-1] += token
        else:
            words.append(token)
    raise OptionError(f'options of a row are spelled key=value: "{" ".join(words)}", not {text!r}')


def _named_layer(name: str, *pairs: str) -> tuple[str, dict[str, Any]]:
    """Return a layer's name and the values of its options."""
    return name, _values(LAYERS.get(name).options, pairs, name)


def _options_of(builder: Builder) -> Sequence[Option]:
    """Return the options of a builder, with that of the file of its input vectors."""
    if builder.takes is not WordVectors:
        return builder.options
    return (*builder.options, Option(_VECTORS_FILE, Path, None, optional=True))


def _unknown(name: str) -> Builder:
    """Refuse a name that is neither a builder nor a layer; OptionError."""
    names = [*BUILDERS.names(), *(n for n in LAYERS.names() if n not in (TREE_LAYER, FLAT))]
    raise OptionError(f"there is no row {name!r}; there are {', '.join(names)}, kn5 and tree files")


def _no_more(text: str, pairs: Sequence[str], more: Sequence[Any]) -> tuple[()]:
    """Refuse options or a layer where a row can have none."""
    if pairs or more:
        what = "layer over it" if more else "options"
        raise OptionError(f"{text!r} is no row: what it names has no {what}; leave that out")
    return ()


def _split(tokens: Sequence[str], mark: str) -> list[list[str]]:
    """Split tokens at each mark."""
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token == mark:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
