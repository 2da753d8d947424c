"""Arrays with masked entries are refused, which NumPy would read as numbers."""

from types import SimpleNamespace

import numpy as np
import pytest

import hstree
from hstree.builders.linkage import tree_from_linkage
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError


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
