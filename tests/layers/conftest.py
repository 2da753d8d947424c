"""A small text that layers learn from."""

import pytest

from hstree.data.splits import Splits
from tests.texts import corpus_of, markov_lines


@pytest.fixture(scope="session")
def splits(tmp_path_factory):
    lines, _ = markov_lines(3_000, 0)
    splits = Splits.of(corpus_of(tmp_path_factory.mktemp("text"), lines))
    vocabulary = splits.train.select_vocabulary(unk=True)
    parts = (splits.train, splits.valid, splits.test)
    return Splits(*(part.with_vocabulary(vocabulary) for part in parts))
