"""The contract of every registered output layer: normalisation, gradients, start, saving, search.

The layers of `examples/plugins` take part, as those of any other package.
"""

import json
import time
from typing import Annotated

import numpy as np
import pytest
from msgspec import Meta
from scipy.stats import chisquare

import hstree
from hstree._options import Option
from hstree.data.text_score import unigram_score
from hstree.data.vocabulary import EOS, Vocabulary
from hstree.errors import FileFormatError, InputError, OptionError, PluginError
from hstree.layers.flat import FlatSoftmax
from hstree.layers.registry import LAYERS, LayerKind, LayerSpec
from hstree.models import MODELS, load_model, new_model
from hstree.tree import Tree
from tests import needs
from tests.layers.gradients import assert_slopes, dense
from tests.layers.gradients import drawn as drawn_layer
from tests.plugins import example_plugins
from tests.texts import fitted

WORDS = [EOS, *"abcdefg"]
COUNTS = np.array([5, 0, 9, 1, 30, 2, 2, 4])
DIM = 4
#: Sources of layers: a binary tree, wide nodes with labels of two codes, one label.
SOURCES = {
    Tree: {
        "binary": hstree.build("huffman", Vocabulary(WORDS, COUNTS)),
        "wide": Tree.from_children(
            WORDS, [[1, ~0, 2], [~1, ~2], [~3, ~0, 3, ~4], [~5, ~6, ~7]], counts=COUNTS
        ),
        "classes": Tree.from_children(
            WORDS, [[1, ~0, 2], [~1, ~2], [~3, 3, ~4], [~5, ~6, ~7]], counts=COUNTS
        ),
        "balanced": hstree.build("balanced", Vocabulary(WORDS, COUNTS)),
        "flat": hstree.build("flat", Vocabulary(WORDS, COUNTS)),
        "short list": hstree.build("huffman", Vocabulary(WORDS, COUNTS), short_list=3),
        "one label": Tree([EOS], [0], []),
    },
    Vocabulary: {"words": Vocabulary(WORDS, COUNTS), "one word": Vocabulary([EOS], [3])},
}
#: Options with which a layer takes part too, over the first of its sources.
VARIANTS = {
    "nce": [{"ranking": True}],
    "negative": [{"shared": True, "alpha": 0.0}],
    "importance": [{"samples": 5, "limit": 40, "effective": 8}],
    "adaptive": [{"cutoffs": "2,5", "factor": 2.0}],
    "differentiated": [{"bands": "2:2,5:1,*:1"}],
}


@pytest.fixture(autouse=True, scope="module")
def registered():
    with example_plugins():
        yield


def specs():
    """Yield every registered layer over everything that it is made over."""
    with example_plugins():
        for name, kind in LAYERS.all().items():
            for source, made_over in SOURCES[kind.takes].items():
                yield pytest.param(LayerSpec(made_over, name), id=f"{name}, {source}")
        for name, variants in VARIANTS.items():
            made_over = next(iter(SOURCES[LAYERS.get(name).takes].values()))
            for options in variants:
                yield pytest.param(LayerSpec(made_over, name, **options), id=f"{name}, {options}")


def drawn(spec, dtype=np.float64, **options):
    return drawn_layer(spec.new(DIM, dtype=dtype, random_state=0), **options)


every_layer = pytest.mark.parametrize("spec", list(specs()))


def test_the_layer_of_the_documentation_is_held_to_this():
    assert "smoothed" in LAYERS.all()


@every_layer
def test_probabilities_sum_to_one(spec):
    layer, hidden, _ = drawn(spec)
    log_prob = layer.log_prob(hidden)
    assert (log_prob.shape, log_prob.dtype) == ((7, layer.n_labels), np.float64)
    assert np.exp(log_prob).sum(axis=1) == pytest.approx(np.ones(7), abs=1e-12)


@every_layer
def test_nll_is_minus_log_prob_of_the_target(spec):
    layer, hidden, targets = drawn(spec)
    nll = layer.nll(hidden, targets)
    assert nll.dtype == np.float64
    expected = -layer.log_prob(hidden)[np.arange(7), targets]
    np.testing.assert_allclose(nll, expected, rtol=1e-10, atol=1e-12)


