"""Arrays that callers pass in: any form of the same numbers has the same result and stays as it is.

Estimators, builders and metrics are found by themselves; a new one takes part without a change
here, except that a metric needs its arguments in `METRICS`.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator

import hstree
import hstree.interop.sklearn
import hstree.metrics
from hstree.builders.linkage import tree_from_linkage
from hstree.data.corpus import Corpus
from hstree.data.multilabel import read_multilabel, write_multilabel
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.layers import LAYERS, LayerSpec
from hstree.tree import Tree
from tests.array_forms import dense_forms, snapshot, sparse_forms
from tests.plugins import example_plugins

RNG = np.random.default_rng(0)
N, N_FEATURES, N_CLASSES = 60, 12, 5
#: Multiples of 1/4, which float16 holds
CLASSES = RNG.integers(0, N_CLASSES, N)
X = np.round(4 * RNG.normal(RNG.normal(size=(N_CLASSES, N_FEATURES))[CLASSES] * 2, 1)) / 4
X *= RNG.random(X.shape) < 0.7
LABELS = (RNG.random((N, N_CLASSES)) < 0.2).astype(np.int64)
LABELS[np.arange(N), CLASSES] = 1
WEIGHT = RNG.integers(1, 5, N) / 2
WORDS = ["cat", "dog", "oak", "tree", "house", "car", "bird", "apple"]
VECTORS = np.round(8 * RNG.normal(size=(8, 4))) / 8
COUNTS = np.array([30, 22, 17, 9, 9, 4, 2, 1])
IDS = RNG.integers(0, 8, 200)
SCORES = np.round(RNG.random((N, N_CLASSES)) * 64 + 1) / 64

with example_plugins():
    BUILDERS = hstree.builders()


@dataclass
class Entry:
    """A public function with the arrays that vary."""

    name: str
    call: Callable[..., Any]  #: takes the arrays by their names
    arrays: dict[str, Any]
    sparse: tuple[str, ...] = ()  #: arrays that may be sparse
    signed: tuple[str, ...] = ()  #: arrays with numbers below zero
    fixed: tuple[str, ...] = ()  #: arrays whose type the function fixes
    needs_folder: bool = False  #: whether `call` takes an empty folder `tmp`
    precision: float = 1e-12  #: of results in single precision against those in double precision


def estimators():
    names = hstree.interop.sklearn.__all__
    classes = (getattr(hstree.interop.sklearn, name) for name in names)
    return [one for one in classes if issubclass(one, BaseEstimator)]


def models(estimator):
    """Return the options of the models of an estimator that take part, by name."""
    binary = {"builder": "kmeans", "builder_options": {"arity": 2}}
    if "solver" not in estimator().get_params():
        return {"default": {}, "binary": binary}
    solvers = {solver: {"solver": solver} for solver in ("lbfgs", "liblinear", "adagrad")}
    return solvers | {"binary": binary}


@cache
def fitted(estimator, name):
    return estimator(**models(estimator)[name]).fit(X, CLASSES)


def estimator_entries():
    for estimator in estimators():
        targets = {"classes": CLASSES}
        if estimator().__sklearn_tags__().classifier_tags.multi_label:
            targets["labels"] = LABELS
        for name in models(estimator):
            for method, takes in methods(estimator).items():
                title = f"{estimator.__name__}, {name}, {method}"
                if method in ("fit", "partial_fit"):
                    for kind, y in targets.items():
                        yield training_entry(f"{title}, {kind}", estimator, name, method, takes, y)
                else:
                    yield prediction_entry(title, estimator, name, method, takes)


def methods(estimator):
    """Return the parameters of the public methods of an estimator that take X, by name."""
    methods = inspect.getmembers(estimator, inspect.isfunction)
    parameters = {name: inspect.signature(method).parameters for name, method in methods}
    return {n: list(p) for n, p in parameters.items() if not n.startswith("_") and "X" in p}


def training_entry(title, estimator, name, method, takes, y):
    def call(**arrays):
        classes = {"classes": np.arange(N_CLASSES)} if "classes" in takes else {}
        model = estimator(**models(estimator)[name])
        return getattr(model, method)(**arrays, **classes).predict_proba(X[:20])

    arrays = {"X": X, "y": y}
    if "sample_weight" in takes:
        arrays["sample_weight"] = WEIGHT
    sparse = ("X", "y") if y.ndim == 2 else ("X",)
    return Entry(title, call, arrays, sparse=sparse, precision=0.01)


def prediction_entry(title, estimator, name, method, takes):
    def call(**arrays):
        return getattr(fitted(estimator, name), method)(**arrays)

    arrays = {"X": X[:20]}
    if "y" in takes:
        arrays["y"] = CLASSES[:20]
    return Entry(title, call, arrays, sparse=("X",), precision=0.01)


def builder_entries():
    for name, method in BUILDERS.items():

        def by_vectors(vectors, counts, name=name):
            return hstree.build(name, vectors, labels=WORDS, counts=counts).sha256

        def by_counts(counts, name=name):
            return hstree.build(name, counts, labels=WORDS).sha256

        def by_ids(ids, name=name):
            return hstree.build(name, Corpus.from_ids(ids, labels=[*WORDS, "<eos>"])).sha256

        title = f"build {name}"
        if method.takes is WordVectors:
            yield Entry(title, by_vectors, {"vectors": VECTORS, "counts": COUNTS})
        elif method.takes is Vocabulary:
            yield Entry(title, by_counts, {"counts": COUNTS})
            yield Entry(f"{title} of ids", by_ids, {"ids": IDS})
        else:
            yield Entry(title, by_ids, {"ids": IDS})


TAXONOMY = Tree.from_taxonomy({"even": ["0", "2", "4"], "odd": ["1", "3"]})
#: Arguments of each metric that vary, those that may be sparse, and the others.
METRICS = {
    **dict.fromkeys(
        ("precision_at_k", "ndcg_at_k"), ({"y_true": LABELS, "y_score": SCORES}, {"k": 3})
    ),
    "propensity_scored_precision_at_k": (
        {"y_true": LABELS, "y_score": SCORES, "inverse_propensity": np.arange(1.0, 6)},
        {"k": 3},
    ),
    "inverse_propensity": ({"y_train": LABELS}, {}),
    **dict.fromkeys(
        ("hierarchical_f1", "hierarchical_precision", "hierarchical_recall"),
        ({"y_true": CLASSES, "y_pred": CLASSES[::-1].copy()}, {"tree": TAXONOMY}),
    ),
}


def metric_entries():
    for name in hstree.metrics.__all__:
        arrays, others = METRICS[name]
        sparse = tuple(array for array in arrays if arrays[array].ndim == 2)
        yield Entry(
            name=name,
            call=lambda n=name, o=others, **given: getattr(hstree.metrics, n)(**given, **o),
            arrays=arrays,
            sparse=sparse,
        )


def tree_parts(tree):
    return tree.labels, tree.child_start.tolist(), tree.child.tolist(), tree.counts.tolist()


def corpus_parts(corpus):
    text = corpus.ids().tolist(), corpus.line_start.tolist()
    return *text, corpus.sha256, corpus.counts.tolist(), corpus.vocabulary.words


def saved_vectors(vectors, tmp):
    WordVectors(WORDS, vectors).save(tmp / "v.npy")
    np.save(tmp / "raw.npy", vectors)
    WordVectors(WORDS, vectors).save(tmp / "v.bin")
    read = [WordVectors.read(tmp / name).sha256 for name in ("v.npy", "v.bin")]
    return *read, WordVectors.read(tmp / "raw.npy").sha256


def written_labels(X, Y, tmp):
    write_multilabel(tmp / "labels.txt", X, Y)
    data = read_multilabel(tmp / "labels.txt")
    return data.X.toarray().tolist(), data.Y.toarray().tolist()


OLD = hstree.build("huffman", COUNTS[:5], labels=WORDS[:5])
CONTEXTS = IDS[:30].reshape(6, 5)
CORPUS = Corpus.from_ids(IDS, labels=[*WORDS, "<eos>"])
TREE = hstree.build("huffman", CORPUS)
MODEL = hstree.LanguageModel(TREE, dim=4, epochs=1).fit(CORPUS)


def carried(old):
    smaller = hstree.build("huffman", COUNTS[:5], labels=WORDS[:5])
    rows = hstree.carried_rows(smaller, hstree.grow(smaller, {"new": 3}))
    new = np.zeros((9, old.shape[1]))
    rows.carry(old, new)
    return new.tolist()


OTHERS = [
    Entry(
        "WordVectors",
        lambda vectors, counts: (WordVectors(WORDS, vectors, counts=counts).sha256,),
        {"vectors": VECTORS, "counts": COUNTS},
    ),
    Entry("WordVectors.save and read", saved_vectors, {"vectors": VECTORS}, needs_folder=True),
    Entry(
        "Vocabulary.from_counts",
        lambda counts: Vocabulary.from_counts(WORDS, counts, min_count=3).counts.tolist(),
        {"counts": COUNTS},
    ),
    Entry(
        "Corpus.from_ids, one array",
        lambda ids: corpus_parts(Corpus.from_ids(ids, eos=0)),
        {"ids": IDS},
    ),
    Entry(
        "Corpus.from_ids, rows",
        lambda ids: corpus_parts(Corpus.from_ids(ids)),
        {"ids": IDS.reshape(20, 10)},
    ),
    Entry(
        "Corpus.ids",
        lambda at: Corpus.from_ids(IDS, eos=0).ids(at).tolist(),
        {"at": np.array([3, 0, 100, 7])},
    ),
    Entry(
        "grow",
        lambda vectors, counts: tree_parts(
            hstree.grow(OLD, WordVectors(WORDS, vectors, counts=counts))
        ),
        {"vectors": VECTORS, "counts": COUNTS},
    ),
    Entry(
        "prune",
        lambda labels: tree_parts(hstree.prune(hstree.build("huffman", COUNTS), labels)),
        {"labels": np.array([1, 2, 5])},
    ),
    Entry("carry", carried, {"old": VECTORS[:4]}),
    Entry(
        "Tree",
        lambda start, child, counts: tree_parts(Tree("abc", start, child, counts=counts)),
        {
            "start": np.array([0, 2, 4]),
            "child": np.array([~0, 1, ~1, ~2]),
            "counts": COUNTS[:3],
        },
        signed=("child",),
    ),
    Entry(
        "tree_from_linkage",
        lambda merges, counts: tree_parts(tree_from_linkage(merges, "abc", counts)),
        {"merges": np.array([[0.0, 2, 1, 2], [3, 1, 2, 3]]), "counts": COUNTS[:3]},
    ),
    Entry(
        "write_multilabel",
        written_labels,
        {"X": X, "Y": LABELS},
        sparse=("X", "Y"),
        needs_folder=True,
    ),
    Entry(
        "LanguageModel.predict",
        lambda contexts: MODEL.predict(contexts, k=3),
        {"contexts": CONTEXTS},
    ),
    Entry(
        "CBOW.fit",
        lambda ids: (
            hstree.CBOW(TREE, dim=4, epochs=1)
            .fit(Corpus.from_ids(ids, labels=[*WORDS, "<eos>"]))
            .predict(CONTEXTS, k=3)
        ),
        {"ids": IDS},
    ),
]


def layer_entries():
    for name, kind in LAYERS.all().items():
        source = OLD if kind.takes is Tree else Vocabulary(WORDS[:5], COUNTS[:5])
        layer = LayerSpec(source, name).new(4, dtype=np.float64, random_state=0)
        for array in layer.parameters().values():
            array[...] = np.random.default_rng(1).normal(size=array.shape) / 2
        yield Entry(
            name=f"layer {name}",
            call=lambda hidden, targets, m=layer: (
                m.nll(hidden, targets),
                m.log_prob(hidden),
                m.top_k(hidden, 2),
                m.loss(hidden, targets, np.random.default_rng(0))[0],
            ),
            arrays={"hidden": VECTORS, "targets": np.array([0, 1, 4, 2, 2, 3, 0, 1])},
            fixed=("hidden",),
        )


ENTRIES = [
    *estimator_entries(),
    *builder_entries(),
    *metric_entries(),
    *OTHERS,
    *layer_entries(),
]


def forms(entry, varied):
    """Yield (name, form, canonical form of the same kind and type) of one of an entry's arrays."""
    array = entry.arrays[varied]
    for name, form in dense_forms(array):
        is_unsigned = form.dtype.kind == "u" and varied in entry.signed
        if not is_unsigned and (form.dtype == array.dtype or varied not in entry.fixed):
            yield name, form, canonical(array, form.dtype)
    if varied in entry.sparse:
        rows = scipy.sparse.csr_array(array)
        for name, form in [("csr", rows), *sparse_forms(rows)]:
            yield name, form, scipy.sparse.csr_array(canonical(array, form.dtype))


