"""Models, one per file: a context model with an output layer, its options and its trainer."""

from hstree._options import RandomState
from hstree.models.base import BaseModel
from hstree.models.ensemble import Ensemble
from hstree.models.model import Model
from hstree.models.registry import MODELS, config_of, kind_of, load_model, new_model

__all__ = [
    "MODELS",
    "BaseModel",
    "Ensemble",
    "Model",
    "RandomState",
    "config_of",
    "kind_of",
    "load_model",
    "new_model",
]
