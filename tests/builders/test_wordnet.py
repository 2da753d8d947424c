"""The WordNet builder: on a small taxonomy, and on the real WordNet where it is at hand."""

import lzma
import math
from collections import Counter

import numpy as np
import pytest

import hstree
from hstree.builders.wordnet import builder, built_in, lookup
from hstree.builders.wordnet.builder import OUTSIDE, tfidf_vectors
from hstree.builders.wordnet.lookup import find_lemmas, look_up
from hstree.builders.wordnet.taxonomy import POS
from hstree.data.vocabulary import Vocabulary
from tests.builders.label_sets import sets_by_name
from tests.builders.oracle import code_lengths
from tests.builders.test_contract import assert_keeps_the_contract
from tests.builders.wordnet.small import SYNSETS, parents, taxonomy_of, write_table
from tests.needs import shared
from tests.texts import corpus_of

LINES = [
    "the dogs and the cat restrain the puppy",
    "a toy and a decoy",
    "the animal and the pet and the canine",
    "quickly the fast cat 42",
    "dogs and pups inhibit the fast puppy",
] * 3
NOUNS = {"dogs", "cat", "puppy", "toy", "decoy", "animal", "pet", "canine", "pups"}
OTHERS = {"the", "and", "a", "42", "<eos>"}
BINARISE = ["tfidf", "none"]


@pytest.fixture
def small(tmp_path):
    return write_table(tmp_path / "wordnet.tsv.xz")


@pytest.mark.parametrize("binarise", BINARISE)
@pytest.mark.parametrize("senses", ["first", "all"])
def test_synsets_hold_their_words_and_the_rest_is_beside(tmp_path, small, senses, binarise):
    corpus = corpus_of(tmp_path, LINES)
    options = {"senses": senses, "binarise": binarise, "block": 8}
    tree = hstree.build("wordnet", corpus, source=small, **options)
    below = sets_by_name(tree)
    assert below[OUTSIDE] == OTHERS
    assert below["WordNet"] == set(tree.labels) - below[OUTSIDE]
    assert below["nouns"] == NOUNS
    assert below["dog.n.01"] == {"dogs", "puppy", "pups"}
    assert below["canine.n.01" if "canine.n.01" in below else "pet.n.01"] >= below["dog.n.01"]
    assert below["quick.a.01"] == {"fast", "quickly"}
    assert "adverbs" not in below
    verbs = "restrain.v.01"  # the only root, so it is the node of all verbs
    assert below[verbs] == {"restrain", "inhibit", *(["cat"] if senses == "all" else [])}
    assert tree.fan_out.max() == 2 or binarise == "none"
    codes = dict(zip(tree.labels, map(len, code_lengths(tree)), strict=True))
    assert codes.pop("cat") == (3 if senses == "all" else 1)
    assert set(codes.values()) == {1}


def test_meta_says_what_wordnet_has_of_the_words(tmp_path, small):
    corpus = corpus_of(tmp_path, LINES)
    meta = hstree.build("wordnet", corpus, source=small).meta
    in_wordnet = sum(word not in OTHERS for line in LINES for word in line.split())
    assert meta["coverage"] == {
        "words": 18,
        "words_in_wordnet": 13,
        "tokens_in_wordnet": pytest.approx(in_wordnet / corpus.n_tokens),
    }
    assert meta["wordnet"] == {
        "version": "9.9",
        "synsets": 14,
        "sha256": taxonomy_of(SYNSETS).sha256,
    }


def test_the_number_of_senses_bounds_the_codes(tmp_path, small, monkeypatch):
    monkeypatch.setattr(lookup, "MAX_SENSES", 2)
    corpus = corpus_of(tmp_path, LINES)
    tree = hstree.build("wordnet", corpus, source=small, senses="all")
    assert max(map(len, code_lengths(tree))) == 2


def test_words_that_the_text_lacks_are_beside_too(tmp_path, small):
    vocabulary = Vocabulary(["dog", "the", "xyzzy", "frob", "<eos>"], [1, 1, 1, 1, 1])
    corpus = corpus_of(tmp_path, LINES).with_vocabulary(vocabulary)
    tree = hstree.build("wordnet", corpus, source=small, block=5)
    assert sets_by_name(tree)[OUTSIDE] == {"the", "xyzzy", "frob", "<eos>"}


@pytest.mark.parametrize("binarise", BINARISE)
@pytest.mark.parametrize("senses", ["first", "all"])
@pytest.mark.parametrize(
    "words",
    [["dog"], ["xyzzy"], ["dog", "xyzzy"], ["dog", "puppy"], ["a", "42"], ["cat", "toy", "the"]],
)
def test_few_words_of_any_kind(tmp_path, small, words, senses, binarise):
    corpus = corpus_of(tmp_path, LINES).with_vocabulary(Vocabulary(words, [1] * len(words)))
    tree = hstree.build("wordnet", corpus, source=small, senses=senses, binarise=binarise)
    assert tree.labels == tuple(words)
    assert (tree.n_nodes == 0) == (len(words) == 1)


