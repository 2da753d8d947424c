"""Keys of kept work: a comparison with another option or another input takes nothing of the old.

All options that the registries declare are tried, so that a new one is tried, too.
"""

import lzma
import shutil
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import hstree
from hstree.builders.registry import BUILDERS
from hstree.data.corpus import Corpus
from hstree.data.splits import Splits
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import OptionError
from hstree.experiments import job as job_module
from hstree.experiments import store as module
from hstree.experiments.job import build_tree, run_job
from hstree.experiments.setting import read_setting
from hstree.experiments.store import NLL, NotFinishedError, Store
from hstree.layers.registry import LAYERS, TREE_LAYER
from hstree.models import MODELS
from hstree.tree import Tree
from tests.experiments.conftest import QUICK
from tests.texts import corpus_of, markov_lines

ONE = hstree.Epochs(1)
#: Options that the stopping rule and the seed set, and the hash of a network's source.
BY_RULE = {"epochs", "seconds", "random_state", "source"}
#: Other values of options whose type does not tell which are legal, or quick.
VALUES = {
    "cutoffs": "2,4",
    "bands": "2:8,*:4",
    "limit": 3000,
    "batch_size": 128,
    "dim": 16,
    "rates": "0.1,0.3",
    "device": "cpu",
    "network": "tests.texts:markov_lines",
    "arguments": "layers=2",
}


@pytest.fixture(scope="module")
def inputs(splits, tmp_path_factory):
    """A folder with inputs that options name: a tree, vectors and a table of WordNet."""
    folder = tmp_path_factory.mktemp("inputs")
    words = splits.train.counted_vocabulary()
    hstree.build("balanced", words).save(folder / "tree.json")
    draw_vectors(folder, words, seed=0)
    table = files("hstree.builders.wordnet").joinpath("wordnet30.tsv.xz").read_bytes()
    (folder / "wordnet.tsv").write_bytes(lzma.decompress(table))
    return folder


def other_value(option, inputs):
    """Return a legal value of an option that is not its default, nor that of `QUICK`."""
    named = {**VALUES, "source": str(inputs / "wordnet.tsv")}
    if option.name in named:
        return named[option.name]
    if option.choices:
        return next(choice for choice in option.choices if choice != option.default)
    if option.type is bool:
        return not option.default
    if option.type is Path:
        return inputs / ("tree.json" if option.name == "from" else "vectors.npy")
    assert option.type is not str, f"name another value of {option.name} in VALUES"
    usual = (option.default, QUICK.get(option.name))
    for number in (2, 3, 0.25):
        if number not in usual and number == option.type(number):
            with suppress(OptionError):
                return option.checked(option.type(number))
    raise AssertionError(f"name another value of {option.name} in VALUES")


def declared(registry, *, without=()):
    """Return the name of each thing that is registered, with each of its options."""
    return [
        pytest.param(name, option, id=f"{name}-{option.name}")
        for name, registered in registry.all().items()
        for option in registered.options
        if option.name not in without
    ]


def quick_options(model):
    """Return the options with which a model trains in a moment."""
    known = {option.name for option in MODELS.get(model).options}
    network = {"network": "tests.texts:corpus_of"} if model == "torch" else {}
    return {"model": model, **network, **{name: v for name, v in QUICK.items() if name in known}}


