"""Labels that are row numbers: the same as a tuple of their strings, in memory and in files."""

import numpy as np
import pytest

from hstree import Tree, WordVectors
from hstree.builders.balanced import balanced
from hstree.data.vocabulary import Vocabulary
from hstree.tree.content import pack, unpack
from hstree.tree.files import ENDINGS
from hstree.tree.row_numbers import RowNumbers

SIZES = [1, 2, 9, 10, 11, 100, 12_345, 1_000_001]


@pytest.mark.parametrize("n_rows", SIZES)
def test_packed_digits_are_those_of_the_strings(n_rows):
    digits, start = RowNumbers(n_rows).packed()
    expected_digits, expected_start = pack(tuple(map(str, range(n_rows))))
    assert np.array_equal(digits, expected_digits)
    assert np.array_equal(start, expected_start)
    assert isinstance(unpack(digits, start), RowNumbers)


@pytest.mark.parametrize("labels", [("1", "0"), ("0", "01"), ("0", "1", "3"), ("a",), ("0", "2")])
def test_other_numbers_are_read_as_strings(labels):
    assert unpack(*pack(labels)) == labels


def test_row_numbers_are_a_sequence_of_strings():
    labels, strings = RowNumbers(1000), tuple(map(str, range(1000)))
    assert labels == strings
    assert strings == labels
    assert hash(labels) == hash(strings)
    assert (labels[7], labels[-1]) == ("7", "999")
    assert labels[5:9] == strings[5:9]
    assert labels.index("12") == 12
    assert "999" in labels
    assert all(other not in labels for other in ("1000", "01", "-1", "", "\u0663", 3, "9" * 5000))
    with pytest.raises(ValueError, match="no row number"):
        labels.index("1000")


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_tree_of_row_numbers_is_that_of_its_strings(tmp_path, ending):
    numbered = Tree(RowNumbers(3), [0, 2, 4], [1, -1, -2, -3])
    assert numbered == Tree(["0", "1", "2"], [0, 2, 4], [1, -1, -2, -3])
    numbered.save(tmp_path / f"tree{ending}")
    again = Tree.load(tmp_path / f"tree{ending}")
    assert again == numbered
    assert isinstance(again.labels, RowNumbers) == (ending == ".npz")


def test_vectors_without_words_are_hashed_as_those_of_the_strings():
    rows = np.arange(24, dtype=np.float32).reshape(12, 2)
    numbered = WordVectors(None, rows)
    assert numbered.sha256 == WordVectors([str(i) for i in range(12)], rows).sha256
    assert balanced(Vocabulary(numbered.labels, [1] * 12)).labels == numbered.labels
