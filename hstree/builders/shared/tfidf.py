"""tf-idf vectors of words, with blocks of a corpus as documents."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from hstree import progress
from hstree._typing import Float64, Int64
from hstree.data.corpus import Corpus

#: Number of dimensions to which longer vectors are projected by truncated SVD.
DIMENSIONS = 100

_TOKENS_AT_ONCE = 1 << 20


def tfidf_vectors(corpus: Corpus, words: Int64, block: int, *, random_state: int = 0) -> Float64:
    """Return the columns (W, d) of words, given by their ids (W,), in the tf-idf matrix.

    Documents are blocks of `block` tokens, across lines. A column has one entry per document; with
    more than `DIMENSIONS` documents and words, it is projected onto as many singular vectors. The
    term frequency is ``1 + log tf``, the weight ``1 + log((1 + D) / (1 + df))``, as in
    scikit-learn's `TfidfTransformer`; documents are not normalised, since they have equal sizes.
    """
    # scikit-learn takes over a second to import, and few runs need it.
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer

    counted = _document_counts(corpus, block)[:, words]
    weighted = TfidfTransformer(norm=None, sublinear_tf=True).fit_transform(counted)
    columns = weighted.T.tocsr()
    if min(columns.shape) <= DIMENSIONS:
        return np.asarray(columns.toarray())
    with progress.task("projecting tf-idf vectors"):
        svd = TruncatedSVD(DIMENSIONS, random_state=random_state)
        return np.asarray(_interruptible(lambda: svd.fit_transform(columns)))


def _interruptible(function: Callable[[], Any]) -> Any:
    """Return what a function returns, computed in a thread, so that Ctrl-C need not wait for it.

    The thread is left alone then, and ends with the program.
    """
    result = Future[Any]()

    def run() -> None:
        try:
            result.set_result(function())
        except BaseException as error:
            result.set_exception(error)

    Thread(target=run, daemon=True).start()
    return result.result()


def _document_counts(corpus: Corpus, block: int) -> csr_array:
    """Count each word in each document: (D, V). OOV tokens only fill their block."""
    n_tokens, n_words = len(corpus), len(corpus.vocabulary)
    step = max(1, _TOKENS_AT_ONCE // block) * block
    keys, counts = [], []
    with progress.task("counting words in blocks", total=n_tokens, unit="tokens") as task:
        for start in range(0, n_tokens, step):
            ids = corpus.ids(slice(start, min(start + step, n_tokens))).astype(np.int64)
            document = (start + np.arange(len(ids))) // block
            key, count = np.unique((document * n_words + ids)[ids >= 0], return_counts=True)
            keys.append(key)
            counts.append(count)
            task.advance(len(ids))
    document, word = np.divmod(np.concatenate(keys), n_words)
    shape = (-(-n_tokens // block), n_words)
    return csr_array((np.concatenate(counts).astype(np.float64), (document, word)), shape=shape)
