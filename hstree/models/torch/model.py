"""Base class of the models with a PyTorch network and an output layer.

A saved model is a folder like that of other models (`hstree.layers.saved`). It has the tensors of
the network as ``network.NAME``.
"""

from __future__ import annotations

import math
import os
import re
import tempfile
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from hstree import progress
from hstree._arrays import Array, Bool, Float64, Int64, Integer
from hstree._files import remove
from hstree._options import RANDOM_STATE, RandomState, checked_count
from hstree._text import plural
from hstree.data.arrays import check_tensor
from hstree.data.contexts import Contexts, word_ids, word_lists
from hstree.data.corpus import Corpus
from hstree.data.provenance import collect_sources
from hstree.data.vocabulary import EOS, Vocabulary
from hstree.data.windows import ContextBatches
from hstree.errors import FileFormatError, OptionError
from hstree.interop.torch.module import HASH_KEY
from hstree.layers.registry import LayerSpec
from hstree.layers.saved import Saved
from hstree.models.base import (
    BaseModel,
    BatchSize,
    Epochs,
    Fraction,
    LearningRate,
    Seconds,
    Size,
    Width,
)
from hstree.models.torch.contract import first_state
from hstree.models.torch.heads import TorchHead, check_head, new_head
from hstree.models.torch.rates import parse_rates, train_best_rate
from hstree.models.torch.reading import in_parts, read, read_on
from hstree.models.torch.session import find_device, require_device, torch_session
from hstree.models.torch.training import NetworkTrainer, StreamBatches
from hstree.training.scoring import BATCH
from hstree.training.trainer import History
from hstree.tree import Tree

#: Default number of tokens in a batch, on a CPU and on a GPU.
CPU_BATCH = 512
GPU_BATCH = 4096
#: Number of earlier tokens on which a score depends, if the network has a state.
STATE_REACH = 1 << 16


