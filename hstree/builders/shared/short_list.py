"""Short lists: the most frequent words directly under the root, any tree for the others.

A frequent word then takes one decision, at a root that is one dense product for a whole batch; the
adaptive softmax of Grave et al. does the same with clusters of words in place of a tree.
"""

from collections.abc import Callable, Sequence

import numpy as np

from hstree._arrays import Int64, offsets
from hstree.builders.builder import BuilderInput
from hstree.builders.flat import flat_tree
from hstree.builders.huffman import huffman_tree
from hstree.builders.shared.coverage import build_over_vocabulary, coverage_record, vector_rows
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError
from hstree.tree import Tree


def build_with_short_list(
    build: Callable[[BuilderInput], Tree],
    input: BuilderInput,
    vocabulary: Vocabulary | None,
    n_frequent: int,
    n_trees: int,
) -> tuple[Tree, dict[str, object]]:
    """Build the tree of all but the most frequent words; put these beside it, under one root.

    Parameters
    ----------
    build : callable
        The builder. Its input has the less frequent words alone.
    input : Vocabulary, Corpus or WordVectors
    vocabulary : Vocabulary or None
        Words of the tree, where the input is vectors.
    n_frequent : int
        Length of the short list. At V or above, the tree is the flat tree.
    n_trees : int
        Number of trees side by side that the builder makes.

    Returns
    -------
    tree : Tree
        Labels are in the order of the words. Words are listed by descending count, ties in
        code-point order. Several trees of the builder are children of the root, not of a node of
        their own; with words that have no vector, they stay under one node beside these. The meta
        is the builder's, which describes the less frequent words.
    entries : dict
        Of meta["input"], as `build_over_vocabulary` returns them for vectors and a vocabulary.

    Raises
    ------
    InputError
        When the words have no counts, or all counts are zero.

    Notes
    -----
    The vectors of the less frequent words are copied, also those that are read from a file.

    References
    ----------
    .. [1] E. Grave, A. Joulin, M. Cisse, D. Grangier & H. Jegou, "Efficient softmax approximation
       for GPUs", ICML 2017.
    """
    # Numbers of the listed words, the most frequent first, and of the others
    words, counts = _counted_words(input, vocabulary)
    frequent = most_frequent(words, counts, n_frequent)
    is_frequent = np.zeros(len(words), bool)
    is_frequent[frequent] = True
    rest = np.flatnonzero(~is_frequent)

    # Nothing to build: the flat tree, or one more word at the end of the list
    if len(rest) < 2:
        entries: dict[str, object] = {}
        if vocabulary is not None:
            entries["vocabulary"] = vocabulary.source
        if len(rest) == 0:
            return flat_tree(words, counts), entries
        return Tree(words, [0, len(words)], ~np.append(frequent, rest), counts=counts), entries

    if isinstance(input, WordVectors) and vocabulary is not None:
        others = _part(vocabulary, rest)
        is_covered = vector_rows(vocabulary, input) >= 0
        if is_covered[rest].any():
            tree, entries = build_over_vocabulary(build, input, others)
        else:
            # The list has all words with a vector.
            tree = huffman_tree(others.words, others.counts)
            entries = coverage_record(input, others, np.arange(len(others)))
    else:
        tree = build(_selected(input, rest))
        entries = {}
    joined = _beside(words, counts, frequent, rest, tree, shares_root=n_trees > 1)
    return joined.with_meta(tree.meta), entries


def most_frequent(words: Sequence[str], counts: Int64, n: int) -> Int64:
    """Return the ids (n,) of the n most frequent words, ties in code-point order. O(V + n log n).

    Examples
    --------
    >>> most_frequent(["b", "c", "a", "d"], np.array([2, 5, 2, 1]), 2).tolist()
    [1, 2]
    """
    n = min(n, len(words))
    if n == 0:
        return np.empty(0, np.int64)
    least = np.partition(counts, len(counts) - n)[len(counts) - n]
    candidates = np.flatnonzero(counts >= least).tolist()
    candidates.sort(key=lambda i: (-int(counts[i]), words[i]))
    return np.array(candidates[:n], np.int64)


def _counted_words(
    input: BuilderInput, vocabulary: Vocabulary | None
) -> tuple[Sequence[str], Int64]:
    """Return the words of the tree and their counts; InputError where they have none."""
    words: Sequence[str]
    counts: Int64 | None
    if isinstance(input, Corpus):
        words, counts = input.vocabulary.words, input.counts
    elif vocabulary is not None:
        words, counts = vocabulary.words, vocabulary.counts
    elif isinstance(input, Vocabulary):
        words, counts = input.words, input.counts
    else:
        words, counts = input.labels, input.counts
    if counts is None:
        raise InputError(
            "short_list lists the most frequent words, and these vectors come without counts; add "
            "them (counts=, or a vocabulary), or leave short_list out"
        )
    if not counts.any():
        raise InputError(
            f"short_list lists the most frequent words, and every count of the {len(words)} words "
            "is zero; give how often the words occur, or leave short_list out"
        )
    return words, counts


def _selected(input: BuilderInput, ids: Int64) -> BuilderInput:
    """Return the same input with some of its words."""
    if isinstance(input, WordVectors):
        counts = None if input.counts is None else input.counts[ids]
        rows = input.vectors[ids]
        labels = [input.labels[i] for i in ids.tolist()]
        return WordVectors(labels, rows, counts=counts, source=input.source)
    if isinstance(input, Vocabulary):
        return _part(input, ids)
    # Listed words stay in the text as words outside the vocabulary. They are not occurrences of
    # <unk>, as which a corpus counts them.
    part = input.with_vocabulary(_part(input.vocabulary, ids))
    part.counts = input.counts[ids]
    part.counts.setflags(write=False)
    return part


def _part(vocabulary: Vocabulary, ids: Int64) -> Vocabulary:
    """Return a vocabulary of some of the words."""
    counts = vocabulary.counts[ids]
    if not counts.any():
        # All words that occur are listed; the others are equally frequent.
        counts = np.ones_like(counts)
    words = [vocabulary.words[i] for i in ids.tolist()]
    return Vocabulary(words, counts, source=vocabulary.source)


def _beside(
    words: Sequence[str],
    counts: Int64,
    frequent: Int64,
    rest: Int64,
    tree: Tree,
    *,
    shares_root: bool,
) -> Tree:
    """Return a tree of the words `rest` with frequent words (n,) as first children of its root.

    The root is a new node, unless the tree shares its own.
    """
    number = {words[i]: i for i in rest.tolist()}
    word_of_label = np.array([number[label] for label in tree.labels], np.int64)
    child = tree.child.copy()
    is_leaf = child < 0
    child[is_leaf] = ~word_of_label[~child[is_leaf]]
    names = list(tree.names or [None] * tree.n_nodes)

    if shares_root:
        fan_out = tree.fan_out.copy()
        fan_out[0] += len(frequent)
    else:
        # Nodes move up by one, and the old root is the last child of the new one.
        child[~is_leaf] += 1
        child = np.concatenate([[1], child])
        fan_out = np.concatenate([[len(frequent) + 1], tree.fan_out])
        names = [None, *names]
    child = np.concatenate([~frequent, child])
    return Tree(words, offsets(fan_out), child, counts=counts, names=names)
