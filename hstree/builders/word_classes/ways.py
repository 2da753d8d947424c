"""The ways to part words into classes that a tree of any levels can be made of, by name.

Each is a `Divide` over one corpus; what it finds beside the classes is noted in the `Text`. How a
way works is in a file of its own (`exchange`, `bins`, `centres`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csc_array

from hstree._typing import Int64
from hstree.builders.word_classes.bins import equal_mass_bins
from hstree.builders.word_classes.centres import around_centres
from hstree.builders.word_classes.exchange import exchange
from hstree.builders.word_classes.nesting import Divide
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.errors import InputError


@dataclass(frozen=True)
class Text:
    """What the ways to find classes look at, and what they found beside the classes.

    Attributes
    ----------
    corpus : Corpus
    bigrams : csc_array (V, V) of int
        Its `bigram_counts`.
    order : int64 array (V,)
        The words, the most frequent first.
    found : dict
        What goes into the tree's ``meta["classes"]``.
    """

    corpus: Corpus
    bigrams: csc_array
    order: Int64
    found: dict[str, Any] = field(default_factory=dict)

    @property
    def counts(self) -> Int64:
        """Of the words, int64 (V,)."""
        return self.corpus.counts


def divide_by(text: Text, way: str, vectors: Path | None, random_state: int) -> Divide:
    """Return the way to part some words into classes.

    Parameters
    ----------
    text : Text
    way : {"exchange", "frequency", "sqrt-frequency", "vectors"}
    vectors : Path or None
        The file of word vectors, for k-means, which goes before any other way.
    random_state : int
        Seed of k-means.

    Raises
    ------
    InputError
        When there is no vector for any of the words.
    """
    if vectors is not None:
        return _by_vectors(text, vectors, random_state)
    if way == "exchange":
        return by_exchange(text)
    mass = text.counts if way == "frequency" else np.sqrt(text.counts)
    return lambda words, n: equal_mass_bins(mass[words], n)


def by_exchange(text: Text) -> Divide:
    """Return predictive exchange; it notes its moves, and how the perplexity fell."""

    def divide(words: Int64, n: int) -> Int64:
        # Columns of a CSC matrix come out as they are asked for: the most frequent word first.
        exchanged = exchange(text.bigrams[:, words], n)
        text.found["moves"] = text.found.get("moves", 0) + exchanged.moves
        fell = [round(perplexity, 4) for perplexity in exchanged.perplexities]
        text.found.setdefault("perplexity_by_sweep", fell)  # of the classes under the root
        return exchanged.class_of

    return divide


def _by_vectors(text: Text, path: Path, random_state: int) -> Divide:
    given = WordVectors.read(path)
    vocabulary = text.corpus.vocabulary
    row_of = {label: row for row, label in enumerate(given.labels)}
    row = np.array([row_of.get(word, -1) for word in vocabulary.words])
    n_without = int(np.count_nonzero(row < 0))
    if n_without == len(row):
        raise InputError(
            f"{path} has a vector for none of the vocabulary's {len(row)} words "
            f"({vocabulary.words[0]!r}, ...), but for {given.labels[0]!r}, ...; "
            "are both in the same language and case?"
        )
    text.found["words_without_vector"] = n_without

    def divide(words: Int64, n: int) -> Int64:
        has_vector = row[words] >= 0
        n_with = int(has_vector.sum())
        share = len(words) - n_with
        n_bins = min(max(round(n * share / len(words)), int(share > 0)), n - int(n_with > 0))
        class_of = np.zeros(len(words), np.int64)
        if n_bins > 0:
            class_of[~has_vector] = equal_mass_bins(text.counts[words[~has_vector]], n_bins)
        if n_with > 0 and n > 1:
            near = given.vectors[row[words[has_vector]]]
            centres = around_centres(near, min(n - n_bins, n_with), random_state)
            class_of[has_vector] = centres + n_bins
        return class_of

    return divide
