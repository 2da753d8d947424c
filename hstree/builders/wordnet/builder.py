"""Trees from knowledge: WordNet's is-a relations, made binary by where words occur.

The words of a corpus under the synsets that they mean, each node split by what its children share
in the text; words that WordNet does not have are in a tree of their own beside. What WordNet says
is read in `hstree.builders.wordnet`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np

from hstree import progress
from hstree._options import RandomState, Range, checked_options
from hstree._typing import Float64, Int64
from hstree.builders.flat import flat
from hstree.builders.huffman import huffman_tree
from hstree.builders.semantic import semantic
from hstree.builders.shared.binarise import binarise_huffman, binarise_two_means
from hstree.builders.shared.join import join_under_root
from hstree.builders.shared.tfidf import tfidf_vectors
from hstree.builders.wordnet import open_taxonomy
from hstree.builders.wordnet.hierarchy import Hierarchy, resolve, wide_tree
from hstree.builders.wordnet.lookup import Places, find_places
from hstree.builders.wordnet.table import POS
from hstree.builders.wordnet.taxonomy import Taxonomy
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.tree import Tree

#: The name of the node above the words that WordNet does not have.
OUTSIDE = "not in WordNet"


@checked_options
def wordnet(
    corpus: Corpus,
    *,
    senses: Literal["first", "all"] = "first",
    max_senses: Annotated[int, Range(1)] = 8,
    binarise: Literal["tfidf", "huffman", "none"] = "tfidf",
    block: Annotated[int, Range(1)] = 500,
    source: str = "builtin",
    random_state: RandomState = 0,
) -> Tree:
    """WordNet's is-a tree over a corpus's words, made binary by their tf-idf vectors.

    Parameters
    ----------
    corpus : Corpus
        The words of its vocabulary, its counts, and the text for tf-idf.
    senses : {"first", "all"}
        The most frequent sense of each word, so one code; or all, a code for each.
    max_senses : int
        How many senses a word has at most, with "all": the most frequent ones.
    binarise : {"tfidf", "huffman", "none"}
        How a node of more than two children is split: by repeated two-means on tf-idf vectors,
        by their counts, or not at all. The words outside WordNet are in a tree of Huffman's code
        lengths, parted by the same vectors; in a Huffman tree; or under one node.
    block : int
        Tokens of a document, for tf-idf.
    source : str
        The WordNet to use: "builtin", version 3.0 as it comes with hstree; "nltk", the one
        that NLTK finds; or a folder of data and index files, such as /usr/share/wordnet.
    random_state : int
        Seed of two-means and of the projection before it.

    Returns
    -------
    Tree
        Its nodes are named by synsets ("dog.n.01"); nodes that binarisation made have no name.
        meta["wordnet"] says which WordNet it was, and meta["coverage"] how many words are in it
        (and as which part of speech, found through another form, with several senses, senses not
        used), and how many is-a edges there were and were cut.

    Raises
    ------
    OptionError
        When an option is out of its range.
    InputError
        When there is no WordNet at `source`.

    Notes
    -----
    Is-a are hypernyms and instance hypernyms; a satellite adjective stands below its head, an
    adverb below its adjective. Words are looked up in lower case, through morphy [2]_.
    Beside this file: which of several parents is kept and how cycles are cut (`hierarchy.resolve`),
    what becomes of chains (`hierarchy.wide_tree`), which sense is the first (`lookup`), which words
    are outside though WordNet has their spelling (`function_words`).
    The documents for tf-idf are blocks of tokens; a node's vector is the mean over the words
    below it; two-means compares directions (`hstree.builders.shared.binarise`).

    The same WordNet gives the same tree, whichever way it came.

    References
    ----------
    .. [1] F. Morin and Y. Bengio, "Hierarchical probabilistic neural network language model",
       AISTATS 2005, section 4.
    .. [2] C. Fellbaum (ed.), "WordNet: an electronic lexical database", 1998; morphy(7WN).
    """
    with progress.task("reading WordNet"):
        taxonomy = open_taxonomy(source)
    words, counts = np.array(corpus.vocabulary.words, object), corpus.counts
    places = find_places(corpus.vocabulary.words, taxonomy, senses, max_senses)
    inside = np.flatnonzero(places.n_senses)
    outside = np.flatnonzero(places.n_senses == 0)
    vectors = None
    if binarise == "tfidf":
        vectors = tfidf_vectors(corpus, np.arange(len(words)), block, random_state=random_state)
    trees, hierarchy = [], None
    if inside.size:
        of_word = np.searchsorted(inside, places.word)
        hierarchy = resolve(taxonomy, of_word, places.synset, counts[inside])
        tree = wide_tree(
            hierarchy, taxonomy, of_word, places.synset, words[inside].tolist(), counts[inside]
        )
        if binarise == "huffman":
            tree = binarise_huffman(tree, counts[inside])
        elif vectors is not None:
            tree = binarise_two_means(tree, vectors[inside], random_state=random_state)
        trees.append(tree)
    if outside.size:
        of_outside = None if vectors is None else vectors[outside]
        trees.append(_outside(words[outside].tolist(), counts[outside], binarise, of_outside))
    joined = join_under_root(trees, corpus.vocabulary.words, counts=counts)
    coverage = _coverage(places, taxonomy, counts, hierarchy)
    # The same WordNet is the same input, whichever way it came.
    which = {"source": taxonomy.version}
    return joined.with_meta({"options": which, "wordnet": _which(taxonomy), "coverage": coverage})


def _outside(words: Sequence[str], counts: Int64, binarise: str, vectors: Float64 | None) -> Tree:
    """Return the tree of the words that WordNet does not have; its root has a name."""
    if binarise == "none" or len(words) < 2:
        tree = flat(Vocabulary(words, counts))
    elif vectors is None:
        tree = huffman_tree(words, counts)
    else:
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit = (vectors / np.where(length > 0, length, 1)).astype(np.float32)
        tree = semantic(WordVectors(words, unit, counts=counts))
    names = [OUTSIDE] + [None] * (tree.n_nodes - 1) if tree.n_nodes else None
    return Tree(tree.labels, tree.child_start, tree.child, counts=counts, names=names)


def _which(taxonomy: Taxonomy) -> dict[str, Any]:
    return {
        "version": taxonomy.version,
        "synsets": len(taxonomy),
        "sha256": taxonomy.sha256,
    }


def _coverage(
    places: Places,
    taxonomy: Taxonomy,
    counts: Int64,
    hierarchy: Hierarchy | None,
) -> dict[str, Any]:
    """Say what WordNet has of the words and what was made of it."""
    found = places.n_senses > 0
    first = places.synset[np.flatnonzero(np.diff(places.word, prepend=-1))]
    as_pos = [taxonomy.pos[synset] for synset in first.tolist()]
    tokens = int(counts.sum())
    return {
        "words": len(found),
        "words_in_wordnet": int(found.sum()),
        "tokens_in_wordnet": int(counts[found].sum()) / tokens if tokens else None,
        "by_part_of_speech": {pos: as_pos.count(pos) for pos in POS},
        "lemmatised": int(places.lemmatised.sum()),
        "multi_sense": int((places.n_senses > 1).sum()),
        "senses_unused": int(places.n_senses.sum()) - len(places.word),
        "synsets": 0 if hierarchy is None else len(hierarchy.synset),
        "edges": 0 if hierarchy is None else hierarchy.edges,
        "edges_cut": 0 if hierarchy is None else hierarchy.edges_cut,
        "synsets_on_cycles": 0 if hierarchy is None else hierarchy.in_cycles,
    }
