"""Output layers by name, and the specification for creating, saving and reading a layer.

Another package adds a layer through the entry-point group ``hstree.layers``::

    [project.entry-points."hstree.layers"]
    dense = "their_package.layers:DenseSoftmax"

Heads of PyTorch networks (group ``hstree.heads``) are output layers, too, unless a built-in layer
has the same name.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Self

import numpy as np

from hstree._arrays import Integer
from hstree._files import current_file
from hstree._options import Option, effective, read_options
from hstree._plugins import PACKAGE, Registry, read_summary, unusable
from hstree.data.vocabulary import Vocabulary
from hstree.errors import FileFormatError, InputError, OptionError
from hstree.layers.base import OutputLayer
from hstree.tree import Tree, load

#: Name of the hierarchical softmax, the default layer.
TREE_LAYER = "tree"
#: Keyword-only parameters of layers that are not options.
RESERVED = frozenset(["counts", "dtype", "random_state"])
#: Entry-point group of heads of PyTorch networks.
HEADS_GROUP = "hstree.heads"
#: Type of a source -> file in the folder of a model, reader of the file, and name in a config.
SOURCES: dict[type, tuple[str, Callable[[Path], Any], str]] = {
    Tree: ("tree.json", load, "tree"),
    Vocabulary: ("vocabulary.tsv", Vocabulary.from_file, "vocabulary"),
}


@dataclass(frozen=True)
class LayerKind:
    """A registered class of output layers, and the type of its source: `Tree` or `Vocabulary`.

    `summary` is the first line of the docstring, and `references` is its section of that name;
    `package` is the package that provides the class.
    """

    name: str
    layer: type[OutputLayer]
    takes: type
    summary: str
    options: tuple[Option, ...]
    package: str
    references: str = ""

    @property
    def is_head(self) -> bool:
        """Whether the class is only a head of PyTorch networks."""
        return not issubclass(self.layer, OutputLayer)

    @classmethod
    def of(cls, name: str, layer: Any, package: str = PACKAGE) -> Self:
        """Return the record of a class. Raises PluginError if it is not an output layer."""
        # Recognise a torch module without importing torch
        is_head = hasattr(layer, "nll") and hasattr(layer, "state_dict")
        if not (isinstance(layer, type) and (is_head or issubclass(layer, OutputLayer))):
            raise unusable("output layer", name, package, "it is not a subclass of OutputLayer")
        try:
            # The annotation of the first parameter is the type of the source
            source, dim, *_ = inspect.signature(layer).parameters
            takes = typing.get_type_hints(layer.__init__).get(source)  # type: ignore[misc]
            if is_head:
                takes = Vocabulary
            options = read_options(layer, RESERVED)
        except (TypeError, ValueError, NameError, AttributeError) as error:
            raise unusable("output layer", name, package, f"{error}") from error
        if takes not in SOURCES or dim != "dim":
            expected = "its first parameters must be one annotated Tree or Vocabulary, and `dim`"
            raise unusable("output layer", name, package, expected)
        summary, references = read_summary(layer)
        return cls(name, layer, takes, summary, options, package, references)


class LayerRegistry(Registry[LayerKind]):
    """Output layers by name, including heads of PyTorch networks that have no built-in layer."""

    def _plugins(self) -> dict[str, EntryPoint]:
        heads = entry_points(group=HEADS_GROUP)
        names = {entry.name: entry for entry in heads if entry.name not in self.native}
        return names | super()._plugins()


LAYERS = LayerRegistry(
    "output layer",
    "hstree.layers",
    {
        TREE_LAYER: "hstree.layers.hierarchical:HierarchicalSoftmax",
        "ngrams": "hstree.layers.ngrams:NgramSoftmax",
        "flat": "hstree.layers.flat:FlatSoftmax",
        "adaptive": "hstree.layers.adaptive:AdaptiveSoftmax",
        "differentiated": "hstree.layers.differentiated:DifferentiatedSoftmax",
        "cnn": "hstree.layers.cnn:CnnSoftmax",
        "importance": "hstree.layers.importance:ImportanceSampling",
        "adaptive-importance": "hstree.layers.adaptive_importance:AdaptiveImportanceSampling",
        "target": "hstree.layers.target:TargetSampling",
        "sampled": "hstree.layers.sampled:SampledSoftmax",
        "nce": "hstree.layers.nce:NoiseContrastive",
        "negative": "hstree.layers.negative:NegativeSampling",
        "self-normalised": "hstree.layers.self_normalised:SelfNormalised",
        "infrequent": "hstree.layers.infrequent:Infrequent",
    },
    LayerKind.of,
)


class LayerSpec:
    """Specification of an output layer: its kind, source and options.

    Parameters
    ----------
    source : Tree or Vocabulary
    layer : str
        Name of a registered layer (default: the hierarchical softmax).
    **options
        Options of the layer; missing options have their defaults.

    Raises
    ------
    OptionError
        When the layer is unknown, or the value of an option is illegal.
    InputError
        When the layer takes another type of source.
    """

    def __init__(self, source: Tree | Vocabulary, layer: str = TREE_LAYER, **options: Any) -> None:
        kind = LAYERS.get(layer)
        if not isinstance(source, kind.takes):
            raise InputError(
                f"the output layer {layer!r} takes a {kind.takes.__name__}, "
                f"not a {type(source).__name__}"
            )
        self.kind = kind
        self.source = source
        self.options = effective(kind.options, options, layer)
        #: the source, if it is a tree
        self.tree = source if isinstance(source, Tree) else None
        #: the V labels, indexed by id, and their training counts (V,), if known
        self.labels = source.labels if isinstance(source, Tree) else source.words
        self.counts = source.counts
        #: record of the inputs from which the source was made (`hstree.data.provenance`), or None
        self.provenance: object = (
            source.meta.get("input") if isinstance(source, Tree) else source.source
        )
        #: name of the source's file in a model's folder: "tree.json" or "vocabulary.tsv"
        self.file = SOURCES[kind.takes][0]
        #: whether this is the hierarchical softmax without options, which configs and keys omit
        self.is_plain_tree = kind.name == TREE_LAYER and not self.options

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Labels in their order as a vocabulary; unknown counts are 1."""
        if isinstance(self.source, Vocabulary):
            return self.source
        counts = np.ones(len(self.labels), np.int64) if self.counts is None else self.counts
        return Vocabulary(self.labels, counts)

    def new(
        self,
        dim: int,
        *,
        counts: Integer | None = None,
        dtype: Any = np.float32,
        random_state: int = 0,
    ) -> OutputLayer:
        """Return an untrained layer: the unigram distribution of `counts` (see `OutputLayer`)."""
        if self.kind.is_head:
            raise OptionError(
                f"the output layer {self.kind.name!r} is only a head of PyTorch networks; "
                "train such a network, for example with --model gru"
            )
        make: Any = self.kind.layer
        arguments: dict[str, Any] = {"counts": counts, "dtype": dtype, **self.options}
        if "random_state" in inspect.signature(make).parameters:
            arguments["random_state"] = random_state
        try:
            layer: OutputLayer = make(self.source, dim, **arguments)
        except OptionError as error:
            if error.option is None:
                raise
            # Prefix the option with the name of its layer
            owner = f"{self.kind.name}: {error.owner}" if error.owner else self.kind.name
            raise OptionError(
                f"{self.kind.name}: {error}", option=error.option, reason=error.reason, owner=owner
            ) from error
        return layer

    def config(self) -> dict[str, Any]:
        """Return the entries of a model's config that specify its layer, as JSON values.

        They differ between different layers, and are part of the keys of cached runs. They contain
        a hash of the tree, or of the labels in their order and the counts.
        """
        if isinstance(self.source, Tree):
            digest = self.source.sha256
        else:
            content = json.dumps([self.source.words, self.source.counts.tolist()])
            digest = hashlib.sha256(content.encode()).hexdigest()
        # The default, the hierarchical softmax without options, has no entry "layer"
        if self.is_plain_tree:
            return {"tree_sha256": digest}
        options = {name: value for name, value in self.options.items() if value is not None}
        layer = {"name": self.kind.name, "options": options}
        return {"layer": layer, f"{SOURCES[self.kind.takes][2]}_sha256": digest}

    @classmethod
    def read(cls, folder: Path, config: Mapping[str, Any]) -> LayerSpec:
        """Read the layer from a model's folder and config.

        Raises HstreeError when the layer is unknown, or its source cannot be read.
        """
        match config.get("layer", {"name": TREE_LAYER, "options": {}}):
            case {"name": str(name), "options": dict(options)}:
                kind = LAYERS.get(name)
                file, read_source, _ = SOURCES[kind.takes]
                return LayerSpec(read_source(current_file(folder, file)), name, **options)
        raise FileFormatError(
            f'{folder}: "layer" in the config is not a name and options; save the model again'
        )
