"""Candidates of a comparison, and their notation, which is the same everywhere.

::

    candidate = [K x] output [+ layer]
    output    = NAME key=value ...  |  a tree file  |  knN
    layer     = NAME key=value ...

Keys and values are the Python names and values of the options of a builder or a layer, with
``true`` and ``false`` for booleans and ``none`` for no value. Quotes enclose blanks, as in a shell.
`Candidate.parse` reads a candidate. `str` writes it, with the options that differ from their
defaults, in the order of the options.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta

from hstree._options import Option, parse_options, spelled, suggestion, typed_words
from hstree._text import quoted, recorded_name
from hstree.builders import build
from hstree.builders.registry import BUILDERS
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import EOS, Vocabulary
from hstree.errors import InputError, OptionError
from hstree.layers.registry import LAYERS, TREE_LAYER, LayerSpec
from hstree.models import kind_of
from hstree.tree import Tree, load
from hstree.tree.files import ENDINGS

FLAT = "flat"
#: Candidates of the set ``trees``.
_TREES = ("random", "huffman", "semantic", "gmm", "gmm epsilon=0.4 trees=4", "classes", FLAT)
#: Trees of the set ``approximations``.
_APPROXIMATION_TREES = ("huffman", "gmm", "gmm epsilon=0.4 trees=4", "classes")
#: Named sets of candidates, each with one sentence.
SETS = {
    "trees": "Trees of seven kinds, one of them flat.",
    "approximations": "Four trees, and every output layer over the words.",
}
#: A vocabulary and a tree for checking layers before a text is read or a tree is built.
_SMALL_VOCABULARY = Vocabulary([EOS, "a"], [1, 1])
_SMALL_TREE = Tree([EOS, "a"], [0, 2], [~0, ~1])
#: Option of candidates built from vectors: a file of vectors that replaces learned vectors.
VECTORS_FILE = Option.of("vectors_file", Path | None)
_N_MODELS = Option.of("K", Annotated[int, Meta(ge=2, le=100)])
#: Names of n-gram models, by order from 2 on.
_NGRAM_MODELS = ("kn2", "kn3", "kn4", "kn5", "kn6", "kn7")

Kind = Literal["tree", "layer", "ngram"]


class Job(NamedTuple):
    """A model to train: a single candidate and its random state."""

    candidate: Candidate
    seed: int


class Candidate:
    """An output layer or an n-gram model that can be compared.

    Subclasses implement the kinds of candidates. Candidates with the same name are equal. A tree in
    memory is named as a file, ``tree-HASH.json``; `parse` can read this name only if the file
    exists.

    Attributes
    ----------
    name : str
        The candidate as text, which `parse` reads.
    kind : {"tree", "layer", "ngram"}
        A layer over a tree, a layer over the words, or an n-gram model.
    method, options, summary : str, dict and str
        Name, options and one-sentence description of the builder, the layer or the n-gram model.
    layer : str or None
        Layer over the tree, with its options; None for plain hierarchical softmax.
    files : list of Path
        Files that the candidate reads: its tree, and files that are values of options.
    models, single : int and Candidate
        Number of models whose probabilities are averaged, and the candidate of each model.
    tree_candidate : Candidate
        Candidate with the same tree and without the layer.
    source : Candidate or None
        Candidate whose model learns the vectors from which the tree is built.
    vectors_file : Path or None
        File with the vectors from which the tree is built instead.
    file, tree, provenance : str, Tree or None, and object
        File name of a given tree, the tree, and the record of its sources
        (`hstree.data.provenance`).
    is_trained : bool
        Whether the candidate is an output layer, not an n-gram model.
    is_flat : bool
        Whether the candidate is a single flat softmax without another layer.
    has_tree : bool
        Whether the candidate is an output layer over a tree.
    is_timed : bool
        Whether the total time is known: neither the tree nor the vectors are read from a file.
    trains_slowly : bool
        Whether training takes longer than with a tree alone.
    """

    layer: str | None = None
    models = 1
    source: Candidate | None = None
    vectors_file: Path | None = None
    file = ""
    tree: Tree | None = None
    provenance: object = None
    is_trained = True
    is_timed = True

    def __init__(
        self,
        name: str,
        kind: Kind,
        method: str,
        options: dict[str, Any],
        summary: str,
        layer_words: Sequence[str] = (),
    ) -> None:
        # Name and options of the layer; `layer_words` are typed, such as ["ngrams", "words=3"]
        self._layer: tuple[str, dict[str, Any]] = (TREE_LAYER, {})
        if layer_words and list(layer_words) != [TREE_LAYER]:
            layer, *pairs = layer_words
            layer_kind = LAYERS.get(layer)
            if layer_kind.takes is not Tree:
                raise OptionError(
                    f"the output layer {layer!r} is not over a tree; use it as a candidate by "
                    "itself"
                )
            layer_options = parse_options(layer, layer_kind.options, pairs)
            self._layer = (layer, layer_options)
            self.layer = spelled(layer, layer_kind.options, layer_options)
            name = f"{name} + {self.layer}"
            summary = f"{summary} Over it: {layer_kind.summary}"

        self.name = name
        self.kind = kind
        self.method = method
        self.options = options
        self.summary = summary
        self.is_flat = name == FLAT
        self.has_tree = kind == "tree"
        self.trains_slowly = kind == "layer" or self.layer is not None
        self.single: Candidate = self
        self.tree_candidate: Candidate = self

        # Files that affect the result, besides the text: a tree, vectors, a taxonomy
        values = [token.rpartition("=")[2] for token in shlex.split(name)]
        self.files = [Path(value) for value in values if value.endswith(ENDINGS)]
        self.files += [value for value in options.values() if isinstance(value, Path)]

    @staticmethod
    def parse(entry: Candidate | str | Tree, tree: Tree | None = None) -> Candidate:
        """Return a candidate from its text or from a tree; return a candidate unchanged.

        If `tree` is given, it replaces the tree file that the text names.

        Raises
        ------
        OptionError
            If there is no such builder, layer or option, or if an option has an invalid value.
        FileFormatError
            If a tree file cannot be read.

        Examples
        --------
        >>> candidate = Candidate.parse("2 x gmm trees=2 epsilon=0.40 + ngrams")
        >>> str(candidate), candidate.models, candidate.layer
        ('2 x gmm epsilon=0.4 trees=2 + ngrams', 2, 'ngrams')
        """
        if isinstance(entry, Candidate):
            return entry
        if isinstance(entry, Tree):
            return TreeCandidate(f"tree-{entry.sha256[:8]}.json", entry)
        if not isinstance(entry, str):
            raise OptionError(
                f"{entry!r} cannot be compared; give a candidate as a text, such as "
                '"gmm epsilon=0.4", or a tree'
            )

        # "2 x gmm": an ensemble of models of the rest
        tokens = typed_words(entry)
        if len(tokens) > 2 and tokens[1] == "x" and tokens[0].isdecimal():
            single = Candidate.parse(shlex.join(tokens[2:]), tree)
            return EnsembleCandidate(single, _N_MODELS.checked(_N_MODELS.parsed(tokens[0])))

        # "gmm epsilon=0.4 + ngrams": an output with its options, and a layer with its options
        plus = tokens.index("+") if "+" in tokens else len(tokens)
        output = tokens[:plus]
        layer_words = tokens[plus + 1 :]
        lacks_layer = plus < len(tokens) and not layer_words
        if not output or lacks_layer or "+" in layer_words:
            raise OptionError(
                f'{entry!r} is not a candidate; write an output such as "gmm epsilon=0.4", or an '
                'output and a layer such as "gmm + ngrams"'
            )

        # The output is a tree file, a builder, an n-gram model, or a layer over the words
        name, *pairs = output
        is_file = name.endswith(ENDINGS)
        is_ngram = name in _NGRAM_MODELS
        if (is_ngram or is_file) and pairs:
            raise OptionError(f"{entry!r} is not a candidate: {name} has no options; remove them")
        if is_file:
            return TreeCandidate(name, tree, layer_words)
        if name in BUILDERS:
            return BuilderCandidate(name, pairs, layer_words)
        if re.fullmatch(r"kn\d+", name) and not is_ngram:
            raise OptionError(f"there is no {name:.40}; the Kneser-Ney models are kn2 to kn7")
        if name not in LAYERS and not is_ngram:
            raise OptionError(f"there is no candidate {quoted(name)}; {_hint(name)}")
        if layer_words:
            raise OptionError(
                f"{entry!r} is not a candidate: {name} has no tree for a layer; remove the layer"
            )
        if is_ngram:
            return NGramCandidate(name)
        return LayerCandidate(name, pairs)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Candidate.parse({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Candidate) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def vocabulary(self) -> Vocabulary | None:
        """Return the vocabulary of a given tree; None if the text determines the vocabulary."""
        return None

    def build(self, train: Corpus, seed: int, vectors: Path | None) -> Tree:
        """Build the tree for a seed from a training split, or from a file of vectors."""
        raise OptionError(f"{self} has no tree")

    def spec(self, words: Vocabulary, tree: Tree | None) -> LayerSpec:
        """Return the output layer over a vocabulary with counts, or over a tree."""
        if self.models > 1 or not self.is_trained:
            raise OptionError(f"{self} is not one output layer")
        name, options = self._layer
        return LayerSpec(_SMALL_TREE if tree is None else tree, name, **options)

    def check(self, words: Vocabulary, model_options: Mapping[str, Any]) -> None:
        """Refuse a candidate that cannot be trained with these words and this model.

        The layer may need other words, or contexts that the model does not have. The tree may have
        other labels, so that perplexities could not be compared.
        """
        # The requirements of a layer are the same for all trees; no tree is built yet
        spec = self.spec(words, _SMALL_TREE)
        kind_of(model_options).model.check_layer(spec, model_options.get("dim", 1))
        if self.tree is not None and (others := set(self.tree.labels) ^ set(words.words)):
            raise InputError(
                f"{self.tree_candidate} has {self.tree.n_labels:,} words and the comparison has "
                f"{len(words):,} ({min(others)!r} is only in one of them); perplexities can be "
                "compared only over the same words: build the tree from these"
            )


class BuilderCandidate(Candidate):
    """A builder with its options, typed as ``key=value``, and the layer over its tree."""

    def __init__(
        self, name: str, pairs: Sequence[str] = (), layer_words: Sequence[str] = ()
    ) -> None:
        builder = BUILDERS.get(name)
        takes_vectors = builder.takes is WordVectors
        known = (*builder.options, VECTORS_FILE) if takes_vectors else builder.options
        # The typed values, and the values of all options, with defaults
        values = parse_options(name, known, pairs)
        options = {option.name: values.get(option.name, option.default) for option in known}
        text = spelled(name, known, values)
        super().__init__(text, "tree", name, options, builder.summary, layer_words)
        self._builder = builder
        self._values = values
        if self.layer is not None:
            self.tree_candidate = BuilderCandidate(name, pairs)

        # Vectors come from a file, or a model with a random tree learns them from the text
        self.vectors_file = options.get(VECTORS_FILE.name)
        self.is_timed = self.vectors_file is None and options.get("from") is None
        needs_vectors = takes_vectors or options.get("cluster_by") == "vectors"
        if needs_vectors and self.vectors_file is None:
            self.source = BuilderCandidate("random")

    def build(self, train: Corpus, seed: int, vectors: Path | None) -> Tree:
        """Build the tree for a seed."""
        options = dict(self._values)
        if any(option.name == "random_state" for option in self._builder.options):
            options.setdefault("random_state", seed)
        if self._builder.takes is WordVectors:
            # A file of vectors may have other words than the text
            if options.pop(VECTORS_FILE.name, None) is not None:
                options["vocabulary"] = train.counted_vocabulary()
            return build(self.method, WordVectors.read(str(vectors)), **options)
        # A builder that reads texts may cluster words by vectors
        if vectors is not None:
            options["vectors_file"] = vectors
        return build(self.method, train, **options)


class TreeCandidate(Candidate):
    """A given tree, named by its file, and the layer over it."""

    is_timed = False
    tree: Tree

    def __init__(self, name: str, tree: Tree | None, layer_words: Sequence[str] = ()) -> None:
        self.file = name
        self.tree = load(name) if tree is None else tree
        method = str(self.tree.meta.get("method") or "")
        options = self.tree.meta.get("options")
        super().__init__(
            shlex.quote(recorded_name(name)),
            "tree",
            method or "tree",
            options if isinstance(options, dict) else {},
            f"A tree of {method}, from a file." if method else "A tree from a file.",
            layer_words,
        )
        self.is_flat = self.tree.n_nodes <= 1 and self.layer is None
        self.provenance = self.tree.meta.get("input")
        if self.layer is not None:
            self.tree_candidate = TreeCandidate(name, self.tree)

    def vocabulary(self) -> Vocabulary:
        """Return the labels of the tree."""
        source: dict[str, object] = {"kind": "tree", "sha256": self.tree.sha256}
        return Vocabulary(self.tree.labels, [0] * self.tree.n_labels, source=source)

    def build(self, train: Corpus, seed: int, vectors: Path | None) -> Tree:
        """Return the tree."""
        return self.tree


class LayerCandidate(Candidate):
    """An output layer over the words of the training split, with its typed options."""

    def __init__(self, name: str, pairs: Sequence[str]) -> None:
        layer = LAYERS.get(name)
        if layer.takes is not Vocabulary:
            instead = f'name both, as in "gmm + {name}"' if name != TREE_LAYER else "name a builder"
            raise OptionError(f"the output layer {name!r} is over a tree; {instead}")
        values = parse_options(name, layer.options, pairs)
        options = {option.name: values.get(option.name, option.default) for option in layer.options}
        text = spelled(name, layer.options, values)
        super().__init__(text, "layer", name, options, layer.summary)
        self._layer = (name, values)

    def spec(self, words: Vocabulary, tree: Tree | None) -> LayerSpec:
        """Return the output layer over words with their counts."""
        name, options = self._layer
        return LayerSpec(words, name, **options)


class EnsembleCandidate(Candidate):
    """An ensemble of models of one candidate, whose probabilities are averaged.

    Each model has its own random state, and its own tree if the tree is random or built from
    learned vectors.
    """

    def __init__(self, single: Candidate, models: int) -> None:
        if single.models > 1 or not single.is_trained:
            raise OptionError(f"{single} cannot be in an ensemble; use a single output layer")
        summary = f"An ensemble of {models} models with averaged probabilities. {single.summary}"
        name = f"{models} x {single}"
        super().__init__(name, single.kind, single.method, single.options, summary)
        self.models = models
        self.single = single
        self.layer = single.layer
        self.source = single.source
        self.is_timed = single.is_timed
        self.files = single.files

    def check(self, words: Vocabulary, model_options: Mapping[str, Any]) -> None:
        """Refuse models that are not language models."""
        self.single.check(words, model_options)
        _require_language_model(
            model_options, f"{self} is an ensemble of language models", "remove it"
        )


class NGramCandidate(Candidate):
    """A Kneser-Ney n-gram model; "kn3" is a trigram model."""

    is_trained = False

    def __init__(self, name: str) -> None:
        order = int(name.removeprefix("kn"))
        options = {"order": order, "discount": "modified"}
        summary = f"A Kneser-Ney model of the last {order - 1} words."
        super().__init__(name, "ngram", name, options, summary)

    def check(self, words: Vocabulary, model_options: Mapping[str, Any]) -> None:
        """Refuse an n-gram model beside models that do not predict the next word."""
        reason = f"{self} predicts a word from the words before it"
        _require_language_model(model_options, reason, "remove the n-gram models")


def parse_candidates(
    entries: Iterable[Candidate | str | Tree] | None, model_options: Mapping[str, Any]
) -> list[Candidate]:
    """Return the candidates of a comparison in order, with sets replaced by their candidates.

    None means the default candidates of the model. A candidate that is both named and in a set is
    included once. Raises OptionError if there is no candidate, or if one is named twice.
    """
    require_list(entries)
    if entries is None:
        entries = candidates_in_set(None, model_options)
    # Candidates by name, in the order of the first mention, and the names given outside sets
    candidates: dict[str, Candidate] = {}
    named: set[str] = set()
    for entry in entries:
        if isinstance(entry, str) and entry in SETS:
            for candidate in candidates_in_set(entry, model_options):
                candidates[candidate.name] = candidate
            continue
        candidate = Candidate.parse(entry)
        if candidate.name in named:
            raise OptionError(f"duplicate candidate {candidate}; name each candidate once")
        named.add(candidate.name)
        candidates[candidate.name] = candidate
    if not candidates:
        raise OptionError('no candidates to compare; name a candidate, such as "huffman"')
    return list(candidates.values())


def require_list(entries: object) -> None:
    """Raise OptionError if `entries` is one candidate instead of a list of candidates."""
    if isinstance(entries, str | Candidate | Tree):
        shown = "tree" if isinstance(entries, Tree) else f'"{entries}"'
        raise OptionError(
            f"candidates must be a list, even for one candidate: candidates=[{shown}]"
        )


def candidates_in_set(name: str | None, model_options: Mapping[str, Any]) -> list[Candidate]:
    """Return the candidates of a set that a model with these options can train.

    Without a name, these are the model's default candidates.

    Only language models can train n-gram features and layers that need the words before each
    target.
    """
    names: tuple[str, ...] = _TREES
    if name is None:
        names = kind_of(model_options).model.default_candidates
    if name == "approximations":
        layers = [
            # With a delay of 1, every batch would compute the features of all words
            "cnn delay=32" if layer == "cnn" else layer
            for layer, kind in LAYERS.all().items()
            if kind.takes is Vocabulary and layer != FLAT
        ]
        names = (*_APPROXIMATION_TREES, *layers, FLAT)
    candidates: list[Candidate] = []
    for candidate in map(Candidate.parse, names):
        with suppress(OptionError):
            candidate.check(_SMALL_VOCABULARY, model_options)
            candidates.append(candidate)
    return candidates


def _hint(name: str) -> str:
    """Return a hint for an unknown name."""
    if "=" in name:
        return 'put a candidate and its options in quotes, as in "gmm epsilon=0.4"'
    layers = [layer for layer in LAYERS.names() if layer not in (TREE_LAYER, FLAT)]
    names = [*BUILDERS.names(), *layers]
    similar = suggestion(name, names).strip()
    return similar or f"the candidates are {', '.join(names)}, kn5 and tree files"


def _require_language_model(model_options: Mapping[str, Any], reason: str, remedy: str) -> None:
    """Refuse a model that does not predict each word from the words before it."""
    model = kind_of(model_options).model
    if not model.is_language_model:
        raise OptionError(f"{reason}; {model.name} predicts a {model.predicts}: {remedy}")