@every_layer
def test_losses_that_are_called_likelihoods_are_the_nll(spec):
    layer, hidden, targets = drawn(spec)
    losses, _ = layer.loss(hidden, targets, np.random.default_rng(0))
    if layer.is_likelihood:
        np.testing.assert_allclose(losses, layer.nll(hidden, targets), rtol=1e-6, atol=1e-9)


@every_layer
def test_an_empty_batch_has_no_loss(spec):
    layer, hidden, targets = drawn(spec, batch=0)
    losses, gradients = layer.loss(hidden, targets, np.random.default_rng(0))
    assert (losses.shape, gradients.hidden.shape) == ((0,), hidden.shape)
    assert all(not g.values.any() for g in gradients.parameters)
    assert layer.nll(hidden, targets).shape == (0,)


@every_layer
def test_unnormalised_nll_is_what_ln_z_is_left_out_of(spec):
    layer, hidden, targets = drawn(spec)
    log_z, scores = layer.log_normaliser(hidden), layer.unnormalised_nll(hidden, targets)
    if log_z is None:
        assert scores is None
    else:
        assert (scores.shape, scores.dtype) == ((7,), np.float64)
        np.testing.assert_allclose(scores, layer.nll(hidden, targets) - log_z, atol=1e-9)


@every_layer
def test_gradients_agree_with_finite_differences(spec):
    """Along random directions, with the noise of sampled losses fixed."""
    layer, hidden, targets = drawn(spec)
    arrays = {"hidden": hidden, **layer.parameters()}

    def loss():
        return layer.loss(hidden, targets, np.random.default_rng(0))

    losses, gradients = loss()
    assert losses.shape == (7,)
    assert gradients.hidden.shape == hidden.shape
    touched = {name: np.zeros(len(array), int) for name, array in arrays.items()}
    for g in gradients.parameters:
        touched[g.name][g.rows] += 1
    assert all(times.max(initial=0) <= 1 for times in touched.values())
    slopes = dense(layer, gradients)
    assert_slopes(arrays, slopes, lambda: loss()[0].sum(), rel=1e-5, abs=1e-9)


@every_layer
def test_gradients_have_the_precision_of_the_parameters(spec):
    layer, hidden, targets = drawn(spec, dtype=np.float32)
    _, gradients = layer.loss(hidden, targets, np.random.default_rng(0))
    arrays = [gradients.hidden, *(g.values for g in gradients.parameters)]
    assert {array.dtype for array in arrays} == {np.dtype(np.float32)}


@every_layer
def test_an_untrained_layer_is_the_unigram_distribution(spec):
    for counts in (None, np.arange(len(spec.labels))):
        layer = spec.new(DIM, counts=counts, dtype=np.float64)
        used = counts if counts is not None else spec.vocabulary.counts
        mass = np.maximum(used, 0.5)
        probabilities = np.exp(layer.log_prob(np.ones((1, DIM))))[0]
        np.testing.assert_allclose(probabilities, mass / mass.sum(), rtol=1e-9)


@every_layer
def test_top_k_is_the_head_of_log_prob(spec):
    layer, hidden, _ = drawn(spec)
    log_prob = layer.log_prob(hidden)
    for k in (1, 3, 100):
        labels, values = layer.top_k(hidden, k)
        expected = np.argsort(-log_prob, axis=1)[:, :k]
        np.testing.assert_array_equal(labels, expected)
        np.testing.assert_allclose(values, np.take_along_axis(log_prob, expected, axis=1))
    with pytest.raises(OptionError, match="k is 0"):
        layer.top_k(hidden, 0)


@every_layer
def test_equal_labels_are_in_the_order_of_their_ids(spec):
    layer = spec.new(DIM, counts=np.ones(len(spec.labels), int), dtype=np.float64)
    labels, _ = layer.top_k(np.zeros((1, DIM)), 5)
    assert labels[0].tolist() == list(range(len(spec.labels)))[:5]


@every_layer
def test_samples_follow_log_prob(spec):
    layer, hidden, _ = drawn(spec, batch=1)
    expected = 5_000 * np.exp(layer.log_prob(hidden))[0]
    many = np.repeat(hidden, 5_000, axis=0)
    labels = layer.sample(many, np.random.default_rng(7))
    np.testing.assert_array_equal(labels, layer.sample(many, np.random.default_rng(7)))
    drawn_counts = np.bincount(labels, minlength=layer.n_labels)
    if layer.n_labels > 1:
        assert chisquare(drawn_counts, expected).pvalue > 1e-3


