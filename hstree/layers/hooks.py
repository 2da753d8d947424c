"""What single layers need of a training beside their loss, which trainers ask for once."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from hstree._arrays import Array, Int64, Integer
from hstree.data.windows import Batch, ContextBatches
from hstree.errors import OptionError

if TYPE_CHECKING:
    from hstree.builders.carried_rows import CarriedRows


class TrainingHooks:
    """Hooks of a training, part of every output layer. A layer that needs one overrides it."""

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

    def prepare(self, train: ContextBatches) -> None:
        """Read the training text before the first batch, for noise or features from it.

        Raises HstreeError when the text or its contexts do not fit the options.
        """

    def arrange(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield the batches of one training epoch in their order; a layer may look ahead."""
        return batches

    def in_context(self, contexts: Integer) -> Self:
        """Return the layer after contexts (B, n), label ids, the farthest first.

        Language models ask for it before they train, score or predict. The methods of what is
        returned take the hidden vectors (B, d) of these contexts.
        """
        return self

    def restore(self, tables: Mapping[str, Array]) -> None:
        """Take over the `tables` of a saved model, which set the lengths of `parameters`.

        Only layers that have tables are asked. Raises FileFormatError when they are not those of
        such a layer.
        """

    def carry(self, old: Self, rows: "CarriedRows") -> None:
        """Take over what a layer of the same kind learned over the tree that this one grew from.

        `rows` are those that the trees share. Raises OptionError when such layers do not grow.
        """
        kind = type(self).__name__
        raise OptionError(f"{kind} cannot continue over another tree; the hierarchical softmax can")
