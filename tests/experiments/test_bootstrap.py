"""Trees from text alone, round by round."""

import pytest

import hstree
from hstree.errors import OptionError
from hstree.experiments import results
from tests.experiments.conftest import QUICK


def bootstrap(text, folder, candidates=("gmm",), **options):
    return hstree.bootstrap(text, folder, candidates, stop=hstree.Epochs(1), **QUICK, **options)


def test_each_round_is_built_from_the_vectors_of_the_best_so_far(splits, tmp_path):
    rounds = dict(bootstrap(splits, tmp_path, ["gmm", "classes cluster_by=vectors"]))
    assert list(rounds) == ["round-0", "round-1", "round-2"]
    assert [candidate.method for candidate in rounds.values()] == ["random", "gmm", "classes"]
    done = list(rounds.values())
    for number in (1, 2):
        best = min(range(number), key=lambda one: done[one].valid)
        assert done[number].options["vectors_file"] == f"round-{best}/vectors.npy"
        assert done[number].steps.vectors > done[best].steps.total
    assert [candidate.name for candidate in results.load(tmp_path).candidates] == [
        candidate.name for candidate in done
    ]


def test_finished_rounds_are_not_done_again_by_any_path_to_them(splits, tmp_path, monkeypatch):
    def done():
        return {p: p.stat().st_mtime_ns for p in tmp_path.glob("b/runs/**/result.json")}

    monkeypatch.chdir(tmp_path)
    first = list(bootstrap(splits, "b"))
    before = done()
    again = list(bootstrap(splits, tmp_path / "b"))
    assert [candidate.perplexity for _, candidate in again] == [
        candidate.perplexity for _, candidate in first
    ]
    assert done() == before
    more = hstree.compare(splits, ["flat"], "b", stop=hstree.Epochs(1), speed_rounds=0, **QUICK)
    assert [candidate.name for candidate in more.candidates] == [
        *(candidate.name for _, candidate in first),
        "flat",
    ]
    assert before.items() < done().items()


def test_on_a_short_text_numpy_computes_as_in_a_comparison(splits, tmp_path, monkeypatch):
    monkeypatch.delenv("HSTREE_FAST", raising=False)
    list(bootstrap(splits, tmp_path))
    assert results.load(tmp_path).versions["kernels"] == "numpy"


@pytest.mark.parametrize(
    ("candidates", "options", "saying"),
    [
        (["huffman"], {}, "huffman is not built from vectors"),
        (["gmm", "kmeans"], {"rounds": 1}, "rounds is 1, for 2 candidates"),
        (["gmm", "sampled"], {}, "sampled is not built from vectors"),
    ],
)
def test_rounds_that_cannot_be_built_are_refused_at_once(
    splits, tmp_path, candidates, options, saying
):
    with pytest.raises(OptionError, match=saying):
        bootstrap(splits, tmp_path / "new", candidates, **options)
    assert not (tmp_path / "new").exists()
