"""Every entry that takes a whole number accepts the same values, and refuses others in one line."""

import numpy as np
import pytest

import hstree
from hstree import metrics
from hstree._parallel import n_parallel
from hstree.errors import OptionError
from hstree.interop.sklearn import HierarchicalSoftmaxClassifier, ProbabilisticLabelTreeClassifier
from hstree.ngrams.kneser_ney import KneserNey
from hstree.tree.branches import Branches
from hstree.tree.hierarchy import Hierarchy

TREE = hstree.build("huffman", np.arange(1, 9))
CORPUS = hstree.Corpus.of([["a", "b", "c"], ["b", "c"], ["a", "c", "b"]] * 20)
MODEL = hstree.LanguageModel(hstree.build("huffman", CORPUS), dim=4, epochs=0).fit(CORPUS)
NGRAMS = KneserNey(2).fit(CORPUS)
X = np.random.default_rng(0).random((30, 5))
CLASS = np.arange(30) % 3
RIGHT = np.eye(3)[CLASS]
CLASSES = HierarchicalSoftmaxClassifier(epochs=1).fit(X, CLASS)
LABELS = ProbabilisticLabelTreeClassifier().fit(X, CLASS)

#: Calls with a number of labels, samples or levels, the least that each accepts, and its name.
CALLS = {
    "LanguageModel.top_k": (lambda k: MODEL.top_k([["a"]], k), 1, "k"),
    "LanguageModel.predict": (lambda k: MODEL.predict([["a"]], k), 1, "k"),
    "LanguageModel.sample": (MODEL.sample, 0, "length"),
    "LanguageModel.samples": (lambda n: MODEL.samples(n, [["a"]]), 0, "length"),
    "Ensemble.top_k": (lambda k: hstree.Ensemble([MODEL]).top_k([["a"]], k), 1, "k"),
    "Ensemble.sample": (lambda n: hstree.Ensemble([MODEL]).sample(n), 0, "length"),
    "KneserNey": (KneserNey, 2, "order"),
    "KneserNey.sample": (
        lambda k: NGRAMS.sample(np.zeros((2, 1), int), np.random.default_rng(0), k),
        0,
        "k",
    ),
    "HierarchicalSoftmaxClassifier.top_k": (lambda k: CLASSES.top_k(X, k), 1, "k"),
    "HierarchicalSoftmaxClassifier.predict_nodes": (
        lambda depth: CLASSES.predict_nodes(X, depth=depth),
        0,
        "depth",
    ),
    "ProbabilisticLabelTreeClassifier.predict_proba": (
        lambda k: LABELS.predict_proba(X, k),
        1,
        "k",
    ),
    "precision_at_k": (lambda k: metrics.precision_at_k(RIGHT, RIGHT, k), 1, "k"),
    "ndcg_at_k": (lambda k: metrics.ndcg_at_k(RIGHT, RIGHT, k), 1, "k"),
    "propensity_scored_precision_at_k": (
        lambda k: metrics.propensity_scored_precision_at_k(RIGHT, RIGHT, np.ones(3), k),
        1,
        "k",
    ),
    "Tree.neighbours": (lambda k: TREE.neighbours(TREE.labels[0], k), 1, "k"),
    "Branches": (lambda n: Branches(TREE, n), 1, "n_words"),
    "Hierarchy.at_depth": (lambda depth: Hierarchy(TREE).at_depth(depth), 0, "depth"),
    "Hierarchy.names_of": (lambda depth: Hierarchy(TREE).names_of([0], depth), 0, "depth"),
    "Corpus.first_tokens": (CORPUS.first_tokens, 0, "n"),
}
LAYER = hstree.layers.LayerSpec(TREE, "tree").new(4)
CALLS["layer.top_k"] = (lambda k: LAYER.top_k(np.zeros((2, 4), np.float32), k), 1, "k")
#: Calls to which None is something else.
TAKES_NONE = {
    "HierarchicalSoftmaxClassifier.predict_nodes",
    "ProbabilisticLabelTreeClassifier.predict_proba",
    "Hierarchy.names_of",
}


def _torch_calls():
    try:
        import torch
    except ImportError:
        return
    from hstree.interop.torch import NCE, HierarchicalSoftmax, SampledSoftmax

    hidden = torch.zeros(2, 4)
    for layer in (HierarchicalSoftmax(TREE, 4), SampledSoftmax(8, 4), NCE(8, 4)):
        name = type(layer).__name__
        yield f"torch {name}.top_k", (lambda k, layer=layer: layer.top_k(hidden, k), 1, "k")
    yield "torch HierarchicalSoftmax", (lambda d: HierarchicalSoftmax(TREE, d), 1, "in_features")
    yield (
        "torch HierarchicalSoftmax.predict_nodes",
        (lambda d: HierarchicalSoftmax(TREE, 4).predict_nodes(hidden, depth=d), 0, "depth"),
    )
    yield "torch SampledSoftmax", (lambda n: SampledSoftmax(n, 4), 1, "n_classes")
    yield "torch SampledSoftmax, features", (lambda d: SampledSoftmax(8, d), 1, "in_features")
    yield "torch NCE, samples", (lambda n: NCE(8, 4, samples=n), 1, "samples")


CALLS |= dict(_torch_calls())
TAKES_NONE.add("torch HierarchicalSoftmax.predict_nodes")

every_call = pytest.mark.parametrize("name", CALLS)


def _illegal_values(least):
    values = [2.0, True, np.True_, "2", b"2", [2], np.array(2), np.array([[2, 3], [4, 5]])]
    values += [np.float32(2), np.timedelta64(2), 2 + 0j, None, least - 1, -(10**30)]
    try:
        import torch
    except ImportError:
        return values
    return [*values, torch.tensor(2), torch.tensor([2]), torch.tensor(True)]


@every_call
def test_other_values_are_refused_in_one_line(name):
    call, least, argument = CALLS[name]
    for value in _illegal_values(least):
        if value is None and name in TAKES_NONE:
            continue
        with pytest.raises(OptionError) as caught:
            call(value)
        message = str(caught.value)
        assert f"{argument} is " in message
        assert f"a whole number, {least} or more" in message or f"from {least} to" in message
        assert "\n" not in message


@every_call
def test_numpy_integers_are_accepted(name):
    call, least, _ = CALLS[name]
    for value in (least, np.int64(2), np.uint8(2), np.int16(2)):
        call(value)


@pytest.mark.parametrize("name", [name for name in CALLS if CALLS[name][2] == "k"])
def test_a_k_above_the_number_of_labels_is_accepted(name):
    if name != "KneserNey.sample":  # draws with replacement
        CALLS[name][0](10**30)


@pytest.mark.parametrize("value", [0, 2.0, True, "2", [2]])
def test_a_number_of_jobs_is_refused_in_one_line(value):
    with pytest.raises(OptionError, match=r"^n_jobs is .*; it must be from 1 to 65,536"):
        n_parallel(value)
