"""Candidates: whatever can stand in a comparison, written in one way everywhere.

::

    candidate    =  [K x] output [+ layer]
    output =  NAME key=value ...  |  a tree file  |  knN
    layer  =  NAME key=value ...

Keys and values are the Python names and values of a builder's or a layer's options; ``true`` and
``false`` for switches, ``none`` for nothing, quotes as in a shell around blanks. `Candidate.parse`
reads a candidate and `str` writes it, with the options that differ from their defaults, in their
order.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from msgspec import Meta

from hstree._options import Option, parse_options, spelled, suggestion, typed_words
from hstree._text import quoted, recorded_name
from hstree.builders import build
from hstree.builders.registry import BUILDERS
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import EOS, Vocabulary
from hstree.errors import InputError, OptionError
from hstree.layers.hooks import training_hooks
from hstree.layers.registry import LAYERS, TREE_LAYER, LayerSpec
from hstree.models import kind_of
from hstree.tree import Tree, load
from hstree.tree.files import ENDINGS

if TYPE_CHECKING:
    from hstree.ngrams.kneser_ney import KneserNey

FLAT = "flat"
#: Candidates of a comparison that names none.
DEFAULT = (
    *("huffman", "huffman + ngrams", "gmm", "gmm + ngrams", "classes", "classes + ngrams"),
    *("sampled", FLAT, "kn5"),
)
#: Candidates of the set ``trees``, and the trees of the set ``approximations``.
_TREES = ("random", "huffman", "semantic", "gmm", "gmm epsilon=0.4 trees=4", "classes", FLAT)
_SOME_TREES = ("huffman", "gmm", "gmm epsilon=0.4 trees=4", "classes")
#: Named sets of candidates, with a sentence about each.
SETS = {
    "trees": "Trees of seven kinds, one of them flat.",
    "approximations": "Some trees, and every output layer over the words.",
}
#: Words and a tree over which the layers of sets, and of trees that are not built yet, are checked.
_TWO_WORDS = Vocabulary([EOS, "a"], [1, 1])
_SMALLEST = Tree([EOS, "a"], [0, 2], [~0, ~1])
#: Option of builders that take vectors, in candidates: a file of them, instead of a model's.
VECTORS_FILE = Option.of("vectors_file", Path | None)
#: Number of models in an ensemble, and order of an n-gram model.
_MODELS = Option.of("K", Annotated[int, Meta(ge=2, le=100)])
_ORDER = Option.of("order", Annotated[int, Meta(ge=2, le=7)])
_LONGEST_FOLDER = 80

Kind = Literal["tree", "layer", "ngram"]


class Job(NamedTuple):
    """One model to train, or to fit: a candidate that is no several, and its random state."""

    candidate: Candidate
    seed: int


class Candidate:
    """Whatever can stand in a comparison.

    Kinds of candidates differ by their attributes and methods. Candidates are equal when they are
    spelled alike. A tree in memory is spelled as a file, ``tree-HASH.json``, which `parse` reads
    only where such a file is.

    Attributes
    ----------
    name, kind : str and {"tree", "layer", "ngram"}
        Its text, as it is typed; what its figures are of.
    method, options, summary : str, dict and str
        Name, options and one sentence of the builder, the layer or the n-gram model.
    layer : str or None
        Layer over a tree with its options, unless it is the hierarchical softmax.
    folder, files : str and list of Path
        Name of its folder; what it reads: its tree, and what options of it and its layer name.
    models, single : int and Candidate
        Number of models whose probabilities are averaged, and what each of them is.
    tree_candidate : Candidate
        The candidate that shares its tree: this one without its layer.
    source : Candidate or None
        The candidate whose model learns the vectors that this one is built from.
    vectors_file : Path or None
        File of vectors that it is built from instead.
    file, tree, provenance : str, Tree or None, and object
        Name of the file of a tree that is given, the tree, and the record of what it was made from
        (`hstree.data.provenance`).
    is_trained, is_flat, has_tree : bool
        Whether it is an output layer, not an n-gram model; whether it is one plain flat softmax;
        whether it is over a tree.
    is_timed : bool
        Whether seconds count from the text on: neither tree nor vectors are from a file.
    """

    layer: str | None = None
    models = 1
    source: Candidate | None = None
    vectors_file: Path | None = None
    file = ""
    tree: Tree | None = None
    provenance: object = None
    is_trained = is_timed = True

    def __init__(
        self,
        name: str,
        kind: Kind,
        method: str,
        options: dict[str, Any],
        summary: str,
        over: Sequence[str] = (),
    ) -> None:
        # the output layer over a tree, and its options: as typed in `over`, ("ngrams", "words=3")
        self._layer: tuple[str, dict[str, Any]] = TREE_LAYER, {}
        if over and list(over) != [TREE_LAYER]:
            layer, *pairs = over
            known = LAYERS.get(layer)
            if known.takes is not Tree:
                raise OptionError(
                    f"the output layer {layer!r} is not over a tree; it is a candidate alone"
                )
            self._layer = layer, parse_options(layer, known.options, pairs)
            self.layer = spelled(layer, known.options, self._layer[1])
            name, summary = f"{name} + {self.layer}", f"{summary} Over it: {known.summary}"
        self.name, self.kind, self.method = name, kind, method
        self.options, self.summary, self.is_flat = options, summary, name == FLAT
        self.single: Candidate = self
        self.tree_candidate: Candidate = self
        # plain letters, with a hash where they may not be unique
        joined = name.replace(" + ", " ")
        plain = re.sub(r"[^A-Za-z0-9._]+", "-", joined).strip("-.").lower()
        self.folder = plain
        if len(plain) > _LONGEST_FOLDER or not re.fullmatch(r"[a-z0-9 ._=-]+", joined):
            digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
            self.folder = f"{plain[:_LONGEST_FOLDER]}-{digest[:8]}"
        values = [token.rpartition("=")[2] for token in shlex.split(name)]
        self.files = [Path(value) for value in values if value.endswith(ENDINGS)]
        self.files += [value for value in options.values() if isinstance(value, Path)]

    @staticmethod
    def parse(entry: Candidate | str | Tree, tree: Tree | None = None) -> Candidate:
        """Return the candidate of a text or of a tree; a candidate as it is.

        A tree file that the text names is not read where `tree` is what it holds.

        Raises
        ------
        OptionError
            When there is no such builder, layer or option, or an option cannot have its value.
        FileFormatError
            When a tree file cannot be read.

        Examples
        --------
        >>> candidate = Candidate.parse("2 x gmm trees=2 epsilon=0.40 + ngrams")
        >>> str(candidate), candidate.models, candidate.folder
        ('2 x gmm epsilon=0.4 trees=2 + ngrams', 2, '2-x-gmm-epsilon-0.4-trees-2-ngrams')
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
        text, tokens = entry, typed_words(entry)
        if len(tokens) > 2 and tokens[1] == "x" and tokens[0].isdecimal():
            return EnsembleCandidate(
                Candidate.parse(shlex.join(tokens[2:]), tree), _MODELS.parsed(tokens[0])
            )
        end = tokens.index("+") if "+" in tokens else len(tokens)
        output, over = tokens[:end], tokens[end + 1 :]
        if not output or (end < len(tokens) and not over) or "+" in over:
            raise OptionError(
                f'{text!r} is no candidate; write an output, as in "gmm epsilon=0.4", or an output '
                'and a layer, as in "gmm + ngrams"'
            )
        name, *pairs = output
        match = re.fullmatch(r"kn(\d+)", name)
        if match or name.endswith(ENDINGS):
            if pairs or (match and over):
                what = "options" if pairs else "layer over it"
                raise OptionError(f"{text!r} is no candidate: {name} has no {what}; leave that out")
            return (
                NGramCandidate(_ORDER.parsed(match[1]))
                if match
                else TreeCandidate(name, tree, over)
            )
        if name in BUILDERS:
            return BuilderCandidate(name, pairs, over)
        if name not in LAYERS:
            names = [*BUILDERS.names(), *(n for n in LAYERS.names() if n not in (TREE_LAYER, FLAT))]
            known = f"there are {', '.join(names)}, kn5 and tree files"
            hint = suggestion(name, names).strip() or known
            if "=" in name:
                hint = 'options stand in the quotes of their candidate, as in "gmm epsilon=0.4"'
            raise OptionError(f"there is no candidate {quoted(name)}; {hint}")
        if over:
            raise OptionError(
                f"{text!r} is no candidate: {name} is a layer itself, which takes no layer"
            )
        return LayerCandidate(name, pairs)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Candidate.parse({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Candidate) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def has_tree(self) -> bool:
        """Whether it is an output layer over a tree."""
        return self.kind == "tree"

    @property
    def trains_slowly(self) -> bool:
        """Whether its training takes longer than that of a tree alone."""
        return self.kind == "layer" or self.layer is not None

    def vocabulary(self) -> Vocabulary | None:
        """Return the words that it is over by itself, or None."""
        return None

    def check_built_from_vectors(self) -> None:
        """Refuse a candidate that is not built from the vectors of a source."""
        if self.models > 1 or not self.has_tree or self.source is None:
            raise OptionError(
                f"{self} is not built from vectors; name a candidate that is, such as gmm"
            )

    def from_vectors(self, file: Path) -> Candidate:
        """Return the same candidate, built from a file of vectors."""
        raise OptionError(f"{self} is not built from vectors")

    def build(self, train: Corpus, seed: int, vectors: Path | None) -> Tree:
        """Build the tree of a seed from a training split, or from vectors."""
        raise OptionError(f"{self} has no tree")

    def fit_ngrams(self, train: Corpus) -> KneserNey:
        """Fit an n-gram model to a training split."""
        raise OptionError(f"{self} is not an n-gram model")

    def spec(self, words: Vocabulary, tree: Tree | None) -> LayerSpec:
        """Return the output layer over words with their counts, or over the tree."""
        if self.models > 1 or not self.is_trained:
            raise OptionError(f"{self} is not one output layer")
        name, options = self._layer
        tree = _SMALLEST if tree is None else tree
        return LayerSpec(words if self.kind == "layer" else tree, name, **options)

    def check(self, words: Vocabulary, config: Mapping[str, Any]) -> None:
        """Refuse a candidate that cannot be trained on a text with these words, by this model.

        Its layer cannot be over these words, or has no contexts from the model. Or its tree is over
        other words: perplexities could not be compared.
        """
        hooks = training_hooks(self.spec(words, _SMALLEST).new(config.get("dim", 1)))
        if hooks.needs_contexts:
            need_language_model(
                config,
                f"{self} needs the words before each target",
                "train a language model, or leave the candidate out",
            )
        if self.tree is not None and (others := set(self.tree.labels) ^ set(words.words)):
            raise InputError(
                f"{self.tree_candidate} is over {self.tree.n_labels:,} words, the comparison over "
                f"{len(words):,} ({min(others)!r} is in one alone); perplexities can be compared "
                "over the same words only: build it over those"
            )


class BuilderCandidate(Candidate):
    """A builder with its options, as typed pairs ``key=value``, and the layer over its tree."""

    def __init__(self, name: str, pairs: Sequence[str] = (), over: Sequence[str] = ()) -> None:
        builder = BUILDERS.get(name)
        known = (*builder.options, *((VECTORS_FILE,) if builder.takes is WordVectors else ()))
        values = parse_options(name, known, pairs)
        options = {option.name: values.get(option.name, option.default) for option in known}
        text = spelled(name, known, values)
        super().__init__(text, "tree", name, options, builder.summary, over)
        self._builder, self._values, self._pairs = builder, values, pairs
        if self.layer is not None:
            self.tree_candidate = BuilderCandidate(name, pairs)
        self.vectors_file = options.get(VECTORS_FILE.name)
        self.is_timed = self.vectors_file is None and options.get("from") is None
        by_vectors = builder.takes is WordVectors or options.get("cluster_by") == "vectors"
        if by_vectors and self.vectors_file is None:
            self.source = BuilderCandidate("random")

    def from_vectors(self, file: Path) -> BuilderCandidate:
        """Return the same candidate, built from a file of vectors."""
        pairs = [*self._pairs, f"{VECTORS_FILE.name}={file}"]
        return BuilderCandidate(self.method, pairs, shlex.split(self.layer or ""))

    def build(self, train: Corpus, seed: int, vectors: Path | None) -> Tree:
        """Build the tree of a seed."""
        options = dict(self._values)
        if any(option.name == "random_state" for option in self._builder.options):
            options.setdefault("random_state", seed)
        if self._builder.takes is not WordVectors:
            return build(
                self.method, train, **options | ({"vectors_file": vectors} if vectors else {})
            )
        if options.pop(VECTORS_FILE.name, None) is not None:  # they may be of other words
            options["vocabulary"] = train.counted_vocabulary()
        return build(self.method, WordVectors.read(str(vectors)), **options)


class TreeCandidate(Candidate):
    """A tree that is there already, by the name of its file, and the layer over it."""

    is_timed = False
    tree: Tree

    def __init__(self, name: str, tree: Tree | None, over: Sequence[str] = ()) -> None:
        self.file, self.tree = name, load(name) if tree is None else tree
        method, options = str(self.tree.meta.get("method") or ""), self.tree.meta.get("options")
        super().__init__(
            shlex.quote(recorded_name(name)),
            "tree",
            method or "tree",
            options if isinstance(options, dict) else {},
            f"A tree of {method}, from a file." if method else "A tree from a file.",
            over,
        )
        self.is_flat = self.tree.n_nodes <= 1 and self.layer is None
        self.provenance = self.tree.meta.get("input")
        if self.layer is not None:
            self.tree_candidate = TreeCandidate(name, self.tree)
        stem = re.sub(r"[^a-z0-9.]+", "-", Path(name).name.partition(".")[0].lower())
        made_of = f"{self.tree.sha256} {self.layer}".encode("utf-8", "surrogatepass")
        self.folder = f"tree-{stem}-{hashlib.sha256(made_of).hexdigest()[:8]}"

    def vocabulary(self) -> Vocabulary:
        """Return the labels of the tree."""
        source: dict[str, object] = {"kind": "tree", "sha256": self.tree.sha256}
        return Vocabulary(self.tree.labels, [0] * self.tree.n_labels, source=source)

    def build(self, train: Corpus, seed: int, vectors: Path | None) -> Tree:
        """Return the tree."""
        return self.tree


class LayerCandidate(Candidate):
    """An output layer over the words of the training split, and its typed options."""

    def __init__(self, name: str, pairs: Sequence[str]) -> None:
        kind = LAYERS.get(name)
        if kind.takes is not Vocabulary:
            instead = f'name both, as in "gmm + {name}"' if name != TREE_LAYER else "name a builder"
            raise OptionError(f"the output layer {name!r} is over a tree; {instead}")
        values = parse_options(name, kind.options, pairs)
        options = {option.name: values.get(option.name, option.default) for option in kind.options}
        super().__init__(spelled(name, kind.options, values), "layer", name, options, kind.summary)
        self._layer = name, values


class EnsembleCandidate(Candidate):
    """Several models of one candidate, whose probabilities are averaged.

    Each has its own random state.

    Models over trees that a builder draws, or builds from vectors, have a tree of their own each.
    """

    def __init__(self, each: Candidate, models: int) -> None:
        if each.models > 1 or not each.is_trained:
            raise OptionError(f"{each} cannot be each of several models; give one candidate")
        _MODELS.checked(models)
        summary = f"{models} models, whose probabilities are averaged. {each.summary}"
        super().__init__(f"{models} x {each}", each.kind, each.method, each.options, summary)
        self.models, self.single = models, each
        self.layer, self.source, self.is_timed = each.layer, each.source, each.is_timed
        self.files = each.files

    def check(self, words: Vocabulary, config: Mapping[str, Any]) -> None:
        """Refuse models of something else than a language."""
        self.single.check(words, config)
        need_language_model(config, f"{self} has several language models", "leave it out")


class NGramCandidate(Candidate):
    """A Kneser-Ney n-gram model; "kn3" is the usual name of a trigram model."""

    is_trained = False

    def __init__(self, order: int) -> None:
        if order not in range(2, 8):
            raise OptionError(f"there is no kn{order!s:.40}; there are kn2 to kn7, Kneser-Ney")
        name, options = f"kn{order}", {"order": order, "discount": "modified"}
        summary = f"A Kneser-Ney model of the last {order - 1} words."
        super().__init__(name, "ngram", name, options, summary)

    def fit_ngrams(self, train: Corpus) -> KneserNey:
        """Fit the model to a training split."""
        # a comparison without n-gram models does not wait for this import
        from hstree.ngrams.kneser_ney import KneserNey

        return KneserNey(**self.options).fit(train)

    def check(self, words: Vocabulary, config: Mapping[str, Any]) -> None:
        """Refuse it beside models whose perplexities are of other events."""
        why = f"{self} gives the perplexity of a word given the words before it"
        need_language_model(config, why, "leave out the n-gram models")


def parse_candidates(
    entries: Iterable[Candidate | str | Tree] | None, config: Mapping[str, Any]
) -> list[Candidate]:
    """Return the candidates of a comparison in their order; sets are replaced by their candidates.

    None stands for `DEFAULT`; candidates of a set that are there already are left out.

    Raises OptionError when there is none, or two that are named are the same.
    """
    if isinstance(entries, str | Candidate | Tree):
        one = "tree" if isinstance(entries, Tree) else f'"{entries}"'
        raise OptionError(f"candidates must be a list, also of one candidate: candidates=[{one}]")
    if entries is None:
        entries = candidates_in_set(None, config)
    candidates: dict[str, Candidate] = {}
    named: set[str] = set()
    for entry in entries:
        if isinstance(entry, str) and entry in SETS:
            candidates |= {
                candidate.name: candidate for candidate in candidates_in_set(entry, config)
            }
            continue
        candidate = Candidate.parse(entry)
        if candidate.name in named:
            raise OptionError(
                f"{candidate} occurs twice in the comparison; name each candidate once"
            )
        named.add(candidate.name)
        candidates[candidate.name] = candidate
    if not candidates:
        raise OptionError('there is nothing to compare; name a candidate, such as "huffman"')
    return list(candidates.values())


def candidates_in_set(name: str | None, config: Mapping[str, Any]) -> list[Candidate]:
    """Return the candidates of a set, or of `DEFAULT`, that the model of the config can train.

    Models of other things than a language cannot train n-gram features and models, and layers that
    need the words before each target.
    """
    names: tuple[str, ...] = _TREES if name == "trees" else DEFAULT
    if name == "approximations":
        layers = [n for n, kind in LAYERS.all().items() if kind.takes is Vocabulary and n != FLAT]
        names = (*_SOME_TREES, *("cnn delay=32" if n == "cnn" else n for n in layers), FLAT)
    candidates = []
    for candidate in map(Candidate.parse, names):
        with suppress(OptionError):
            candidate.check(_TWO_WORDS, config)
            candidates.append(candidate)
    return candidates


def need_language_model(config: Mapping[str, Any], why: str, instead: str) -> None:
    """Refuse a model that does not predict each word of a text from the words before it."""
    model = kind_of(config).model
    if not model.is_language_model:
        raise OptionError(f"{why}; {model.name} predicts a {model.predicts}: {instead}")
