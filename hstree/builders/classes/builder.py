"""Class trees (Goodman 2001): first the class of the next word, then the word in its class."""

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta
from scipy.sparse import csc_array

from hstree._arrays import Int64
from hstree._options import RandomState, checked_options
from hstree.builders.classes.bigrams import bigram_counts, bigram_perplexity, class_sums
from hstree.builders.classes.clustering import (
    Seed,
    class_members,
    equal_mass_bins,
    vector_classes,
)
from hstree.builders.classes.exchange import exchange
from hstree.builders.classes.merging import merge_by_information
from hstree.builders.flat import flat_tree
from hstree.builders.huffman import huffman_tree, merged_tree
from hstree.builders.shared.coverage import vector_rows
from hstree.builders.shared.join import graft, join_under_root, with_name
from hstree.builders.shared.short_list import most_frequent
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.errors import OptionError
from hstree.tree import Tree
from hstree.tree.row_numbers import RowNumbers


@checked_options
def classes(
    corpus: Corpus,
    *,
    cluster_by: Literal["exchange", "brown", "frequency", "vectors"] = "exchange",
    n_classes: Annotated[int, Meta(ge=1)] | None = None,
    short_list: Annotated[int, Meta(ge=0)] = 0,
    trees: Annotated[int, Meta(ge=1, le=64)] = 1,
    tolerance: Annotated[float, Meta(ge=0, lt=1)] = 0.001,
    vectors_file: Path | None = None,
    random_state: RandomState = 0,
) -> Tree:
    """Build a class tree: the class of the next word, then the word within its class.

    Parameters
    ----------
    corpus : Corpus
        Text whose bigrams determine the classes and their perplexity.
    cluster_by : {"exchange", "brown", "frequency", "vectors"}
        How to find classes. exchange: choose the classes that best predict the next word's class
        from the previous word. brown: the same classes, merged into a binary tree by mutual
        information; the words of a class form a Huffman tree. frequency: bins of equal mass.
        vectors: k-means.
    n_classes : int, optional
        Number of classes (default: the square root of V).
    short_list : int
        Number of most frequent words that become children of the root, beside the classes of the
        other words. With several trees, each tree has this list, so that these words have a mixture
        of probabilities, too. With V or more, the tree is the flat tree.
    trees : int
        Number of trees side by side under one root. Each has classes from its own random start, and
        each word has a code in each tree. Not with frequency.
    tolerance : float
        Exchange stops after the first sweep over all words that lowers the perplexity of the
        class bigram model by less than this fraction: 0.001 is 0.1%. With 0, it stops when no move
        of a single word lowers the perplexity. For exchange and brown.
    vectors_file : Path, optional
        File of word vectors, for cluster_by "vectors". Words without a vector are divided into bins
        of equal mass; their fraction of the classes equals their fraction of the words.
    random_state : int
        Random seed for k-means, and for the starts of exchange with several trees.

    Returns
    -------
    Tree
        One code per label and tree. Nodes are wide (a softmax), except with brown. Classes are
        numbered in the order of their most frequent words. Empty classes are left out. A class of
        one word is a leaf. ``meta["classes"]`` has the method, the number of classes and the
        perplexity of the class bigram model on the corpus. For exchange, it also has the number of
        moves in all trees, and the perplexity after each sweep for the first tree.

    Raises
    ------
    OptionError
        When options contradict each other.
    InputError
        When the file of vectors cannot be read, or contains none of the words.

    Notes
    -----
    ``P(w | h) = P(class(w) | h) P(w | class(w), h)`` [1]_. With K trees, the result is a mixture of
    their probabilities, with weights that the root computes for each context, as in a mixture of
    softmaxes [2]_. Words in the short list have no class decision. The other modules of this
    package describe the clusterings: references, ties and complexity.

    References
    ----------
    .. [1] J. Goodman, "Classes for fast maximum entropy training", ICASSP 2001.
    .. [2] Z. Yang, Z. Dai, R. Salakhutdinov & W. Cohen, "Breaking the softmax bottleneck", ICLR
       2018.
    """
    labels = corpus.vocabulary.words
    counts = corpus.counts
    n_words = len(labels)
    if cluster_by == "vectors" and vectors_file is None:
        reason = "'vectors' needs vectors_file; give a file of word vectors (.npy, word2vec, GloVe)"
        raise OptionError.about("cluster_by", reason)
    if cluster_by != "vectors" and vectors_file is not None:
        reason = "is for cluster_by 'vectors'; set that, too, or leave the file out"
        raise OptionError.about("vectors_file", reason)
    if n_classes is not None and n_classes > n_words:
        reason = f"is {n_classes}, more than the {n_words} words; give at most {n_words}"
        raise OptionError.about("n_classes", reason)
    if trees > 1 and cluster_by == "frequency":
        reason = f"is {trees}, and 'frequency' gives all trees the same classes; use exchange"
        raise OptionError.about("trees", reason)

    if short_list >= n_words:
        return flat_tree(labels, counts)

    listed = most_frequent(labels, counts, short_list)
    by_frequency = np.argsort(-counts, kind="stable")
    others = by_frequency[~np.isin(by_frequency, listed)]
    n_wanted = n_classes or max(1, round(len(others) ** 0.5))
    notes = dict[str, Any]()
    vectors = None if vectors_file is None else WordVectors.read(vectors_file)
    if vectors is not None:
        rows = vector_rows(corpus.vocabulary, vectors)  # (V,)
        notes["words_without_vector"] = int(np.count_nonzero(rows < 0))
    bigrams = bigram_counts(corpus)
    # The columns (words) are now in descending order of frequency
    other_bigrams = bigrams[:, others]

    def cluster_others(seed: Seed) -> Int64:
        """Return the classes of the words that are not in the short list."""
        if vectors is not None:
            return vector_classes(vectors.vectors, rows[others], counts[others], n_wanted, seed)
        if cluster_by == "frequency":
            return equal_mass_bins(counts[others], n_wanted)
        rng = None if isinstance(seed, int) else np.random.default_rng(seed)
        exchanged = exchange(other_bigrams, n_wanted, tolerance, rng)
        # The moves of all trees are added up; perplexities are kept for the first tree
        notes["moves"] = notes.get("moves", 0) + exchanged.moves
        perplexities = [round(perplexity, 4) for perplexity in exchanged.perplexities]
        notes.setdefault("perplexity_by_sweep", perplexities)
        return exchanged.word_class

    def build_tree(word_class: Int64) -> Tree:
        """Return the tree for the classes (V,): the short list, then the classes or their tree."""
        arrange = huffman_tree if cluster_by == "brown" else flat_tree
        class_trees = []
        for number, words in enumerate(class_members(word_class, others)):
            tree = arrange([labels[word] for word in words], counts[words])
            class_trees.append(with_name(tree, f"class {number}"))
        if cluster_by == "brown":
            # (C, C) number of times that each class follows each class
            other_class = word_class[others]
            by_class = class_sums(other_bigrams, other_class, len(class_trees))[others]
            pairs = class_sums(csc_array(by_class.T), other_class, len(class_trees)).T
            merges = merge_by_information(pairs.toarray())
            top = merged_tree(RowNumbers(len(class_trees)), merges)
            class_trees = [graft(top, class_trees, [labels[word] for word in others])]
        listed_words = [flat_tree([labels[word]]) for word in listed]
        return join_under_root([*listed_words, *class_trees], labels)

    # One tree per seed; classes are numbered in the order of their most frequent words
    seeds: list[Seed] = [random_state, *np.random.SeedSequence(random_state).spawn(trees - 1)]
    built = list[Tree]()
    numbered = list[Int64]()  # classes (V,) of each tree
    for seed in seeds:
        _, first, index = np.unique(cluster_others(seed), return_index=True, return_inverse=True)
        word_class = np.zeros(n_words, np.int64)
        word_class[others] = np.argsort(np.argsort(first))[index]
        built.append(build_tree(word_class))
        numbered.append(word_class)

    # Perplexity of the first tree's classes, where each word in the short list is a class
    word_class = numbered[0]
    number = int(word_class[others].max()) + 1
    word_class[listed] = number + np.arange(len(listed))
    perplexity = bigram_perplexity(bigrams, word_class)
    summary: dict[str, Any] = {
        "by": cluster_by,
        "number": number,
        "bigram_perplexity": None if perplexity is None else round(perplexity, 4),
    }
    if short_list:
        summary["short_list"] = short_list
    tree = join_under_root(built, labels, counts=counts)
    return tree.with_meta({"classes": summary | notes})
