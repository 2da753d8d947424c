"""Trees from text alone, round by round."""

import pytest

import hstree
from hstree.errors import OptionError
from hstree.experiments import results
from tests.experiments.conftest import QUICK


def bootstrap(text, folder, rows=("gmm",), **options):
    return hstree.bootstrap(text, folder, rows, stop=hstree.Epochs(1), **QUICK, **options)


def test_each_round_is_built_from_the_vectors_of_the_best_so_far(splits, tmp_path):
    rounds = dict(bootstrap(splits, tmp_path, ["gmm", "classes cluster_by=vectors"]))
    assert list(rounds) == ["round-0", "round-1", "round-2"]
    assert [row.method for row in rounds.values()] == ["random", "gmm", "classes"]
    done = list(rounds.values())
    for number in (1, 2):
        best = min(range(number), key=lambda one: done[one].valid)
        assert done[number].options["vectors_file"] == f"round-{best}/vectors.npy"
        assert done[number].steps.vectors > done[best].steps.total
    assert [row.name for row in results.load(tmp_path).rows] == [row.name for row in done]


def test_finished_rounds_are_not_done_again(splits, tmp_path):
    first = list(bootstrap(splits, tmp_path))
    before = {p: p.stat().st_mtime_ns for p in tmp_path.glob("runs/**/result.json")}
    assert [row.perplexity for _, row in bootstrap(splits, tmp_path)] == [
        row.perplexity for _, row in first
    ]
    assert before == {p: p.stat().st_mtime_ns for p in tmp_path.glob("runs/**/result.json")}


def test_rounds_are_found_by_any_path_to_their_folder(splits, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = list(bootstrap(splits, "b"))
    before = set(tmp_path.glob("b/runs/*"))
    assert [name for name, _ in bootstrap(splits, tmp_path / "b")] == [name for name, _ in first]
    more = hstree.compare(splits, ["flat"], "b", stop=hstree.Epochs(1), speed_rounds=0, **QUICK)
    assert [row.name for row in more.rows] == [*(row.name for _, row in first), "flat"]
    assert set(tmp_path.glob("b/runs/*")) == {*before, tmp_path / "b/runs/flat"}


@pytest.mark.parametrize(
    ("rows", "options", "saying"),
    [
        (["huffman"], {}, "huffman is not built from vectors"),
        (["gmm"], {"first": "gmm"}, "gmm needs word vectors"),
        (["gmm", "kmeans"], {"rounds": 1}, "rounds is 1, for 2 rows"),
        (["flat + ngrams", "sampled"], {}, "sampled is not a way to build a tree"),
    ],
)
def test_rounds_that_cannot_be_built_are_refused_at_once(splits, tmp_path, rows, options, saying):
    with pytest.raises(OptionError, match=saying):
        bootstrap(splits, tmp_path / "new", rows, **options)
    assert not (tmp_path / "new").exists()
