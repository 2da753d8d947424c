"""Trees from WordNet: words under their synsets, and wide nodes split by tf-idf vectors."""

from functools import partial
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta
from scipy.sparse import csr_array

from hstree import progress
from hstree._arrays import Float64, Floating
from hstree._options import RandomState, checked_options
from hstree.builders.flat import flat_tree
from hstree.builders.kmeans import KMeansSplitter
from hstree.builders.semantic import semantic
from hstree.builders.shared.join import join_under_root, with_name
from hstree.builders.shared.top_down import build_top_down
from hstree.builders.wordnet.hierarchy import resolve, wide_tree
from hstree.builders.wordnet.lookup import look_up
from hstree.builders.wordnet.sources import open_taxonomy
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.tree import Tree
from hstree.tree.order import by_level, reorder

#: Name of the node above the words outside WordNet.
OUTSIDE = "not in WordNet"
#: Number of dimensions to which longer vectors are projected by truncated SVD.
DIMENSIONS = 100


@checked_options
def wordnet(
    corpus: Corpus,
    *,
    senses: Literal["first", "all"] = "first",
    binarise: Literal["tfidf", "none"] = "tfidf",
    block: Annotated[int, Meta(ge=1)] = 500,
    source: str = "builtin",
    random_state: RandomState = 0,
) -> Tree:
    """Build WordNet's is-a tree over the words of a corpus, made binary by tf-idf vectors.

    Parameters
    ----------
    corpus : Corpus
        Words, counts, and the text for tf-idf.
    senses : {"first", "all"}
        Senses of each word to use. first: the most frequent sense, which gives one code. all: up to
        eight of the most frequent senses, which give one code each.
    binarise : {"tfidf", "none"}
        How to split nodes with more than two children. tfidf: by repeated two-means on tf-idf
        vectors; words outside WordNet then form a tree of the builder `semantic`. none: not at all;
        words outside WordNet then form one wide node.
    block : int
        Number of tokens per document for tf-idf.
    source : str
        WordNet to use: "builtin", the version 3.0 in hstree, or the file name of a table made by
        scripts/make_wordnet_table.py.
    random_state : int
        Random seed for two-means, and for the projection of the tf-idf vectors.

    Returns
    -------
    Tree
        Nodes have the names of synsets ("dog.n.01"); nodes that binarisation adds have no name.
        meta["wordnet"] identifies the WordNet, and meta["coverage"] counts the words in it.

    Raises
    ------
    InputError
        When `source` cannot be read.
    FileFormatError
        When `source` is not a WordNet table.

    Notes
    -----
    Is-a edges lead to hypernyms and instance hypernyms, from a satellite adjective to its head, and
    from an adverb to its adjective. Words are looked up in lower case, by morphy [2]_. See
    `lookup.look_up` for the order of senses, `lookup` for the function words that count as outside
    WordNet, `hierarchy.resolve` for the choice among parents, and `hierarchy.wide_tree` for chains.

    Documents for tf-idf are blocks of tokens. The vector of a node is the mean over the words below
    it; two-means compares directions. The tree does not depend on the source of the same WordNet.

    References
    ----------
    .. [1] F. Morin and Y. Bengio, "Hierarchical probabilistic neural network language model",
       AISTATS 2005, section 4.
    .. [2] C. Fellbaum (ed.), "WordNet: an electronic lexical database", 1998; morphy(7WN).
    """
    with progress.task("reading WordNet"):
        taxonomy = open_taxonomy(source)
    words = np.array(corpus.vocabulary.words, object)
    counts = corpus.counts
    synsets = look_up(corpus.vocabulary.words, taxonomy, senses)
    is_inside = synsets.n_senses > 0
    inside = np.flatnonzero(is_inside)
    outside = np.flatnonzero(~is_inside)

    # (V, d) tf-idf vectors of all words, which split the wide nodes
    vectors = None
    if binarise == "tfidf":
        vectors = tfidf_vectors(corpus, block, random_state=random_state)

    trees = []
    if inside.size:
        # Number the words in WordNet from 0
        word = np.searchsorted(inside, synsets.word)
        inside_words = words[inside].tolist()
        hierarchy = resolve(taxonomy, word, synsets.synset, counts[inside])
        tree = wide_tree(hierarchy, taxonomy, word, synsets.synset, inside_words, counts[inside])
        if vectors is not None:
            tree = binarise_two_means(tree, vectors[inside], random_state=random_state)
        trees.append(tree)
    if outside.size:
        outside_words = words[outside].tolist()
        if vectors is None or len(outside_words) < 2:
            tree = flat_tree(outside_words, counts[outside])
        else:
            rows = normalised(vectors[outside])
            tree = semantic(WordVectors(outside_words, rows, counts=counts[outside]))
        trees.append(with_name(tree, OUTSIDE))
    joined = join_under_root(trees, corpus.vocabulary.words, counts=counts)

    n_tokens = int(counts.sum())
    n_inside = int(counts[inside].sum())
    coverage = {
        "words": len(words),
        "words_in_wordnet": inside.size,
        "tokens_in_wordnet": n_inside / n_tokens if n_tokens else None,
    }
    # Record the version in place of the source: the same WordNet is the same input
    options = {"source": taxonomy.version}
    version = {"version": taxonomy.version, "synsets": len(taxonomy), "sha256": taxonomy.sha256}
    return joined.with_meta({"options": options, "wordnet": version, "coverage": coverage})