@pytest.fixture
def key_of(splits, tmp_path, monkeypatch):
    """Return the key of the first job of a candidate, or that of its tree; nothing is made."""

    def key(candidate, step=run_job, *, text=splits, stop=ONE, seed=0, model="lbl", **options):
        keys = []

        def kept(self, place, key, *_):
            keys.append(key)
            raise NotFinishedError

        def learned(job, setting, *_):
            """Make a file instead of the vectors that a source learns."""
            words = setting.splits.train.vocabulary.words
            WordVectors(words, np.eye(len(words))).save(tmp_path / "learned.npy")
            return tmp_path / "learned.npy", 0.0

        options = {**quick_options(model), "random_state": seed, **options}
        with monkeypatch.context() as patched:
            # Options may name devices and networks that there are not
            patched.setattr(MODELS.get(model).model, "check_setup", lambda *_: None)
            setting, candidates = read_setting(text, [candidate], stop, 1, options)
            (job,) = setting.jobs(*candidates)
            patched.setattr(Store, "load_built" if step is build_tree else "load_result", kept)
            patched.setattr(job_module, "learn_vectors", learned)
            with pytest.raises(NotFinishedError):
                step(job, setting, Store(tmp_path / "c"), setting.budget)
        return keys[-1]

    return key


# Dependencies of a job


@pytest.mark.parametrize(("name", "option"), declared(MODELS, without=BY_RULE))
def test_a_job_depends_on_every_option_of_its_model(key_of, inputs, name, option):
    other = {option.name: other_value(option, inputs)}
    assert key_of("huffman", model=name, **other) != key_of("huffman", model=name)


@pytest.mark.parametrize(("name", "option"), declared(LAYERS))
def test_a_job_depends_on_every_option_of_its_layer(key_of, inputs, name, option):
    candidate = f"huffman + {name}" if LAYERS.get(name).takes is Tree else name
    value = option.spelled(other_value(option, inputs))
    assert key_of(f"{candidate} {option.name}={value}") != key_of(candidate)


@pytest.mark.parametrize("name", [n for n in LAYERS.names() if n not in ("flat", TREE_LAYER)])
def test_a_job_depends_on_its_layer(key_of, name):
    candidate = f"flat + {name}" if LAYERS.get(name).takes is Tree else name
    assert key_of(candidate) != key_of("flat")


@pytest.mark.parametrize("candidate", ["huffman", "sampled", "huffman + ngrams", "kn2"])
def test_a_job_depends_on_its_text_and_its_words(key_of, splits, tmp_path, candidate):
    lines = markov_lines(2_500, 1)[0]
    other = corpus_of(tmp_path, lines).with_vocabulary(splits.train.vocabulary)
    changed = [
        Splits(other, splits.valid, splits.test),
        Splits(splits.train, other, splits.test),
        Splits(splits.train, splits.valid, other),
    ]
    words = splits.train.select_vocabulary(max_size=6, unk=True)
    changed.append(Splits(*(part.with_vocabulary(words) for part in splits)))
    keys = [key_of(candidate), *(key_of(candidate, text=text) for text in changed)]
    assert len(set(keys)) == len(keys)


def test_a_job_depends_on_the_case_of_its_text(key_of, tmp_path):
    file = tmp_path / "cases.txt"
    file.write_text("".join(f"{line}\n" for line in ["a b A B", "A b a", "b B a"] * 20))
    words = Corpus.read(file, lower=True, unk=True).vocabulary
    as_it_is, lowered = (
        Splits.of(Corpus.read(file, vocabulary=words, lower=lower)) for lower in (False, True)
    )
    assert as_it_is.train.sha256 == lowered.train.sha256
    assert key_of("huffman", text=as_it_is) != key_of("huffman", text=lowered)
    assert key_of("kn2", text=as_it_is) != key_of("kn2", text=lowered)


@pytest.mark.parametrize("candidate", ["huffman", "sampled", "huffman + ngrams"])
def test_a_job_depends_on_its_rule_and_its_seed(key_of, candidate):
    rules = [hstree.Epochs(1), hstree.Epochs(2), hstree.Seconds(1.0), hstree.Seconds(2.0)]
    keys = [*(key_of(candidate, stop=rule) for rule in rules), key_of(candidate, seed=1)]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("candidate", ["huffman", "sampled", "huffman + ngrams", "kn2"])
def test_a_job_depends_on_the_version(key_of, monkeypatch, candidate):
    before = key_of(candidate)
    monkeypatch.setattr(module, "__version__", "0.0.0")
    assert key_of(candidate) != before


