"""Windows of the words before each word, for any block and order."""

import numpy as np
import pytest

from hstree.data import windows as windows_module
from hstree.data.vocabulary import Vocabulary
from hstree.data.windows import ContextBatches
from tests.texts import corpus_of


def all_windows(windows, size, rng=None):
    batches = list(windows.batches(size, rng))
    return [np.concatenate(column) for column in zip(*batches, strict=True)]


@pytest.mark.parametrize("block", [1, 2, 3, 100])
def test_contexts_run_over_line_ends_and_start_with_eos(tmp_path, monkeypatch, block):
    monkeypatch.setattr(windows_module, "BLOCK", block)
    corpus = corpus_of(tmp_path, ["a b", "", "c"])
    contexts, targets, oov = all_windows(ContextBatches(corpus, 2), 2)
    words = np.array(corpus.vocabulary.words)
    end = "<eos>"
    assert words[targets].tolist() == ["a", "b", end, end, "c", end]
    assert words[contexts].tolist() == [
        [end, end],
        [end, "a"],
        ["a", "b"],
        ["b", end],
        [end, end],
        [end, "c"],
    ]
    assert not oov.any()
    assert (contexts.dtype, targets.dtype) == (np.int32, np.int32)


@pytest.mark.parametrize("block", [3, 100])
def test_a_shuffled_epoch_holds_every_position_once(tmp_path, monkeypatch, block):
    monkeypatch.setattr(windows_module, "BLOCK", block)
    windows = ContextBatches(corpus_of(tmp_path, ["a b c d e f g", "h i j"]), 3)
    in_order = np.column_stack(all_windows(windows, 4)[:2])
    shuffled = np.column_stack(all_windows(windows, 4, np.random.default_rng(0))[:2])
    assert not np.array_equal(in_order, shuffled)
    assert sorted(in_order.tolist()) == sorted(shuffled.tolist())


def test_words_outside_the_vocabulary_are_unk_and_marked(tmp_path):
    corpus = corpus_of(tmp_path, ["a x b", "<unk>"]).with_vocabulary(
        Vocabulary(["b", "a", "<unk>", "<eos>"], [1, 1, 1, 1])
    )
    contexts, targets, oov = all_windows(ContextBatches(corpus, 1), 10)
    assert targets.tolist() == [1, 2, 0, 3, 2, 3]
    assert contexts[:, 0].tolist() == [3, 1, 2, 0, 3, 2]
    assert oov.tolist() == [False, True, False, False, False, False]
