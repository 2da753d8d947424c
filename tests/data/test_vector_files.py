"""word2vec's files: read back bit for bit, by hstree and by gensim."""

import pytest

from hstree.data.vectors import WordVectors
from hstree.errors import FileFormatError, InputError

EXTREME = [[1e-38, -3.4e38, 0.1], [1 / 3, -0.0, 1e-45], [16777217, 2.5, -1e-7], [0, 0, 0]]


@pytest.fixture
def vectors():
    """Return odd words and numbers, and more rows than are written at a time."""
    words = ["the", "</s>", "no\u00a0break", "0.5", *(f"w{i}" for i in range(4996))]
    return WordVectors(words, EXTREME * 1250, counts=range(5000, 0, -1))


@pytest.mark.parametrize("name", ["v.vec", "v.txt", "v.bin"])
def test_the_same_vectors_come_back(vectors, tmp_path, name):
    vectors.save(tmp_path / name)
    found = WordVectors.read(tmp_path / name)
    assert found.labels == vectors.labels
    assert found.vectors.tobytes() == vectors.vectors.tobytes()


@pytest.mark.parametrize("name", ["v.vec", "v.bin"])
def test_gensim_reads_the_same(vectors, tmp_path, name):
    gensim = pytest.importorskip("gensim.models", reason="gensim is not installed")
    vectors.save(tmp_path / name)
    found = gensim.KeyedVectors.load_word2vec_format(
        str(tmp_path / name), binary=name.endswith("bin")
    )
    assert tuple(found.index_to_key) == vectors.labels
    assert found.vectors.tobytes() == vectors.vectors.tobytes()


def test_the_text_is_word2vecs(tmp_path):
    WordVectors(["a", "b"], [[0.1, 1], [-2, 1e-7]]).save(tmp_path / "v.vec")
    assert (tmp_path / "v.vec").read_bytes() == b"2 2\na 0.1 1.0\nb -2.0 1e-07\n"


@pytest.mark.parametrize("word", ["", "new york", "a\tb", "a\nb", "\ud800"])
@pytest.mark.parametrize("name", ["v.vec", "v.bin"])
def test_words_that_readers_would_split_are_refused(tmp_path, word, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match=r"save it as \.npy"):
        WordVectors(["a", word], [[1.0], [2.0]]).save(tmp_path / name)
    assert (tmp_path / name).read_text() == "mine"


def test_the_ending_says_how(vectors, tmp_path):
    with pytest.raises(FileFormatError, match=r"name it \.npy, \.vec, \.txt or \.bin"):
        vectors.save(tmp_path / "v.pt")
