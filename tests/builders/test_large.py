"""Trees of more words than are split at once: upper nodes by samples, sub-trees as jobs."""

import io

import numpy as np
import pytest

import hstree
from hstree import WordVectors
from hstree.builders.shared import large, top_down, vector_trees
from hstree.data import vector_files, vectors
from hstree.errors import InputError
from hstree.tree import Codes
from tests.builders.label_sets import label_sets

N_WORDS = 1500
CASES = [
    ("gmm", {"split": "balanced"}),
    ("gmm", {"epsilon": 0.3, "max_codes": 3}),
    ("gmm", {"trees": 2}),
    ("kmeans", {}),
    ("kmeans", {"arity": 3, "balanced": True}),
    ("semantic", {}),
]


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    """Take 1,000 words for many, and 300 for a sub-tree."""
    monkeypatch.setenv("HSTREE_CACHE", str(tmp_path / "cache"))
    for module in (vector_trees, vectors, vector_files):
        monkeypatch.setattr(module, "LARGE", 1000)
    monkeypatch.setattr(large, "SUBTREE_WORDS", 300)
    monkeypatch.setattr(large, "SAMPLE_ROWS", 500)
    monkeypatch.setattr(large, "READ_ROWS", 700)


def rows(n_words=N_WORDS, d=6):
    """Draw vectors around 20 centres."""
    rng = np.random.default_rng(1)
    centre = rng.standard_normal((20, d)) * 4
    return (centre[rng.integers(20, size=n_words)] + rng.standard_normal((n_words, d))).astype("f4")


def word_vectors():
    counts = np.random.default_rng(2).zipf(1.4, N_WORDS) % 10**6
    return WordVectors(None, rows(), counts=counts)


@pytest.mark.parametrize(("method", "options"), CASES)
def test_a_large_tree_has_a_code_for_every_word_and_is_the_same_for_any_jobs(method, options):
    one = hstree.build(method, word_vectors(), **options)
    assert one.codes_per_label.min() == options.get("trees", 1)
    assert one.codes_per_label.max() == options.get("max_codes", one.codes_per_label.min())
    two = hstree.build(method, word_vectors(), n_jobs=2, **options)
    assert (one, one.meta) == (two, two.meta)


def test_balanced_trees_are_exact_halves():
    for method, options in (("gmm", {"split": "balanced"}), ("kmeans", {"balanced": True})):
        tree = hstree.build(method, word_vectors(), **options)
        below = tree.sum_up(np.ones(N_WORDS, np.int64)).reshape(-1, 2)
        assert np.abs(below[:, 0] - below[:, 1]).max() <= 1


def test_semantic_keeps_the_lengths_of_huffman():
    words = word_vectors()
    tree = hstree.build("semantic", words)
    assert Codes(tree).length.tolist() == Codes(hstree.build("huffman", words)).length.tolist()


@pytest.mark.parametrize("method", ["gmm", "kmeans"])
def test_words_of_one_cluster_are_under_one_upper_node(method):
    near = np.repeat([[0.0, 0], [0, 50], [50, 0], [50, 50]], 500, axis=0)
    near += np.random.default_rng(0).standard_normal(near.shape)
    upper = label_sets(hstree.build(method, near.astype("f4")))[:7]
    for cluster in range(4):
        assert frozenset(map(str, range(500 * cluster, 500 * cluster + 500))) in upper


def test_identical_vectors_are_split_in_their_order():
    tree = hstree.build("kmeans", np.ones((2000, 3), "f4"))
    assert tree.depth.max() < 12


def test_a_build_goes_on_from_its_finished_sub_trees(monkeypatch, tmp_path):
    whole = hstree.build("gmm", word_vectors())
    done, divide = [], top_down.build_top_down

    def some(n_words, *args, **kwargs):
        if len(done) == 4:
            raise KeyboardInterrupt
        done.append(n_words)
        return divide(n_words, *args, **kwargs)

    monkeypatch.setattr(top_down, "build_top_down", some)
    with pytest.raises(KeyboardInterrupt):
        hstree.build("gmm", word_vectors())
    (folder,) = (tmp_path / "cache" / "trees").iterdir()
    parts = sorted(folder.glob("0-part-*.npz"))
    assert len(parts) == 4
    content = parts[0].read_bytes()  # damaged ones are divided again
    parts[0].write_bytes(content[:100])
    with np.load(io.BytesIO(content)) as arrays:
        np.savez(parts[1], **{name: array.astype(np.float16) for name, array in arrays.items()})
    began = len(done)
    monkeypatch.setattr(
        top_down, "build_top_down", lambda n, *a, **k: done.append(n) or divide(n, *a, **k)
    )
    assert hstree.build("gmm", word_vectors()) == whole
    n_parts = sum(done[began:]) + sum(done[2:began])
    assert n_parts <= N_WORDS
    assert not folder.exists()


def test_two_builds_at_once_share_their_parts_and_the_last_removes_them(monkeypatch, tmp_path):
    whole = hstree.build("gmm", word_vectors())
    done, divide = [], top_down.build_top_down

    def counted(n_words, *args, **kwargs):
        done.append(n_words)
        if len(done) == 3:  # another build, from there to the end
            assert hstree.build("gmm", word_vectors()) == whole
            (folder,) = (tmp_path / "cache" / "trees").iterdir()
            assert list(folder.glob("0-part-*.npz"))
        return divide(n_words, *args, **kwargs)

    monkeypatch.setattr(top_down, "build_top_down", counted)
    assert hstree.build("gmm", word_vectors()) == whole
    assert sum(done) - done[2] <= N_WORDS  # only that part was divided twice
    assert list((tmp_path / "cache" / "trees").iterdir()) == []


def test_vectors_stay_in_their_files(tmp_path):
    np.save(tmp_path / "all.npy", rows())
    np.save(tmp_path / "half.npy", rows().astype("f2"))
    shards = tmp_path / "shards"
    shards.mkdir()
    for number, part in enumerate(np.array_split(rows(), 3)):
        np.save(shards / f"part-{number:03}.npy", part)
    expected = WordVectors(None, rows())
    for name in ("all.npy", "shards"):
        mapped = WordVectors.read(tmp_path / name)
        assert mapped.sha256 == expected.sha256
        assert hstree.build("gmm", mapped) == hstree.build("gmm", expected)
    assert isinstance(WordVectors.read(tmp_path / "all.npy").vectors.base.base, np.memmap)
    half = WordVectors.read(tmp_path / "half.npy")
    assert half.sha256 == WordVectors(None, rows().astype("f2").astype("f4")).sha256
    assert np.array_equal(half.vectors[[5, 2]], rows()[[5, 2]].astype("f2").astype("f4"))


def test_shards_are_refused_where_they_do_not_fit(tmp_path):
    with pytest.raises(InputError, match=r"no \.npy file"):
        WordVectors.read(tmp_path)
    np.save(tmp_path / "a.npy", rows())
    np.save(tmp_path / "b.npy", rows(d=3))
    with pytest.raises(InputError, match="same number of columns"):
        WordVectors.read(tmp_path)


def test_vectors_on_disk_must_be_finite(tmp_path):
    bad = rows()
    bad[1345, 1] = np.nan
    np.save(tmp_path / "bad.npy", bad.astype("f2"))
    with pytest.raises(InputError, match=r"row 1345 .* holds nan in column 1"):
        WordVectors.read(tmp_path / "bad.npy")
