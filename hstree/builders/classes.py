"""Class trees (Goodman 2001): the class of the next word, then the word within its class."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from scipy.sparse import csc_array

from hstree._options import RandomState, Range, checked_options
from hstree._typing import Int64
from hstree.builders.word_classes.bigrams import (
    bigram_counts,
    bigram_perplexity,
    class_sums,
    merge_by_information,
)
from hstree.builders.word_classes.class_file import read_classes
from hstree.builders.word_classes.clustering import (
    ClusteredText,
    Seed,
    adaptive_boundaries,
    by_exchange,
    by_mass,
    by_vectors,
    class_members,
    nested_classes,
    number_classes,
)
from hstree.builders.word_classes.tree_shape import (
    Arrange,
    Shape,
    class_shapes,
    graft,
    huffman_shape,
    merged_shape,
    nested_shapes,
    prefix_shape,
    wide,
)
from hstree.data.corpus import Corpus
from hstree.errors import InputError, OptionError
from hstree.tree import Tree

ClusterBy = Literal["exchange", "brown", "frequency", "sqrt-frequency", "vectors", "adaptive"]


@checked_options
def classes(
    corpus: Corpus,
    *,
    cluster_by: ClusterBy = "exchange",
    n_classes: Annotated[int | None, Range(1)] = None,
    levels: Literal[2, 3] = 2,
    short_list: Annotated[int, Range(0)] = 0,
    trees: Annotated[int, Range(1, 64)] = 1,
    binary: bool = False,
    tolerance: Annotated[float, Range(0, 1, exclude_max=True)] = 0.001,
    price: Annotated[float, Range(0)] = 0.0,
    vectors_file: Path | None = None,
    classes_file: Path | None = None,
    random_state: RandomState = 0,
) -> Tree:
    """Class tree: decide the class of the next word, then the word within its class.

    Parameters
    ----------
    corpus : Corpus
        Its bigrams are what classes are made of, and what their perplexity is measured on.
    cluster_by : {"exchange", "brown", "frequency", "sqrt-frequency", "vectors", "adaptive"}
        How to find classes. exchange: those that best predict the next word's class from the
        previous word. brown: the same, merged into a binary tree by mutual information.
        frequency, sqrt-frequency: bins of equal mass. vectors: k-means. adaptive: frequent words
        beside clusters of rare ones.
    n_classes : int, optional
        Number of classes under the root; by default sqrt(V), with three levels the cube root
        of V. Not with adaptive or a file, which determine it.
    levels : {2, 3}
        Number of levels; with 3, the words of each class are split into classes once more. Not
        with brown, adaptive or a file.
    short_list : int
        Number of most frequent words that are children of the root, beside the classes of the
        others. Not with adaptive, which chooses them.
    trees : int
        Number of trees side by side under one root, their classes from as many random starts: a
        word has a code in each. With exchange, brown and vectors.
    binary : bool
        Make each wide node a binary Huffman tree. With brown and with bit strings, the words of a
        class are in a Huffman tree in any case.
    tolerance : float
        Exchange stops after the first sweep over all words that lowers the perplexity of the
        class bigram model by less than this share of it: 0.001 is 0.1%. 0 goes on until no move
        of a single word lowers it. For exchange and brown.
    price : float
        Nats of log-likelihood that exchange gives up for one score a token less within the classes:
        0.0003 makes classes of more equal size and mass. For exchange.
    vectors_file : Path, optional
        File of word vectors to cluster by. Words without a vector get bins of equal mass, as many
        of the classes as is their share of the words.
    classes_file : Path, optional
        File of classes to use: lines of word, tab, class; or Brown paths (bits, tab, word, tab,
        count), whose bits become a binary tree. Words that the file lacks form one more class,
        under the root and beside the tree of the bits.
    random_state : int
        Seed of k-means, and of where the exchange of several trees starts.

    Returns
    -------
    Tree
        One code per label and tree. Nodes are wide (a softmax) except for `binary` and the
        hierarchies. Classes are numbered in the order of their most frequent words. Empty ones are
        dropped; a class of one word is that word, directly under its parent. ``meta["classes"]``
        has the method, the number of classes, the perplexity of the class bigram model on the
        corpus, and for exchange the number of moves and the perplexity by sweep; of several trees,
        the first.

    Raises
    ------
    OptionError
        When options do not go together.
    InputError
        When a file cannot be read, or has none of the words.

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
    n_words = len(corpus.vocabulary)
    by = cluster_by if classes_file is None else "file"
    if by == "file" and cluster_by != "exchange":
        way_out = f"drop cluster_by {cluster_by!r}, or the file"
        reason = f"names the classes, so there are none to find: {way_out}"
        raise OptionError.about("classes_file", reason)
    has_vectors = vectors_file is not None
    wrong = _misfits(by, n_words, n_classes, levels, short_list, trees, price, has_vectors)
    for option, reason in wrong:
        raise OptionError.about(option, reason)
    by_frequency = np.argsort(-corpus.counts, kind="stable")
    listed, others = by_frequency[:short_list], by_frequency[short_list:]
    text = ClusteredText(corpus, corpus.counts, bigram_counts(corpus), others)
    arrange = huffman_shape if binary else lambda weights: wide(len(weights))

    def clusters(seed: Seed) -> _Clusters:
        if classes_file is not None:
            return _from_file(text, classes_file, arrange)
        if cluster_by == "adaptive":
            return _adaptive(text, arrange)
        if vectors_file is not None:
            partition = by_vectors(text, vectors_file, seed)
        elif cluster_by in ("exchange", "brown"):
            partition = by_exchange(text, tolerance, seed, price)
        else:
            counts = corpus.counts
            partition = by_mass(counts if cluster_by == "frequency" else np.sqrt(counts))
        nested = nested_classes(others, partition, levels, n_classes)
        if cluster_by == "brown":
            return _brown(text, *nested)
        return (nested_shapes(corpus.counts, others, nested, arrange), nested[-1])

    def node(children: Sequence[Shape]) -> Shape:
        codes = np.bincount(np.concatenate([child.leaves for child in children]), minlength=n_words)
        of_code = corpus.counts // np.maximum(codes, 1)
        mass = np.array([of_code[child.leaves].sum() for child in children])
        return graft(arrange(mass), children)

    seeds: list[Seed] = [random_state, *np.random.SeedSequence(random_state).spawn(trees - 1)]
    clusterings = [clusters(seed) for seed in seeds]
    words = [replace(wide(1), leaves=listed[i : i + 1]) for i in range(len(listed))]
    shape = node([node([*words, *shapes]) for shapes, _ in clusterings])
    class_of = clusterings[0][1]
    number = int(class_of[others].max()) + 1
    class_of[listed] = number + np.arange(len(listed))
    perplexity = bigram_perplexity(text.bigrams, class_of)
    notes: dict[str, object] = {
        "by": by,
        "number": number,
        "bigram_perplexity": None if perplexity is None else round(perplexity, 4),
    }
    if short_list:
        notes["short_list"] = short_list
    return shape.tree(corpus.vocabulary.words, corpus.counts, classes=notes | text.notes)


