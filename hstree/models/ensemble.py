"""Ensemble: the mean probability of several trained models over the same words."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hstree import progress
from hstree._arrays import Bool, Float64, Int64
from hstree._options import RANDOM_STATE, checked_count
from hstree._text import plural
from hstree.data.contexts import Contexts, word_lists
from hstree.data.corpus import Corpus
from hstree.errors import OptionError
from hstree.layers.base import first_columns
from hstree.layers.registry import LayerSpec
from hstree.models.base import BaseModel, Predictor

#: Maximum number of context words that a model receives for sampling.
MAX_CONTEXT = 1 << 12


def mean_probability(nlls: Sequence[Float64]) -> Float64:
    """Return the nll (T,) of the mean probability, given the nll of each model."""
    mean: Float64 = np.log(len(nlls)) - np.logaddexp.reduce([-nll for nll in nlls], axis=0)
    return mean


class Ensemble(Predictor):
    """Ensemble of trained models that averages their probabilities.

    Each model was trained separately, and may have its own tree, layer, sizes and random state. The
    models have the same words, but not necessarily in the same order.

    Parameters
    ----------
    models : sequence of Model
        One or more language models. The first model determines the order of labels.

    Attributes
    ----------
    models : list of Model
    spec : LayerSpec
        Output layer of the first model, whose labels are the vocabulary.

    Raises
    ------
    OptionError
        When there is no model, a model is not a language model, or their words differ.

    Examples
    --------
    >>> Ensemble([one_model, another]).perplexity(test)              # doctest: +SKIP
    103.2
    """

    is_language_model = True

    def __init__(self, models: Sequence[BaseModel]) -> None:
        self.models = list(models)
        if not self.models:
            raise OptionError("an ensemble needs at least one model")

        # Check that models have the same words; the order of labels may differ
        for number, model in enumerate(self.models, 1):
            if not isinstance(model, BaseModel) or not model.is_language_model:
                kind = model.name if isinstance(model, BaseModel) else type(model).__name__
                raise OptionError(f"model {number} is {kind}; ensembles are of language models")
        first = self.models[0]
        first_label = {word: label for label, word in enumerate(first.spec.labels)}
        for number, model in enumerate(self.models, 1):
            if first_label.keys() != set(model.spec.labels):
                raise OptionError(
                    f"model {number} has {plural(len(model.spec.labels), 'word')}, model 1 "
                    f"{len(first.spec.labels):,}, not the same; train all over one vocabulary"
                )

        # Users see the label order of the first model
        self.spec: LayerSpec = first.spec
        self.predicts = first.predicts
        #: for each model, (V,) label id in the first model of each of its labels
        self._labels = [
            np.array([first_label[word] for word in model.spec.labels]) for model in self.models
        ]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({plural(len(self.models), 'model')})"

    def scored(self, corpus: Any) -> Iterator[tuple[Float64, Bool]]:
        """Yield the nll in nats of every token, and whether it is OOV, in batches."""
        text = Corpus.of(corpus, self.vocabulary)
        scores = [model.scored_batches(model.reencode(text)) for model in self.models]
        with progress.task(f"scoring {text.name}", len(text), "tokens") as task:
            # All models use the same batch size
            for batches in zip(*scores, strict=True):
                nlls = [nll for nll, _ in batches]
                yield mean_probability(nlls), batches[0][1]
                task.advance(len(nlls[0]))

    def log_prob(self, contexts: Contexts) -> Float64:
        """Return the log-probabilities of all labels, a float64 array (B, V).

        Contexts are lines, lists of words or of label ids, or an array (B, n) of these for any n.
        """
        words = self.spec.labels
        # Convert contexts to words, since label ids are those of the first model
        lists = word_lists(contexts, self.vocabulary)

        # (B, V) log of the summed probabilities, in the first model's order of labels
        total = np.full((len(lists), len(words)), -np.inf)
        for model, label in zip(self.models, self._labels, strict=True):
            total[:, label] = np.logaddexp(total[:, label], model.log_prob(lists))
        log_prob: Float64 = total - np.log(len(self.models))
        return log_prob

    def top_k(self, contexts: Contexts, k: int = 10) -> tuple[Int64, Float64]:
        """Return the k most probable labels of each context and their log-probabilities (B, k).

        All words are scored, since a search in the tree of each model would miss words with a high
        mean.
        """
        k = checked_count("k", k)
        log_prob = self.log_prob(contexts)
        return first_columns(log_prob, min(k, log_prob.shape[1]))

    def sample(
        self, length: int, context: Sequence[str] = (), *, random_state: int = 0
    ) -> list[str]:
        """Sample `length` words one after the other, each from a randomly chosen model.

        Raises OptionError when `length` is negative or `random_state` out of range.
        """
        length = checked_count("length", length, 0)
        rng = np.random.default_rng(RANDOM_STATE.checked(random_state))
        words = list(context)
        with progress.task("sampling", length, "words") as task:
            for _ in range(length):
                # Drawing a model and then a word is drawing from the mean distribution
                model = self.models[rng.integers(len(self.models))]
                words.append(model.spec.labels[model.draw([words[-MAX_CONTEXT:]], rng)[0]])
                task.advance()
        return words[len(context) :]
