"""Trees over a vocabulary in which some words have no vector."""

from collections.abc import Callable

import numpy as np

from hstree._arrays import Int64
from hstree.builders.huffman import huffman_tree
from hstree.builders.shared.join import join_under_root
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError
from hstree.tree import Tree


def vector_rows(vocabulary: Vocabulary, vectors: WordVectors) -> Int64:
    """Return the row (V,) of each word's vector, or -1. Raises InputError if no word has one."""
    row_by_label = {label: row for row, label in enumerate(vectors.labels)}
    rows = np.array([row_by_label.get(word, -1) for word in vocabulary.words], np.int64)
    if (rows < 0).all():
        raise InputError(
            f"none of the vocabulary's {len(vocabulary)} words ({vocabulary.words[0]!r}, ...) is "
            f"among the {len(vectors)} words with a vector ({vectors.labels[0]!r}, ...); "
            "check that both have the same language and case"
        )
    return rows


def split_by_coverage(vocabulary: Vocabulary, vectors: WordVectors) -> tuple[WordVectors, Int64]:
    """Return the vectors and counts of the words with a vector, and the ids of the other words."""
    rows = vector_rows(vocabulary, vectors)
    covered = np.flatnonzero(rows >= 0)
    part = WordVectors(
        [vocabulary.words[i] for i in covered.tolist()],
        vectors.vectors[rows[covered]],
        counts=vocabulary.counts[covered],
        source=vectors.source,
    )
    return part, np.flatnonzero(rows < 0)


def build_over_vocabulary(
    build: Callable[[WordVectors], Tree], vectors: WordVectors, vocabulary: Vocabulary
) -> tuple[Tree, dict[str, object]]:
    """Build a tree over the words of a vocabulary, in its order, with or without a vector.

    `build` builds the tree of the words with a vector, with the counts of the vocabulary. The other
    words form a Huffman tree, the second child of a new root; if every word has a vector, there is
    no new root. Also returns entries for meta["input"]. Among them, ``tokens_without_vector`` is a
    fraction of all tokens, or None if all counts are zero.
    """
    covered, without = split_by_coverage(vocabulary, vectors)
    tree = build(covered)
    meta = tree.meta
    if without.size:
        words = [vocabulary.words[i] for i in without.tolist()]
        others = huffman_tree(words, vocabulary.counts[without])
        tree = join_under_root([tree, others], vocabulary.words, counts=vocabulary.counts)
    return tree.with_meta(meta), coverage_record(vectors, vocabulary, without)


def coverage_record(
    vectors: WordVectors, vocabulary: Vocabulary, without: Int64
) -> dict[str, object]:
    """Return the entries for meta["input"]; `without` are the ids of words without a vector."""
    n_tokens = int(vocabulary.counts.sum())
    n_without = int(vocabulary.counts[without].sum())
    n_covered = len(vocabulary) - len(without)
    return {
        "vocabulary": vocabulary.source,
        "words_without_vector": len(without),
        "tokens_without_vector": n_without / n_tokens if n_tokens else None,
        "vectors_left_out": len(vectors) - n_covered,
    }
