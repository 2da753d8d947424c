"""Context models with an output layer, one a file."""

from hstree.models.base import Model
from hstree.models.registry import MODELS, config_of, describe, kind_of, load, new_model, predicts

__all__ = [
    "MODELS",
    "Model",
    "config_of",
    "describe",
    "kind_of",
    "load",
    "new_model",
    "predicts",
]
