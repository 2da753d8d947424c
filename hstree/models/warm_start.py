"""Warm starts: copy the context model of a trained model into a new model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from hstree._arrays import Array
from hstree.errors import OptionError
from hstree.layers.registry import LayerSpec
from hstree.training.scoring import ContextModel


class TrainedModel(Protocol):
    """Attributes of an `hstree.models.Model` that a warm start reads."""

    spec: LayerSpec

    @property
    def name(self) -> str:
        """Name of the kind of model."""
        ...

    @property
    def context_model(self) -> ContextModel:
        """Trained context model."""
        ...


def copy_context_model(source: TrainedModel, model: TrainedModel, new: ContextModel) -> None:
    """Copy the context model of `source` into `new`, that of `model`; match word vectors by word.

    Raises OptionError when the models have different kinds or sizes.
    """
    old_arrays = source.context_model.parameters()
    new_arrays = new.parameters()
    old_sizes = _describe_sizes(old_arrays)
    new_sizes = _describe_sizes(new_arrays)
    if source.name != model.name or old_sizes != new_sizes:
        raise OptionError(
            f"the vectors of {source.name} ({old_sizes}) cannot begin the training of {model.name} "
            f"({new_sizes}); give a model of the same kind and sizes"
        )

    # (V,) label id of each word in the source, -1 for missing words
    number = {word: i for i, word in enumerate(source.spec.labels)}
    source_label = np.array([number.get(word, -1) for word in model.spec.labels])
    is_known = source_label >= 0

    # Match word vectors by word; other arrays do not depend on the vocabulary
    for name, array in new_arrays.items():
        if name == "embedding":
            array[is_known] = old_arrays[name][source_label[is_known]]
        else:
            array[...] = old_arrays[name]


def _describe_sizes(parameters: Mapping[str, Array]) -> str:
    """Describe the sizes of a context model's arrays, without the number of words."""
    shapes = {n: a.shape[1:] if n == "embedding" else a.shape for n, a in parameters.items()}
    return ", ".join(f"{name} {' x '.join(map(str, shape))}" for name, shape in shapes.items())