@every_layer
def test_curvature_is_that_of_every_row(spec):
    layer = spec.new(DIM)
    curvature = layer.curvature(np.ones(layer.n_labels))
    assert {name: (len(array),) for name, array in layer.parameters().items()} == {
        name: rows.shape for name, rows in curvature.items()
    }
    assert all(0 <= c <= 1 for rows in curvature.values() for c in rows)


@pytest.mark.parametrize("counts", [COUNTS + 1, np.arange(1, 9)])
def test_a_dense_softmax_curves_as_the_flat_tree(counts):
    words = SOURCES[Vocabulary]["words"]
    both = (LayerSpec(words, name).new(DIM).curvature(counts) for name in ("flat", "smoothed"))
    for curvature, other in zip(*(one.values() for one in both), strict=True):
        np.testing.assert_allclose(curvature, other, rtol=1e-12)


def made_over(text, kind):
    return hstree.build("huffman", text) if kind.takes is Tree else text.vocabulary


OPTIONS = {"dim": 8, "epochs": 2, "batch_size": 64}
with example_plugins():
    #: Every layer under the language model; every other model over a tree and without one. Trees
    #: are trained by the compiled step and by NumPy.
    TRAINED = {("lbl", layer, None) for layer in LAYERS.all()}
    MODEL_NAMES = MODELS.all().keys() - {"torch"}  # which needs a user's network
    TRAINED |= {(model, layer, None) for model in MODEL_NAMES for layer in ("tree", "flat")}
    TRAINED |= {("lbl", "tree", False), ("lbl", "ngrams", False)}


@pytest.mark.parametrize(("model", "layer", "fast"), sorted(TRAINED, key=str))
def test_the_same_seed_gives_the_same_bytes_and_they_the_same_model(
    model, layer, fast, splits, tmp_path
):
    if model in ("gru", "transformer"):
        pytest.importorskip("torch", reason=needs.TORCH)
    spec = LayerSpec(made_over(splits.train, LAYERS.get(layer)), layer)
    untrained = new_model(spec, model=model, **OPTIONS | {"epochs": 0}).fit(splits.train)
    unigram = unigram_score(splits.test, splits.train.counts).perplexity
    assert untrained.perplexity(splits.test) == pytest.approx(unigram, rel=1e-4)
    # By the default decay, a CNN learns hardly anything from 2,520 tokens.
    options = OPTIONS | ({"weight_decay": 1.5e-5} if model == "lbl" else {})
    for name in ("one", "two"):
        trained = new_model(spec, model=model, **options)
        backend = {} if fast is None else {"fast": fast}
        trained.fit(splits.train, splits.valid, **backend).save(tmp_path / name)
    assert trained.perplexity(splits.test) < 0.99 * untrained.perplexity(splits.test)
    for file in ("config.json", spec.file, "weights.safetensors"):
        one, two = ((tmp_path / name / file).read_bytes() for name in ("one", "two"))
        assert one == two
    again = load_model(tmp_path / "one")
    assert (again.spec.config(), again.config()) == (trained.spec.config(), trained.config())
    np.testing.assert_array_equal(again.nll(splits.test), trained.nll(splits.test))
    assert again.predict([["w1", "w2"]], 3) == trained.predict([["w1", "w2"]], 3)


def test_options_are_read_from_the_class_and_checked():
    kind = LAYERS.get("smoothed")
    help = "Fraction of the probability that training spreads evenly over all labels."
    assert kind.options == (Option.of("smoothing", Annotated[float, Meta(ge=0, le=1)], 0.1, help),)
    assert kind.takes is Vocabulary
    assert kind.summary.startswith("Softmax over all labels, trained with label smoothing")
    words = SOURCES[Vocabulary]["words"]
    assert LayerSpec(words, "smoothed").options == {"smoothing": 0.1}
    with pytest.raises(OptionError, match="smoothing is 'x'"):
        LayerSpec(words, "smoothed", smoothing="x")
    with pytest.raises(OptionError, match="no option 'smooth'; did you mean 'smoothing'"):
        LayerSpec(words, "smoothed", smooth=1)
    with pytest.raises(OptionError, match="no output layer 'smooth'; did you mean 'smoothed'"):
        LayerSpec(words, "smooth")
    with pytest.raises(InputError, match="'tree' takes a Tree, not a Vocabulary"):
        LayerSpec(words)