def binarise_two_means(
    tree: Tree, vectors: Floating, *, iterations: int = 10, random_state: int = 0
) -> Tree:
    """Split each node with more than two children by two-means, then each half, and so on.

    The vector of a child is the mean of the vectors (V, d) over the codes of the labels below it,
    scaled to length one; two-means would otherwise separate long vectors from short ones. Children
    with the same direction are split evenly. The k-means of the builder `kmeans` splits all nodes
    at once. Nodes of `tree` keep their names.
    """
    if tree.n_nodes == 0:
        return tree
    # (E, d) directions of the sums of the vectors below each edge
    rows = normalised(tree.sum_up(np.asarray(vectors, np.float64)))
    splitter = KMeansSplitter(balanced=False, iterations=iterations)
    rule = splitter.split_rule(rows, None)
    draw = partial(splitter.draw, np.random.default_rng(random_state))
    with progress.task("splitting nodes", total=len(rows), unit="children") as task:
        subtrees = build_top_down(len(rows), rule, draw=draw, roots=tree.child_start, task=task)

    # Node n of the wide tree is the root of sub-tree n, and a leaf ``~e`` is edge e of that tree
    child = subtrees.child.copy()
    is_leaf = child < 0
    child[is_leaf] = tree.child[~child[is_leaf]]

    # Number the nodes by level; nodes of the wide tree keep their names
    order = by_level(subtrees.child_start, child, 0)
    start, child, number = reorder(subtrees.child_start, child, order)
    names: list[str | None] | None = None
    if tree.names is not None:
        names = [None] * len(order)
        for node, name in enumerate(tree.names):
            names[number[node]] = name
    return Tree(tree.labels, start, child, counts=tree.counts, names=names)


def normalised(vectors: Floating) -> Floating:
    """Scale vectors (n, d) to length one, as float32; zero vectors stay zero."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1), np.float32)


def tfidf_vectors(corpus: Corpus, block: int, *, random_state: int = 0) -> Float64:
    """Return the column (V, d) of each word in the tf-idf matrix.

    Documents are blocks of `block` tokens, across lines. A column has one entry per document. With
    more than `DIMENSIONS` documents and words, columns are projected onto `DIMENSIONS` singular
    vectors. The term frequency is ``1 + log tf`` and the weight ``1 + log((1 + D) / (1 + df))``, as
    in scikit-learn's `TfidfTransformer`. Documents are not normalised, since they have equal sizes.
    """
    # Importing scikit-learn takes more than a second, and few runs need it
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer

    # (D, V) count of each word in each document; out-of-vocabulary tokens only fill their block
    ids = corpus.ids()
    known = np.flatnonzero(~corpus.is_oov())
    shape = -(-len(ids) // block), len(corpus.vocabulary)
    counted = csr_array((np.ones(len(known)), (known // block, ids[known])), shape=shape)
    weighted = TfidfTransformer(norm=None, sublinear_tf=True).fit_transform(counted)
    columns = weighted.T.tocsr()
    if min(columns.shape) <= DIMENSIONS:
        return np.asarray(columns.toarray())
    with progress.task("projecting tf-idf vectors"):
        svd = TruncatedSVD(DIMENSIONS, random_state=random_state)
        return np.asarray(svd.fit_transform(columns))
