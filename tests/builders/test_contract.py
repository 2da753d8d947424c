"""Properties of every registered builder.

A new builder is held to it without a change here. Its options get their turn by a line in SETTINGS.
"""

import json
import math
import re
import typing
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hstree
from hstree import progress
from hstree.builders import broken_builders
from hstree.builders.builder import SHORT_LIST
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import EOS, Vocabulary
from hstree.errors import OptionError
from tests.builders.oracle import code_lengths, leaf_probabilities, n_rows
from tests.plugins import example_plugins

#: Options to try beside the defaults.
SETTINGS = {
    "random": [{"random_state": 7}, {"arity": 4}],
    "balanced": [{"arity": 3}],
    "huffman": [{"arity": 3}, {"arity": 5}],
    "gmm": [
        {"split": "balanced"},
        {"epsilon": 0.25},
        {"epsilon": 0.5, "max_codes": 5},
        {"epsilon": 0.4, "trees": 3},
        {"trees": 2, "random_state": 5},
    ],
    "kmeans": [{"balanced": True}, {"arity": 3}, {"arity": 3, "balanced": True}],
    "endings": [{"arity": 3}],
    "linkage": [{"criterion": "average"}, {"criterion": "single"}],
    "semantic": [{"iterations": 1}],
    "wordnet": [{"senses": "all"}, {"binarise": "none"}],
    "classes": [
        {"n_classes": 1},
        {"cluster_by": "brown"},
        {"cluster_by": "frequency"},
    ],
}

#: Work of libraries, which do not say how far they are.
UNKNOWN = ("linkage", "reading WordNet", "projecting tf-idf vectors", "compiling kernels")
#: Builders whose progress adds up to the words.
DIVISIVE = ("gmm", "kmeans", "semantic")
#: Builders whose trees always depend on `random_state`.
RANDOM = ("random", "gmm", "kmeans")

with example_plugins():
    METHODS = hstree.builders()
CASES = [
    pytest.param(
        (method, options), id=" ".join([method, *(f"{k}={v}" for k, v in options.items())])
    )
    for method in METHODS
    for options in [{}, {"short_list": 3}, *SETTINGS.get(method, [])]
]


@pytest.fixture(autouse=True, scope="module")
def installed():
    with example_plugins():
        yield


every_builder = pytest.mark.parametrize("case", CASES)

