"""Several trees under one budget."""

import pytest

import hstree
from hstree.comparison import compare
from hstree.errors import InputError
from hstree.evaluation import Parts
from tests.texts import corpus_of, markov_lines

QUICK = {"dim": 8, "context": 2, "epochs": 2, "batch_size": 64}


@pytest.fixture
def text(tmp_path):
    return corpus_of(tmp_path, markov_lines(4000, 0)[0])


def test_every_tree_gets_the_same_budget_and_order_does_not_matter(text):
    parts = Parts(*text.parts())
    trees = {name: hstree.build(name, text) for name in ("random", "huffman", "flat")}
    found = dict(compare(trees, parts, **QUICK))
    assert list(found) == ["random", "huffman", "flat"]
    again = dict(compare(dict(reversed(trees.items())), parts, **QUICK))
    for name, evaluation in found.items():
        assert evaluation.test.tokens == len(parts.test)
        assert len(evaluation.history.epochs) == 2
        assert evaluation.test == again[name].test
        assert evaluation.unigram == found["flat"].unigram
        # A chain of first order has a lower perplexity than its unigram distribution.
        assert evaluation.test.perplexity < evaluation.unigram.perplexity


def test_results_come_one_by_one(text):
    trees = {name: hstree.build(name, text) for name in ("random", "flat")}
    results = compare(trees, Parts(*text.parts()), **QUICK | {"epochs": 0})
    assert next(results)[0] == "random"


def test_trees_over_other_words_are_not_compared(text):
    trees = {
        "huffman": hstree.build("huffman", text),
        "other": hstree.build("huffman", text.with_vocabulary(text.select_vocabulary(unk=True))),
    }
    with pytest.raises(InputError, match="huffman and other are not over the same words"):
        next(compare(trees, Parts(*text.parts()), **QUICK))