@pytest.mark.parametrize(
    ("layer", "options", "said"),
    [
        ("adaptive", {"cutoffs": "many"}, "cutoffs is 'many'; it must be numbers of words"),
        ("adaptive", {"cutoffs": "20,6"}, "cutoffs is '20,6', .* give ranks of words that ascend"),
        ("adaptive", {"cutoffs": "0,6"}, "ascend, from 1"),
        ("adaptive", {"cutoffs": "6,40"}, "must be below the number of words, 40"),
        ("differentiated", {"bands": "2000"}, "bands is '2000'; it must be ranks and lengths"),
        ("differentiated", {"bands": "6:0,*:7"}, "it must be ranks and lengths"),
        ("differentiated", {"bands": "20:9,6:4,*:3"}, "give ranks of words that ascend"),
        ("differentiated", {"bands": "40:9,*:7"}, "must be below the number of words, 40"),
        ("differentiated", {"bands": "6:17,*:7"}, "the length of hidden vectors, 16"),
        ("cnn", {"widest": 10**8}, "widest is 100000000; it must be a whole number from 1 to 256"),
        ("cnn", {"filters": 0}, "filters is 0"),
        ("cnn", {"rank": -1}, "rank is -1; it must be a whole number from 1 to 65536"),
        ("self-normalised", {"alpha": 0}, "alpha is 0; it must be a number, above 0"),
        ("infrequent", {"alpha": 1e-9}, "alpha is 1e-09; it must be a number, 0.001 or more"),
        ("infrequent", {"fraction": 0}, "fraction is 0; it must be a number, above 0 and 1 or"),
        ("importance", {"samples": 101, "limit": 100}, "limit is 100, below the 101 samples"),
    ],
)
def test_options_that_do_not_fit_are_named(layer, options, said):
    words = Vocabulary([f"w{i}" for i in range(40)], range(40, 0, -1))
    with pytest.raises(OptionError, match=said):
        LayerSpec(words, layer, **options).new(16)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"layer": 3}, "not a name and options"),
        ({"layer": {"name": "smoothed", "options": {"smoothing": "x"}}}, "smoothing is 'x'"),
        ({"layer": {"name": "nothing", "options": {}}}, "no output layer 'nothing'"),
        ({"vocabulary_sha256": ""}, "not the ones that config"),
    ],
)
def test_a_damaged_layer_is_named(change, said, splits, tmp_path):
    new_model(LayerSpec(splits.train.vocabulary, "smoothed"), **OPTIONS).save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(FileFormatError, match=said):
        load_model(tmp_path)


@pytest.mark.parametrize("layer", [3, type("Other", (), {})])
def test_other_objects_are_refused(layer):
    with pytest.raises(PluginError, match=r"'odd' of the package theirs .* subclass of OutputLaye"):
        LayerKind.of("odd", layer, "theirs")


def test_a_tree_is_short_for_its_layer():
    tree = SOURCES[Tree]["binary"]
    model = new_model(tree)
    assert model.spec.config() == {"tree_sha256": tree.sha256}
    assert (model.tree, model.spec.provenance) == (tree, tree.meta["input"])


def test_the_flat_softmax_has_the_scores_of_layers_that_approximate_it_in_training_alone():
    words = Vocabulary([f"w{i}" for i in range(50)], range(50, 0, -1))
    rng = np.random.default_rng(0)
    flat, dense = (LayerSpec(words, name).new(8) for name in ("flat", "sampled"))
    for mine, theirs in zip(flat.parameters().values(), dense.parameters().values(), strict=True):
        mine[...] = theirs[...] = rng.standard_normal(mine.shape)
    hidden = rng.standard_normal((64, 8), np.float32)
    targets = rng.integers(0, 50, 64)
    np.testing.assert_allclose(flat.nll(hidden, targets), dense.nll(hidden, targets), rtol=1e-6)
    np.testing.assert_allclose(flat.log_prob(hidden), dense.log_prob(hidden), rtol=1e-6)


def test_the_seconds_before_the_first_batch_are_measured(splits, monkeypatch):
    spec = LayerSpec(made_over(splits.train, LAYERS.get("flat")), "flat")
    monkeypatch.setattr(FlatSoftmax, "prepare", lambda self, train: time.sleep(0.05))
    assert fitted(spec, splits, **OPTIONS).history_.preparation >= 0.05
