"""The examples of the core run as they are, and print what they promise."""

import pytest

from hstree import load
from tests.scripts import ROOT, run_python


@pytest.fixture
def printed(tmp_path, request):
    """The lines that an example prints, as lists of words."""
    path = ROOT / "examples" / f"{request.param}.py"
    assert f"python examples/{path.name}" in path.read_text(encoding="utf-8")
    return [line.split() for line in run_python([path], tmp_path).splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("printed", ["compare_trees"], indirect=True)
def test_compare_trees(printed, tmp_path):
    *rows, _, (*_, best) = printed[1:]
    rows = {" ".join(row[:-3]): [float(figure) for figure in row[-3:]] for row in rows}
    assert list(rows) == ["huffman", "huffman arity=4", "classes", "flat"]
    scores, perplexity, _ = zip(*rows.values(), strict=True)
    assert min(scores) == rows["huffman"][0]
    assert max(scores) == rows["flat"][0]
    assert max(perplexity) < 100
    assert best in rows
    assert (tmp_path / "which" / "results.json").exists()


@pytest.mark.parametrize("printed", ["own_vectors"], indirect=True)
def test_own_vectors(printed, tmp_path):
    codes = {word: gmm for word, gmm, _ in printed[1:13]}
    topics = {code[:2] for word, code in codes.items() if word in ("cat", "dog", "horse", "mouse")}
    assert len(topics) == 1
    lengths = [float(row[1]) for row in printed[13:]]
    assert lengths[1] < lengths[0]
    assert load(tmp_path / "own_vectors.json").labels == tuple(codes)


@pytest.mark.slow
@pytest.mark.parametrize("printed", ["language_model"], indirect=True)
def test_language_model(printed, tmp_path):
    assert printed[0][0] == "perplexity"
    assert float(printed[0][1]) < 100
    probabilities = [float(row[3]) for row in printed[1:6]]
    assert probabilities == sorted(probabilities, reverse=True)
    assert len(printed[6]) == 20
    assert (tmp_path / "model" / "weights.safetensors").exists()
