"""Words and counts from tables: which columns they are, and what is refused."""

from types import SimpleNamespace

import numpy as np
import pytest

import hstree
from hstree.builders.linkage import tree_from_linkage
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError


def read(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    return Vocabulary.from_file(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "item,count\nsku 1,60\nb,5\n"),
        ("a.csv", "sku 1,60\nb,5\n"),
        ("a.CSV", "sku 1;60\r\nb;5\r\n"),
        ("a.csv", '"item";"count, or, how often";"n"\nsku 1;0;60\nb;1;5\n'),
        ("a.csv", '\ufeff"sku 1","60"\n"b","5"\n'),
        ("a.csv", ",n,item\n0,60,sku 1\n1,5,b\n"),
        ("a.csv", "price,item,count\n1.5,sku 1,60\n2.5,b,5\n"),
        ("a.tsv", "word\tcount\nsku 1\t60\nb\t5\n"),
        ("a.tsv", "sku 1\t60\nb\t5\n"),
    ],
)
def test_words_and_counts_come_from_the_titled_columns_or_the_only_two(tmp_path, name, content):
    vocabulary = read(tmp_path, name, content)
    assert vocabulary.words == ("sku 1", "b")
    assert vocabulary.counts.tolist() == [60, 5]


def test_words_that_are_numbers_stand_before_their_counts(tmp_path):
    assert read(tmp_path, "a.csv", "17,60\n4,5\n").words == ("17", "4")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("item,count\n", "a vocabulary without a word"),
        ("a,60\nb,1.5\n", r"a\.csv, line 2: expected a word and a whole number"),
        ("a,60\n,5\n", "line 2: expected a word and a whole number"),
        ("a,60\nb\n", "line 2: expected a word and a whole number"),
        ("a,b,60\nc,d,5\n", "which of its 3 columns are words and counts is not plain"),
        ("sku,quantity\na,60\n", "line 1: .* or titles such as word and count, found 'sku, qu"),
        ("word,count\na,60\nb\n", "line 3: expected a word and a whole number, found 'b'"),
        ("a,60\na,5\n", "the word 'a' twice"),
        ('a,60\n"b,5\n', "mend the quotes"),
        ("running text\nthat goes on\n", "which of its 1 columns"),
    ],
)
def test_what_is_no_table_of_counts_is_refused_in_one_line(tmp_path, content, message):
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, "a.csv", content)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda masked: Vocabulary(["a", "b"], masked),
        lambda masked: Vocabulary.from_counts(["a", "b"], masked),
        lambda masked: hstree.build("kmeans", masked.reshape(2, 1)),
        lambda masked: hstree.WordVectors(["a", "b"], np.eye(2), counts=masked),
        lambda masked: hstree.WordVectors.from_keyed_vectors(keyed(masked.reshape(2, 1))),
        lambda masked: hstree.WordVectors.from_keyed_vectors(keyed(np.eye(2), count=masked)),
        lambda masked: hstree.Tree(["a", "b"], [0, 2], [-1, -2], counts=masked),
        lambda masked: tree_from_linkage(masked.reshape(1, 2), ["a", "b"]),
    ],
)
def test_masked_counts_vectors_and_merges_are_refused(make):
    with pytest.raises(InputError, match="with masked entries"):
        make(np.ma.masked_array([1, 0], mask=[False, True]))


def keyed(vectors, **expandos):
    """Vectors as gensim's KeyedVectors hold them."""
    return SimpleNamespace(index_to_key=["a", "b"], vectors=vectors, expandos=expandos)
