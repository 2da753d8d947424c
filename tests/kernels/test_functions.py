"""Every compiled function against the NumPy code that computes without it.

A case computes something through the caller of the function. The functions are found in the list of
`hstree.kernels.functions`, so that one without a case fails.
"""

import inspect

import numpy as np
import pytest

import hstree
from hstree.builders import build
from hstree.data.vectors import WordVectors
from hstree.kernels import numpy_only
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.layers.registry import LayerSpec
from hstree.models.lbl import LanguageModel
from tests.kernels.test_tree import wide_tree
from tests.layers.gradients import drawn
from tests.needs import NUMBA

pytest.importorskip("numba", reason=NUMBA)
functions = pytest.importorskip("hstree.kernels.functions")

#: Functions that arrange or check arguments of others.
HELPERS = {"is_supported", "lay_out", "lay_out_contexts", "zeros_at_cache_lines"}
#: word2vec word by word, which NumPy does not compute; tests/models/test_online.py has a loop.
WITHOUT_NUMPY = {"train_lines"}


def computed_clusters(rng):
    centres = rng.normal(0, 5, (8, 6))
    vectors = centres[rng.integers(0, 8, 200)] + rng.normal(0, 0.1, (200, 6))
    words = [f"w{i}" for i in range(200)]
    return (build("kmeans", WordVectors(words, vectors.astype(np.float32)), arity=3).child,)


def computed_move_words(rng):
    lines = [" ".join(f"w{i}" for i in rng.integers(0, 40, 12) ** 2 // 40) for _ in range(60)]
    return (build("classes", hstree.Corpus.of(lines)).child,)


def layer_and_batch(rng):
    return drawn(HierarchicalSoftmax(wide_tree(rng), 7), 40)


def computed_tree_nll(rng):
    layer, hidden, targets = layer_and_batch(rng)
    return (layer.nll(hidden, targets),)


def computed_label_log_prob(rng):
    layer, hidden, _ = layer_and_batch(rng)
    return (layer.log_prob(hidden),)


def computed_search(rng):
    layer, hidden, _ = layer_and_batch(rng)
    return layer.top_k(hidden, 5)


def trained(rng, layer):
    lines = [" ".join(f"w{i}" for i in rng.integers(0, 30, 9)) for _ in range(20)]
    text = hstree.Corpus.of(lines)
    spec = LayerSpec(build("huffman", text), layer)
    return LanguageModel(spec, dim=6, epochs=2, batch_size=20).fit(text), text


def computed_log_bilinear_step(rng):
    model, _ = trained(rng, "tree")
    return tuple(model.parameters().values())


def computed_window_sums(rng):
    model, text = trained(rng, "tree")
    return (model.score(text, details=True).token_nll,)


def computed_context_numbers(rng):
    model, text = trained(rng, "ngrams")
    return (model.layer.features.numbers(text.ids(slice(None)).reshape(-1, 4)),)


def names():
    every = (name for name in functions.__all__ if inspect.isfunction(getattr(functions, name)))
    return sorted(set(every) - HELPERS - WITHOUT_NUMPY)


@pytest.mark.parametrize("name", names())
def test_a_compiled_function_has_the_results_of_numpy(name, monkeypatch):
    compute = globals()[f"computed_{name}"]
    with numpy_only():
        expected = compute(np.random.default_rng(0))

    # The compiled function has to run
    calls = []
    function = getattr(functions, name)

    def counted(*arguments, **options):
        calls.append(name)
        return function(*arguments, **options)

    monkeypatch.setattr(functions, name, counted)
    results = compute(np.random.default_rng(0))
    assert calls
    for result, values in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, values, rtol=1e-5, atol=1e-5)
