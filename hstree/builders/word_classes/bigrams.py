"""How often each word follows each word, and what that says of classes.

The counts are sparse. What is not here: how to find classes (`exchange`, `merging`, `bins`, ...).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array

from hstree import progress
from hstree._typing import Float64, Int64
from hstree.data.corpus import Corpus
from hstree.data.vocabulary import EOS, UNK

_BLOCK_TOKENS = 1 << 22


def bigram_counts(corpus: Corpus) -> csc_array:
    """Count the pairs of neighbours in a corpus, over its line ends too.

    Parameters
    ----------
    corpus : Corpus
        Before its first word stands ``<eos>``. Tokens out of the vocabulary are ``<unk>`` where
        the vocabulary holds it; elsewhere they are in no pair.

    Returns
    -------
    csc_array (V, V) of int64
        Entry (v, w): how often w follows v. Column w holds the predecessors of w, in order. Where
        no token is out of the vocabulary, the columns sum to ``corpus.counts``.

    Notes
    -----
    O(tokens log tokens) time, a block at a time, and memory for the pairs that differ.
    """
    words = corpus.vocabulary
    oov = words.index(UNK) if words.unk is not None else -1
    before = words.index(EOS) if words.eos is not None else -1
    total = csc_array((len(words), len(words)), dtype=np.int64)
    with progress.task("counting pairs", total=len(corpus), unit="tokens") as task:
        for first in range(0, len(corpus), _BLOCK_TOKENS):
            ids = corpus.ids(slice(first, first + _BLOCK_TOKENS))
            ids[ids < 0] = oov
            previous = np.concatenate([[before], ids[:-1]]).astype(ids.dtype)
            known = (previous >= 0) & (ids >= 0)
            ones = np.ones(np.count_nonzero(known), np.int64)
            pairs = coo_array((ones, (previous[known], ids[known])), shape=total.shape)
            total = total + pairs.tocsc()
            before = int(ids[-1])
            task.advance(len(ids))
    total.sort_indices()
    return total


def class_sums(bigrams: csc_array, class_of: Int64, n_classes: int) -> csr_array:
    """Sum the columns of the words of each class: (contexts, classes), entry (v, c) = N(v, c)."""
    words = np.arange(len(class_of))
    ones = np.ones(len(class_of), np.int64)
    member = csr_array((ones, (words, class_of)), shape=(len(class_of), n_classes))
    return csr_array(bigrams.tocsr() @ member)


def bigram_perplexity(bigrams: csc_array, class_of: Int64) -> float | None:
    """Return the perplexity of the class bigram model on the pairs that it is estimated from.

    Parameters
    ----------
    bigrams : csc_array (contexts, words)
    class_of : int64 array (words,)
        The class of each word, from 0.

    Returns
    -------
    float or None
        Of ``P(w | v) = P(class(w) | v) P(w | class(w))``, with relative frequencies for both
        [1]_; None where there is no pair.

    References
    ----------
    .. [1] J. Uszkoreit and T. Brants, "Distributed Word Clustering for Large Scale Class-Based
       Language Modeling in Machine Translation", ACL 2008, section 3 (predictive class bigrams).
    """
    n_pairs = bigrams.sum()
    if n_pairs == 0:
        return None
    n_classes = int(class_of.max()) + 1
    of_word = bigrams.sum(axis=0)
    of_class = np.bincount(class_of, weights=of_word, minlength=n_classes)
    sums = class_sums(bigrams, class_of, n_classes)
    log_likelihood = (
        x_log_x(sums.data).sum()
        - x_log_x(bigrams.sum(axis=1)).sum()
        + x_log_x(of_word).sum()
        - x_log_x(of_class).sum()
    )
    return float(np.exp(-log_likelihood / n_pairs))


def x_log_x(x: NDArray[np.generic]) -> Float64:
    """Return x ln x for each count, 0 for 0.

    Examples
    --------
    >>> x_log_x(np.array([0, 1, 2])).round(3).tolist()
    [0.0, 0.0, 1.386]
    """
    value = np.asarray(x).astype(np.float64)
    product: Float64 = value * np.log(np.maximum(value, 1))
    return product
