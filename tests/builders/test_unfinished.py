"""A build that was stopped at any step goes on, and ends in the tree of one that was not."""

import numpy as np
import pytest

import hstree
from hstree._checkpoints import defaults
from hstree._compiled import numpy_alone
from hstree.builders.gmm import gmm
from hstree.builders.shared import unfinished
from hstree.builders.word_classes import bigrams
from hstree.data.vectors import WordVectors
from hstree.errors import FileFormatError
from tests.texts import corpus_of, markov_lines

BUILDS = [
    ("classes", {"n_classes": 4}),
    ("classes", {"levels": 3}),
    ("classes", {"cluster_by": "brown", "n_classes": 9}),
    ("classes", {"cluster_by": "vectors"}),
    ("gmm", {"trees": 3}),
    ("gmm", {"epsilon": 0.4, "max_codes": 4}),
    ("kmeans", {"arity": 3}),
    ("semantic", {}),
    ("wordnet", {}),
]


@pytest.fixture
def build(tmp_path, monkeypatch):
    """Build from a text, or from vectors with the counts of its words."""
    monkeypatch.setenv("HSTREE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(bigrams, "_ENTRIES_AT_ONCE", 2000)  # several steps a sweep
    corpus = corpus_of(tmp_path, markov_lines(3000, seed=3, n_words=60)[0])
    words = corpus.counted_vocabulary()
    rows = np.random.default_rng(0).normal(size=(len(words), 3))
    vectors = WordVectors(words.words, rows, counts=words.counts)
    vectors.save(tmp_path / "vectors.npy")

    def run(method, **options):
        if options.get("cluster_by") == "vectors":
            options["vectors_file"] = tmp_path / "vectors.npy"
        takes_text = method in ("classes", "wordnet")
        return hstree.build(method, corpus if takes_text else vectors, **options)

    return run


@pytest.fixture
def steps(monkeypatch):
    """Keep a state at every step; return the list of steps, and stop at its length `stop_at`."""

    class Steps(list):
        stop_at = None

    made, keep = Steps(), unfinished.Part.keep

    def counted(part, state):
        keep(part, state)
        made.append(part)
        if len(made) == made.stop_at:
            raise KeyboardInterrupt

    monkeypatch.setattr(unfinished.Part, "keep", counted)
    with defaults(minutes=0):
        yield made


@pytest.mark.parametrize("fast", [True, False], ids=["twins", "numpy"])
@pytest.mark.parametrize(("method", "options"), BUILDS)
def test_each_start_goes_on_from_the_last_step(build, steps, tmp_path, method, options, fast):
    with numpy_alone(not fast):
        whole = build(method, **options)
        n_steps = len(steps)
        assert n_steps > 2
        assert not (tmp_path / "cache/checkpoints").exists()
        starts = 0
        steps.stop_at = 2
        while True:
            steps.clear()
            starts += 1
            try:
                part = build(method, **options)
                break
            except KeyboardInterrupt:
                assert len(list(tmp_path.glob("cache/checkpoints/*"))) == 1
    assert (starts, len(steps)) == (n_steps, 1)
    assert part.sha256 == whole.sha256
    assert part.meta == whole.meta
    assert not (tmp_path / "cache/checkpoints").exists()


def test_states_are_of_the_same_input_and_options(build, steps):
    steps.stop_at = 5
    with pytest.raises(KeyboardInterrupt):
        build("gmm", trees=2)
    for options in ({"trees": 2, "random_state": 1}, {"trees": 3}, {"trees": 2, "weighted": True}):
        steps.clear()
        with pytest.raises(KeyboardInterrupt):  # at the fifth step again
            build("gmm", **options)
    steps.clear()
    steps.stop_at = None
    build("gmm", trees=2)
    again = len(steps)
    steps.clear()
    build("gmm", trees=2)
    assert again == len(steps) - 4


def test_they_are_kept_until_the_tree_is_saved(build, steps, tmp_path):
    with pytest.raises(FileFormatError), unfinished.until_saved():
        build("gmm").save(tmp_path / "missing" / "tree.json")
    made = len(steps)
    steps.clear()
    with unfinished.until_saved():
        build("gmm").save(tmp_path / "tree.json")
        assert (tmp_path / "cache/checkpoints").exists()
    assert (made > 3, len(steps)) == (True, 0)
    assert not (tmp_path / "cache/checkpoints").exists()


def test_at_least_every_half_minute(build, tmp_path, monkeypatch):
    """Also where trainings keep their states more rarely; and nothing is kept of short builds."""
    now, written = [0.0], []
    monkeypatch.setattr("hstree._checkpoints.time.monotonic", lambda: now[0])
    save = unfinished.Checkpoints.save

    def noted(self, state):
        written.append(now[0])
        save(self, state)

    keep = unfinished.Part.keep

    def later(part, state):
        now[0] += 10
        keep(part, state)

    monkeypatch.setattr(unfinished.Checkpoints, "save", noted)
    build("gmm")
    assert written == []
    monkeypatch.setattr(unfinished.Part, "keep", later)
    with defaults(minutes=5):
        build("gmm", trees=3)
    assert written[:3] == [30.0, 60.0, 90.0]


def test_a_builder_called_alone_keeps_nothing(build, steps, tmp_path):
    vectors = WordVectors(
        [f"w{i}" for i in range(40)], np.random.default_rng(0).normal(size=(40, 2))
    )
    gmm(vectors)
    assert len(steps) > 3
    assert not (tmp_path / "cache/checkpoints").exists()
