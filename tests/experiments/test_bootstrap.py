"""Trees from text alone, round by round."""

import pytest

import hstree
from hstree.errors import OptionError
from hstree.experiments import results
from hstree.report.recipe import make_recipe
from tests.experiments.conftest import QUICK


def bootstrap(text, folder, candidates=("gmm",), **options):
    return hstree.bootstrap(text, folder, candidates, stop=hstree.Epochs(1), **QUICK, **options)


def test_each_round_is_built_from_the_vectors_of_the_best_so_far(splits, tmp_path):
    sizes = []
    comparison = bootstrap(
        splits,
        tmp_path,
        ["gmm", "classes cluster_by=vectors"],
        updated=lambda so_far: sizes.append(len(so_far.candidates)),
    )
    rounds = comparison.candidates
    assert [one.method for one in rounds] == ["random", "gmm", "classes"]
    assert sizes == [1, 2, 3]
    for number in (1, 2):
        best = min(range(number), key=lambda one: rounds[one].valid)
        assert rounds[number].options["vectors_file"] == f"round-{best}/vectors.npy"
        assert rounds[number].timings.vectors > rounds[best].timings.total
    assert results.load(tmp_path).candidates == rounds
    assert make_recipe(rounds[0], comparison, tmp_path).command


def test_finished_rounds_are_not_done_again_by_any_path_to_them(splits, tmp_path, monkeypatch):
    def done():
        return {p: p.stat().st_mtime_ns for p in tmp_path.glob("b/runs/**/result.json")}

    monkeypatch.chdir(tmp_path)
    first = bootstrap(splits, "b")
    before = done()
    assert bootstrap(splits, tmp_path / "b").candidates == first.candidates
    assert done() == before
    more = hstree.compare(splits, ["flat"], "b", stop=hstree.Epochs(1), speed_rounds=0, **QUICK)
    names = [one.name for one in first.candidates]
    assert [one.name for one in more.candidates] == [*names, "flat"]
    assert before.items() < done().items()


def test_on_a_short_text_numpy_computes_as_in_a_comparison(splits, tmp_path, monkeypatch):
    monkeypatch.delenv("HSTREE_FAST", raising=False)
    assert bootstrap(splits, tmp_path).versions["kernels"] == "numpy"


@pytest.mark.parametrize(
    ("candidates", "options", "saying"),
    [
        (["huffman"], {}, "huffman is not built from vectors"),
        (["gmm", "kmeans"], {"rounds": 1}, "rounds is 1, for 2 candidates"),
        (["gmm", "sampled"], {}, "sampled is not built from vectors"),
        (["gmm", "2 x gmm"], {}, "2 x gmm is not built from vectors"),
        (["gmm"], {"rounds": "2"}, "rounds is '2'"),
        (["gmm"], {"rounds": 1.5}, "rounds is 1.5"),
        ("gmm", {}, r'candidates=\["gmm"\]'),
    ],
)
def test_rounds_that_cannot_be_built_are_refused_at_once(
    splits, tmp_path, candidates, options, saying
):
    with pytest.raises(OptionError, match=saying):
        bootstrap(splits, tmp_path / "new", candidates, **options)
    assert not (tmp_path / "new").exists()
