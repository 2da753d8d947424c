"""Base class of models over context windows: a context model and an output layer, in NumPy."""

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
    """Model that consists of a context model and an output layer.

    A subclass is a dataclass. Its first field is ``output: InitVar[Tree | LayerSpec]``; its options
    are keyword-only fields, including `dim`, `epochs` and `random_state`. `hstree._options` reads
    their annotations and ranges.

    Parameters
    ----------
    output : Tree or LayerSpec
        Output layer; a tree means the hierarchical softmax over it. Its labels are the vocabulary
        and must include ``<eos>``.
    dim : int
        Length of the word vectors.
    epochs : int
        Maximum number of epochs; 0 leaves the model untrained.
    batch_size : int
        Number of positions in a minibatch.
    learning_rate : float
        Initial learning rate.
    seconds : float, optional
        Time limit for training in seconds, without validation (default: no limit). Training may end
        inside an epoch; validation follows. See `hstree.training.trainer.EpochLoop`.
    random_state : int
        Random seed for the initial vectors and for training. The same seed gives the same weights,
        byte for byte, with the same number of BLAS threads. With another number, the last digits of
        weights differ if BLAS uses several threads: for layers other than trees and the flat
        softmax, for full matrices, and for wide nodes without compiled kernels.

    Attributes
    ----------
    spec : LayerSpec
    tree : Tree or None
        Tree of the output layer.
    context_model : ContextModel
    layer : OutputLayer
        Both are untrained before `fit`.
    history_ : History
        Epochs of the last `fit`.
    texts : list of dict
        Texts for training and validation (`hstree.data.provenance.collect_sources`).
    """

    # An option that some models do not have
    online: bool = False

    @abstractmethod
    def windows(self, corpus: Corpus) -> ContextBatches:
        """Return the contexts and targets of a corpus, as label ids."""

    @abstractmethod
    def trainer(self, train: ContextBatches) -> Trainer[M]:
        """Return a trainer that continues from the current parameters."""

    @abstractmethod
    def new_context_model(self, rng: np.random.Generator) -> M:
        """Return an untrained context model."""

    @abstractmethod
    def context_ids(self, contexts: Contexts) -> Integer:
        """Return contexts as label ids (B, n), as the context model takes them."""

    # Allocated on first use; `fit` replaces them.

    @cached_property
    def context_model(self) -> M:
        """Context model."""
        return self.new_context_model(np.random.default_rng([self.random_state, 0]))

    @cached_property
    def layer(self) -> OutputLayer:
        """Output layer."""
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
            A corpus, a file name, lines, or lists of tokens or label ids (`Corpus.of`).
        valid : likewise, optional
            Text that determines the weights to keep and, for some models, the learning rate and the
            end of training.
        warm_start : Model, optional
            Trained model of the same kind and sizes, whose context model is the initial one. Word
            vectors are matched by word; words that it lacks start with random vectors. The output
            layer and the optimiser start over. If `warm_start` is the model itself, it keeps its
            output layer, for example after `load` and `grow`.
        fast : bool, optional
            Whether to train with compiled kernels (if numba is installed) instead of NumPy. By
            default, short runs use NumPy: fewer than a million tokens in all epochs, or less than
            60 `seconds`, since compiling would take longer than training. Compiled sums are rounded
            differently, so that weights differ in the last digits.
        checkpoints : path, optional
            Folder for checkpoints, which are written every five minutes, at Ctrl-C and at the end.
            If the same model is fitted to the same texts again, it continues from the last
            checkpoint and gives the same bits. After saving the model, call `remove_checkpoints`.
        pauses : bool, default False
            Whether the same model with more `epochs` or `seconds` continues from the checkpoints,
            too. The result has the same bits as without the pause, unless the learning rate falls
            until the end, as in CBOW and skip-gram.

        Raises
        ------
        OptionError
            When `warm_start` is not a model, or has another kind or other sizes.
        InputError
            When a word is not among the labels, and these lack ``<unk>``.
        TrainingError
            When the perplexity is not finite, or sub-sampling leaves no token.
        """
        train, valid = self._read_texts(train, valid)

        # Create the context model, or copy it from another model
        windows = self.windows(train)
        valid_windows = None if valid is None else self.windows(valid)
        context_model = self.new_context_model(np.random.default_rng([self.random_state, 0]))
        records: list[object] = [part.record for part in (train, valid) if part is not None]
        if warm_start is not None:
            if not isinstance(warm_start, Model):
                raise OptionError(
                    f"warm_start takes a trained model, not {type(warm_start).__name__}; read a "
                    "saved model with hstree.load_model"
                )
            copy_context_model(warm_start, self, context_model)
            records = [[warm_start.spec.provenance, warm_start.texts], records]
        self.context_model = context_model
        self.texts = collect_sources(records)

        # Create the output layer, and prepare it for the training text
        counts = windows.corpus.counts
        if warm_start is not self:
            self.layer = self.spec.new(self.dim, counts=counts, random_state=self.random_state)
        began = time.perf_counter()
        self.layer.prepare(windows)
        preparation = time.perf_counter() - began

        # Train; the option `online` needs compiled functions
        needs_compiled = self.online if fast is None else fast
        n_tokens = len(train) * self.epochs
        short_runs = numpy_for_short_runs(n_tokens, self.seconds, always=needs_compiled)
        with numpy_only() if fast is False else short_runs:
            trainer = self.trainer(windows)

            # Open checkpoints, by a hash of everything that determines the run
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
        """Return a model over a grown or pruned tree that keeps the learned parameters.

        Word vectors are matched by word, and weight rows by node (`hstree.carried_rows`). New words
        start with random vectors, and new nodes with the unigram distribution of the tree's counts,
        as in an untrained model. The models do not share arrays. To continue training::

            grown = model.grow(hstree.grow(model.tree, text))
            grown.fit(text, warm_start=grown)

        Parameters
        ----------
        tree : Tree
            Result of `hstree.grow`, `hstree.prune`, both, or the option ``from=`` of a builder.
        **options
            Options to change, such as `epochs`.

        Raises
        ------
        OptionError
            When the output layer is not over a tree, or an option changes the sizes of the context
            model.
        InputError
            When the tree was not grown or pruned from the tree of the model.
        """
        if self.tree is None:
            raise OptionError(
                f"the output layer {self.spec.kind.name!r} is over words, and only trees can grow; "
                "train a model over a tree"
            )
        from hstree.builders.carried_rows import carried_rows  # only `grow` needs it

        # A new model over the tree, with the same options except those given
        rows = carried_rows(self.tree, tree)
        spec = LayerSpec(tree, self.spec.kind.name, **self.spec.options)
        make: Callable[..., Self] = type(self)
        new = make(spec, **{f.name: getattr(self, f.name) for f in fields(self)} | options)  # type: ignore[arg-type]

        # Copy word vectors by word, and weight rows by node
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
        """Score every position of a text; `details` includes ln Z, if the layer has it."""
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
        """Return the word vectors in order of count in a text, largest first, ties by word."""
        corpus = Corpus.of(corpus, self.spec.vocabulary)
        counts = self.reencode(corpus).counts
        labels = self.spec.labels

        # Labels by descending count, ties by word
        order = sorted(range(len(labels)), key=lambda label: (-counts[label], labels[label]))
        words = [labels[label] for label in order]

        vectors = self.context_model.embedding[order]
        source = self._source("word vectors", corpus)
        return WordVectors(words, vectors, counts=counts[order], source=source)

    def draw(self, contexts: Contexts, rng: np.random.Generator) -> Int64:
        """Draw a label for each context, (B,)."""
        ids = self.context_ids(contexts)
        hidden = self.context_model.hidden(ids)
        return self.layer.in_context(ids).sample(hidden, rng)

    def reach(self, corpus: Corpus) -> int:
        """Return the number of context tokens on either side of a token."""
        return self.windows(self.reencode(corpus)).context

    def hidden_batches(self, corpus: Corpus) -> Iterator[tuple[Array, Integer]]:
        """Yield the hidden vectors (B, d) and the targets (B,) of a text, in batches."""
        for contexts, targets, _ in self.windows(corpus).batches(1 << 14):
            yield self.context_model.hidden(contexts), targets

    def parameters(self) -> dict[str, Array]:
        """Return all trained arrays, by their names in a saved model."""
        return {**self.context_model.parameters(), **self.layer.parameters()}

    @property
    def tables(self) -> Mapping[str, Array]:
        """Tables that the output layer computed from the training text."""
        return self.layer.tables

    def take_over(self, saved: Saved) -> None:
        """Copy the arrays of a saved model. Raises FileFormatError if they do not fit."""
        # Check sizes before allocating arrays: a damaged config may have huge dimensions
        shape = (len(self.spec.labels), self.dim)
        check_tensor(saved.tensors.get("embedding"), shape, f"{saved.folder}: embedding")

        # Restore tables from the training text, which determine the lengths of other arrays
        if self.layer.tables:
            try:
                self.layer.restore(saved.tensors)
            except FileFormatError as error:
                raise FileFormatError(f"{saved.folder}: {error}") from error

        # Check all arrays, whose lengths are now known
        for tensor, parameter in self.parameters().items():
            name = f"{saved.folder}: {tensor}"
            check_tensor(saved.tensors.get(tensor), parameter.shape, name)

        # Copy the arrays
        for tensor, parameter in self.parameters().items():
            parameter[...] = saved.tensors[tensor]

    def training_steps(self, corpus: Corpus) -> Iterator[tuple[float, bool]]:
        """Continue to train, one batch after the other, to measure the speed."""
        windows = self.windows(corpus)
        self.layer.prepare(windows)
        trainer = self.trainer(windows)
        # Write all parameters once, unchanged, so that the first batches do not wait for memory
        # pages; with millions of rows, they would take a hundred times as long
        for array in self.parameters().values():
            np.multiply(array, 1, out=array)
        # Scale to tokens of the text, since sub-sampling leaves some tokens out of the batches
        scale = len(windows) / float(windows.training_counts.sum())
        # One shuffled epoch after the other
        batches = (batch for epoch in count(1) for batch in trainer.epoch_batches(windows, epoch))
        for number, (contexts, targets, prepared) in enumerate(batches):
            trainer.step(contexts, targets, trainer.learning_rate(0), prepared)
            yield scale * len(targets), number % trainer.layer.period == 0

    def timed_calls(
        self, corpus: Corpus, batch_size: int, max_scores: int, k: int
    ) -> dict[str, tuple[Callable[[int], object], int]]:
        """Return functions to time in testing; each takes a number of positions, up to a maximum.

        The time includes hidden vectors.
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

        # Only layers whose training controls ln Z have unnormalised scores
        calls: dict[str, tuple[Callable[[int], object], int]] = {
            "nll": (nll, len(targets)),
            "top_k": (top_k, n_top_k),
        }
        if layer.log_normaliser(hidden(contexts[:1])) is not None:
            calls["unnormalised"] = (unnormalised, len(targets))
        return calls