# Dependencies of a tree


@pytest.mark.parametrize(("name", "option"), declared(BUILDERS))
def test_a_tree_depends_on_every_option_of_its_builder(key_of, inputs, name, option):
    value = option.spelled(other_value(option, inputs))
    assert key_of(f"{name} '{option.name}={value}'", build_tree) != key_of(name, build_tree)


@pytest.mark.parametrize("candidate", ["balanced", "classes cluster_by=vectors", "gmm"])
def test_a_tree_depends_on_its_text_its_seed_and_the_version(
    key_of, splits, monkeypatch, candidate
):
    other = Splits(splits.train.select_lines(0, 90), splits.valid, splits.test)
    # a balanced tree has the words in the order of the vocabulary
    words = splits.train.counted_vocabulary()
    reversed_words = Vocabulary(words.words[::-1], words.counts[::-1])
    reordered = Splits(*(part.with_vocabulary(reversed_words) for part in splits))
    keys = [key_of(candidate, build_tree), key_of(candidate, build_tree, seed=1)]
    keys += [key_of(candidate, build_tree, text=text) for text in (other, reordered)]
    monkeypatch.setattr(module, "__version__", "0.0.0")
    keys.append(key_of(candidate, build_tree))
    assert len(set(keys)) == len(keys)


# The same comparison again is as one in a fresh folder


def compare(text, candidate, folder, **options):
    """Return the nll of every test token of a candidate."""
    options = {"stop": ONE, "speed_rounds": 0, "force": True, "only": True, **options}
    comparison = hstree.compare(text, [candidate], folder, **options)
    return np.load(folder / comparison.candidates[0].jobs[0].folder / NLL["test"])


@pytest.mark.parametrize("other", [{"dim": 4}, {"learning_rate": 0.2}])
def test_a_model_with_another_option_is_as_in_a_fresh_folder(splits, tmp_path, other):
    compare(splits, "huffman", tmp_path / "again", **QUICK)
    again = compare(splits, "huffman", tmp_path / "again", **QUICK | other)
    fresh = compare(splits, "huffman", tmp_path / "fresh", **QUICK | other)
    np.testing.assert_array_equal(again, fresh)


def draw_vectors(folder, words, seed=1):
    drawn = np.random.default_rng(seed).normal(size=(len(words), 4))
    WordVectors(words.words, drawn, counts=words.counts).save(folder / "vectors.npy")


def build_another(folder, words):
    hstree.build("random", words, random_state=1).save(folder / "tree.json")


def reverse_labels(folder, words):
    """Give the vectors to other words by the file of labels alone."""
    file = folder / "vectors.labels.tsv"
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    file.write_text("".join([lines[0], *lines[:0:-1]]), encoding="utf-8")


#: Candidates that read a file, and functions that write it again.
REWRITTEN = [
    ("gmm vectors_file={}/vectors.npy", draw_vectors),
    ("gmm vectors_file={}/vectors.npy", reverse_labels),
    ("classes cluster_by=vectors vectors_file={}/vectors.npy", draw_vectors),
    ("{}/tree.json", build_another),
    ("{}/tree.json + ngrams", build_another),
    ("huffman from={}/tree.json", build_another),
]


@pytest.mark.parametrize(("candidate", "rewrite"), REWRITTEN)
def test_a_rewritten_input_is_read_again(splits, inputs, tmp_path, candidate, rewrite):
    words = splits.train.counted_vocabulary()
    folder = tmp_path / "inputs"
    shutil.copytree(inputs, folder)
    before = compare(splits, candidate.format(folder), tmp_path / "again", **QUICK)
    rewrite(folder, words)
    again = compare(splits, candidate.format(folder), tmp_path / "again", **QUICK)
    fresh = compare(splits, candidate.format(folder), tmp_path / "fresh", **QUICK)
    np.testing.assert_array_equal(again, fresh)
    assert not np.array_equal(again, before)
