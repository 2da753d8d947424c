"""Output layers, one per file: loss, gradients, log-probabilities, top-k labels and sampling."""

from hstree.layers.base import Gradients, OutputLayer, ParameterGradient
from hstree.layers.hooks import TrainingHooks
from hstree.layers.registry import LAYERS, LayerSpec

__all__ = [
    "LAYERS",
    "Gradients",
    "LayerSpec",
    "OutputLayer",
    "ParameterGradient",
    "TrainingHooks",
]
