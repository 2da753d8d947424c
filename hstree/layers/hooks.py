"""What single layers need of a training beside their loss, which trainers ask for once."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from hstree._arrays import Array, Int64, Integer
from hstree.data.windows import Batch, ContextBatches
from hstree.errors import OptionError
from hstree.layers.base import OutputLayer

if TYPE_CHECKING:
    from hstree.builders.carried_rows import CarriedRows


class TrainingHooks:
    """Hooks of a training; a layer has those that it defines.

    A layer that needs one inherits from this class too, and defines it: a value or a method in the
    place of the default. Trainers and models get the hooks of any layer from `training_hooks`.
    """

    #: whether the layer needs the words before each target, as language models have them
    needs_contexts: bool = False
    #: number of batches after which the costs of training repeat; speeds are of whole ones
    period: int = 1
    #: whether several threads may call `nll` at once, and gain by it
    scores_in_threads: bool = False
    #: arguments of `RowAdagrad` by array: `rate`, `initial_accumulator`
    adagrad: Mapping[str, dict[str, float]] = MappingProxyType({})
    #: integers that the layer took from the training text, by the names of a saved model's tensors
    tables: Mapping[str, Int64] = MappingProxyType({})
    #: what else than parameters a training changes in place, for checkpoints; read after `prepare`
    training_state: Mapping[str, Array] = MappingProxyType({})
    #: reads the training text before the first batch, for noise or features from it; raises
    #: HstreeError when the text or its contexts do not fit the options
    prepare: Callable[[ContextBatches], None] | None = None
    #: yields the batches of one training epoch in their order; a layer may look ahead
    arrange: Callable[[Iterator[Batch]], Iterator[Batch]] | None = None
    #: the layer whose hooks these are, where it does not inherit them
    _layer: OutputLayer | None = None

    def in_context(self, contexts: Integer) -> OutputLayer:
        """Return the layer after contexts (B, n), label ids, the farthest first.

        Language models ask for it before they train, score or predict. The methods of what is
        returned take the hidden vectors (B, d) of these contexts.
        """
        return self._layer or self  # type: ignore[return-value]

    def restore(self, tables: Mapping[str, Array]) -> None:
        """Take over the `tables` of a saved model, which set the lengths of `parameters`.

        Only layers that have tables are asked. Raises FileFormatError when they are not those of
        such a layer.
        """

    def carry(self, old: OutputLayer, rows: "CarriedRows") -> None:
        """Take over what a layer of the same kind learned over the tree that this one grew from.

        `rows` are those that the trees share. Raises OptionError when such layers do not grow.
        """
        kind = type(self._layer or self).__name__
        raise OptionError(f"{kind} cannot continue over another tree; the hierarchical softmax can")


def training_hooks(layer: OutputLayer) -> TrainingHooks:
    """Return the training hooks of a layer; without any, those of a layer that has none."""
    return layer if isinstance(layer, TrainingHooks) else _NoHooks(layer)


class _NoHooks(TrainingHooks):
    """The hooks of a layer that has none."""

    def __init__(self, layer: OutputLayer) -> None:
        self._layer = layer
