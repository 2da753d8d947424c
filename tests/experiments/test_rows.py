"""Figures of rows: frequency bands, and the tree that the closing sentence names."""

from dataclasses import replace

import numpy as np
import pytest

from hstree import build
from hstree.experiments.evaluation import Splits
from hstree.experiments.results import Band, Spread
from hstree.experiments.rows import TOLERANCE, choice, frequency_bands, words_in_wordnet
from tests.experiments.made_up import a_row, a_tree
from tests.texts import corpus_of


def test_every_test_token_is_in_the_band_of_its_word(tmp_path):
    train = corpus_of(tmp_path, ["a " * 99 + "b " * 100, "c <unk> <unk>"], "train.txt")
    words = train.select_vocabulary()
    assert words.unk is not None
    test = corpus_of(tmp_path, ["a b c", "<unk> new b"], "test.txt").with_vocabulary(words)
    bands = frequency_bands(Splits(train, test, test))
    assert bands.bands == [
        # c, <unk> as the text itself has it, <eos>
        Band(least=1, most=9, words=3, tokens=4),
        Band(least=10, most=99, words=1, tokens=1),
        Band(least=100, most=999, words=1, tokens=2),
        Band(least=None, most=None, words=0, tokens=1),
    ]
    # a b c <eos> <unk> new b <eos>
    assert bands.band_of_token.tolist() == [1, 2, 0, 0, 0, 3, 2, 0]
    nll = np.log([2.0, 3, 4, 4, 4, 5, 12, 4])
    assert bands.perplexities([nll]) == pytest.approx([4, 2, 6, 5])
    assert bands.perplexities([nll, nll + np.log(3)]) == pytest.approx([8, 4, 12, 10])


def test_a_band_without_test_tokens_has_no_perplexity(tmp_path):
    train = corpus_of(tmp_path, ["a " * 10 + "b"], "train.txt")
    test = corpus_of(tmp_path, ["b"], "test.txt").with_vocabulary(train.vocabulary)
    bands = frequency_bands(Splits(train, test, test))
    assert [band.tokens for band in bands.bands] == [2, 0]
    assert bands.perplexities([np.zeros(2)]) == [1, None]


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("the dogs and the cat ran and xyzzy", {"dogs", "cat", "ran"}),
        ("the dogs", {"dogs"}),
        ("dogs cat", {"dogs", "cat"}),
        ("the xyzzy", set()),
    ],
)
@pytest.mark.parametrize("binarise", ["tfidf", "none"])
def test_the_words_that_wordnet_has(tmp_path, text, inside, binarise):
    corpus = corpus_of(tmp_path, [text] * 3)
    tree = build("wordnet", corpus, binarise=binarise)
    has = words_in_wordnet(tree)
    assert {label for label, is_in in zip(tree.labels, has, strict=True) if is_in} == inside
    assert tree.meta["coverage"]["words_in_wordnet"] == len(inside)
    assert words_in_wordnet(build("huffman", corpus)) is None


def scored(name, valid, speed, kind="tree", test=100.0):
    perplexity = {
        part: Spread(mean=mean, sd=None, n=1)
        for part, mean in (("valid", valid), ("test", test), ("test_without_oov", test))
    }
    return a_row(name=name, kind=kind, perplexity=perplexity, tokens_per_second=speed)


ROWS = [
    scored("quick", 120, 900),
    scored("near", 102.9, 300),
    scored("nearer", 101, 200),
    scored("best", 100, 10),
    scored("kn5", 90, None, "baseline"),
]


def test_the_fastest_of_those_that_are_nearly_as_good():
    assert TOLERANCE == 0.03
    chosen = choice(ROWS)
    assert (chosen.by, chosen.within) == ("valid", 0.03)
    assert (chosen.best, chosen.chosen, chosen.among) == ("best", "near", 4)
    alone = choice(ROWS[3:])
    assert (alone.best, alone.chosen, alone.among) == ("best", "best", 1)
    assert choice(ROWS[4:]) is None


def test_the_test_split_does_not_decide():
    lucky = [
        scored(row.name, row.perplexity["valid"].mean, row.tokens_per_second, row.kind, 1.0 + i)
        for i, row in enumerate(ROWS)
    ]
    assert (choice(lucky).best, choice(lucky).chosen) == ("best", "near")


def test_a_row_without_a_perplexity_is_not_the_best():
    assert choice([scored("unknown", None, 900), *ROWS]).best == "best"


def timed(name, valid, *rounds, scores=1.5, **changed):
    tree = a_tree(scores_per_target=scores)
    return replace(
        scored(name, valid, float(np.median(rounds))),
        tree=tree, speed_rounds=list(rounds), **changed,
    )  # fmt: skip


def test_rows_as_fast_within_their_rounds_are_a_tie():
    fast = timed("fast", 102.0, 100, 120, 90)
    tied = timed("tied", 101.0, 90, 110, 91)
    slower = timed("slower", 100.0, 80, 110, 60)
    found = choice([fast, tied, slower])
    assert (found.best, found.chosen, found.tied, found.rival) == (
        *("slower", "tied", ["fast"], "slower"),
    )
    # Slower in every round: the fastest is chosen, whatever the perplexity within the tolerance.
    assert choice([fast, replace(tied, speed_rounds=[90, 110, 80]), slower]).chosen == "fast"


def test_ties_of_perplexity_go_to_fewer_scores():
    wide, narrow = timed("wide", 100.0, 9, 9, scores=90.0), timed("narrow", 100.0, 9, 9, scores=9.0)
    assert choice([wide, narrow]).chosen == "narrow"


def test_the_tolerance_decides_who_may_be_chosen():
    rows = [timed("best", 100.0, 1, 1), timed("quick", 104.0, 9, 9)]
    assert choice(rows).chosen == "best"
    assert choice(rows, 0.05).chosen == "quick"
    assert choice(rows, 0.05).within == 0.05


def test_a_row_that_has_read_the_test_split_is_never_chosen():
    cheat, honest = timed("cheat", 90.0, 9, seen="it read it"), timed("honest", 100.0, 1)
    found = choice([cheat, honest])
    assert (found.best, found.chosen, found.among, found.rival) == ("honest", "honest", 1, None)
    assert choice([cheat]) is None
