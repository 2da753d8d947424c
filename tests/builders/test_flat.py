"""The flat tree is a softmax: held to scipy's."""

import numpy as np
import pytest
from scipy.special import log_softmax

from hstree.builders.flat import flat
from hstree.data.vocabulary import Vocabulary
from tests.builders.oracle import leaf_probabilities


@pytest.mark.parametrize(("n", "nodes"), [(1, 0), (2, 1), (3, 1), (50, 1)])
def test_one_node_with_every_word_in_order(n, nodes):
    tree = flat(Vocabulary([str(i) for i in range(n)], range(1, n + 1)))
    assert tree.n_nodes == nodes
    assert (~tree.child).tolist() == (list(range(n)) if nodes else [])
    assert tree.counts.tolist() == list(range(1, n + 1))


def test_it_is_the_softmax():
    rng = np.random.default_rng(0)
    weights, hidden = rng.normal(size=(20, 3)), rng.normal(size=3)
    tree = flat(Vocabulary([str(i) for i in range(20)], [1] * 20))
    np.testing.assert_allclose(
        np.log(leaf_probabilities(tree, weights, hidden)), log_softmax(weights @ hidden), rtol=1e-12
    )
