"""A small text that layers learn from."""

import numpy as np
import pytest

from hstree.data.splits import Splits
from tests.texts import corpus_of


def text(n_tokens=6_000, n_words=60):
    """Lines of words by Zipf's law, most of which follow from the word before."""
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, n_words + 1)
    after = rng.choice(n_words, n_words, p=share / share.sum())
    words = rng.choice(n_words, n_tokens, p=share / share.sum())
    for i in np.flatnonzero(rng.random(n_tokens) < 0.7):
        words[i] = after[words[i - 1]]
    return [" ".join(f"w{word}" for word in line) for line in words.reshape(-1, 20)]


@pytest.fixture(scope="session")
def zipf_splits(tmp_path_factory):
    splits = Splits.of(corpus_of(tmp_path_factory.mktemp("text"), text()))
    vocabulary = splits.train.select_vocabulary(unk=True)
    parts = (splits.train, splits.valid, splits.test)
    return type(splits)(*(part.with_vocabulary(vocabulary) for part in parts))
