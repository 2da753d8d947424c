"""Entries of a comparison: builders and output layers with options, trees, ensembles, baselines."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self

from hstree._options import Range, check_value, effective
from hstree.builders import Builder, builder
from hstree.builders.registry import BUILDERS
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import FileFormatError, OptionError
from hstree.layers.registry import LAYERS, TREE_LAYER, LayerKind, LayerSpec, layer_spec
from hstree.models import load as load_model
from hstree.tree import Tree

_BASELINE = re.compile(r"kn([2-7])")
_LONGEST_SLUG = 80
#: Name of the reference: as a builder and as an output layer it is the same row.
FLAT = "flat"


@dataclass(frozen=True)
class Method:
    """A builder and its options, by default those of the builder, and the layer over its tree.

    Attributes
    ----------
    method : str
        Name of a builder.
    options : mapping
        By their Python names.
    name : str
        Name of the row; by default the method and its options.
    vectors_from : Method, optional
        The row whose model learns the vectors that this tree is built from; by default the random
        tree.
    layer : str, default "tree"
        Name of an output layer that takes a tree.
    layer_options : mapping
        Its options by their Python names.

    Raises
    ------
    OptionError
        When the builder, the layer, an option or its value is unknown.
    """

    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    vectors_from: Method | None = None
    layer: str = TREE_LAYER
    layer_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the options."""
        self.builder.effective(self.options)
        kind = LAYERS.get(self.layer)
        if kind.takes is not Tree:
            raise OptionError(
                f"the output layer {self.layer!r} is not over a tree; it is a row alone"
            )
        effective(kind.options, self.layer_options, self.layer)
        if not self.name:
            name = _spelled(self.method, self.options)
            if self.layer != TREE_LAYER:
                name += f" + {_spelled(self.layer, self.layer_options)}"
            object.__setattr__(self, "name", name)

    def over(self, tree: Tree) -> LayerSpec:
        """Return the output layer over the tree that was built."""
        return layer_spec(tree, self.layer, **self.layer_options)

    @cached_property
    def builder(self) -> Builder:
        """The builder of this name."""
        return builder(self.method)

    @cached_property
    def slug(self) -> str:
        """Name of the row's folder, the same for all spellings of the same options."""
        values = self._values
        changed = {
            o.name: values[o.name] for o in self.builder.options if values[o.name] != o.default
        }
        words = [self.method, *(f"{name}-{value}" for name, value in changed.items())]
        if self.layer != TREE_LAYER:
            of_layer = _changed(LAYERS.get(self.layer), self.layer_options)
            changed = {**changed, **{f"{self.layer} {o}": value for o, value in of_layer.items()}}
            words += ["layer", self.layer, *(f"{o}-{value}" for o, value in of_layer.items())]
        if self.vectors_from is not None:
            words += ["from", self.vectors_from.slug]
        source = "" if self.vectors_from is None else self.vectors_from.slug
        return _folder_name(words, changed, source)

    @property
    def takes_vectors(self) -> bool:
        """Whether the builder's input is word vectors."""
        return self.builder.takes is WordVectors

    @property
    def needs_vectors(self) -> bool:
        """Whether it needs vectors that a model learned, as its input or as an option."""
        by_vectors = self._values.get("cluster_by") == "vectors" and not self.reads_vectors
        return self.takes_vectors or by_vectors

    @property
    def reads_vectors(self) -> bool:
        """Whether an option names a file of vectors, whose training was not timed."""
        return self._values.get("vectors_file") is not None

    @cached_property
    def _values(self) -> dict[str, Any]:
        return self.builder.effective(self.options)

    def seeded(self, random_state: int) -> dict[str, Any]:
        """Return the options with a random state, unless they have one."""
        takes_state = any(option.name == "random_state" for option in self.builder.options)
        return {"random_state": random_state, **self.options} if takes_state else dict(self.options)


@dataclass(frozen=True)
class Layer:
    """An output layer over the words of the training split, and its options.

    Attributes
    ----------
    layer : str
        Name of a layer that takes a vocabulary.
    options : mapping
        By their Python names; the others have their defaults.
    name : str
        Name of the row; by default the layer and its options.

    Raises
    ------
    OptionError
        When the layer, an option or its value is unknown, or the layer is over a tree.
    """

    layer: str
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        """Check the options."""
        if self.kind.takes is not Vocabulary:
            instead = "name a builder or a tree instead"
            if self.layer != TREE_LAYER:
                instead = f'name both, as in "gmm + {self.layer}"'
            raise OptionError(f"the output layer {self.layer!r} is over a tree; {instead}")
        effective(self.kind.options, self.options, self.layer)
        if not self.name:
            object.__setattr__(self, "name", _spelled(self.layer, self.options))

    @property
    def kind(self) -> LayerKind:
        """The registered layer of this name."""
        return LAYERS.get(self.layer)

    @cached_property
    def slug(self) -> str:
        """Name of the row's folder, the same for all spellings of the same options."""
        changed = _changed(self.kind, self.options)
        words = ["layer", self.layer, *(f"{name}-{value}" for name, value in changed.items())]
        return _folder_name(words, changed)


