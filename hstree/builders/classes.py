"""Class trees (Goodman 2001): the class of the next word, then the word within its class."""

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta
from scipy.sparse import csc_array

from hstree._arrays import Int64
from hstree._options import RandomState, checked_options
from hstree.builders.flat import flat_tree
from hstree.builders.huffman import huffman_tree, merged_tree
from hstree.builders.shared.coverage import vector_rows
from hstree.builders.shared.join import graft, join_under_root, with_name
from hstree.builders.word_classes.bigrams import (
    bigram_counts,
    bigram_perplexity,
    class_sums,
    exchange,
    merge_by_information,
)
from hstree.builders.word_classes.clustering import (
    Seed,
    class_members,
    equal_mass_bins,
    vector_classes,
)
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
    """Class tree: decide the class of the next word, then the word within its class.

    Parameters
    ----------
    corpus : Corpus
        Its bigrams are what classes are made of, and what their perplexity is measured on.
    cluster_by : {"exchange", "brown", "frequency", "vectors"}
        How to find classes. exchange: those that best predict the next word's class from the
        previous word. brown: the same, merged into a binary tree by mutual information, with
        Huffman trees of their words. frequency: bins of equal mass. vectors: k-means.
    n_classes : int, optional
        Number of classes; by default sqrt(V).
    short_list : int
        Number of most frequent words that are children of the root, beside the classes of the
        others.
    trees : int
        Number of trees side by side under one root, their classes from as many random starts: a
        word has a code in each. Not with frequency.
    tolerance : float
        Exchange stops after the first sweep over all words that lowers the perplexity of the
        class bigram model by less than this share of it: 0.001 is 0.1%. 0 goes on until no move
        of a single word lowers it. For exchange and brown.
    vectors_file : Path, optional
        File of word vectors to cluster by. Words without a vector get bins of equal mass, as many
        of the classes as is their share of the words.
    random_state : int
        Seed of k-means, and of where the exchange of several trees starts.

    Returns
    -------
    Tree
        One code per label and tree. Nodes are wide (a softmax), but for brown. Classes are numbered
        in the order of their most frequent words. Empty ones are dropped; a class of one word is
        that word, directly under its parent. ``meta["classes"]`` has the method, the number of
        classes, the perplexity of the class bigram model on the corpus, and for exchange the number
        of moves and the perplexity by sweep; of several trees, the first.

    Raises
    ------
    OptionError
        When options do not go together.
    InputError
        When the file of vectors cannot be read, or has none of the words.

    Notes
    -----
    ``P(w | h) = P(class(w) | h) P(w | class(w), h)`` [1]_; with K trees, a sum over the trees whose
    weights the root gives to each context, as a mixture of softmaxes has them [2]_. Frequent words
    lose what a decision for their class costs, which a short list spares them. Sources, ties and
    complexities of the clusterings are in `hstree.builders.word_classes`.

    References
    ----------
    .. [1] J. Goodman, "Classes for fast maximum entropy training", ICASSP 2001.
    .. [2] Z. Yang, Z. Dai, R. Salakhutdinov & W. Cohen, "Breaking the softmax bottleneck", ICLR
       2018.
    """
    labels, counts = corpus.vocabulary.words, corpus.counts
    n_words = len(labels)
    if cluster_by == "vectors" and vectors_file is None:
        reason = "'vectors' needs vectors_file, word vectors as .npy, word2vec or GloVe"
        raise OptionError.about("cluster_by", reason)
    if cluster_by != "vectors" and vectors_file is not None:
        reason = "is for cluster_by 'vectors'; give that too, or drop the file"
        raise OptionError.about("vectors_file", reason)
    if n_classes is not None and n_classes > n_words:
        reason = f"is {n_classes}, more than the {n_words} words; give fewer"
        raise OptionError.about("n_classes", reason)
    if short_list >= n_words:
        reason = f"is {short_list}, which leaves none of the {n_words} words; give fewer"
        raise OptionError.about("short_list", reason)
    if trees > 1 and cluster_by == "frequency":
        reason = f"is {trees}, and 'frequency' gives them all the same classes; take exchange"
        raise OptionError.about("trees", reason)

    by_frequency = np.argsort(-counts, kind="stable")
    listed, others = by_frequency[:short_list], by_frequency[short_list:]
    n, notes = n_classes or max(1, round(len(others) ** 0.5)), dict[str, Any]()
    vectors = None if vectors_file is None else WordVectors.read(vectors_file)
    if vectors is not None:
        row = vector_rows(corpus.vocabulary, vectors)  # (V,)
        notes["words_without_vector"] = int(np.count_nonzero(row < 0))
    bigrams = bigram_counts(corpus)

    def classes_of_others(seed: Seed) -> Int64:
        if vectors is not None:
            return vector_classes(vectors.vectors, row[others], counts[others], n, seed)
        if cluster_by == "frequency":
            return equal_mass_bins(counts[others], n)
        rng = None if isinstance(seed, int) else np.random.default_rng(seed)
        # columns of a CSC matrix keep the order asked for: the most frequent word first
        exchanged = exchange(bigrams[:, others], n, tolerance, rng)
        notes["moves"] = notes.get("moves", 0) + exchanged.moves
        perplexities = [round(perplexity, 4) for perplexity in exchanged.perplexities]
        notes.setdefault("perplexity_by_sweep", perplexities)
        return exchanged.class_of

    seeds: list[Seed] = [random_state, *np.random.SeedSequence(random_state).spawn(trees - 1)]
    arrange = huffman_tree if cluster_by == "brown" else flat_tree
    beside = [flat_tree([labels[word]]) for word in listed]
    built, numbers = list[Tree](), list[Int64]()
    for seed in seeds:
        _, first, which = np.unique(classes_of_others(seed), return_index=True, return_inverse=True)
        class_of = np.zeros(n_words, np.int64)  # (V,) numbered by their most frequent words
        class_of[others] = np.argsort(np.argsort(first))[which]
        of_classes = [
            with_name(arrange([labels[word] for word in words], counts[words]), f"class {i}")
            for i, words in enumerate(class_members(class_of, others))
        ]
        if cluster_by == "brown":
            n_built, of_others = len(of_classes), class_of[others]
            by_class = class_sums(bigrams[:, others], of_others, n_built)[others]
            pairs = class_sums(csc_array(by_class.T), of_others, n_built).T  # by previous and next
            top = merged_tree(RowNumbers(n_built), merge_by_information(pairs.toarray()))
            of_classes = [graft(top, of_classes, [labels[word] for word in others])]
        built.append(join_under_root([*beside, *of_classes], labels))
        numbers.append(class_of)
    class_of = numbers[0]
    number = int(class_of[others].max()) + 1
    class_of[listed] = number + np.arange(len(listed))
    perplexity = bigram_perplexity(bigrams, class_of)
    about: dict[str, Any] = {
        "by": cluster_by,
        "number": number,
        "bigram_perplexity": None if perplexity is None else round(perplexity, 4),
    }
    if short_list:
        about["short_list"] = short_list
    tree = join_under_root(built, labels, counts=counts)
    return tree.with_meta({"classes": about | notes})
