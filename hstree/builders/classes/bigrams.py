"""Counts of bigrams, and the perplexity of the class bigram model."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from hstree import progress
from hstree._arrays import Float64, Int64, offsets
from hstree.data.corpus import Corpus
from hstree.data.vocabulary import EOS

#: Number of tokens that are counted at once.
BLOCK_TOKENS = 1 << 22


def bigram_counts(corpus: Corpus) -> csc_array:
    """Return the counts of adjacent tokens in a corpus, also across lines: an int64 matrix (V, V).

    Entry (v, w) is the number of times that w follows v. ``<eos>`` precedes the first word.
    Out-of-vocabulary tokens count as ``<unk>`` if the vocabulary has it. Otherwise their pairs are
    left out; if there are none, the columns sum to ``corpus.counts``. Row indices ascend within a
    column. Time is O(tokens log tokens), in blocks; memory is proportional to the distinct pairs.
    """
    vocabulary = corpus.vocabulary
    last_id = vocabulary.index(EOS) if vocabulary.eos is not None else -1
    n_words = len(vocabulary)
    total = csc_array((n_words, n_words), dtype=np.int64)
    with progress.task("counting pairs", total=len(corpus), unit="tokens") as task:
        for first in range(0, len(corpus), BLOCK_TOKENS):
            ids = corpus.ids(slice(first, first + BLOCK_TOKENS))
            # The token before each token; the first follows the last token of the previous block
            previous = np.concatenate([[last_id], ids[:-1]]).astype(ids.dtype)
            is_known = (previous >= 0) & (ids >= 0)
            # Pairs as single numbers, ascending by the word and then by its context
            pairs = ids[is_known].astype(np.int64) * n_words + previous[is_known]
            pairs, counts = np.unique(pairs, return_counts=True)
            words, contexts = np.divmod(pairs, n_words)
            start = offsets(np.bincount(words, minlength=n_words))
            total = total + csc_array((counts, contexts, start), shape=total.shape)
            last_id = int(ids[-1])
            task.advance(len(ids))
    total.sort_indices()
    return total


def class_sums(bigrams: csc_array, word_class: Int64, n_classes: int) -> csr_array:
    """Return the sum over the columns of each class, N(v, c): a matrix (contexts, classes)."""
    words = np.arange(len(word_class))
    ones = np.ones(len(word_class), np.int64)
    member = csr_array((ones, (words, word_class)), shape=(len(word_class), n_classes))
    return csr_array(bigrams.tocsr() @ member)


def bigram_perplexity(bigrams: csc_array, word_class: Int64) -> float | None:
    """Return the training perplexity of the class bigram model, or None if there are no pairs.

    The model is ``P(w | v) = P(class(w) | v) P(w | class(w))``; both factors are relative
    frequencies in the matrix of pairs (contexts, words) [1]_. Classes (words,) are numbered from 0.

    References
    ----------
    .. [1] J. Uszkoreit and T. Brants, "Distributed Word Clustering for Large Scale Class-Based
       Language Modeling in Machine Translation", ACL 2008, section 3 (predictive class bigrams).
    """
    n_pairs = bigrams.sum()
    if n_pairs == 0:
        return None

    # The log-likelihood is the sum over pairs of log n(v, C) / n(v) + log n(w) / n(C), where C is
    # the class of w. It equals a sum of n log n over the counts of each kind
    n_classes = int(word_class.max()) + 1
    word_total = bigrams.sum(axis=0)
    class_total = np.bincount(word_class, weights=word_total, minlength=n_classes)
    sums = class_sums(bigrams, word_class, n_classes)
    log_likelihood = (
        x_log_x(sums.data).sum()
        - x_log_x(bigrams.sum(axis=1)).sum()
        + x_log_x(word_total).sum()
        - x_log_x(class_total).sum()
    )
    return float(np.exp(-log_likelihood / n_pairs))


def x_log_x(x: NDArray[np.generic]) -> Float64:
    """Return x ln x for each count, and 0 for a count of 0."""
    value = np.asarray(x).astype(np.float64)
    product: Float64 = value * np.log(np.maximum(value, 1))
    return product