@dataclass(frozen=True)
class NamedOutput:
    """A tree or a specified output layer, and the name of its row."""

    name: str
    output: Tree | LayerSpec

    @cached_property
    def spec(self) -> LayerSpec:
        """The output layer; a tree means the hierarchical softmax over it."""
        return self.output if isinstance(self.output, LayerSpec) else layer_spec(self.output)

    @property
    def slug(self) -> str:
        """Name of the row's folder."""
        key = (
            self.spec.sha256[:8] if self.spec.is_plain_tree else _short_hash(repr(self.spec.key()))
        )
        return _plain(f"{self.spec.kind.name}-{Path(self.name).name.partition('.')[0]}-{key}")


@dataclass(frozen=True)
class Ensemble:
    """Several models of one entry, each with its own random state; their probabilities' mean.

    Models over trees that a builder draws, or builds from vectors, have a tree of their own each.

    Attributes
    ----------
    of : Method, Layer or NamedOutput
        What each of the models is.
    models : int
        Number of models, 2 or more.
    name : str
        Name of the row; by default as in "3 x gmm".

    Raises
    ------
    OptionError
        When `of` is something else, or `models` is out of its range.
    """

    of: Method | Layer | NamedOutput
    models: int
    name: str = ""

    def __post_init__(self) -> None:
        """Check the entry and the number of models."""
        if not isinstance(self.of, Method | Layer | NamedOutput):
            name = getattr(self.of, "name", self.of)
            raise OptionError(f"{name} cannot be the models of an ensemble")
        check_value("models", self.models, Annotated[int, Range(2, 100)])
        if not self.name:
            object.__setattr__(self, "name", f"{self.models} x {self.of.name}")

    @property
    def slug(self) -> str:
        """Name by which the row is told from others; its models are in the folders of `of`."""
        return f"{self.models}-x-{self.of.slug}"


@dataclass(frozen=True)
class Baseline:
    """A Kneser-Ney n-gram model; "kn3" is the usual name of a trigram model."""

    name: str
    order: int

    @classmethod
    def named(cls, name: str) -> Self:
        """Return the baseline of a name; OptionError if there is none."""
        match = _BASELINE.fullmatch(name)
        if match is None:
            raise OptionError(f"there is no baseline {name!r}; there are kn2 to kn7, Kneser-Ney")
        return cls(name, int(match[1]))

    @property
    def slug(self) -> str:
        """Name of the row's folder."""
        return f"kn{self.order}"


#: Entries that are trained.
Trained = Method | Layer | NamedOutput
Entry = Trained | Ensemble | Baseline
#: Shorthands for an entry in Python.
EntryLike = Entry | str | tuple[str, Mapping[str, Any]] | Tree | LayerSpec


def as_entries(entries: Sequence[EntryLike]) -> list[Entry]:
    """Return the entries of a comparison, in their order.

    Parameters
    ----------
    entries : sequence
        The name of a builder, an output layer or a baseline ("kn5"), the name of a builder or a
        layer and its options, a tree, a specified layer, or an entry, as an `Ensemble`. The layer
        "flat" is the builder's row.

    Raises
    ------
    OptionError
        When there is none, one is of another type, two are the same, or a name or an
        option is unknown.

    Examples
    --------
    >>> [entry.name for entry in as_entries(["huffman", ("gmm", {"epsilon": 0.4}), "kn5"])]
    ['huffman', 'gmm epsilon=0.4', 'kn5']
    """
    converted = [_as_entry(entry) for entry in entries]
    if not converted:
        raise OptionError("there is nothing to compare; name a method, a tree or a baseline")
    check_names(converted)
    return converted


def check_names(entries: Sequence[Entry]) -> None:
    """Refuse rows that are the same, and different rows or models of one name; OptionError."""
    names: dict[str, str] = {}
    for entry in entries:
        if entry.slug in names:
            first = names[entry.slug]
            same = "occurs twice" if first == entry.name else f"and {entry.name} agree"
            raise OptionError(f"{first} {same} in the comparison; name each once")
        names[entry.slug] = entry.name
    slugs: dict[str, str] = {}
    models = [entry.of for entry in entries if isinstance(entry, Ensemble)]
    for named in [*entries, *models]:
        if slugs.setdefault(named.name, named.slug) != named.slug:
            what = "rows" if named in entries else "rows, or a row and the models of an ensemble,"
            raise OptionError(f"two {what} are named {named.name}; give each another name")


def model_of(entry: Trained | Ensemble) -> Trained:
    """Return what is trained for a row: the entry, or what each model of an ensemble is."""
    return entry.of if isinstance(entry, Ensemble) else entry


def n_models(entry: Trained | Ensemble) -> int:
    """Return the number of models of a row for each seed; 1 but for an ensemble."""
    return entry.models if isinstance(entry, Ensemble) else 1


def states_of(entry: Trained | Ensemble, seeds: range) -> range:
    """Return the random states of all models of a row: the seeds, k states a seed for k models.

    Those of a seed follow those of the seed before it.
    """
    return range(seeds[0], seeds[0] + n_models(entry) * len(seeds))


