import numpy as np

from hstree._ragged import offsets
from hstree.builders.word_classes.nesting import divided, members, nested_shape, numbered
from hstree.builders.word_classes.shapes import huffman_shape, wide
from hstree.tree import Tree
from tests.builders.oracle import children_of, code_lengths

ORDER = np.array([2, 0, 1, 5, 4, 3, 6, 7])
COUNTS = np.array([8, 7, 9, 3, 4, 5, 2, 1])


def test_classes_are_numbered_by_their_most_frequent_words():
    class_of = numbered(np.array([7, 7, 9, 9, 3, 3, 3, 3]), ORDER)
    assert class_of.tolist() == [1, 1, 0, 0, 2, 2, 2, 2]
    assert [words.tolist() for words in members(class_of, ORDER)] == [[2, 3], [0, 1], [5, 4, 6, 7]]


def test_levels_part_what_the_level_above_parted():
    asked = []

    def every_other(words, n):
        asked.append((len(words), n))
        return np.arange(len(words)) % n

    coarse, fine = divided(np.arange(64), every_other, 3)
    assert asked == [(64, 4)] + [(16, 4)] * 4
    assert coarse.tolist() == [word % 4 for word in range(64)]
    assert len(set(zip(coarse.tolist(), fine.tolist(), strict=True))) == 16 == fine.max() + 1
    asked.clear()
    divided(np.arange(64), every_other, 3, 16)
    assert asked == [(64, 16)] + [(4, 2)] * 16
    (only,) = divided(np.arange(1), every_other, 2)
    assert only.tolist() == [0]


def tree_of(nested, arrange):
    shape = nested_shape(COUNTS, ORDER, [np.array(level) for level in nested], arrange)
    child = np.where(shape.child < 0, ~shape.leaves[~shape.child], shape.child)
    return Tree([f"w{i}" for i in range(8)], offsets(shape.fan_out), child, names=shape.names)


def test_two_levels():
    tree = tree_of([[1, 1, 0, 2, 1, 1, 1, 2]], lambda weights: wide(len(weights)))
    # Words by frequency; the class of word 2 alone is that word.
    assert children_of(tree) == [[~2, 1, 2], [~0, ~1, ~5, ~4, ~6], [~3, ~7]]
    assert tree.names == (None, "class 1", "class 2")


def test_three_levels():
    nested = [[0, 0, 0, 1, 1, 1, 1, 1], [1, 1, 0, 3, 2, 2, 2, 3]]
    tree = tree_of(nested, lambda weights: wide(len(weights)))
    assert tree.names == (None, "class 0", "class 0.1", "class 1", "class 1.0", "class 1.1")
    assert children_of(tree)[:3] == [[1, 3], [~2, 2], [~0, ~1]]
    assert children_of(tree)[3:] == [[4, 5], [~5, ~4, ~6], [~3, ~7]]


def test_huffman_nodes_within_and_above():
    tree = tree_of([[1, 1, 0, 2, 1, 1, 1, 2]], huffman_shape)
    assert set(tree.fan_out.tolist()) == {2}
    # Masses 9, 26 and 4: the heavy class is one decision away, its words by counts below it.
    lengths = [length for (length,) in code_lengths(tree)]
    assert lengths == [3, 3, 2, 3, 4, 3, 4, 3]
    assert [name for name in tree.names if name] == ["class 1", "class 2"]
