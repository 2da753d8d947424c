"""Models by name: create and load them, and find the class of a config.

Another package adds a model through the entry-point group ``hstree.models``::

    [project.entry-points."hstree.models"]
    rnn = "their_package.models:RecurrentModel"
"""

import dataclasses
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from hstree._options import Option, effective, parse_options, read_options, typed_words
from hstree._plugins import PACKAGE, Registry, read_summary, unusable
from hstree.data.vocabulary import EOS
from hstree.errors import FileFormatError, OptionError, PluginError
from hstree.layers import saved
from hstree.layers.registry import LayerSpec
from hstree.models.base import DEFAULT_MODEL, BaseModel
from hstree.tree import Tree

#: Tree with two words.
_SMALLEST = Tree([EOS, "a"], [0, 2], [~0, ~1])


@dataclass(frozen=True)
class ModelKind:
    """A registered class of models, with the options of its constructor in order.

    `summary` is the first line of the docstring; `package` is the package that provides the class.
    """

    name: str
    model: type[BaseModel]
    summary: str
    options: tuple[Option, ...]
    package: str

    @classmethod
    def of(cls, name: str, model: Any, package: str = PACKAGE) -> Self:
        """Return the record of a class. Raises PluginError if it is not a class of models."""
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            raise unusable("model", name, package, "it is not a subclass of BaseModel")
        if getattr(model, "name", None) != name or not dataclasses.is_dataclass(model):
            raise unusable("model", name, package, "it is not a dataclass with that `name`")
        try:
            options = read_options(model)
        except (TypeError, ValueError, NameError, AttributeError) as error:
            raise unusable("model", name, package, f"{error}") from error
        return cls(name, model, read_summary(model)[0], options, package)


MODELS = Registry(
    "model",
    "hstree.models",
    {
        "lbl": "hstree.models.lbl:LanguageModel",
        "cbow": "hstree.models.cbow:CBOW",
        "skipgram": "hstree.models.skipgram:SkipGram",
        "gru": "hstree.models.torch.networks:GRU",
        "transformer": "hstree.models.torch.networks:Transformer",
        "torch": "hstree.models.torch.user_network:TorchNetwork",
    },
    ModelKind.of,
)


def new_model(output: Tree | LayerSpec, *, model: str = DEFAULT_MODEL, **options: Any) -> BaseModel:
    """Return an untrained model; `model` is a name, optionally with options: "gru dim=256".

    Raises OptionError when the model or an option is unknown, or the value of an option is illegal.
    """
    # Keyword options replace options in the text
    name, *pairs = typed_words(model) or [model]
    kind = MODELS.get(name)
    options = parse_options(name, kind.options, pairs) | options
    new: Callable[..., BaseModel] = kind.model
    return new(output, **effective(kind.options, options, kind.name))


def config_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config of a model with these options of `new_model`, for any vocabulary."""
    return new_model(_SMALLEST, **options).config()


def kind_of(config: Mapping[str, Any]) -> ModelKind:
    """Return the kind of model for a config. Raises OptionError if it is unknown."""
    return MODELS.get(config.get("model", DEFAULT_MODEL))


def load_model(folder: str | os.PathLike[str]) -> BaseModel:
    """Read a saved model of any class from its folder.

    Raises
    ------
    FileFormatError
        When a file is missing or damaged, has another version, or does not fit the other files.
    """
    model_folder = saved.read(folder)
    try:
        kind = kind_of(model_folder.config)
    except (TypeError, OptionError, PluginError) as error:
        raise FileFormatError(f"{folder}: no model can be made from it: {error}") from error
    return kind.model.from_saved(model_folder)
