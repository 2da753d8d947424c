"""What Python code may write for the entries of a comparison."""

import json
from pathlib import Path

import pytest

from hstree.errors import OptionError
from hstree.experiments.entries import (
    Baseline,
    Ensemble,
    Layer,
    Method,
    NamedOutput,
    as_entries,
    entry_of,
    record_of,
)
from hstree.tree import Tree


def test_a_random_state_is_the_comparisons_unless_the_method_has_its_own():
    assert Method("gmm", {"trees": 2}).seeded(5) == {"random_state": 5, "trees": 2}
    assert Method("gmm", {"random_state": 3}).seeded(5) == {"random_state": 3}
    assert Method("huffman").seeded(5) == {}


@pytest.mark.parametrize(
    ("method", "options", "needs"),
    [
        ("huffman", {}, False),
        ("wordnet", {}, False),
        ("gmm", {}, True),
        ("semantic", {}, True),
        ("classes", {}, False),
        ("classes", {"cluster_by": "vectors"}, True),
        ("classes", {"cluster_by": "vectors", "vectors_file": "mine.npy"}, False),
    ],
)
def test_which_methods_need_vectors(method, options, needs):
    assert Method(method, options).needs_vectors is needs


def test_a_folder_for_each_method():
    mixture = Method("gmm", {"trees": 4, "epsilon": 0.4})
    assert Method("random").slug == "random"
    assert mixture.slug == "gmm-epsilon-0.4-trees-4"
    # The same options in another order, one of them at its default.
    assert Method("gmm", {"epsilon": 0.4, "iterations": 10, "trees": 4}).slug == mixture.slug
    a, b = (Method("classes", {"classes_file": Path(name, "c.tsv")}).slug for name in "ab")
    assert a != b
    assert "/" not in a
    a, b = (Layer("nce", {"proposal": name}).slug for name in ("p/x.json", "p-x.json"))
    assert a != b
    assert Layer("adaptive", {"cutoffs": "2000"}).slug == "layer-adaptive-cutoffs-2000"
    assert Method("gmm", vectors_from=mixture).slug == "gmm-from-gmm-epsilon-0.4-trees-4"


def test_a_method_may_name_the_layer_over_its_tree(tmp_path):
    method = Method("gmm", {"trees": 2}, layer="ngrams", layer_options={"words": 2})
    assert method.name == "gmm trees=2 + ngrams words=2"
    slugs = {
        Method("gmm", {"trees": 2}).slug,
        Method("gmm", {"trees": 2}, layer="ngrams").slug,
        method.slug,
    }
    assert len(slugs) == 3
    defaults = Method("gmm", {"trees": 2}, layer="ngrams", layer_options={"min_count": 2})
    assert defaults.slug in slugs
    record = json.loads(json.dumps(record_of(method)))
    assert entry_of(record, tmp_path) == method
    assert record_of(Method("gmm")).keys() == {"method", "options", "name", "vectors_from"}
    tree = Tree.from_children(["<eos>", "b"], [[~0, ~1]])
    assert method.over(tree).set_options == {"words": 2, "min_count": 2}
    with pytest.raises(OptionError, match="'flat' is not over a tree"):
        Method("gmm", layer="flat")
    with pytest.raises(OptionError, match="ngrams has no option 'depth'"):
        Method("gmm", layer="ngrams", layer_options={"depth": 2})


def test_an_ensemble_is_of_one_entry(tmp_path):
    for of in (Method("gmm", {"trees": 2}, layer="ngrams"), Layer("sampled", {"samples": 9})):
        ensemble = Ensemble(of, 3)
        assert ensemble.name == f"3 x {of.name}"
        assert len({ensemble.slug, of.slug, Ensemble(of, 2).slug}) == 3
        record = json.loads(json.dumps(record_of(ensemble)))
        assert entry_of(record, tmp_path) == ensemble
    assert as_entries([Ensemble(Layer("flat"), 2)]) == [Ensemble(Method("flat"), 2)]
    for models in (1, 101):
        with pytest.raises(OptionError, match=f"models is {models}; it must be"):
            Ensemble(Method("gmm"), models)
    with pytest.raises(OptionError, match="kn3 cannot be the models of an ensemble"):
        Ensemble(Baseline.named("kn3"), 2)


@pytest.mark.parametrize("name", ["kn1", "kn8", "kn", "kn33", "KN5", "trigram"])
def test_unknown_baselines(name):
    with pytest.raises(OptionError, match="kn2 to kn7"):
        Baseline.named(name)


def test_entries_keep_their_order_and_have_names_and_folders():
    tree = Tree.from_children(["a", "b"], [[~0, ~1]])
    given = ["flat", ("gmm", {"epsilon": 0.4}), tree, NamedOutput("x.json", tree), "kn3"]
    entries = as_entries([*given, Method("random", name="RANDOM")])
    names = ["flat", "gmm epsilon=0.4", f"tree {tree.sha256[:8]}", "x.json", "kn3", "RANDOM"]
    assert [entry.name for entry in entries] == names
    assert len({entry.slug for entry in entries}) == len(entries)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "nothing to compare"),
        (["flat", "flat"], "flat occurs twice"),
        ([("gmm", {"trees": 1}), "gmm"], "gmm trees=1 and gmm agree"),
        ([Method("gmm", name="x"), Method("flat", name="x")], "two rows are named x"),
        ([Ensemble(Method("gmm"), 2), Ensemble(Method("gmm"), 2)], "2 x gmm occurs twice"),
        ([Ensemble(Method("flat"), 3, name="flat")], "the models of an ensemble, are named flat"),
        (
            [Ensemble(Method("gmm", name="x"), 2), Method("flat", name="x")],
            "two rows, or a row and the models of an ensemble, are named x",
        ),
        (["hufman"], "did you mean 'huffman'"),
        ([("gmm", {"arity": 3})], "gmm has no option 'arity'"),
        ([("gmm", {"epsilon": 2})], "epsilon"),
        (["kn9"], "no baseline 'kn9'"),
    ],
)
def test_what_cannot_be_compared(given, said):
    with pytest.raises(OptionError, match=said):
        as_entries(given)
