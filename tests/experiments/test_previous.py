"""Comparisons that go on in a folder, and those that are refused there."""

import pytest

from hstree.errors import InputError
from hstree.experiments import compare, results
from hstree.experiments.evaluation import corpus_splits
from hstree.experiments.survey import survey
from tests.texts import corpus_of, markov_lines

pytestmark = pytest.mark.usefixtures("short_turns")

QUICK = {"dim": 4, "context": 2, "epochs": 1, "batch_size": 64}


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    return corpus_splits(corpus_of(tmp_path_factory.mktemp("text"), markov_lines(2_500, 0)[0]))


@pytest.fixture(scope="module")
def other_splits(tmp_path_factory):
    return corpus_splits(corpus_of(tmp_path_factory.mktemp("text"), markov_lines(2_500, 1)[0]))


def names(comparison):
    return [row.name for row in comparison.rows]


def test_another_method_adds_its_row_and_keeps_the_others(splits, tmp_path):
    first = compare(splits, [("balanced", {"order": "file"}), "kn2"], tmp_path, **QUICK)
    second = compare(splits, ["flat", ("sampled", {"samples": 5})], tmp_path, **QUICK)
    assert names(second) == [*names(first), "flat", "sampled samples=5"]
    assert second.rows[0].perplexity == first.rows[0].perplexity
    assert second.rows[0].to_flat is not None
    assert names(compare(splits, ["flat"], tmp_path, only=True, **QUICK)) == ["flat"]


def test_a_tree_without_its_file_is_kept_from_its_run(splits, tmp_path):
    from hstree import build

    tree = build("random", splits.train, random_state=5)
    first = compare(splits, [tree], tmp_path, **QUICK)
    assert names(compare(splits, ["flat"], tmp_path, **QUICK)) == [*names(first), "flat"]


def test_the_same_question_has_the_same_answer(splits, tmp_path):
    rows = ["huffman", "balanced", "random", "flat"]
    first = compare(splits, rows, tmp_path, **QUICK).as_dict()
    for _ in range(3):
        assert compare(splits, rows, tmp_path, **QUICK).as_dict() == first


@pytest.mark.parametrize("regime", [{}, {"equal_epochs": False, "budget": 0.02}])
def test_another_text_or_budget_is_refused(splits, other_splits, tmp_path, regime):
    if regime:
        survey(splits, ["huffman"], tmp_path, **regime, **QUICK)
    else:
        compare(splits, ["huffman"], tmp_path, **QUICK)
    file = tmp_path / ("survey.json" if regime else results.JSON)
    before = file.read_bytes()
    with pytest.raises(InputError, match=r"holds a comparison .* it is over|split is of"):
        compare(other_splits, ["huffman"], tmp_path, **QUICK)
    with pytest.raises(InputError, match=r"its dim is 4, this one's 5; choose another folder"):
        compare(splits, ["huffman"], tmp_path, **QUICK | {"dim": 5})
    assert file.read_bytes() == before


def test_another_budget_replaces_a_comparison_by_force(splits, tmp_path):
    compare(splits, ["huffman"], tmp_path, **QUICK)
    more = QUICK | {"epochs": 2}
    with pytest.raises(InputError, match="its epochs is 1, this one's 2"):
        compare(splits, ["flat"], tmp_path, **more)
    assert names(compare(splits, ["flat"], tmp_path, force=True, **more)) == ["flat"]


def test_a_survey_refuses_another_budget_and_keeps_its_rows(splits, tmp_path):
    survey(splits, ["huffman"], tmp_path, budget=0.02, **QUICK)
    with pytest.raises(InputError, match=r"a survey whose budget is 0.02 seconds, this one's 0.03"):
        survey(splits, ["huffman"], tmp_path, budget=0.03, **QUICK)
    found = survey(splits, ["balanced"], tmp_path, budget=0.02, **QUICK)
    assert [row.name for row in found.rows] == ["huffman", "flat", "balanced"]