@dataclass(eq=False)
class TorchModel(BaseModel):
    """Base class of the models with a PyTorch network and an output layer.

    Parameters
    ----------
    batch_size : int, optional
        Maximum number of tokens in a batch, at least `length` (default: 512 on a CPU, 4,096 on a
        GPU).
    length : int
        Number of tokens of a stream in a batch, through which gradients flow. A network without a
        state sees at most this many tokens.
    learning_rate : float
        Highest learning rate of the head (Adagrad); it falls to 0.
    embedding_rate : float
        Highest learning rate of the word vectors (Adagrad); it falls to 0. Only for embeddings with
        sparse gradients.
    network_rate : float
        Highest learning rate of the rest of the network (Adam); it falls to 0.
    warmup_ratio : float
        Fraction of the training in which the learning rates rise from 0 to their highest values.
    rates : str
        Learning rates to choose from, such as "0.03,0.1,0.3": each trains for an equal part of half
        of the first seconds, and the best on validation continues. Empty for `learning_rate`.
    device : str
        "cpu", "cuda", "cuda:1", "mps", or "auto": "cuda" if this machine has it, or else "cpu".

    Attributes
    ----------
    module : torch.nn.Module
        The network.
    head : TorchHead
        Both are untrained before `fit`.
    """

    predicts: ClassVar[str] = "word given the words before it"
    is_language_model: ClassVar[bool] = True
    default_candidates: ClassVar[tuple[str, ...]] = (
        "classes",
        "classes cluster_by=brown short_list=250",
        "semantic short_list=250",
        "huffman short_list=250",
        "sampled",
        "adaptive",
        "flat",
        "kn5",
    )
    backend: ClassVar[str] = "PyTorch"
    vector_options: ClassVar[Mapping[str, Any] | None] = {"model": "cbow"}
    _has_table: ClassVar[bool] = True
    """Whether the network has a vector of length `dim` for each word."""

    output: InitVar[Tree | LayerSpec]
    _: KW_ONLY
    dim: Size = 128
    epochs: Epochs = 20
    batch_size: BatchSize | None = None
    length: Width = 32
    learning_rate: LearningRate = 0.15
    embedding_rate: LearningRate = 1.0
    network_rate: LearningRate = 0.002
    warmup_ratio: Fraction = 0.1
    rates: str = ""
    device: str = "auto"
    seconds: Seconds = None
    random_state: RandomState = 0

    def __post_init__(self, output: Tree | LayerSpec) -> None:
        super().__post_init__(output)
        if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", self.device):
            reason = f"is {self.device!r}; it must be auto, cpu, cuda, cuda:1 or mps"
            raise OptionError.about("device", reason)
        parse_rates(self.rates)
        if self.batch_size is not None and self.batch_size < self.length:
            reason = f"is {self.batch_size}, less than the length of a stream, {self.length}"
            raise OptionError.about("batch_size", f"{reason}; lower both")

    @classmethod
    def check_setup(cls, words: Vocabulary, options: Mapping[str, Any]) -> None:
        """Raise OptionError if no output layer over these words can be trained here."""
        new: Any = cls
        new(LayerSpec(words, "flat"), **{k: v for k, v in options.items() if k != "model"})._check()

    def _check(self) -> None:
        """Raise OptionError if this machine lacks the device, or `rates` has no budget."""
        require_device(self.device)
        if self.rates and self.seconds is None:
            remedy = "give --seconds or --minutes (stop=hstree.Seconds(240))"
            raise OptionError.about("rates", f"is {self.rates!r}, which needs a budget; {remedy}")

    @property
    def computed_by(self) -> str:
        """The version of torch and the device."""
        return f"torch {torch.__version__} on {self.torch_device}"

    @abstractmethod
    def make_network(self) -> nn.Module:
        """Return an untrained network, drawn with torch's global random generator."""

    @classmethod
    def check_layer(cls, spec: LayerSpec, dim: int) -> None:
        """Raise OptionError if an output layer has no PyTorch form."""
        check_head(spec, dim)
        # The PyTorch form of a layer has the options of the layer
        if not spec.kind.is_head:
            super().check_layer(spec, dim)

    @classmethod
    def describe(cls, options: Mapping[str, Any]) -> tuple[str, str]:
        """Describe a model and its training from the result of `config`, without limits."""
        counted = [name for name in ("layers", "heads") if name in options]
        sizes = [plural(options[name], name.rstrip("s")) for name in counted]
        model = ", ".join([cls.name, *sizes, f"{options['dim']} dimensions"])
        size = options.get("batch_size")
        batch = f"{CPU_BATCH} or {GPU_BATCH:,}" if size is None else str(size)
        rate = options["rates"] and f"the best of {options['rates']}"
        training = (
            f"{batch} tokens per batch in streams of {options['length']}, learning rates "
            f"{rate or options['learning_rate']} (Adagrad, head), "
            f"{options['embedding_rate']} (Adagrad, word vectors) and "
            f"{options['network_rate']} (Adam, network), decreasing to 0"
        )
        if options["warmup_ratio"]:
            training += f" after a warm-up of {options['warmup_ratio']:.0%} of the training"
        if options.get("dropout"):
            training += f", dropout {options['dropout']}"
        return model, f"{training}, on {options['device']}"

    # Network and head

    @cached_property
    def torch_device(self) -> torch.device:
        """The device; raises OptionError if this machine has none of that name."""
        return require_device(self.device)

    @cached_property
    def module(self) -> nn.Module:
        """The network."""
        with torch_session(self.torch_device):
            torch.manual_seed(self.random_state)
            return self.make_network().float().to(self.torch_device)

    @cached_property
    def head(self) -> TorchHead:
        """The output layer."""
        return self._new_head()

    def _new_head(self, counts: Array | None = None) -> TorchHead:
        """Return an untrained head with the unigram distribution of counts (V,)."""
        with torch_session(self.torch_device):
            torch.manual_seed(self.random_state)
            return new_head(self.spec, self.dim, counts).to(self.torch_device)

    def tensors(self) -> dict[str, Tensor]:
        """Return all tensors of the network and the head by their names in a file."""
        network = {f"network.{name}": t for name, t in self.module.state_dict().items()}
        prefix = self.head.prefix
        head = self.head.state_dict().items()
        named = network | {f"{prefix}{name.removeprefix('layer.')}": t for name, t in head}
        # Without the hashes of trees, since a folder has its tree
        return {name: t for name, t in named.items() if not name.endswith(HASH_KEY)}

    def parameters(self) -> dict[str, Array]:
        """Return all trained arrays by their names in a file."""
        tensors = self.tensors().items()
        return {name: t.detach().cpu().numpy() for name, t in tensors if t.is_floating_point()}

    @property
    def tables(self) -> dict[str, Array]:
        """Integers of the network and the head, such as the order of labels."""
        tensors = self.tensors().items()
        return {name: t.cpu().numpy() for name, t in tensors if not t.is_floating_point()}

    @property
    def network_name(self) -> str:
        """The name of the network in messages."""
        return getattr(self, "network", self.name)

    def take_over(self, saved: Saved) -> None:
        """Load the tensors of a folder; raise FileFormatError if they do not fit the options.

        If this machine lacks the device of the training run, the model uses the CPU.
        """
        # The sizes in the options may far exceed those in the file
        n_weights = sum(tensor.size for tensor in saved.tensors.values())
        if self._has_table and n_weights < self.dim * len(self.spec.labels):
            problem = f"has too few weights for {self.dim} dimensions"
            raise FileFormatError(f"{saved.folder} {problem}; train the model again")
        self.torch_device = find_device(self.device) or torch.device("cpu")
        for name, tensor in self.tensors().items():
            array = saved.tensors.get(name)
            dtype = tensor.cpu().numpy().dtype
            check_tensor(array, tuple(tensor.shape), f"{saved.folder}: {name}", dtype)
            with torch.no_grad():
                tensor.copy_(torch.from_numpy(np.array(array)))

    # Training

    def fit(
        self,
        train: Any,
        valid: Any = None,
        *,
        checkpoints: str | os.PathLike[str] | None = None,
        pauses: bool = False,
    ) -> Self:
        """Train from the start; without epochs, the model is the unigram distribution of `train`.

        Parameters and errors are those of `hstree.models.Model.fit`. A pause makes the learning
        rates fall to 0 twice.
        """
        train, valid = self._read_texts(train, valid)
        if not self.rates:
            self.train_once(train, valid, checkpoints, pauses=pauses)
            return self
        self._check()
        if valid is None:
            raise OptionError.about("rates", f"is {self.rates!r}, which needs a validation text")
        with tempfile.TemporaryDirectory(prefix="hstree-") as temporary:
            best = train_best_rate(self, train, valid, Path(checkpoints or temporary))
        # Weights, history and learning rate of the best; the budget stays that of all rates
        vars(self).update(vars(best) | {"seconds": self.seconds})
        return self

    def train_once(
        self,
        train: Corpus,
        valid: Corpus | None,
        checkpoints: str | os.PathLike[str] | None,
        *,
        pauses: bool,
    ) -> None:
        """Train from the start, or from the checkpoints, with the present learning rate."""
        began = time.perf_counter()
        self.history_ = History()
        self.texts = collect_sources([text.record for text in (train, valid) if text is not None])
        text = self.reencode(train)
        batches = self._streams(text)
        valid_batches = None if valid is None else ContextBatches(self.reencode(valid), 0)
        self.__dict__.pop("module", None)
        with torch_session(self.torch_device):
            self.head = self._new_head(text.counts)
            trainer = NetworkTrainer(self, batches.streams)
            self._open_checkpoints(checkpoints, (train, valid), trainer.batch_size, pauses=pauses)
            trainer.preparation = time.perf_counter() - began
            self._run(trainer, batches, valid_batches)
        self._warn_if_overfitted()

    def _warn_if_overfitted(self) -> None:
        """Warn if the validation perplexity was lowest in the first half of the epochs."""
        epochs = self.history_.epochs
        best = min(epochs, key=lambda epoch: epoch.valid or math.inf, default=None)
        if best is not None and best.valid and len(epochs) >= 4 and best.epoch <= len(epochs) / 2:
            warnings.warn(
                f"{self.name}: the validation perplexity was lowest after epoch {best.epoch} of "
                f"{len(epochs)}, whose weights are kept; raise the dropout, or train for less time",
                stacklevel=3,
            )

    def remove_checkpoints(self) -> None:
        """Remove the checkpoints of the last `fit`; with `rates`, those of all rates."""
        super().remove_checkpoints()
        if self.rates and self._checkpoints is not None and not self.history_.interrupted:
            remove(self._checkpoints.folder.parent)

    def _streams(self, text: Corpus) -> StreamBatches:
        """Return a text as parallel streams."""
        default = CPU_BATCH if self.torch_device.type == "cpu" else GPU_BATCH
        size = default if self.batch_size is None else self.batch_size
        return StreamBatches(text, max(1, size // self.length), self.length)

    def training_steps(self, corpus: Corpus) -> Iterator[tuple[float, bool]]:
        """Train on one batch at a time, so that the speed can be measured."""
        batches = self._streams(self.reencode(corpus))
        with torch_session(self.torch_device):
            trainer = NetworkTrainer(self, batches.streams)
            for epoch in count(1):
                for contexts, targets, is_first in trainer.epoch_batches(batches, epoch):
                    trainer.step(contexts, targets, self.learning_rate, is_first)
                    yield len(targets), True

    # Texts

    def _hidden(self, text: Corpus) -> Iterator[tuple[Tensor, Tensor, Bool]]:
        """Yield hidden vectors, targets, and whether they are OOV, `BATCH` tokens at a time."""
        batches = list(ContextBatches(text, 0).batches(BATCH))
        targets = [torch.from_numpy(labels).long() for _, labels, _ in batches]
        # (T,) the token before each; an <eos> precedes the first
        eos = torch.tensor([text.vocabulary.index(EOS)])
        ids = torch.cat([eos, *targets])[:-1].to(self.torch_device)
        pieces = in_parts(read(self, ids), BATCH)
        for hidden, labels, (_, _, oov) in zip(pieces, targets, batches, strict=True):
            yield hidden, labels.to(self.torch_device), oov

    @torch.no_grad()
    def scored_batches(self, corpus: Corpus) -> Iterator[tuple[Float64, Bool]]:
        """Yield the nll in nats of every token, and whether it is OOV, `BATCH` tokens at a time."""
        with torch_session(self.torch_device):
            for hidden, targets, oov in self._hidden(corpus):
                yield self.head.nll(hidden, targets).double().cpu().numpy(), oov

    def hidden_batches(self, corpus: Corpus) -> Iterator[tuple[Array, Integer]]:
        """Yield the hidden vectors (B, d) and the targets (B,) of a text, batch by batch."""
        with torch_session(self.torch_device):
            for hidden, targets, _ in self._hidden(self.reencode(corpus)):
                yield hidden.cpu().numpy(), targets.cpu().numpy()

    def reach(self, corpus: Corpus) -> int:
        """Return the number of tokens on either side of a token on which its score depends."""
        return self.length if first_state(self, 1) is None else STATE_REACH

    def timed_calls(
        self, corpus: Corpus, batch_size: int, max_scores: int, k: int
    ) -> dict[str, tuple[Callable[[int], object], int]]:
        """Return functions to time in testing; each takes a number of positions, up to a maximum.

        The network reads the positions in the order of a text.
        """
        ids = next(iter(ContextBatches(self.reencode(corpus), 0).batches(batch_size + 1)))[1]
        tokens = torch.from_numpy(ids).long().to(self.torch_device)
        most = len(ids) - 1
        n_labels = len(self.spec.labels)
        k = min(k, n_labels)

        def hidden(n: int) -> Tensor:
            return torch.cat(list(read(self, tokens[:n])))

        def nll(n: int) -> object:
            with torch.no_grad(), torch_session(self.torch_device):
                return self.head.nll(hidden(n), tokens[1 : n + 1]).cpu()

        def top_k(n: int) -> object:
            with torch.no_grad(), torch_session(self.torch_device):
                return self.head.top_k(hidden(n), k)[0].cpu()

        return {"nll": (nll, most), "top_k": (top_k, min(most, max(1, max_scores // n_labels)))}

    # Contexts

    def _context_ids(self, contexts: Contexts) -> list[list[int]]:
        """Return contexts as lists of label ids that begin with an <eos>."""
        lists = word_lists(contexts, self.vocabulary)
        eos = self.vocabulary.index(EOS)
        return [[eos, *word_ids(words, self.vocabulary).tolist()] for words in lists]

    def hidden(self, contexts: Contexts) -> Tensor:
        """Return the hidden vectors (B, d) after contexts."""
        rows = self._context_ids(contexts)
        hidden = torch.empty(len(rows), self.dim, device=self.torch_device)
        # Contexts of the same length are read together
        for length in {len(row) for row in rows}:
            positions = [i for i, row in enumerate(rows) if len(row) == length]
            ids = torch.tensor([rows[i] for i in positions], device=self.torch_device)
            hidden[positions], _ = read_on(self, ids)
        return hidden

    def log_prob(self, contexts: Contexts) -> Float64:
        """Return the log-probabilities of all labels, a float64 array (B, V)."""
        with torch.no_grad(), torch_session(self.torch_device):
            log_prob: Float64 = self.head.log_prob(self.hidden(contexts)).double().cpu().numpy()
        return log_prob

    def top_k(self, contexts: Contexts, k: int = 10) -> tuple[Int64, Float64]:
        """Return the k most probable labels of each context and their log-probabilities (B, k)."""
        k = min(checked_count("k", k), len(self.spec.labels))
        with torch.no_grad(), torch_session(self.torch_device):
            labels, log_prob = self.head.top_k(self.hidden(contexts), k)
        return labels.cpu().numpy(), log_prob.double().cpu().numpy()

    def draw(self, contexts: Contexts, rng: np.random.Generator) -> Int64:
        """Draw a label after each context, (B,)."""
        generator = torch.Generator(self.torch_device).manual_seed(int(rng.integers(1 << 62)))
        with torch.no_grad(), torch_session(self.torch_device):
            labels: Int64 = self.head.sample(self.hidden(contexts), generator).cpu().numpy()
        return labels

    def sample(
        self, length: int, context: Sequence[str] = (), *, random_state: int = 0
    ) -> list[str]:
        """Write `length` words, each drawn given the ones before it.

        Raises OptionError if a number is out of range.
        """
        length = checked_count("length", length, 0)
        seed = RANDOM_STATE.checked(random_state)
        generator = torch.Generator(self.torch_device).manual_seed(seed)
        ids = torch.tensor(self._context_ids([list(context)]), device=self.torch_device)
        state = None
        words = []
        with (
            progress.task("sampling", length, "words") as task,
            torch.no_grad(),
            torch_session(self.torch_device),
        ):
            for _ in range(length):
                hidden, state = read_on(self, ids, state)
                label = self.head.sample(hidden, generator)[None]
                words.append(self.spec.labels[int(label)])
                # Without a state, the network reads the text again
                ids = torch.cat([ids, label], 1)[:, -self.length :] if state is None else label
                task.advance()
        return words