@pytest.mark.parametrize("binarise", BINARISE)
@pytest.mark.parametrize("senses", ["first", "all"])
def test_the_contract_holds_for_words_that_the_real_wordnet_has(tmp_path, senses, binarise):
    words = [*sorted(built_in().senses["n"])[5000:30000:250], "good", "run", "quickly", "of"]
    rng = np.random.default_rng(0)
    lines = [" ".join(rng.choice(words, 7)) for _ in range(60)]
    corpus = corpus_of(tmp_path, lines)
    options = {"senses": senses, "binarise": binarise, "block": 5}
    tree = hstree.build("wordnet", corpus, **options)
    assert_keeps_the_contract(tree, corpus, seed=1)
    assert tree == hstree.build("wordnet", corpus, **options)


def test_the_wordnet_in_the_wheel():
    taxonomy = built_in()
    assert taxonomy.version == "3.0"
    assert len(taxonomy) == 117_659 == len(set(taxonomy.names))
    n_of = {"n": 82_115, "v": 13_767, "a": 18_156, "r": 3_621}
    assert {pos: taxonomy.pos.count(pos) for pos in POS} == n_of
    n_parents = np.diff(taxonomy.parent_start)
    is_noun = np.array(list(taxonomy.pos)) == "n"
    assert (n_parents[is_noun] > 1).sum() == 2_213
    assert taxonomy.names[np.flatnonzero(is_noun & (n_parents == 0))[0]] == "entity.n.01"
    path, here = [], taxonomy.names.index("dog.n.01")
    while up := parents(taxonomy, here):
        path.append(taxonomy.names[here])
        here = up[0]
    assert path[:3] == ["dog.n.01", "canine.n.02", "carnivore.n.01"]


def test_words_find_their_first_sense_in_the_real_wordnet():
    words = ["dogs", "was", "geese", "quickly", "Better", "the", "<unk>"]
    found = look_up(words, built_in(), "first")
    names = [built_in().names[synset] for synset in found.synset]
    assert names == ["dog.n.01", "be.v.01", "goose.n.01", "quickly.r.01", "good.a.01"]
    assert found.word.tolist() == [0, 1, 2, 3, 4]


def test_ptb_in_wordnet():
    types = set(shared("ptb/ptb.train.txt").read_text().split())
    assert len(types) == 9_999
    taxonomy = built_in()
    found = {w for w in types if any(find_lemmas(w.lower(), pos, taxonomy) for pos in POS)}
    assert len(found) == 8_609  # the same words as NLTK's morphy finds, and "N"


def test_the_notice_is_beside_the_table():
    from importlib.resources import files

    folder = files("hstree.builders.wordnet")
    assert "Princeton University" in folder.joinpath("LICENSE").read_text(encoding="utf-8")
    packed = folder.joinpath("wordnet30.tsv.xz").read_bytes()
    assert len(packed) < 1_500_000
    assert lzma.decompress(packed).startswith(b"hstree wordnet 1\t3.0\n")


# Vectors by tf-idf

SAID = ["the cat sat", "the dog", "the the cat", "sat on on on the cat", "dog"]


@pytest.mark.parametrize("block", [1, 4, 7, 1000])
def test_columns_are_what_the_definition_says(tmp_path, block):
    corpus = corpus_of(tmp_path, SAID)
    tokens = " <eos> ".join([*SAID, ""]).split()
    documents = [Counter(tokens[at : at + block]) for at in range(0, len(tokens), block)]
    expected = []
    for word in corpus.vocabulary.words:
        df = sum(word in document for document in documents)
        idf = 1 + math.log((1 + len(documents)) / (1 + df))
        tf = [document[word] for document in documents]
        expected.append([idf * (1 + math.log(n)) if n else 0 for n in tf])
    found = tfidf_vectors(corpus, block)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_words_out_of_the_vocabulary_fill_their_block(tmp_path):
    corpus = corpus_of(tmp_path, ["x x x a", "a x x x"], max_size=2, unk=False)
    assert tfidf_vectors(corpus, 5).shape == (2, 2)


def test_the_projection_keeps_what_is_near_near(tmp_path, monkeypatch):
    """Two topics in many blocks: within a topic vectors point the same way, across they do not."""
    monkeypatch.setattr(builder, "DIMENSIONS", 4)
    rng = np.random.default_rng(0)
    topics = [[f"{name}{i}" for i in range(6)] for name in "ab"]
    lines = [" ".join(rng.choice(topics[i % 2], 9)) for i in range(60)]
    corpus = corpus_of(tmp_path, lines)
    words = np.array([corpus.vocabulary.index(word) for word in topics[0] + topics[1]])
    vectors = tfidf_vectors(corpus, 10, random_state=3)
    assert vectors.shape == (len(corpus.vocabulary), 4)
    vectors = vectors[words]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    near = unit @ unit.T
    assert near[:6, :6].min() > near[:6, 6:].max() + 0.3
    assert (vectors == tfidf_vectors(corpus, 10, random_state=3)[words]).all()
    zero, one = (tfidf_vectors(corpus, 10, random_state=seed) for seed in (0, 1))
    assert (tfidf_vectors(corpus, 10) == zero).all()
    assert (zero != one).any()
