"""Metrics of ranked labels, against their definitions and hand-made examples.

`tests/test_input_arrays.py` compares sparse labels and scores with dense ones.
"""

import numpy as np
import pytest
import scipy.sparse

from hstree.errors import InputError, OptionError
from hstree.metrics import (
    inverse_propensity,
    ndcg_at_k,
    precision_at_k,
    propensity_scored_precision_at_k,
)

PANDAS = "needs pandas: pip install '.[notebook]'"


def problem(n=40, V=12, seed=0):
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, V)) < 0.2).astype(int)
    Y[0] = 0
    return Y, np.round(rng.random((n, V)) + 0.01, 2)


def by_hand(Y, S, k, value, best):
    """Return the sums of a value of the right labels among the first k, and of the highest ones."""
    total = [0.0, 0.0]
    for y, s in zip(Y, S, strict=True):
        first = sorted(range(len(s)), key=lambda j: (-s[j], j))[:k]
        total[0] += sum(value(j, rank) for rank, j in enumerate(first) if y[j])
        total[1] += best(y)
    return total


@pytest.mark.parametrize("k", [1, 3, 12, 20])
def test_precision_is_the_share_of_right_labels_among_the_first_k(k):
    Y, S = problem()
    right, _ = by_hand(Y, S, k, lambda j, rank: 1, lambda y: 0)
    assert precision_at_k(Y, S, k) == pytest.approx(right / (k * len(Y)))


@pytest.mark.parametrize("k", [1, 3, 12])
def test_propensity_scored_precision_is_a_share_of_the_highest(k):
    Y, S = problem()
    weight = inverse_propensity(Y)
    got, highest = by_hand(
        Y, S, k, lambda j, rank: weight[j], lambda y: sum(sorted(weight[y > 0])[::-1][:k])
    )
    scored = propensity_scored_precision_at_k(Y, S, weight, k)
    assert scored == pytest.approx(got / highest)
    assert propensity_scored_precision_at_k(Y, Y * weight, weight, k) == pytest.approx(1)


def test_ndcg_is_that_of_scikit_learn():
    from sklearn.metrics import ndcg_score

    Y, _ = problem()
    S = np.random.default_rng(1).random(Y.shape)  # without ties, which scikit-learn averages
    for k in (1, 3, 12):
        assert ndcg_at_k(Y, S, k) == pytest.approx(ndcg_score(Y, S, k=k))


def test_propensities_are_those_of_jain_et_al():
    Y = np.zeros((100, 2), int)
    Y[:10, 0] = 1
    C = (np.log(100) - 1) * 2.5**0.55
    expected = [1 + C * np.exp(-0.55 * np.log(count + 1.5)) for count in (10, 0)]
    np.testing.assert_allclose(inverse_propensity(Y), expected)
    np.testing.assert_allclose(inverse_propensity(scipy.sparse.csr_array(Y)), expected)


def test_a_label_without_a_score_is_not_ranked():
    scores = scipy.sparse.csr_array([[0.0, 0.5, 0.0]])
    assert precision_at_k([[1, 1, 0]], scores, 2) == 0.5
    assert precision_at_k([[1, 0, 0]], scores, 3) == 0


@pytest.mark.parametrize("k", [0, -1, 2.0, True])
def test_k_is_a_whole_number_above_zero(k):
    with pytest.raises(OptionError, match="k is"):
        precision_at_k([[1]], [[1.0]], k)


@pytest.mark.parametrize("dtype", [np.uint8, bool, np.int64, np.float32])
def test_scores_of_any_type_are_ranked(dtype):
    right = np.array([[1, 0, 1]])
    assert precision_at_k(right, right.astype(dtype), k=2) == 1
    assert precision_at_k(right, scipy.sparse.csr_array(right.astype(dtype)), k=2) == 1


def test_columns_of_nullable_types_are_ranked():
    pandas = pytest.importorskip("pandas", reason=PANDAS)
    Y, S = problem()
    for right, scores in (("Int64", "Float64"), ("boolean", "Float32"), (object, object)):
        pair = pandas.DataFrame(Y).astype(right), pandas.DataFrame(S).astype(scores)
        for metric in (precision_at_k, ndcg_at_k):
            assert metric(*pair, 3) == pytest.approx(metric(Y, S, 3))
        assert inverse_propensity(pair[0]) == pytest.approx(inverse_propensity(Y))


@pytest.mark.parametrize("wrong", [[["a", "b"]], [[1, None]], [[1j, 0]], [1, 0], [[1], [1, 0]]])
def test_what_is_no_table_of_numbers_is_refused_in_one_line(wrong):
    for pair in ((wrong, [[0.5, 0.2]]), ([[1, 0]], wrong)):
        with pytest.raises(InputError, match=r"\Ay_(true|score) [^\n]+\Z"):
            ndcg_at_k(*pair)
    with pytest.raises(InputError, match="y_train "):
        inverse_propensity(wrong)


def test_shapes_that_differ_are_refused():
    with pytest.raises(InputError, match=r"y_score has the shape \(1, 2\)"):
        precision_at_k([[1]], [[1.0, 2.0]])
    with pytest.raises(InputError, match="one for each label"):
        propensity_scored_precision_at_k([[1]], [[1.0]], [1.0, 2.0])
    with pytest.raises(InputError, match=r"y_true has the shape \(2,\)"):
        precision_at_k([1, 0], [1.0, 0.0])
