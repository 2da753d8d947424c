"""Short lists: the most frequent words directly under the root, beside a tree of the other words.

A frequent word then takes one decision, and the root is one dense product for a whole batch. The
adaptive softmax of Grave et al. has the same structure, with word clusters in place of the tree.
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
    """Build a tree of the less frequent words; put the most frequent words beside it.

    Parameters
    ----------
    build : callable
        The builder. Its input has only the less frequent words.
    input : Vocabulary, Corpus or WordVectors
    vocabulary : Vocabulary or None
        Words of the tree, if the input is vectors.
    n_frequent : int
        Length of the short list. With V or more, the tree is the flat tree.
    n_trees : int
        Number of trees side by side that the builder builds.

    Returns
    -------
    tree : Tree
        Labels keep the order of the words. The short list is in order of descending count, ties in
        code-point order. If the builder builds several trees, each is a child of the root. If some
        words have no vector, these trees stay under one node, beside the words without a vector.
        The meta comes from the builder and describes the less frequent words.
    entries : dict
        Entries for meta["input"], as `build_over_vocabulary` returns them for vectors and a
        vocabulary.

    Raises
    ------
    InputError
        When the words have no counts, or all counts are zero.

    Notes
    -----
    The vectors of the less frequent words are copied, even if they are mapped from a file.

    References
    ----------
    .. [1] E. Grave, A. Joulin, M. Cisse, D. Grangier & H. Jegou, "Efficient softmax approximation
       for GPUs", ICML 2017.
    """
    # Ids of the words in the short list, the most frequent first, and of the other words
    words, counts = _counted_words(input, vocabulary)
    frequent = most_frequent(words, counts, n_frequent)
    is_frequent = np.zeros(len(words), bool)
    is_frequent[frequent] = True
    rest = np.flatnonzero(~is_frequent)

    # With one remaining word or none, the tree is flat
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
            # All words with a vector are in the short list
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
    """Return the words of the tree and their counts. Raises InputError if they have no counts."""
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
            "short_list needs counts, and these vectors come without counts; add them (counts=, or "
            "a vocabulary), or leave short_list out"
        )
    if not counts.any():
        raise InputError(
            f"short_list needs counts, and every count of the {len(words)} words is zero; give the "
            "number of times that each word occurs, or leave short_list out"
        )
    return words, counts


def _selected(input: BuilderInput, ids: Int64) -> BuilderInput:
    """Return the input restricted to some of its words."""
    if isinstance(input, WordVectors):
        counts = None if input.counts is None else input.counts[ids]
        rows = input.vectors[ids]
        labels = [input.labels[i] for i in ids.tolist()]
        return WordVectors(labels, rows, counts=counts, source=input.source)
    if isinstance(input, Vocabulary):
        return _part(input, ids)
    # Words of the short list stay in the text, outside the vocabulary. The corpus would count them
    # as <unk>, so the counts are set here
    part = input.with_vocabulary(_part(input.vocabulary, ids))
    part.counts = input.counts[ids]
    part.counts.setflags(write=False)
    return part


def _part(vocabulary: Vocabulary, ids: Int64) -> Vocabulary:
    """Return the vocabulary restricted to some of its words."""
    counts = vocabulary.counts[ids]
    if not counts.any():
        # All words that occur are in the short list; the other words are equally frequent
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
    """Put frequent words (n,) beside the tree of the words `rest`, as first children of the root.

    The root is a new node, unless `shares_root` is True.
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
        # Node numbers rise by one, and the old root is the last child of the new root
        child[~is_leaf] += 1
        child = np.concatenate([[1], child])
        fan_out = np.concatenate([[len(frequent) + 1], tree.fan_out])
        names = [None, *names]
    child = np.concatenate([~frequent, child])
    return Tree(words, offsets(fan_out), child, counts=counts, names=names)