COUNTS = {
    "V = 1": [3],
    "V = 2": [1, 5],
    "V = 3": [2, 2, 9],
    "all equal": [4] * 13,
    "one giant": [1] * 6 + [10**15] + [1] * 6,
    "zeros among them": [0, 7, 0, 1, 0],
    "as in text": [1000 // rank for rank in range(1, 41)],
}
RNG = np.random.default_rng(0)
VECTORS = {
    "V = 1": [[0.5, 1.0]],
    "V = 2": [[0.5, 1.0], [-1.0, 2.0]],
    "V = 3": RNG.normal(size=(3, 4)),
    "two alike": [[1.0, 2.0], [1.0, 2.0]],
    "duplicates": np.repeat(RNG.normal(size=(4, 3)), 5, axis=0),
    "all zero": np.zeros((9, 3)),
    "constant": np.full((11, 3), -2.5),
    "one far away": np.concatenate([np.zeros((7, 2)), [[1e15, 0.0]]]),
    "d = 1": np.arange(17.0)[:, None],
    "normal": RNG.normal(size=(40, 5)),
}


def named(n):
    return [f"w{i}" for i in range(n)]


def input_of(method, data, folder, words=None, per_line=6):
    """Make what the method takes of counts or of vectors."""
    words = words or named(len(data))
    if METHODS[method].takes is WordVectors:
        return WordVectors(words, data, counts=range(1, len(data) + 1))
    vocabulary = Vocabulary(words, data)
    if METHODS[method].takes is Vocabulary:
        return vocabulary
    return corpus_of(vocabulary, folder, per_line)


def corpus_of(vocabulary, folder, per_line):
    """Write a text in which the words come about as often, a few of them on each line."""
    counts = np.minimum(vocabulary.counts, 50)
    words = np.repeat(vocabulary.words, counts)
    np.random.default_rng(0).shuffle(words)
    lines = [" ".join(words[at : at + per_line]) + "\n" for at in range(0, len(words), per_line)]
    path = folder / "text.txt"
    path.write_text("".join(lines))
    return Corpus.read(path, cache=folder)


def inputs(method, folder):
    """Every input of the kind that the method takes, by its special feature."""
    data = VECTORS if METHODS[method].takes is WordVectors else COUNTS
    return {name: input_of(method, of_name, folder) for name, of_name in data.items()}


def words_of(given):
    if isinstance(given, WordVectors):
        return given.labels
    return given.words if isinstance(given, Vocabulary) else given.vocabulary.words


def assert_keeps_the_contract(tree, given, seed):
    """Labels and counts are the input's; every code is whole; probabilities sum to one."""
    assert tree.labels == words_of(given)
    assert tree.counts.tolist() == given.counts.tolist()
    assert all(code_lengths(tree))
    rng = np.random.default_rng(seed)
    for norm in (0, 0.1, 1e3):
        weights = rng.normal(size=(n_rows(tree), 3))
        weights *= norm / np.linalg.norm(weights, axis=1, keepdims=True).clip(1e-300)
        hidden = rng.normal(size=3)
        total = math.fsum(leaf_probabilities(tree, weights, hidden / np.linalg.norm(hidden)))
        assert total == pytest.approx(1, rel=0, abs=1e-12)


class Tasks(progress.Silent):
    """Keeps the title, the total and what is done of every task."""

    def __init__(self):
        self.tasks = []

    def task(self, title, total, unit):
        self.tasks.append([title, total, 0.0])
        return nullcontext(Running(self.tasks[-1]))


class Running(progress.Silent):
    def __init__(self, task):
        self.task = task

    def advance(self, amount=1):
        assert amount >= 0
        self.task[2] += amount


@pytest.fixture(scope="module", params=CASES)
def built(request, tmp_path_factory):
    """A method, its options, (input, tree) by the special feature of the input, and the tasks."""
    (method, options), sink = request.param, Tasks()
    with progress.shown_by(sink):
        trees = {
            name: (of_name, hstree.build(method, of_name, **options))
            for name, of_name in inputs(method, tmp_path_factory.mktemp("inputs")).items()
        }
    return method, options, trees, sink.tasks


def test_trees_of_every_special_input(built):
    _, _, trees, _ = built
    for name, (given_input, tree) in trees.items():
        try:
            assert_keeps_the_contract(tree, given_input, seed=1)
        except AssertionError as error:
            error.add_note(f"with the input {name!r}")
            raise


def test_the_same_twice_gives_the_same_bytes(built, tmp_path):
    method, options, trees, _ = built
    for given_input, tree in list(trees.values())[-3:]:
        tree.save(tmp_path / "one.json")
        hstree.build(method, given_input, **options).save(tmp_path / "two.json")
        assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
        assert hstree.load(tmp_path / "one.json").meta["method"] == method


def test_meta_says_how_the_tree_was_made(built):
    method, options, trees, _ = built
    given_input, tree = trees["V = 3"]
    meta = tree.meta
    assert meta["method"] == method
    every = {option.name: option.default for option in METHODS[method].options} | options
    assert meta["random_state"] == every.pop("random_state", None)
    every.pop("from", None)  # which the tree of a builder has not
    if method != "classes" and not every["short_list"]:
        every.pop("short_list")  # it changes no tree
    if method == "wordnet":
        every["source"] = "3.0"  # which one it was, not where it was found
    assert meta["options"] == every
    assert meta["hstree"] == hstree.__version__
    assert meta["input"] == given_input.source
    assert json.loads(json.dumps(meta)) == meta


def test_another_seed_gives_another_tree(built):
    method, options, trees, _ = built
    if method in RANDOM:
        *_, (given_input, tree) = trees.values()
        assert hstree.build(method, given_input, **options | {"random_state": 9}) != tree


def test_progress_has_a_total_that_is_not_passed(built):
    _, _, _, tasks = built
    for title, total, done in tasks:
        assert total is not None or title in UNKNOWN
        assert total is None or done <= total * (1 + 1e-9) + 1e-9, title
        assert title not in DIVISIVE or done == pytest.approx(total), title


@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
@every_builder
def test_trees_of_any_input(case, data, tmp_path):
    method, options = case
    if METHODS[method].takes is WordVectors:
        n, d = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 4))
        numbers = st.sampled_from([0.0, 1.0, -1.0]) | st.floats(-1e6, 1e6, width=32)
        rows = st.lists(numbers, min_size=d, max_size=d)
        drawn = data.draw(st.lists(rows, min_size=n, max_size=n))
    else:
        some = st.integers(0, 3) | st.integers(0, 10**12)
        drawn = data.draw(st.lists(some, min_size=1, max_size=40).filter(any))
    given_input = input_of(method, drawn, tmp_path)
    assert_keeps_the_contract(hstree.build(method, given_input, **options), given_input, seed=2)


@every_builder
def test_ties_in_any_order_give_the_same_lengths(case, tmp_path):
    """With all words alike, their order gives the same lengths, if to other words."""
    method, options = case
    alike = np.ones((13, 3)) if METHODS[method].takes is WordVectors else [4] * 13
    lengths = []
    for order in (range(13), np.random.default_rng(3).permutation(13)):
        # Alone on its line, a word has the same neighbours as any other.
        words = [f"w{i}" for i in order]
        given_input = input_of(method, alike, tmp_path, words, per_line=1)
        tree = hstree.build(method, given_input, **options)
        assert_keeps_the_contract(tree, given_input, seed=4)
        lengths.append(sorted(map(sorted, code_lengths(tree))))
    assert lengths[0] == lengths[1]


@pytest.mark.parametrize("method", METHODS)
def test_values_that_an_option_cannot_have_are_refused(method, tmp_path):
    """By the function as by `build`; so single builders need no test of their ranges."""
    given_input = inputs(method, tmp_path)["V = 3"]
    for option in METHODS[method].options:
        wrong = ["nothing"] if option.type is not str or option.choices else [3]
        for part in (option.annotation, *typing.get_args(option.annotation)):
            for meta in getattr(part, "__metadata__", ()):
                wrong += [] if meta.ge is None else [meta.ge - 1]
                wrong += [] if meta.le is None else [meta.le + 1]
                wrong += [bound for bound in (meta.gt, meta.lt) if bound is not None]
        for value in wrong if option.type is not Path else []:
            message = re.escape(f"{method}: {option.name} is {value!r}; it must be ")
            with pytest.raises(OptionError, match=message):
                hstree.build(method, given_input, **{option.name: value})
            if option is not SHORT_LIST:
                with pytest.raises(OptionError, match=message):
                    METHODS[method].function(given_input, **{option.name: value})


def test_every_setting_is_tried_and_every_builder_works():
    assert set(SETTINGS) <= set(METHODS)
    assert not broken_builders()
    assert EOS == "<eos>"  # what `corpus_of` gets one of for every line
