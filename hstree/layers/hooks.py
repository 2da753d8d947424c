"""Training hooks of output layers: what a trainer calls in addition to the loss."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from hstree._arrays import Array, Int64, Integer
from hstree.data.windows import Batch, ContextBatches
from hstree.errors import OptionError

if TYPE_CHECKING:
    from hstree.builders.carried_rows import CarriedRows


class TrainingHooks:
    """Training hooks of an output layer. A layer overrides the hooks that it needs."""

    #: whether the layer needs the words before each target, which only language models have
    needs_contexts: bool = False
    #: number of batches after which training costs repeat; speeds are measured over whole periods
    period: int = 1
    #: whether calling `nll` from several threads is safe and faster
    scores_in_threads: bool = False
    #: arguments of `RowAdagrad` by array: `rate`, `initial_accumulator`
    adagrad: Mapping[str, dict[str, float]] = MappingProxyType({})
    #: integer arrays computed from the training text, by tensor name in a saved model
    tables: Mapping[str, Int64] = MappingProxyType({})
    #: arrays other than parameters that training changes in place, for checkpoints; read after
    #: `prepare`
    training_state: Mapping[str, Array] = MappingProxyType({})

    def prepare(self, train: ContextBatches) -> None:
        """Read the training text before the first batch, to compute noise or features.

        Raises HstreeError when the options do not fit the text or its contexts.
        """

    def arrange(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield the batches of one training epoch in order; a layer may read some in advance."""
        return batches

    def in_context(self, contexts: Integer) -> Self:
        """Return the layer for contexts (B, n): label ids, the farthest word first.

        Language models call this method before they train, score or predict. The methods of the
        returned layer accept the hidden vectors (B, d) of these contexts.
        """
        return self

    def restore(self, tables: Mapping[str, Array]) -> None:
        """Set `tables` from a saved model; they determine the lengths of `parameters`.

        Called only for layers that have tables. Raises FileFormatError when the tables do not
        belong to such a layer.
        """

    def carry(self, old: Self, rows: "CarriedRows") -> None:
        """Copy parameters from a layer over the tree from which this layer's tree was grown.

        `rows` are the weight rows that the trees share. Raises OptionError when layers of this kind
        cannot be grown.
        """
        kind = type(self).__name__
        raise OptionError(
            f"{kind} cannot continue over another tree; use the hierarchical softmax (layer 'tree')"
        )
