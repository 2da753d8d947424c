"""Methods as they are typed for a comparison."""

from pathlib import Path

import pytest
from hstree.experiments.entries import Baseline, Ensemble, Layer, Method
from hstree_cli.method_strings import (
    as_typed,
    default_entries,
    parse_entries,
    parse_layer,
    parse_method,
    parse_rows,
    spelled,
)

from hstree.errors import OptionError
from hstree.layers import LAYERS


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
    assert parse_method(text).options == given


def test_a_layer_over_the_tree_follows_a_plus():
    method = parse_method("gmm --trees 2 + ngrams  --words 2")
    assert (method.method, method.options) == ("gmm", {"trees": 2})
    assert (method.layer, method.layer_options) == ("ngrams", {"words": 2})
    assert method.name == "gmm --trees 2 + ngrams --words 2"
    assert as_typed([method])[0].name == method.name
    assert parse_method("gmm --trees 2 +ngrams --words 2") == method


def test_a_number_of_models_makes_an_ensemble():
    methods, layers = parse_entries(["3 x gmm --trees 2 + ngrams", "gmm"], ["2 x flat"])
    gmm = parse_method("gmm --trees 2 + ngrams")
    assert methods == [Ensemble(gmm, 3), parse_method("gmm")]
    assert layers == [Ensemble(Layer("flat"), 2)]
    assert [entry.name for entry in methods] == ["3 x gmm --trees 2 + ngrams", "gmm"]
    assert parse_rows("gmm,2 x flat, 3 x adaptive --cutoffs 2,5,kn3") == [
        parse_method("gmm"),
        Ensemble(Method("flat"), 2),
        Ensemble(Layer("adaptive", {"cutoffs": "2,5"}, name="adaptive --cutoffs 2,5"), 3),
        Baseline.named("kn3"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 x gmm", "no ensemble, which has 2 models or more; type 'gmm'"),
        ("1 x gmm", "no ensemble, which has 2 models or more; type 'gmm'"),
        ("101 x gmm", "models is 101"),
        ("2 x kn3", "kn3 cannot be the models of an ensemble"),
        ("2 x 2 x gmm", "2 x gmm cannot be the models of an ensemble"),
        ("2 x", "no method or output layer '2'"),
    ],
)
def test_what_an_ensemble_is_refused_for(text, said):
    with pytest.raises(OptionError, match=said):
        parse_rows(text)


def test_one_output_layer_is_wanted_elsewhere():
    for parse in (parse_method, parse_layer):
        with pytest.raises(OptionError, match="'2 x flat' is an ensemble, which is a row of"):
            parse("2 x flat")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hufman", "did you mean 'huffman'"),
        ("", "a name is missing"),
        ("gmm 'half", "cannot be read"),
        ("gmm --arity 3", "no option --arity for gmm; its own options are: --split, --epsilon, "),
        ("gmm --epsilom 0.4", "no option --epsilom for gmm; did you mean '--epsilon'\\? its own"),
        ("flat --arity 3", "no option --arity for flat; its own options are: none"),
        ("gmm 0.4", "no option 0.4 for gmm"),
        ("gmm + flat", "'flat' is not over a tree"),
        ("ngrams", 'ngrams is an output layer over a tree: name both, as in "gmm \\+ ngrams"'),
        ("gmm + huffman", "huffman is a way to build a tree"),
        ("gmm + ngram", "did you mean 'ngrams'"),
        ("gmm + ngrams --word 2", "no option --word for ngrams; did you mean '--words'"),
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


def test_a_method_is_named_as_it_was_typed():
    assert parse_method("gmm  --epsilon=.4").name == "gmm --epsilon=.4"
    assert parse_method("gmm --epsilon=.4").slug == parse_method("gmm --epsilon 0.4").slug


@pytest.mark.parametrize("name", LAYERS.native)
def test_options_are_printed_as_they_are_typed(name):
    kind = LAYERS.get(name)
    options = {option.name: option.default for option in kind.options}
    switched = {n: not value for n, value in options.items() if isinstance(value, bool)}
    for values in (options, options | switched):
        _, typed, _ = parse_layer(spelled(kind, values))
        assert options | typed == values


def test_the_default_rows_of_a_survey_are_named_as_they_are_typed():
    names = [entry.name for entry in default_entries({})]
    assert names[:4] == ["huffman", "gmm", "gmm --epsilon 0.4 --trees 4", "classes"]
    assert names[-1] == "flat"
