"""Class trees (Goodman 2001): first the class of the next word, then the word within it.

Here the ways to find classes meet the shapes that are made of them. How each way finds its
classes is in `hstree.builders.word_classes`, one file a way.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from scipy.sparse import csc_array

from hstree._options import RandomState, Range, checked_options
from hstree._ragged import offsets
from hstree._typing import Int64
from hstree.builders.word_classes.adaptive import adaptive_boundaries
from hstree.builders.word_classes.bigrams import bigram_counts, bigram_perplexity, class_sums
from hstree.builders.word_classes.classfile import read_classes
from hstree.builders.word_classes.merging import merge_by_information
from hstree.builders.word_classes.nesting import (
    Arrange,
    class_node,
    divided,
    members,
    nested_shape,
    numbered,
)
from hstree.builders.word_classes.shapes import (
    Shape,
    graft,
    huffman_shape,
    merged_shape,
    prefix_shape,
    wide,
)
from hstree.builders.word_classes.ways import Text, by_exchange, divide_by
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
    binary: bool = False,
    vectors_file: Path | None = None,
    classes_file: Path | None = None,
    random_state: RandomState = 0,
) -> Tree:
    """Decide the class of the next word, then the word among those of the class.

    Parameters
    ----------
    corpus : Corpus
        Its pairs of neighbours are what classes are found by, and what their perplexity is of.
    cluster_by : {"exchange", "brown", "frequency", "sqrt-frequency", "vectors", "adaptive"}
        exchange: those that predict the next word's class best from the word before. brown: the
        same, merged into a binary tree by mutual information. frequency, sqrt-frequency: bins of
        equal mass. vectors: k-means. adaptive: frequent words beside clusters of rare ones.
    n_classes : int, optional
        Classes under the root; by default sqrt(V), with three levels the cube root of V. Not
        with adaptive or a file, which say how many there are.
    levels : {2, 3}
        With 3, each class is parted into classes once more; not with brown, adaptive or a file.
    binary : bool
        Make a Huffman tree of each node that would be wide. In the trees of brown and of bit
        strings, the words of a class have one in any case.
    vectors_file : Path, optional
        The file of word vectors for classes by vectors. Words without one get bins of equal
        mass: as many of the classes as is their share of the words.
    classes_file : Path, optional
        A file of classes, instead of finding them: lines of word, tab, class; or Brown paths
        (bits, tab, word, tab, count), whose bits become a binary tree. Words that it lacks are
        a class of their own, under the root and beside the tree of the bits.
    random_state : int
        Seed of k-means.

    Returns
    -------
    Tree
        With one code a label. Nodes are wide (a softmax) but for `binary` and the hierarchies.
        Classes are numbered in the order of their most frequent words. Those without a word are
        dropped; one of a single word is that word, directly under its parent.
        ``meta["classes"]`` says how they were found, how many there are, the perplexity of the
        class bigram model on the corpus, and for exchange the moves and how the perplexity fell.

    Raises
    ------
    OptionError
        When an option is out of its range, or options do not go together.
    InputError
        When a file cannot be read as what it should be, or has none of the words.

    Notes
    -----
    ``P(w | h) = P(class(w) | h) P(w | class(w), h)`` [1]_. Sources, ties and cost of each way to
    find classes are stated in the modules of `hstree.builders.word_classes`.

    References
    ----------
    .. [1] J. Goodman, "Classes for fast maximum entropy training", ICASSP 2001.
    """
    _check_together(
        cluster_by, n_classes, levels, vectors_file, classes_file, len(corpus.vocabulary)
    )
    text = Text(corpus, bigram_counts(corpus), np.argsort(-corpus.counts, kind="stable"))
    arrange = huffman_shape if binary else _wide_over
    if classes_file is not None:
        shape, class_of = _of_file(text, classes_file, arrange)
    elif cluster_by == "adaptive":
        shape, class_of = _adaptive(text, arrange)
    elif cluster_by == "brown":
        (class_of,) = divided(text.order, by_exchange(text), 2, n_classes)
        shape = _brown(text, class_of)
    else:
        nested = divided(
            text.order, divide_by(text, cluster_by, vectors_file, random_state), levels, n_classes
        )
        shape, class_of = nested_shape(corpus.counts, text.order, nested, arrange), nested[-1]

    perplexity = bigram_perplexity(text.bigrams, class_of)
    found = {
        "by": cluster_by if classes_file is None else "file",
        "number": int(class_of.max()) + 1,
        "bigram_perplexity": None if perplexity is None else round(perplexity, 4),
    }
    return Tree(
        corpus.vocabulary.words,
        offsets(shape.fan_out),
        np.where(shape.child < 0, ~shape.leaves[~shape.child], shape.child),
        counts=corpus.counts,
        names=shape.names if any(shape.names) else None,
        meta={"classes": found | text.found},
    )


def _wide_over(weights: Int64) -> Shape:
    return wide(len(weights))


def _brown(text: Text, class_of: Int64) -> Shape:
    """Merge classes bottom-up; a Huffman tree for the words of each."""
    words = members(class_of, text.order)
    by_class = class_sums(text.bigrams, class_of, len(words))
    pairs = class_sums(csc_array(by_class.T), class_of, len(words)).toarray().T
    top = merged_shape(merge_by_information(pairs), len(words))
    return graft(top, [_huffman_class(text, w, f"class {i}") for i, w in enumerate(words)])


def _huffman_class(text: Text, words: Int64, name: str) -> Shape:
    return class_node(words, text.counts, huffman_shape, name)


def _adaptive(text: Text, arrange: Arrange) -> tuple[Shape, Int64]:
    """Hang the most frequent words and the clusters of the others under the root."""
    boundaries = adaptive_boundaries(text.counts[text.order])
    n_head = int(boundaries[0])
    groups = np.split(text.order, [*range(1, n_head), *boundaries[:-1]])
    groups = [group for group in groups if len(group)]
    class_of = np.empty(len(text.order), np.int64)
    class_of[text.order] = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    nodes = [
        class_node(group, text.counts, arrange, f"cluster {i - n_head}")
        for i, group in enumerate(groups)
    ]
    mass = np.array([text.counts[group].sum() for group in groups])
    text.found.update(number=len(groups) - n_head, head=n_head)
    return graft(arrange(mass), nodes), class_of


def _of_file(text: Text, path: Path, arrange: Arrange) -> tuple[Shape, Int64]:
    """Hang words as a file says; those that it lacks beside all others."""
    given = read_classes(path)
    vocabulary = text.corpus.vocabulary
    known = sorted({given.class_of[word] for word in vocabulary.words if word in given.class_of})
    if not known:
        raise InputError(
            f"{path} has a class for none of the vocabulary's {len(vocabulary)} words "
            f"({vocabulary.words[0]!r}, ...), but for {next(iter(given.class_of))!r}, ...; "
            "is it of the same language and case?"
        )
    number = {name: i for i, name in enumerate(known)}
    number_of = {word: number.get(name, len(known)) for word, name in given.class_of.items()}
    class_of = np.array([number_of.get(word, len(known)) for word in vocabulary.words])
    n_without = int(np.count_nonzero(class_of == len(known)))
    text.found["words_without_class"] = n_without
    text.found["words_left_out"] = len(given.class_of) - (len(vocabulary) - n_without)

    names = [*known, "without class"]
    if not given.is_paths:
        by_frequency = numbered(class_of, text.order)
        nodes = [
            class_node(words, text.counts, arrange, names[class_of[words[0]]])
            for words in members(by_frequency, text.order)
        ]
        mass = np.bincount(by_frequency, weights=text.counts).astype(np.int64)
        return graft(arrange(mass), nodes), by_frequency
    groups = members(class_of, text.order)
    nodes = [_huffman_class(text, w, name) for w, name in zip(groups, names, strict=False)]
    shape = graft(prefix_shape(known), nodes[: len(known)])
    if n_without:
        shape = graft(wide(2), [shape, nodes[-1]])
    return shape, class_of


def _check_together(
    cluster_by: str,
    n_classes: int | None,
    levels: int,
    vectors_file: Path | None,
    classes_file: Path | None,
    n_words: int,
) -> None:
    """Refuse options that do not go together."""
    if classes_file is not None and cluster_by != "exchange":
        raise OptionError(
            f"classes_file names the classes, so there are none to find: drop cluster_by "
            f"{cluster_by!r}, or the file"
        )
    if cluster_by == "vectors" and vectors_file is None:
        raise OptionError(
            "cluster_by 'vectors' needs vectors_file, word vectors as .npy, word2vec or GloVe"
        )
    if vectors_file is not None and cluster_by != "vectors":
        raise OptionError(
            "vectors_file is for cluster_by 'vectors'; give that too, or drop the file"
        )
    way = "a file of classes" if classes_file is not None else f"cluster_by {cluster_by!r}"
    if levels == 3 and (classes_file is not None or cluster_by in ("brown", "adaptive")):
        raise OptionError(f"levels 3 does not go with {way}, whose tree has levels of its own")
    if n_classes is None:
        return
    if classes_file is not None or cluster_by == "adaptive":
        raise OptionError(f"n_classes does not go with {way}, which says how many there are")
    if n_classes > n_words:
        raise OptionError(f"n_classes is {n_classes}, more than the {n_words} words; give fewer")
