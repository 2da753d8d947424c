"""Base of the models over context windows: a context model with an output layer, in NumPy."""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import cached_property
from itertools import count
from typing import Any, Generic, Self, TypeVar

import numpy as np

from hstree._arrays import Array, Bool, Float64, Int64, Integer
from hstree.data.arrays import check_tensor
from hstree.data.contexts import Contexts
from hstree.data.corpus import Corpus
from hstree.data.provenance import collect_sources
from hstree.data.text_score import TextScore
from hstree.data.vectors import WordVectors
from hstree.data.windows import ContextBatches
from hstree.errors import FileFormatError, OptionError
from hstree.kernels import numpy_for_short_runs, numpy_only
from hstree.layers.base import OutputLayer
from hstree.layers.registry import LayerSpec
from hstree.layers.saved import Saved
from hstree.models.base import BaseModel
from hstree.models.warm_start import copy_context_model
from hstree.training.scoring import ContextModel, score, scored_batches
from hstree.training.trainer import Trainer
from hstree.tree import Tree

M = TypeVar("M", bound=ContextModel)


class Model(BaseModel, Generic[M]):
    """A context model and an output layer.

    A subclass is a dataclass: first ``output: InitVar[Tree | LayerSpec]``, then its options as
    keyword-only fields, among them `dim`, `epochs` and `random_state`. Options have annotations and
    ranges as `hstree._options` reads them.

    Parameters
    ----------
    output : Tree or LayerSpec
        The output layer; a tree means the hierarchical softmax over it. Its labels are the
        vocabulary, ``<eos>`` among them.
    dim : int
        Length of the word vectors.
    epochs : int
        Maximum number of epochs; 0 leaves the model untrained.
    batch_size : int
        Positions in a minibatch.
    learning_rate : float
        Learning rate at the start.
    seconds : float, optional
        Budget of training in seconds, validations not counted; no limit by default. It ends the
        training inside an epoch, which a validation follows. See `hstree.training.trainer.Trainer`.
    random_state : int
        Random seed of the starting vectors and of the training. The same seed gives the same
        weights, byte for byte, on the same number of BLAS threads. With another number, weights
        differ in the last digits where BLAS uses all of them: for other layers than trees and the
        flat softmax, for full matrices, and for wide nodes where no compiled kernels are.

    Attributes
    ----------
    spec : LayerSpec
    tree : Tree or None
        That of the output layer.
    context_model : ContextModel
    layer : OutputLayer
        Both are untrained before `fit`.
    history_ : History
        Epochs of the last `fit`.
    texts : list of dict
        The texts that it was trained and validated on (`hstree.data.provenance.collect_sources`).
    """

    # An option that not all models have
    online: bool = False

    @abstractmethod
    def windows(self, corpus: Corpus) -> ContextBatches:
        """Return the contexts and targets of a corpus, as label ids."""

    @abstractmethod
    def trainer(self, train: ContextBatches) -> Trainer[M]:
        """Return a trainer that continues from the present parameters."""

    @abstractmethod
    def new_context_model(self, rng: np.random.Generator) -> M:
        """Return an untrained context model."""

    @abstractmethod
    def context_ids(self, contexts: Contexts) -> Integer:
        """Return contexts as the label ids that the context model takes (B, n)."""

    # Allocated when they are first used; `fit` replaces them.

    @cached_property
    def context_model(self) -> M:
        """The context model."""
        return self.new_context_model(np.random.default_rng([self.random_state, 0]))

    @cached_property
    def layer(self) -> OutputLayer:
        """The output layer."""
        return self.spec.new(self.dim, random_state=self.random_state)

    def fit(
        self,
        train: Any,
        valid: Any = None,
        *,
        warm_start: Model[Any] | None = None,
        fast: bool | None = None,
        checkpoints: str | os.PathLike[str] | None = None,
        pauses: bool = False,
    ) -> Self:
        """Train from the start; without epochs, the model is the unigram distribution of `train`.

        Parameters
        ----------
        train : Corpus, str, path, iterable or array
            A corpus, the name of a file, lines, lists of tokens or label ids (`Corpus.of`).
        valid : likewise, optional
            Decides which weights are kept, and for some models the learning rate and when to stop.
        warm_start : Model, optional
            Trained model of the same kind and sizes, whose context model the training begins with;
            word vectors follow their words, and words that it lacks begin with random ones. The
            output layer and the sums of the optimiser start over. With the model itself as
            `warm_start`, its own output layer is kept, as after `load` and `grow`.
        fast : bool, optional
            Whether to train by compiled kernels, where numba is installed; by NumPy otherwise. By
            default they train unless the tokens of all epochs are fewer than a million, or the
            seconds than 60: compiling would take longer than the training. Their sums are rounded
            differently, so that weights differ in the last digits.
        checkpoints : path, optional
            Folder for states of trainings, one of every five minutes and those at Ctrl-C and the
            end. The same training, this model fitted to these texts, continues from the last one,
            also from its end, to the same bits. When the model is saved, `remove_checkpoints`
            removes them.
        pauses : bool, default False
            Whether the same model with more `epochs` or `seconds` continues from the checkpoints,
            too: to the same bits as one that never paused, unless its learning rate falls until its
            end, as those of CBOW and skip-gram do.

        Raises
        ------
        OptionError
            When `warm_start` is no model, or of another kind or other sizes.
        InputError
            When a word is not among the labels and these hold no ``<unk>``.
        TrainingError
            When the perplexity is not finite any more, or sub-sampling leaves no token.
        """
        train, valid = self._read_texts(train, valid)

        # The context model, new or from another model
        windows = self.windows(train)
        valid_windows = None if valid is None else self.windows(valid)
        context_model = self.new_context_model(np.random.default_rng([self.random_state, 0]))
        records: list[object] = [part.record for part in (train, valid) if part is not None]
        if warm_start is not None:
            if not isinstance(warm_start, Model):
                raise OptionError(
                    f"warm_start takes a trained model, not {type(warm_start).__name__}; read a "
                    "saved one with hstree.load_model"
                )
            copy_context_model(warm_start, self, context_model)
            records = [[warm_start.spec.provenance, warm_start.texts], records]
        self.context_model = context_model
        self.texts = collect_sources(records)

        # The output layer, and what it reads from the training text
        counts = windows.corpus.counts
        if warm_start is not self:
            self.layer = self.spec.new(self.dim, counts=counts, random_state=self.random_state)
        began = time.perf_counter()
        self.layer.prepare(windows)
        preparation = time.perf_counter() - began

        # Train; only compiled functions train word by word, which `online` asks for
        needs_compiled = self.online if fast is None else fast
        n_tokens = len(train) * self.epochs
        short_runs = numpy_for_short_runs(n_tokens, self.seconds, always=needs_compiled)
        with numpy_only() if fast is False else short_runs:
            trainer = self.trainer(windows)

            # Checkpoints, by the hash of all that the training depends on
            start = None
            if checkpoints is not None and warm_start is not None:
                start = self.parameters() if warm_start is self else context_model.parameters()
            self._open_checkpoints(
                checkpoints, (train, valid), trainer.batch_size, pauses=pauses, start=start
            )
            trainer.preparation = preparation
            self._run(trainer, windows, valid_windows)
        return self

    def grow(self, tree: Tree, **options: Any) -> Self:
        """Return a model over a tree grown or pruned from its own, with what this one learned.

        Word vectors follow their words, and weight rows their nodes (`hstree.carried_rows`); new
        words begin with random vectors, and new nodes with the unigram distribution of the tree's
        counts, as in an untrained model. The models share no array. To continue the training::

            grown = model.grow(hstree.grow(model.tree, text))
            grown.fit(text, warm_start=grown)

        Parameters
        ----------
        tree : Tree
            From `hstree.grow`, `hstree.prune`, both, or ``from=`` of a builder.
        **options
            Options of the model to change, such as `epochs`.

        Raises
        ------
        OptionError
            When the output layer is not over a tree, or an option changes the sizes of the context
            model.
        InputError
            When the tree is not grown or pruned from the model's.
        """
        if self.tree is None:
            raise OptionError(
                f"the output layer {self.spec.kind.name!r} is over words, which no tree grows by; "
                "train a model over a tree"
            )
        from hstree.builders.carried_rows import carried_rows  # other models do not wait for it

        # A new model over the tree, with the same options but those given
        rows = carried_rows(self.tree, tree)
        spec = LayerSpec(tree, self.spec.kind.name, **self.spec.options)
        make: Callable[..., Self] = type(self)
        new = make(spec, **{f.name: getattr(self, f.name) for f in fields(self)} | options)  # type: ignore[arg-type]

        # Copy word vectors by their words and weight rows by their nodes
        copy_context_model(self, new, new.context_model)
        new.layer.carry(self.layer, rows)
        new.texts = self.texts
        return new

    def scored_batches(self, corpus: Corpus) -> Iterator[tuple[Float64, Bool]]:
        """Yield the nll in nats of every token, and whether it is OOV, `BATCH` tokens at a time."""
        windows = self.windows(corpus)
        for batch, nll in scored_batches(self.context_model, self.layer, windows):
            yield nll, batch[2]

    def score(self, corpus: Any, *, details: bool = False) -> TextScore:
        """Score every position of a text; `details` add ln Z, where the layer has one."""
        windows = self.windows(self.reencode(corpus))
        with numpy_for_short_runs(len(windows)):
            return score(self.context_model, self.layer, windows, details=details)

    def hidden(self, contexts: Contexts) -> Array:
        """Return the hidden vectors of contexts, a float32 array (B, d)."""
        return self.context_model.hidden(self.context_ids(contexts))

    def log_prob(self, contexts: Contexts) -> Float64:
        """Return the log-probabilities of all labels, a float64 array (B, V)."""
        ids = self.context_ids(contexts)
        return self.layer.in_context(ids).log_prob(self.context_model.hidden(ids))

    def top_k(self, contexts: Contexts, k: int = 10) -> tuple[Int64, Float64]:
        """Return the k most probable labels of each context and their log-probabilities (B, k)."""
        ids = self.context_ids(contexts)
        return self.layer.in_context(ids).top_k(self.context_model.hidden(ids), k)

    def vectors(self, corpus: Any) -> WordVectors:
        """Return the word vectors by count in a text, largest first, ties by word."""
        corpus = Corpus.of(corpus, self.spec.vocabulary)
        counts = self.reencode(corpus).counts
        labels = self.spec.labels

        # Labels by falling count, ties by word
        order = sorted(range(len(labels)), key=lambda label: (-counts[label], labels[label]))
        words = [labels[label] for label in order]

        vectors = self.context_model.embedding[order]
        source = self._source("word vectors", corpus)
        return WordVectors(words, vectors, counts=counts[order], source=source)

    def draw(self, contexts: Contexts, rng: np.random.Generator) -> Int64:
        """Draw a label after each context, (B,)."""
        ids = self.context_ids(contexts)
        hidden = self.context_model.hidden(ids)
        return self.layer.in_context(ids).sample(hidden, rng)

    def reach(self, corpus: Corpus) -> int:
        """Return the number of tokens on either side of a token that its context has."""
        return self.windows(self.reencode(corpus)).context

    def hidden_batches(self, corpus: Corpus) -> Iterator[tuple[Array, Integer]]:
        """Yield the hidden vectors (B, d) and the targets (B,) of a text, some at a time."""
        for contexts, targets, _ in self.windows(corpus).batches(1 << 14):
            yield self.context_model.hidden(contexts), targets

    def parameters(self) -> dict[str, Array]:
        """Return all trained arrays by their names in a file."""
        return {**self.context_model.parameters(), **self.layer.parameters()}

    @property
    def tables(self) -> Mapping[str, Array]:
        """What the output layer took from the training text."""
        return self.layer.tables

    def take_over(self, saved: Saved) -> None:
        """Take over the arrays of a folder; FileFormatError when they do not fit the options."""
        # Before arrays are allocated: a claimed dimension may be far beyond the file's
        shape = (len(self.spec.labels), self.dim)
        check_tensor(saved.tensors.get("embedding"), shape, f"{saved.folder}: embedding")

        # Tables from the training text, which set the lengths of the other arrays
        if self.layer.tables:
            try:
                self.layer.restore(saved.tensors)
            except FileFormatError as error:
                raise FileFormatError(f"{saved.folder}: {error}") from error

        # All arrays have their lengths now
        for tensor, parameter in self.parameters().items():
            name = f"{saved.folder}: {tensor}"
            check_tensor(saved.tensors.get(tensor), parameter.shape, name)

        # All fit: copy them
        for tensor, parameter in self.parameters().items():
            parameter[...] = saved.tensors[tensor]

    def training_steps(self, corpus: Corpus) -> Iterator[tuple[float, bool]]:
        """Continue to train, one batch after the other, so that the speed can be measured."""
        windows = self.windows(corpus)
        self.layer.prepare(windows)
        trainer = self.trainer(windows)
        # Parameters are written once, as they are, so that the first batches do not wait for the
        # pages of new arrays: with millions of rows, a hundred times as long as they compute.
        for array in self.parameters().values():
            np.multiply(array, 1, out=array)
        # Tokens of the text: sub-sampling leaves some of them out of the batches.
        scale = len(windows) / float(windows.training_counts.sum())
        # one shuffled epoch after the other
        batches = (batch for epoch in count(1) for batch in trainer.epoch_batches(windows, epoch))
        for number, (contexts, targets, prepared) in enumerate(batches):
            trainer.step(contexts, targets, trainer.learning_rate(0), prepared)
            yield scale * len(targets), number % trainer.layer.period == 0

    def timed_calls(
        self, corpus: Corpus, batch_size: int, max_scores: int, k: int
    ) -> dict[str, tuple[Callable[[int], object], int]]:
        """Return what is measured in testing: functions of a number of positions, and the maximum.

        Hidden vectors are included.
        """
        contexts, targets, _ = next(iter(self.windows(corpus).batches(batch_size)))
        n_top_k = min(len(targets), max(1, max_scores // self.layer.n_labels))
        hidden = self.context_model.hidden
        layer = self.layer

        def nll(n: int) -> object:
            return self.context_model.nll(layer, contexts[:n], targets[:n])

        def top_k(n: int) -> object:
            return layer.in_context(contexts[:n]).top_k(hidden(contexts[:n]), k)

        def unnormalised(n: int) -> object:
            after = layer.in_context(contexts[:n])
            return after.unnormalised_nll(hidden(contexts[:n]), targets[:n])

        # Unnormalised scores are of layers that train ln Z towards a constant
        calls: dict[str, tuple[Callable[[int], object], int]] = {
            "nll": (nll, len(targets)),
            "top_k": (top_k, n_top_k),
        }
        if layer.log_normaliser(hidden(contexts[:1])) is not None:
            calls["unnormalised"] = (unnormalised, len(targets))
        return calls