def trained_of(entries: Sequence[Entry]) -> list[Trained]:
    """Return what is trained, each once, in the order of the entries."""
    trained = [model_of(entry) for entry in entries if not isinstance(entry, Baseline)]
    return list({entry.name: entry for entry in trained}.values())


def record_of(entry: Entry) -> dict[str, Any]:
    """Return an entry as JSON values, from which `entry_of` makes it again."""
    if isinstance(entry, Method):
        source = entry.vectors_from
        record = {
            "method": entry.method,
            "options": _as_json(entry.options),
            "name": entry.name,
            "vectors_from": None if source is None else record_of(source),
        }
        if entry.layer != TREE_LAYER:
            record |= {"layer": entry.layer, "layer_options": _as_json(entry.layer_options)}
        return record
    if isinstance(entry, Layer):
        return {"layer": entry.layer, "options": _as_json(entry.options), "name": entry.name}
    if isinstance(entry, Baseline):
        return {"baseline": entry.name}
    if isinstance(entry, Ensemble):
        return {"ensemble": record_of(entry.of), "models": entry.models, "name": entry.name}
    return {"output": entry.name}


def entry_of(record: Any, folder: Path) -> Entry:
    """Return the entry of a record; the tree or layer of a `NamedOutput` is read from its run.

    Parameters
    ----------
    record : mapping
        As `record_of` returns it.
    folder : Path
        Folder of a finished run of the entry.

    Raises
    ------
    HstreeError
        When a name or an option is unknown, or the folder cannot be read.
    """
    match record:
        case {"method": _}:
            return method_of(record)
        case {"layer": str(layer), "options": dict(options), "name": str(name)}:
            return Layer(layer, options, name)
        case {"baseline": str(name)}:
            return Baseline.named(name)
        case {"ensemble": of, "models": int(models), "name": str(name)}:
            of_models = entry_of(of, folder)
            if isinstance(of_models, Trained):
                return Ensemble(of_models, models, name)
        case {"output": str(name)}:
            return NamedOutput(name, load_model(folder / "model").spec)
    raise FileFormatError(f"{record!r} is not the record of an entry")


def method_of(record: Any) -> Method:
    """Return the method of a record; raises HstreeError as `entry_of` does."""
    match record:
        case {"method": str(method), "options": dict(options), "name": str(name), **rest}:
            source = rest.get("vectors_from")
            vectors_from = None if source is None else method_of(source)
            layer: Any = rest.get("layer", TREE_LAYER)
            layer_options: Any = rest.get("layer_options", {})
            return Method(method, options, name, vectors_from, layer, layer_options)
    raise FileFormatError(f"{record!r} is not the record of a method")


def _changed(kind: LayerKind, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a layer that are not their defaults."""
    values = effective(kind.options, options, kind.name)
    return {o.name: values[o.name] for o in kind.options if values[o.name] != o.default}


def _as_json(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: str(v) if isinstance(v, Path) else v for name, v in options.items()}


def _as_entry(entry: EntryLike) -> Entry:
    if isinstance(entry, Tree):
        return NamedOutput(f"tree {entry.sha256[:8]}", entry)
    if isinstance(entry, LayerSpec):
        return NamedOutput(_spelled(entry.kind.name, entry.options), entry)
    if isinstance(entry, tuple):
        name = entry[0]
        is_layer = name in LAYERS.names() and name not in BUILDERS.names()
        return Layer(*entry) if is_layer else Method(*entry)
    if isinstance(entry, str):
        return Baseline.named(entry) if re.fullmatch(r"kn\d+", entry) else _as_entry((entry, {}))
    if isinstance(entry, Layer) and entry.layer == FLAT:
        return Method(FLAT, name=entry.name)
    if isinstance(entry, Ensemble) and isinstance(entry.of, Layer) and entry.of.layer == FLAT:
        return replace(entry, of=Method(FLAT, name=entry.of.name))
    if isinstance(entry, Entry):
        return entry
    raise OptionError(
        f"{entry!r} cannot be compared; name a method or an output layer, with its options, "
        "a tree or a baseline"
    )


def _spelled(name: str, options: Mapping[str, Any]) -> str:
    return " ".join([name, *(f"{option}={value}" for option, value in options.items())])


def _folder_name(words: Sequence[str], changed: Mapping[str, Any], source: str = "") -> str:
    """Return words as a folder's name, with a hash where they are long or may name a file."""
    plain = _plain("-".join(words))
    is_whole = all(
        not isinstance(value, Path) and (not isinstance(value, str) or _plain(value) == value)
        for value in changed.values()
    )
    if len(plain) <= _LONGEST_SLUG and is_whole:
        return plain
    return f"{plain[:_LONGEST_SLUG]}-{_short_hash(repr(changed) + source)}"


def _plain(text: str) -> str:
    """Return a text as a folder's name: letters, digits, dots and dashes."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.").lower()


def _short_hash(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:8]
