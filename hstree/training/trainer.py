"""Loop over epochs that all training runs share.

The weights with the best validation perplexity are kept, or the last weights without a validation
text. If checkpoints are enabled, one is written at the end and after Ctrl-C. Subclasses of
`EpochLoop` define the trained model. `Trainer` trains context models in NumPy; its subclasses
define batches, steps and learning rates.
"""

import math
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, ClassVar, Generic, TypeVar

import msgspec
import numpy as np

from hstree import progress
from hstree._arrays import Array, Integer
from hstree._text import TextTable, format_number, plural
from hstree.data.text_score import perplexity
from hstree.data.windows import ContextBatches
from hstree.errors import DivergenceError, FileFormatError, TrainingError
from hstree.layers.base import OutputLayer
from hstree.training.ahead import ahead
from hstree.training.checkpoints import Checkpoints, State
from hstree.training.interrupts import held_back
from hstree.training.scoring import ContextModel, score

M = TypeVar("M", bound=ContextModel)
#: Seconds for the compilation of kernels. The speed in the same number of seconds afterwards
#: estimates the total training time.
WARN_AFTER = 2.5
#: Number of positions in the batches that a second thread hands over together.
TOGETHER = 2048


@dataclass(frozen=True)
class Epoch:
    """Results of one epoch, counted from 1.

    Attributes
    ----------
    train : float or None
        Running perplexity of the training text, with dropout; None if losses are not negative
        log-likelihoods (`OutputLayer.is_likelihood`).
    valid : float or None
        Validation perplexity after the epoch.
    seconds : float
        Wall-clock time without the validation.
    learning_rate : float
        At the start of the epoch.
    share : float
        Fraction of the epoch's targets that were used. It is below 1 if the time budget ended
        inside the epoch.
    """

    epoch: int
    train: float | None
    valid: float | None
    seconds: float
    tokens_per_second: float
    learning_rate: float
    share: float = 1.0


@dataclass
class History:
    """Epochs of a training run, and the reason for its end.

    Attributes
    ----------
    interrupted : bool
        Whether Ctrl-C ended it.
    converged : bool
        Whether it ended before its limits, because the validation perplexity stopped falling.
    out_of_time : bool
        Whether the time budget ended it; then it is neither interrupted nor converged.
    preparation : float
        Seconds for the preparation of the output layer before the first batch, for example to count
        n-grams. A continued run keeps the value of its start, so that its budget ends at the same
        batch.
    kernels : str
        "numpy" if compiled kernels were disabled or missing, otherwise numba and its version. For a
        PyTorch network, the version of torch and the device.
    unfinished : float
        Wall-clock time of the epoch that Ctrl-C ended.
    before : float
        Wall-clock time, including validation, up to the checkpoint from which the run continued; 0
        if it was not stopped.
    """

    epochs: list[Epoch] = field(default_factory=list)
    interrupted: bool = False
    converged: bool = False
    out_of_time: bool = False
    preparation: float = 0.0
    kernels: str = ""
    unfinished: float = 0.0
    before: float = 0.0

    @property
    def seconds(self) -> float:
        """Wall-clock time of the epochs, without validation."""
        return sum(epoch.seconds for epoch in self.epochs) + self.unfinished

    def _repr_html_(self) -> str:
        return epoch_table(self.epochs)._repr_html_()


def epoch_table(epochs: Sequence[Epoch]) -> TextTable:
    """Return a table with one row per epoch."""
    columns = ("epoch", "train", "valid", "seconds", "tokens/s", "learning rate")
    rows = [
        (
            str(epoch.epoch),
            format_number(epoch.train),
            format_number(epoch.valid),
            format_number(epoch.seconds, 1),
            format_number(epoch.tokens_per_second, 0),
            f"{epoch.learning_rate:g}",
        )
        for epoch in epochs
    ]
    return TextTable(columns, rows)


@dataclass
class EpochPosition:
    """Position in a training run: an epoch, counted from 1, and sums over its batches so far.

    Attributes
    ----------
    nll : float
        Summed losses in nats.
    seconds : float
        Wall-clock time of the epoch.
    noise : dict, optional
        State of the random generator for losses, after these batches.
    is_whole : bool
        Whether training can continue from here: no step is changing parameters at the moment.
    """

    epoch: int = 1
    batches: int = 0
    nll: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    noise: dict[str, Any] = field(default_factory=dict)
    is_whole: bool = True


