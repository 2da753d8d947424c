"""Models, one per file: a context model with an output layer, its options and its trainer."""

from hstree._options import RandomState
from hstree.models.base import Model
from hstree.models.ensemble import Ensemble
from hstree.models.registry import MODELS, config_of, kind_of, load_model, new_model

__all__ = [
    "MODELS",
    "Ensemble",
    "Model",
    "RandomState",
    "config_of",
    "kind_of",
    "load_model",
    "new_model",
]
