"""Candidates of a comparison: one grammar, read and written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hstree
from hstree.builders.registry import BUILDERS
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import FileFormatError, InputError, OptionError
from hstree.experiments.candidate import VECTORS_FILE, Candidate, parse_candidates
from hstree.experiments.store import folder_name
from hstree.layers.registry import LAYERS
from hstree.tree import Tree


def values_of(option):
    """Draw legal values of an option, the default among them."""
    drawn = st.just(option.default)
    if option.choices:
        drawn |= st.sampled_from(option.choices)
    elif option.type is bool:
        drawn |= st.booleans()
    elif option.type is int:
        drawn |= st.integers(-5, 200).filter(lambda value: is_legal(option, value))
    elif option.type is float:
        floats = st.floats(0, 1, exclude_min=True)
        drawn |= floats.filter(lambda value: is_legal(option, value))
    else:
        drawn |= st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)
    return drawn | st.just(option.word) if option.word else drawn


def is_legal(option, value):
    """Return whether an option may have a value."""
    try:
        option.checked(value)
    except OptionError:
        return False
    return True


@st.composite
def named(draw, name, options):
    """Draw the text of a name with some options, written in any order."""
    some = draw(st.permutations(options))[: draw(st.integers(0, 3))]
    pairs = [f"{o.name}={o.spelled(draw(values_of(o)))}" for o in some]
    return " ".join(f"'{part}'" if "'" not in part else repr(part) for part in [name, *pairs])


@st.composite
def candidate_texts(draw):
    """Draw the text of any candidate of registered builders and layers, quoted as in a shell."""
    over_trees = [n for n in LAYERS.names() if LAYERS.get(n).takes is Tree]
    layers = [n for n in LAYERS.names() if n not in (*over_trees, "flat")]
    name = draw(st.sampled_from([*BUILDERS.names(), *layers]))
    is_builder = name in BUILDERS.names()
    options = (BUILDERS if is_builder else LAYERS).get(name).options
    if is_builder and BUILDERS.get(name).takes is WordVectors:
        options = (*options, VECTORS_FILE)
    text = draw(named(name, options))
    if is_builder and draw(st.booleans()):
        over = draw(st.sampled_from(over_trees))
        text += " + " + draw(named(over, LAYERS.get(over).options))
    return f"{draw(st.integers(2, 9))} x {text}" if draw(st.booleans()) else text


@given(text=candidate_texts())
def test_a_candidate_is_read_as_it_is_written(text):
    try:
        candidate = Candidate.parse(text)
    except (OptionError, ValueError):
        return  # options that exclude each other, quotes in names
    again = Candidate.parse(str(candidate))
    assert again == candidate
    assert str(again) == str(candidate)
    assert again.options == candidate.options
    assert folder_name(again) == folder_name(candidate)


def test_options_are_written_without_defaults_in_their_order():
    assert (
        str(Candidate.parse("gmm trees=4 epsilon=0.40 iterations=10")) == "gmm epsilon=0.4 trees=4"
    )


def test_a_candidate_has_what_its_kind_has():
    candidate = Candidate.parse("2 x classes n_classes=3 + ngrams words=3")
    assert (candidate.kind, candidate.method, candidate.layer, candidate.models) == (
        "tree",
        "classes",
        "ngrams words=3",
        2,
    )
    assert str(candidate.single) == "classes n_classes=3 + ngrams words=3"
    assert str(candidate.single.tree_candidate) == "classes n_classes=3"
    layer, ngram = Candidate.parse("sampled samples=7"), Candidate.parse("kn3")
    assert (layer.kind, layer.options["samples"]) == ("layer", 7)
    assert (ngram.kind, ngram.is_trained) == ("ngram", False)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("gmm", "random"),
        ("classes cluster_by=vectors", "random"),
        ("2 x gmm", "random"),
        ("gmm vectors_file=v.npy", None),
        ("huffman", None),
        ("sampled", None),
    ],
)
def test_candidates_that_need_vectors_learn_them_on_a_random_tree(text, source):
    candidate = Candidate.parse(text)
    assert (candidate.source and str(candidate.source)) == source


def test_only_plain_flat_is_the_reference():
    candidates = ["flat", "flat + ngrams", "2 x flat", "huffman"]
    assert [text for text in candidates if Candidate.parse(text).is_flat] == ["flat"]


@pytest.mark.parametrize(
    ("text", "saying"),
    [
        ("gmm --trees=2 + ngrams --min-count 3", "key=value, not --trees=2"),
        ("nosuch", "there is no candidate 'nosuch'"),
        ("epsilon=0.4", "a candidate and its options in quotes"),
        ("gmm eps=1", "did you mean 'epsilon'"),
        ("gmm epsilon=9", "epsilon is 9.0; it must be a number from 0 to 0.5"),
        ("gmm epsilon", "write key=value"),
        ("gmm epsilon=0.1 epsilon=0.2", "given twice"),
        ("ngrams", 'name both, as in "gmm + ngrams"'),
        ("huffman + sampled", "not over a tree"),
        ("sampled + ngrams", "no tree for a layer"),
        ("kn9", "models are kn2 to kn7"),
        ("kn5 order=2", "has no options"),
        ("1 x gmm", "K is 1"),
        ("2 x 2 x gmm", "use a single output layer"),
        ("2 x kn5", "use a single output layer"),
        ("", "is not a candidate"),
        ("gmm +", "is not a candidate"),
        ("gmm 'a", "no closing quotation"),
    ],
)
def test_what_is_no_candidate_is_refused_with_what_to_write(text, saying):
    with pytest.raises(OptionError) as refused:
        Candidate.parse(text)
    assert saying in str(refused.value)


def test_a_tree_file_is_a_candidate_with_any_layer(tmp_path):
    path = tmp_path / "mine.json"
    hstree.build("huffman", {"a": 3, "b": 2, "<eos>": 1}).save(path)
    candidate = Candidate.parse(f"{path} + ngrams")
    assert (candidate.method, candidate.layer, candidate.kind, candidate.is_timed) == (
        "huffman",
        "ngrams",
        "tree",
        False,
    )
    with pytest.raises(FileFormatError):
        Candidate.parse(str(tmp_path / "none.json"))


def test_a_tree_over_other_words_is_refused():
    tree = hstree.build("huffman", {"a": 3, "<eos>": 1})
    with pytest.raises(InputError, match="only over the same words"):
        Candidate.parse(tree).check(Vocabulary(["<eos>", "b"], [1, 1]), {"dim": 2})


def test_candidates_for_language_models_are_refused_beside_other_models():
    words, config = Vocabulary(["<eos>", "b"], [1, 1]), {"dim": 2, "model": "cbow"}
    Candidate.parse("infrequent").check(words, config)
    for text in ("kn5", "2 x huffman", "huffman + ngrams"):
        with pytest.raises(OptionError):
            Candidate.parse(text).check(words, config)


def test_named_sets_stand_for_their_candidates():
    names = [
        str(candidate)
        for candidate in parse_candidates(["kn5", "trees", "approximations", "flat"], {})
    ]
    assert names[:3] == ["kn5", "random", "huffman"]
    assert len(set(names)) == len(names)
    layers = {name for name in LAYERS.names() if LAYERS.get(name).takes is Vocabulary}
    assert layers <= {candidate.method for candidate in parse_candidates(["approximations"], {})}


@pytest.mark.parametrize(
    "candidates", [[], ["gmm", "gmm epsilon=0.0"], ["huffman", "trees", "huffman"]]
)
def test_no_candidate_and_a_candidate_twice_are_refused(candidates):
    with pytest.raises(OptionError, match=r"no candidates to compare|duplicate candidate"):
        parse_candidates(candidates, {})


def test_what_is_neither_text_nor_tree_is_refused():
    with pytest.raises(OptionError, match="give a candidate as a text"):
        Candidate.parse(("gmm", {"epsilon": 0.4}))