@dataclass
class Progress:
    """State of one call of `EpochLoop.fit`.

    Attributes
    ----------
    arrays : dict
        All arrays that training changes in place, by their names in a checkpoint.
    weights : dict
        Arrays whose best values are kept, by parameter name.
    began : float
        Time of the call of `fit`, by `time.perf_counter`.
    best : float
        Lowest validation perplexity so far.
    best_weights : dict
        Copies of the weights at that perplexity; empty before the first validation.
    next_speed_check : float
        Seconds within an epoch after which the speed is measured; infinity for never.
    warm_tokens, warm_seconds : int, float
        Position at the first measurement, when kernels are compiled; 0 before it.
    """

    history: History
    arrays: dict[str, Any]
    weights: dict[str, Any]
    began: float
    position: EpochPosition = field(default_factory=EpochPosition)
    best: float = math.inf
    best_weights: dict[str, Array] = field(default_factory=dict)
    next_speed_check: float = math.inf
    warm_tokens: int = 0
    warm_seconds: float = 0.0


class EpochLoop(ABC):
    """Training loop over epochs that changes arrays in place.

    Subclasses define the batches, the step, the validation and the arrays.

    Parameters
    ----------
    model : hstree.models.BaseModel
        If `model.seconds` is not None, it is a budget of wall-clock time that includes the
        preparation of the output layer and excludes validation. The batch in which the budget ends
        is the last, also inside an epoch; validation follows as after every epoch. Learning rates
        that fall until the last epoch (`learning_rate`) fall until the end of the budget if that is
        earlier; those that change after an epoch (`on_validation`) do not change inside one.

    Attributes
    ----------
    rate : float
        Learning rate, initially the option of the model.
    schedule : tuple of str
        Names of the attributes that steps and validation change; checkpoints contain them.
    preparation : float
        Seconds of the budget that are used before the first batch of a new run.
    """

    schedule: ClassVar[tuple[str, ...]] = ()
    preparation: float = 0.0

    def __init__(self, model: Any) -> None:
        self.epochs: int = model.epochs
        self.seconds: float | None = model.seconds
        self.batch_size: int = model.batch_size
        self.rate: float = model.learning_rate
        self._random_state: int = model.random_state

    @abstractmethod
    def step(
        self, contexts: Any, targets: Any, learning_rate: float, prepared: Any = None
    ) -> float:
        """Train on one batch of `epoch_batches`; return its summed loss in nats."""

    @abstractmethod
    def epoch_batches(
        self, train: ContextBatches, epoch: int = 1
    ) -> Iterator[tuple[Any, Any, Any]]:
        """Yield the contexts and targets of each batch in an epoch, and prepared data for a step.

        Batches and their random numbers depend only on the random seed and the epoch.
        """

    @abstractmethod
    def validate(self, valid: ContextBatches) -> float:
        """Return the perplexity of a text."""

    @abstractmethod
    def trained_arrays(self) -> dict[str, Any]:
        """Return the arrays whose values in the best epoch are kept, by name."""

    @abstractmethod
    def other_arrays(self) -> dict[str, Any]:
        """Return the other arrays that training changes in place, such as optimiser states."""

    @abstractmethod
    def noise_state(self) -> dict[str, Any]:
        """Return the state of the random generator for steps, as JSON values."""

    @abstractmethod
    def set_noise_state(self, state: dict[str, Any]) -> None:
        """Set the state of the random generator for steps; raise if it is not a state."""

    @property
    def is_likelihood(self) -> bool:
        """Whether losses are negative log-likelihoods."""
        return True

    def as_array(self, values: Any) -> Array:
        """Return one of the arrays as a NumPy array, which may share its memory."""
        array: Array = values
        return array

    def assign(self, values: Any, saved: Array) -> None:
        """Set one of the arrays to saved values."""
        values[...] = saved

    def learning_rate(self, done: float) -> float:
        """Return the learning rate after `done` epochs, which may be fractional.

        With a time budget, `done` is at least its used fraction times the number of epochs.
        """
        return self.rate

    def on_validation(self, valid: float, best: float) -> bool:
        """Update the schedule after validation; return True to stop.

        `valid` is the validation perplexity, and `best` is the lowest one so far, initially
        infinity.
        """
        return False

    def fit(
        self,
        train: ContextBatches,
        valid: ContextBatches | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> History:
        """Train, and set the best weights (without `valid`, the last weights).

        With checkpoints, training continues from the last checkpoint, if any, and writes one when
        it ends or is interrupted.

        Raises
        ------
        TrainingError
            When an epoch has no token, or ends with a perplexity that is not finite.
        """
        began = time.perf_counter()

        # Arrays that training changes: parameters, and states of layer and optimisers
        weights = self.trained_arrays()
        arrays = {**weights, **self.other_arrays()}

        # Continue from the last checkpoint, or start
        run = Progress(History(preparation=self.preparation), arrays, weights, began)
        if self.seconds is None:
            run.next_speed_check = WARN_AFTER
        if checkpoints is not None:
            checkpoints.restore(partial(self._restore, run))
        history = run.history

        # Train until a limit, the budget, convergence or Ctrl-C ends it
        try:
            while run.position.epoch <= self.epochs and not (
                history.converged or history.out_of_time
            ):
                # Overflows show in the perplexity, which is checked afterwards
                with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                    rate, fraction = self._train_epoch(train, run, checkpoints)
                    after = None
                    if valid is not None:
                        after = self.validate(valid)
                with held_back():
                    self._end_epoch(train, run, rate, fraction, after)
            if checkpoints is not None and not history.out_of_time:
                checkpoints.save(self._state(run))
        except KeyboardInterrupt:
            if checkpoints is not None and run.position.is_whole:
                checkpoints.save(self._state(run))
            history.interrupted = True
            history.unfinished = run.position.seconds

        # Set the best weights
        for name, best in run.best_weights.items():
            self.assign(run.weights[name], best)
        return history

    def _train_epoch(
        self, train: ContextBatches, run: Progress, checkpoints: Checkpoints | None
    ) -> tuple[float, float]:
        """Train from the position in an epoch to its end, or until the budget ends.

        Returns the learning rate at the start, and the fraction of the epoch's targets used.
        """
        position = run.position

        # Expected number of tokens in the epoch, and seconds of the budget used so far
        expected = float(train.training_counts.sum())
        limit = self.seconds or math.inf
        spent = run.history.preparation + run.history.seconds
        done = max(position.epoch - 1, self.epochs * min(1.0, spent / limit))
        rate_at_start = self.learning_rate(done)
        measure = "perplexity" if self.is_likelihood else "exp(loss)"

        # The progress line names the epochs or the budget
        title = f"epoch {position.epoch}/{self.epochs}"
        if self.seconds is not None:
            title = f"epoch {position.epoch}, {spent:.0f} of {limit:.0f} s"

        start = time.perf_counter()
        with progress.task(title, expected, "tokens") as task:
            batches = self.epoch_batches(train, position.epoch)
            if position.batches:
                # Resumed epoch: skip the batches so far, which draws their random numbers again
                position.is_whole = False
                for _, targets, _ in islice(batches, position.batches):
                    task.advance(len(targets))
                self.set_noise_state(position.noise)
                position.is_whole = True
                start = time.perf_counter() - position.seconds
            with held_back() as is_stopped:
                for contexts, targets, prepared in batches:
                    # The budget of a resumed run may already be used up
                    if is_stopped() or (position.batches and spent + position.seconds >= limit):
                        break

                    # One step, with the learning rate for the epochs done or the budget used
                    elapsed = spent + time.perf_counter() - start
                    done = position.epoch - 1 + min(1.0, position.tokens / expected)
                    rate = self.learning_rate(max(done, self.epochs * min(1.0, elapsed / limit)))
                    position.is_whole = False
                    position.nll += self.step(contexts, targets, rate, prepared)
                    position.is_whole = True
                    position.batches += 1
                    position.tokens += len(targets)
                    position.seconds = time.perf_counter() - start
                    task.advance(len(targets))
                    task.note(f"{measure} {perplexity(position.nll, position.tokens):.1f}")

                    # A sum that is not finite ends the run after this epoch
                    if spent + position.seconds >= limit or not math.isfinite(position.nll):
                        break
                    if position.seconds >= run.next_speed_check:
                        self._warn_of_hours(run, expected)
                    # The time for saving does not count
                    if checkpoints is not None and time.monotonic() >= checkpoints.due:
                        checkpoints.save(self._state(run))
                        start = time.perf_counter() - position.seconds

                # Save at the end of the budget, since no complete epoch follows
                is_last = spent + position.seconds >= limit
                if is_last and checkpoints is not None:
                    checkpoints.save(self._state(run))
        return rate_at_start, min(1.0, position.tokens / expected) if is_last else 1.0

    def _end_epoch(
        self,
        train: ContextBatches,
        run: Progress,
        rate: float,
        fraction: float,
        valid: float | None,
    ) -> None:
        """Record and report an epoch; update the schedule and the best weights."""
        position = run.position
        history = run.history

        # Refuse an epoch without tokens, and perplexities that are not finite
        if position.tokens == 0:
            raise TrainingError(
                f"sub-sampling left none of the {len(train):,} tokens of {train.corpus.name} to "
                "train on; give more text, or sample 0, which keeps every word"
            )
        running = perplexity(position.nll, position.tokens)
        for part, value in (("training", running), ("validation", valid)):
            if value is not None and not math.isfinite(value):
                raise DivergenceError(
                    f"the training diverged: the {part} perplexity of epoch {position.epoch} is "
                    f"{value}; lower the learning rate, which is {self.rate:g}"
                )

        # Record the epoch
        history.epochs.append(
            Epoch(
                epoch=position.epoch,
                train=running if self.is_likelihood else None,
                valid=valid,
                seconds=position.seconds,
                tokens_per_second=fraction * len(train) / position.seconds,
                learning_rate=rate,
                share=fraction,
            )
        )
        spent = history.preparation + history.seconds
        history.out_of_time = self.seconds is not None and spent >= self.seconds

        # Update the schedule, and keep the best weights
        if valid is not None:
            if not history.out_of_time:
                history.converged = self.on_validation(valid, run.best)
            if valid < run.best:
                run.best = valid
                run.best_weights = {
                    name: self.as_array(values).copy() for name, values in run.weights.items()
                }
        run.position = EpochPosition(position.epoch + 1)

        # Report the remaining seconds: of the budget, or for the other epochs at this speed
        left = (self.epochs - position.epoch) * position.seconds
        text = f"epoch {position.epoch} of {self.epochs}"
        if self.seconds is not None:
            text = f"epoch {position.epoch}"
            left = max(0.0, self.seconds - spent)
        text += "" if valid is None else f", validation perplexity {valid:.1f}"
        progress.report(text, 0.0 if history.converged else left)

    def _warn_of_hours(self, run: Progress, expected: float) -> None:
        """Warn if training will take hours, judged by the speed between the first two calls."""
        position = run.position
        if run.warm_tokens == 0:
            run.warm_tokens = position.tokens
            run.warm_seconds = position.seconds
            run.next_speed_check = position.seconds + WARN_AFTER
            return
        run.next_speed_check = math.inf

        # Both measurements must be in the same epoch, since tokens start at 0 in each epoch
        tokens = position.tokens - run.warm_tokens
        seconds = position.seconds - run.warm_seconds
        if tokens > 0 and (hours := self.epochs * expected / tokens * seconds / 3600) > 1:
            warnings.warn(
                f"training may take {hours:,.1f} hours: at most {plural(self.epochs, 'epoch')} of "
                f"{expected:,.0f} tokens, at {tokens / seconds:,.0f} tokens/s; "
                "--seconds 240 (stop=hstree.Seconds(240)) gives every candidate the same time",
                stacklevel=2,
            )

    def _state(self, run: Progress) -> State:
        """Return the state from which training can continue."""
        before = run.history.before + time.perf_counter() - run.began
        record = {
            "history": asdict(replace(run.history, before=before)),
            "position": asdict(run.position) | {"noise": self.noise_state()},
            "best": run.best,
            "schedule": {name: getattr(self, name) for name in self.schedule},
        }
        best = {f"best {name}": array for name, array in run.best_weights.items()}
        arrays = {name: self.as_array(values) for name, values in run.arrays.items()}
        return State({**arrays, **best}, record)

    def _restore(self, run: Progress, state: State) -> None:
        """Set the state from a checkpoint. If it raises an error, nothing has changed."""
        # Read all values, so that a damaged checkpoint raises here
        record = state.record
        history = msgspec.convert(record["history"], History)
        position = msgspec.convert(record["position"], EpochPosition)
        best = float(record["best"])
        best_weights: dict[str, Array] = {}
        if math.isfinite(best):
            best_weights = {name: state.arrays[f"best {name}"] for name in run.weights}
        schedule = {name: record["schedule"][name] for name in self.schedule}
        self.set_noise_state(position.noise)
        kept = [(array, state.arrays[name]) for name, array in run.arrays.items()]
        best_pairs = [(run.weights[name], saved) for name, saved in best_weights.items()]
        for values, saved in kept + best_pairs:
            array = self.as_array(values)
            if (array.shape, array.dtype) != (saved.shape, saved.dtype):
                raise FileFormatError("its arrays are not those of this training")

        # Set the arrays
        for values, saved in kept:
            self.assign(values, saved)
        for name, value in schedule.items():
            setattr(self, name, value)
        run.history = history
        run.position = position
        run.best = best
        run.best_weights = best_weights


class Trainer(EpochLoop, Generic[M]):
    """Trainer of a context model together with an output layer, in place.

    Parameters
    ----------
    model : hstree.models.Model
        Model whose `context_model` and `layer` are trained.

    Attributes
    ----------
    model, layer
        The context model and the output layer.
    rng, noise : numpy.random.Generator
        Random generators for batches and for losses, seeded again in each epoch.
    optimisers : mapping
        Optimisers by parameter name; checkpoints contain their `arrays`.
    """

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.model: M = model.context_model
        self.layer: OutputLayer = model.layer
        self.optimisers: Mapping[str, Any] = {}
        self.rng, self.noise = (np.random.default_rng([model.random_state, n, 1]) for n in (1, 2))

    @abstractmethod
    def step(
        self, contexts: Integer, targets: Integer, learning_rate: float, prepared: Any = None
    ) -> float:
        """Train on one batch; return its summed loss in nats.

        `prepared` is the result of `prepare` for the batch, or None for a batch that does not come
        from `epoch_batches`.
        """

    def prepare(self, contexts: Integer, targets: Integer) -> Any:
        """Return data for a step that does not depend on parameters: random numbers and layout.

        It is called in the order of the batches, possibly in another thread and before `step`.
        """
        return None

    def epoch_batches(
        self, train: ContextBatches, epoch: int = 1
    ) -> Iterator[tuple[Integer, Integer, Any]]:
        """Yield the contexts and targets of each batch in an epoch, and the result of `prepare`.

        Batches and their random numbers depend only on the random seed and the epoch.
        """
        seeds = ([self._random_state, n, epoch] for n in (1, 2))
        self.rng, self.noise = map(np.random.default_rng, seeds)
        prepared = (
            (contexts, targets, self.prepare(contexts, targets))
            for contexts, targets, _ in train.training_batches(self.batch_size, self.rng)
        )
        # Hand over several batches together, since handing over each small batch is slow
        batches = ahead(prepared, max(1, TOGETHER // self.batch_size))
        return self.layer.arrange(batches)

    def validate(self, valid: ContextBatches) -> float:
        """Return the perplexity of a text."""
        return score(self.model, self.layer, valid).perplexity

    def trained_arrays(self) -> dict[str, Array]:
        """Return the parameters of the context model and of the output layer."""
        return {**self.model.parameters(), **self.layer.parameters()}

    def other_arrays(self) -> dict[str, Array]:
        """Return the states of the layer and of the optimisers."""
        arrays = {f"layer {name}": array for name, array in self.layer.training_state.items()}
        for parameter, optimiser in self.optimisers.items():
            arrays |= {f"{name} of {parameter}": a for name, a in optimiser.arrays.items()}
        return arrays

    @property
    def is_likelihood(self) -> bool:
        """Whether losses are negative log-likelihoods."""
        return self.layer.is_likelihood

    def noise_state(self) -> dict[str, Any]:
        """Return the state of the random generator for losses."""
        return dict(self.noise.bit_generator.state)

    def set_noise_state(self, state: dict[str, Any]) -> None:
        """Set the state of the random generator for losses."""
        self.noise.bit_generator.state = state
