"""A small text, and a comparison of one candidate of each kind over it."""

import numpy as np
import pytest

import hstree
from hstree.data.splits import Splits
from tests.texts import corpus_of, markov_lines

#: Options of a model that trains in a moment.
QUICK = {"dim": 8, "context": 2, "batch_size": 64}
CANDIDATES = (
    *("random", "huffman", "gmm epsilon=0.4", "classes cluster_by=vectors", "huffman + ngrams"),
    *("2 x gmm epsilon=0.4", "sampled samples=3", "flat", "flat + ngrams", "kn2"),
)


def compare(text, candidates, folder, **options):
    """Compare candidates after one epoch, without speeds, unless options say otherwise."""
    defaults = {"stop": hstree.Epochs(1), "speed_rounds": 0, **QUICK}
    return hstree.compare(text, candidates, folder, **defaults | options)


def names(comparison):
    return [candidate.name for candidate in comparison.candidates]


def perplexities(comparison):
    return [candidate.perplexity for candidate in comparison.candidates]


def token_nlls(comparison, name, split="test", *, inner=""):
    """Return the kept nll of every token of a candidate, for each of its jobs."""
    folders = [comparison.folder / job.folder / inner for job in comparison.candidate(name).jobs]
    return [np.load(folder / f"{split}_nll.npy") for folder in folders]


@pytest.fixture(scope="package")
def splits(tmp_path_factory, short_turns):
    return Splits.of(corpus_of(tmp_path_factory.mktemp("text"), markov_lines(2_500, 0)[0]))


@pytest.fixture(scope="package")
def compared(splits, tmp_path_factory):
    """A comparison of all kinds of candidates, two seeds; tests must not change its folder."""
    home = tmp_path_factory.mktemp("compared")
    stop = hstree.Epochs(2)
    return hstree.compare(splits, CANDIDATES, home, stop=stop, seeds=2, speed_rounds=1, **QUICK)