#: Shapes of classes under the root, and the class (V,) of each word, from 0; of those words that
#: are not in a short list.
_Clusters = tuple[Sequence[Shape], Int64]


def _brown(text: ClusteredText, class_of: Int64) -> _Clusters:
    """Merge classes bottom-up; the words of each are in a Huffman tree."""
    words = class_members(class_of, text.by_frequency)
    clustered = text.by_frequency
    by_class = class_sums(text.bigrams[:, clustered], class_of[clustered], len(words))
    pairs = class_sums(csc_array(by_class[clustered].T), class_of[clustered], len(words))
    top = merged_shape(merge_by_information(pairs.toarray().T), len(words))
    names = [f"class {i}" for i in range(len(words))]
    return ([graft(top, class_shapes(words, text.counts, huffman_shape, names))], class_of)


def _adaptive(text: ClusteredText, arrange: Arrange) -> _Clusters:
    """Hang the most frequent words and the clusters of the others under the root."""
    words = text.by_frequency
    boundaries = adaptive_boundaries(text.counts[words])
    n_head = int(boundaries[0])
    groups = np.split(words, [*range(1, n_head), *boundaries[:-1]])
    groups = [group for group in groups if len(group)]
    class_of = np.zeros(len(words), np.int64)
    class_of[words] = np.repeat(np.arange(len(groups)), list(map(len, groups)))
    names = [f"cluster {i - n_head}" for i in range(len(groups))]
    text.notes.update(number=len(groups) - n_head, head=n_head)
    return (class_shapes(groups, text.counts, arrange, names), class_of)


