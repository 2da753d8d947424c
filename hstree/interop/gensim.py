"""Bridge to gensim: train ``Word2Vec`` with any binary tree, read its tree, convert vectors.

The hierarchical softmax of gensim reads two attributes of each word, `code` and `point`, which
describe the tree. Its decisions have no bias. gensim is imported when a function is called;
functions raise MissingExtraError if it is missing or too old. A model is a
``gensim.models.Word2Vec`` that was created with ``hs=1``, after its `build_vocab`. For other
models, functions raise OptionError (no hierarchical softmax) or InputError (no vocabulary).
"""

from typing import Any

import numpy as np

from hstree._arrays import Int64, offsets
from hstree._plugins import require
from hstree.data.arrays import as_words
from hstree.data.vectors import WordVectors, keyed_counts
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError, OptionError
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.tree import Tree
from hstree.tree.bit_paths import paths_of, tree_of_paths

#: Oldest gensim that works with NumPy 2.
OLDEST = "4.4"


def use_tree(model: Any, tree: Tree) -> None:
    """Replace the Huffman tree of a gensim model with another tree.

    Parameters
    ----------
    model : gensim.models.Word2Vec
        Created with ``hs=1, negative=0``, after `build_vocab` and before `train`; otherwise raises
        OptionError. The output weights, `syn1`, are set to zero, and row n belongs to node n.
        Another call of `build_vocab` restores the tree of gensim.
    tree : Tree
        A binary tree with one code per label, over the words of the model in any order; otherwise
        raises InputError.

    Examples
    --------
    >>> model = Word2Vec(hs=1, negative=0)  # doctest: +SKIP
    >>> model.build_vocab(sentences)  # doctest: +SKIP
    >>> use_tree(model, hstree.build("huffman", vocabulary_of(model)))  # doctest: +SKIP
    >>> model.train(sentences, total_examples=len(sentences), epochs=5)  # doctest: +SKIP
    """
    word_keys = _keys(model)
    if model.negative:
        raise OptionError(
            f"the model also uses negative sampling, negative={model.negative}; create it with "
            "Word2Vec(hs=1, negative=0)"
        )
    # The labels must be exactly the words of the model
    labels = set(tree.labels)
    words = word_keys.keys()
    differences = [
        f"{len(only)} {which} are only in {owner} ({min(only)!r}, ...)"
        for which, owner, only in (
            ("labels", "the tree", labels - words),
            ("words", "the model", words - labels),
        )
        if only
    ]
    if differences:
        raise InputError(
            f"the labels of the tree differ from the words of the model: {'; '.join(differences)}; "
            "build a tree from vocabulary_of(model) or from its vectors, model.wv"
        )
    # gensim reads the path of a word from two attributes: the branches and the nodes
    paths = paths_of(tree)
    for label, code, point in zip(tree.labels, paths.code, paths.point, strict=True):
        model.wv.set_vecattr(word_keys[label], "code", code)
        model.wv.set_vecattr(word_keys[label], "point", point)
    model.syn1 = np.zeros((len(word_keys), model.layer1_size), np.float32)


def tree_of(model: Any) -> Tree:
    """Return the tree of a gensim model: its Huffman tree, or the tree that replaced it.

    Labels are in the order of the words of the model, with their counts. The root is node 0; in
    gensim, it is node V - 2.
    """
    return _tree_and_rows(model)[0]


def layer_of(model: Any) -> HierarchicalSoftmax:
    """Return the output layer of a gensim model, for exact probabilities, top-k and samples.

    It has the tree that `tree_of` returns, a copy of `syn1` as weights, and zero biases. Its hidden
    vectors are those of gensim: for CBOW, the mean of the context vectors (or the sum, with
    ``cbow_mean=0``); for skip-gram, the vector of the input word.
    """
    tree, rows = _tree_and_rows(model)
    layer = HierarchicalSoftmax(tree, int(model.layer1_size))
    layer.weight[:] = model.syn1[rows]
    layer.bias[:] = 0
    return layer


def vocabulary_of(model: Any) -> Vocabulary:
    """Return the words and counts of a gensim model as a vocabulary, in the same order."""
    word_keys = _keys(model)
    counts = [model.wv.get_vecattr(key, "count") for key in word_keys.values()]
    return Vocabulary(list(word_keys), counts)


def to_keyed_vectors(vectors: WordVectors) -> Any:
    """Convert word vectors to gensim ``KeyedVectors``, in the same order and with their counts."""
    models = require("gensim.models", at_least=OLDEST)
    keyed = models.KeyedVectors(vectors.dimension)
    keyed.add_vectors(list(vectors.labels), vectors.vectors)
    if vectors.counts is not None:
        keyed.allocate_vecattrs(["count"], [np.int64])
        keyed.expandos["count"][:] = vectors.counts
    return keyed


def _keys(model: Any) -> dict[str, Any]:
    """Return the words of a model with their keys, which may be integers; check the model."""
    models = require("gensim.models", at_least=OLDEST)
    if not isinstance(model, models.Word2Vec):
        raise OptionError(f"expected a gensim Word2Vec, not {type(model).__name__}")
    if not model.hs:
        raise OptionError(
            "the model does not use hierarchical softmax; create it with Word2Vec(hs=1, negative=0)"
        )
    if len(model.wv) == 0:
        raise InputError("the model has no vocabulary yet; call its build_vocab(sentences) first")
    keys = model.wv.index_to_key
    return dict(zip(as_words(keys, "word"), keys, strict=True))


def _tree_and_rows(model: Any) -> tuple[Tree, Int64]:
    """Return the tree of a model, and the row of `syn1` that belongs to each node."""
    words = list(_keys(model))
    codes = model.wv.expandos["code"]
    points = model.wv.expandos["point"]
    start = offsets(np.fromiter(map(len, codes), np.int64, len(words)))
    # (D,) point and code of each decision; one word has no decisions
    no_decisions = np.empty(0, np.int64)
    point = np.concatenate([no_decisions, *points])
    code = np.concatenate([no_decisions, *codes])
    tree, rows = tree_of_paths(words, start, point, code, counts=keyed_counts(model.wv))
    return tree.with_meta({"method": "gensim", "options": {}}), rows