def canonical(array, dtype):
    """Return a C-contiguous array, float32 if the type is that, else the same type."""
    return np.ascontiguousarray(array, np.float32 if dtype == np.float32 else array.dtype)


def flat(result):
    """Return the numbers and texts of a result, one after the other."""
    if scipy.sparse.issparse(result):
        return flat(result.toarray())
    if isinstance(result, tuple | list):
        return [part for one in result for part in flat(one)]
    return np.ravel(result).tolist()


def assert_same(result, expected, tolerance=1e-12):
    result, expected = flat(result), flat(expected)
    assert len(result) == len(expected)
    for value, wanted in zip(result, expected, strict=True):
        if isinstance(wanted, float):
            assert value == pytest.approx(wanted, rel=tolerance, abs=tolerance, nan_ok=True)
        else:
            assert value == wanted


@pytest.fixture(autouse=True, scope="module")
def installed():
    with example_plugins():
        yield


@pytest.mark.parametrize(
    ("entry", "varied"),
    [
        pytest.param(entry, varied, id=f"{entry.name}, {varied}")
        for entry in ENTRIES
        for varied in entry.arrays
    ],
)
def test_every_form_of_an_array_has_one_result_and_stays_as_it_is(entry, varied, tmp_path):
    more = {"tmp": tmp_path} if entry.needs_folder else {}
    more |= {name: array for name, array in entry.arrays.items() if name != varied}
    expected = {}
    wrong = []
    for name, form, canonical_form in forms(entry, varied):
        kind = scipy.sparse.issparse(form), canonical_form.dtype
        if kind not in expected:
            expected[kind] = entry.call(**{varied: canonical_form}, **more)
        before = snapshot(form)
        try:
            assert_same(entry.call(**{varied: form}, **more), expected[kind])
        except Exception as error:  # of any kind, so that all forms have their turn
            wrong.append(f"{name}: {type(error).__name__}: {str(error)[:300]}")
        if snapshot(form) != before:
            wrong.append(f"{name}: changed")
    assert not wrong, "\n".join(wrong)
    first, *others = expected.values()
    for other in others:  # dense and sparse, double and single precision
        assert_same(other, first, entry.precision)