def _from_file(text: ClusteredText, path: Path, arrange: Arrange) -> _Clusters:
    """Use the classes of a file; words that it lacks are a class beside all others."""
    file = read_classes(path)
    vocabulary = text.corpus.vocabulary
    words = [vocabulary.words[i] for i in text.by_frequency]
    known = sorted({file.class_of[word] for word in words if word in file.class_of})
    if not known:
        raise InputError(
            f"{path} has a class for none of the {len(words)} words ({words[0]!r}, ...), but for "
            f"{next(iter(file.class_of))!r}, ...; "
            "is it of the same language and case?"
        )
    number: dict[str | None, int] = {name: i for i, name in enumerate(known)}
    # (V,) class of each word, the last one for a word that the file lacks
    class_of = np.array([number.get(file.class_of.get(w), len(known)) for w in vocabulary.words])
    n_without = int(np.count_nonzero(class_of[text.by_frequency] == len(known)))
    n_shared = sum(word in file.class_of for word in vocabulary.words)
    text.notes["words_without_class"] = n_without
    text.notes["words_left_out"] = len(file.class_of) - n_shared

    names = [*known, "without class"]
    if not file.is_paths:
        number_of = number_classes(class_of, text.by_frequency)
        groups = class_members(number_of, text.by_frequency)
        names = [names[class_of[words[0]]] for words in groups]
        return (class_shapes(groups, text.counts, arrange, names), number_of)
    groups = class_members(class_of, text.by_frequency)
    nodes = class_shapes(groups, text.counts, huffman_shape, names)
    shapes = [graft(prefix_shape(known), nodes[: len(known)]), *nodes[len(known) :]]
    return (shapes, class_of)


def _misfits(
    by: str,
    n_words: int,
    n_classes: int | None,
    levels: int,
    short_list: int,
    trees: int,
    price: float,
    has_vectors: bool,
) -> Iterator[tuple[str, str]]:
    """Yield the options that do not go with others, each with what is wrong."""
    way = "a file of classes" if by == "file" else f"cluster_by {by!r}"
    if by == "vectors" and not has_vectors:
        yield "cluster_by", "'vectors' needs vectors_file, word vectors as .npy, word2vec or GloVe"
    if has_vectors and by != "vectors":
        yield "vectors_file", "is for cluster_by 'vectors'; give that too, or drop the file"
    if levels == 3 and by in ("file", "brown", "adaptive"):
        yield "levels", f"3 does not go with {way}, which determines the levels"
    if n_classes is not None and by in ("file", "adaptive"):
        yield "n_classes", f"does not go with {way}, which determines it"
    if n_classes is not None and n_classes > n_words:
        yield "n_classes", f"is {n_classes}, more than the {n_words} words; give fewer"
    if price and by != "exchange":
        yield "price", "is for cluster_by 'exchange'; drop it"
    if short_list and by == "adaptive":
        yield "short_list", "does not go with cluster_by 'adaptive', which chooses it"
    if short_list >= n_words:
        reason = f"is {short_list}, which leaves none of the {n_words} words; give fewer"
        yield "short_list", reason
    if trees > 1 and by not in ("exchange", "brown", "vectors"):
        yield "trees", f"is {trees}, and {way} gives them all the same classes; take exchange"
