"""Methods, trees and baselines as they are written."""

from pathlib import Path

import pytest

from hstree.errors import OptionError
from hstree.experiments.entries import entries, parse_baseline, parse_method
from hstree.tree import Tree


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("huffman", {}),
        ("huffman --arity 4", {"arity": 4}),
        ("gmm --epsilon=0.4 --trees 4", {"epsilon": 0.4, "trees": 4}),
        ("gmm --weighted --max-codes 8", {"weighted": True, "max_codes": 8}),
        ("gmm --no-weighted", {"weighted": False}),
        ("gmm --split balanced --seed 3", {"split": "balanced", "random_state": 3}),
        ("classes --levels 3 --n-classes 9", {"levels": 3, "n_classes": 9}),
        ("classes --classes-file 'my classes.tsv'", {"classes_file": Path("my classes.tsv")}),
        ("kmeans  --balanced", {"balanced": True}),
    ],
)
def test_a_method_is_read_by_its_signature(text, given):
    assert parse_method(text).given == given


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hufman", "did you mean 'huffman'"),
        ("", "without a name"),
        ("gmm 'half", "cannot be read"),
        ("gmm --arity 3", "no option --arity for gmm, whose own options are: --epsilon, "),
        ("flat --arity 3", "no option --arity for flat, whose own options are: none"),
        ("gmm 0.4", "no option 0.4 for gmm"),
        ("gmm --epsilon", "gmm: --epsilon wants a value, as in --epsilon 0.0"),
        ("gmm --epsilon much", "gmm: epsilon is 'much'; it must be a number from 0 to 0.5"),
        ("huffman --arity 2.5", "huffman: arity is '2.5'; it must be a whole number, 2 or more"),
        ("gmm --split up", "gmm: split is 'up'; it must be one of 'adaptive', 'balanced'"),
        ("gmm --weighted=yes", "gmm: --weighted is a switch"),
        ("random --seed -1", "random: random_state is -1; it must be"),
    ],
)
def test_what_a_method_is_refused_for(text, said):
    with pytest.raises(OptionError, match=said):
        parse_method(text)


def test_a_random_state_is_the_comparisons_unless_the_method_has_its_own():
    assert parse_method("gmm --trees 2").options(5) == {"random_state": 5, "trees": 2}
    assert parse_method("gmm --seed 3").options(5) == {"random_state": 3}
    assert parse_method("huffman").options(5) == {}


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("huffman", False),
        ("wordnet", False),
        ("gmm", True),
        ("semantic", True),
        ("classes", False),
        ("classes --cluster-by vectors", True),
        ("classes --cluster-by vectors --vectors-file mine.npy", False),
    ],
)
def test_which_methods_need_vectors(text, needs):
    assert parse_method(text).needs_vectors is needs


def test_a_folder_for_each_method():
    slug = {text: parse_method(text).slug for text in ("random", "gmm --trees 4 --epsilon 0.4")}
    assert list(slug.values()) == ["random", "gmm-epsilon-0.4-trees-4"]
    assert (
        parse_method("gmm --epsilon=.4 --trees 4 --iterations 10").slug
        == slug["gmm --trees 4 --epsilon 0.4"]
    )
    a, b = (parse_method(f"classes --classes-file {name}/c.tsv").slug for name in "ab")
    assert a != b
    assert "/" not in a


@pytest.mark.parametrize("name", ["kn1", "kn8", "kn", "kn33", "KN5", "trigram"])
def test_unknown_baselines(name):
    with pytest.raises(OptionError, match="kn2 to kn7"):
        parse_baseline(name)


def test_entries_stand_in_the_order_methods_trees_baselines():
    tree = Tree.from_children(["a", "b"], [[~0, ~1]])
    found = entries(["flat", "random"], {"x.json": tree}, ["kn3"])
    assert [entry.name for entry in found] == ["flat", "random", "x.json", "kn3"]
    assert len({entry.slug for entry in found}) == 4


@pytest.mark.parametrize(
    ("methods", "said"),
    [
        ([], "nothing to compare"),
        (["flat", "flat"], "flat stands twice"),
        (["gmm --trees 1", "gmm"], "gmm --trees 1 and gmm agree"),
    ],
)
def test_what_cannot_be_compared(methods, said):
    with pytest.raises(OptionError, match=said):
        entries(methods, {}, [])
