"""Words by their training count."""

import numpy as np
import pytest

from hstree.experiments.bands import frequency_bands
from hstree.experiments.evaluation import Splits
from tests.texts import corpus_of


def test_every_test_token_is_in_the_band_of_its_word(tmp_path):
    train = corpus_of(tmp_path, ["a " * 99 + "b " * 100, "c <unk> <unk>"], "train.txt")
    words = train.select_vocabulary()
    assert words.unk is not None
    test = corpus_of(tmp_path, ["a b c", "<unk> new b"], "test.txt").with_vocabulary(words)
    bands = frequency_bands(Splits(train, test, test))
    assert bands.bands == [
        # c, <unk> as the text itself has it, <eos>
        {"least": 1, "most": 9, "words": 3, "tokens": 4},
        {"least": 10, "most": 99, "words": 1, "tokens": 1},
        {"least": 100, "most": 999, "words": 1, "tokens": 2},
        {"least": None, "most": None, "words": 0, "tokens": 1},
    ]
    # a b c <eos> <unk> new b <eos>
    assert bands.of_token.tolist() == [1, 2, 0, 0, 0, 3, 2, 0]
    nll = np.log([2.0, 3, 4, 4, 4, 5, 12, 4])
    assert bands.perplexities([nll]) == pytest.approx([4, 2, 6, 5])
    assert bands.perplexities([nll, nll + np.log(3)]) == pytest.approx([8, 4, 12, 10])


def test_a_band_without_test_tokens_has_no_perplexity(tmp_path):
    train = corpus_of(tmp_path, ["a " * 10 + "b"], "train.txt")
    test = corpus_of(tmp_path, ["b"], "test.txt").with_vocabulary(train.vocabulary)
    bands = frequency_bands(Splits(train, test, test))
    assert [band["tokens"] for band in bands.bands] == [2, 0]
    assert bands.perplexities([np.zeros(2)]) == [1, None]
