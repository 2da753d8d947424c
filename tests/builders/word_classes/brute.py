"""Bigram classes by their definitions, word by word."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
from scipy.sparse import csc_array


def log_likelihood(pairs, class_of):
    """Sum of log P(class(w) | v) P(w | class(w)) over pairs (v, w), by relative frequencies."""
    after = Counter(v for v, _ in pairs)
    class_after = Counter((v, class_of[w]) for v, w in pairs)
    of_word = Counter(w for _, w in pairs)
    of_class = Counter(class_of[w] for _, w in pairs)
    return math.fsum(
        math.log(class_after[v, class_of[w]] / after[v])
        + math.log(of_word[w] / of_class[class_of[w]])
        for v, w in pairs
    )


def perplexity(pairs, class_of):
    return math.exp(-log_likelihood(pairs, class_of) / len(pairs))


def mutual_information(pairs, class_of):
    """Average mutual information of the classes of neighbours, in nats."""
    both = Counter((class_of[v], class_of[w]) for v, w in pairs)
    left = Counter(class_of[v] for v, _ in pairs)
    right = Counter(class_of[w] for _, w in pairs)
    n = len(pairs)
    return math.fsum(
        count / n * math.log(count * n / (left[a] * right[b])) for (a, b), count in both.items()
    )


def matrix(pairs, n):
    counts = np.zeros((n, n), np.int64)
    for v, w in pairs:
        counts[v, w] += 1
    return csc_array(counts)


def drawn_pairs(seed, n_words, n_pairs):
    """Neighbours in a text of words drawn with uneven chances; some words may not occur."""
    rng = np.random.default_rng(seed)
    text = rng.choice(n_words, n_pairs + 1, p=rng.dirichlet(np.full(n_words, 0.5))).tolist()
    return list(pairwise(text))
