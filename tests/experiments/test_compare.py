"""Comparison of candidates: figures, what is kept, what is refused."""

import shutil
from importlib.util import find_spec

import msgspec
import numpy as np
import pytest

import hstree
from hstree import report
from hstree._files import locked
from hstree.data.splits import Splits
from hstree.data.text_score import perplexity
from hstree.errors import InputError, OptionError
from hstree.experiments.candidate import Candidate
from hstree.experiments.compare import plan
from hstree.experiments.results import TreeRecord
from hstree.experiments.setting import read_setting
from hstree.experiments.statistics import (
    best_weight,
    frequency_bands,
    mixed_nll,
    paired_ratio,
)
from hstree.kernels import backend_name
from hstree.models.ensemble import mean_probability
from tests.experiments.conftest import CANDIDATES, QUICK, compare, names, token_nlls
from tests.needs import NUMBA
from tests.texts import contents, corpus_of

ONE = hstree.Epochs(1)


def test_figures_of_a_candidate_are_those_of_its_tree_and_models(compared, splits):
    candidate = compared.candidate("gmm epsilon=0.4")
    tree = hstree.load(compared.folder / candidate.tree_file)
    assert candidate.tree == msgspec.convert(tree.stats().as_dict(), TreeRecord)
    assert (candidate.method, candidate.options["epsilon"]) == (tree.meta["method"], 0.4)
    model = hstree.load_model(compared.folder / candidate.jobs[0].folder / "model")
    assert candidate.parameters == sum(array.size for array in model.parameters().values())
    assert model.perplexity(splits.test) == pytest.approx(candidate.jobs[0].perplexity["test"])


def test_perplexities_are_means_and_spreads_over_seeds(compared):
    candidate = compared.candidate("huffman")
    tests = [perplexity(float(nll.sum()), len(nll)) for nll in token_nlls(compared, "huffman")]
    assert [job.seed for job in candidate.jobs] == [0, 1]
    assert candidate.perplexity["test"].mean == pytest.approx(np.mean(tests))
    assert candidate.perplexity["test"].sd == pytest.approx(np.std(tests, ddof=1))


def test_several_models_are_scored_by_the_mean_of_their_probabilities(compared):
    candidate, one = (
        compared.candidate("2 x gmm epsilon=0.4"),
        compared.candidate("gmm epsilon=0.4"),
    )
    of_seeds = np.array_split(token_nlls(compared, candidate.name), 2)
    tests = [perplexity(float(mean_probability(n).sum()), len(n[0])) for n in of_seeds]
    assert [job.seed for job in candidate.jobs] == [0, 1, 2, 3]
    assert candidate.perplexity["test"].mean == pytest.approx(np.mean(tests))
    assert candidate.parameters == 2 * one.parameters
    assert candidate.training.rounds == [speed / 2 for speed in one.training.rounds]


def test_ratios_are_to_flat_and_to_flat_with_the_same_layer(compared):
    ratio = paired_ratio(token_nlls(compared, "huffman"), token_nlls(compared, "flat"))
    assert compared.candidate("huffman").to_flat == ratio
    assert compared.candidate("flat").to_flat.ratio == 1
    candidate = compared.candidate("huffman + ngrams")
    assert (candidate.like, compared.candidate("flat + ngrams").like) == ("flat + ngrams", None)
    ngrams = token_nlls(compared, "huffman + ngrams"), token_nlls(compared, "flat + ngrams")
    assert candidate.to_like == paired_ratio(*ngrams)


@pytest.fixture(scope="module")
def complementary(tmp_path_factory):
    """A comparison of candidates and an n-gram model that each know something that the other lacks.

    The next word depends on the last word or, as often, on the one before, which kn2 does not see.
    """
    draw, lines = np.random.default_rng(0), []
    for _ in range(300):
        words = draw.integers(0, 20, 2).tolist()
        for kind in draw.choice(3, 18, p=[0.4, 0.4, 0.2]):
            after = [words[-1] + 1, 3 * words[-2] + 2, int(draw.integers(20))]
            words.append(after[kind] % 20)
        lines.append(" ".join(f"w{word}" for word in words))
    splits = Splits.of(corpus_of(tmp_path_factory.mktemp("text"), lines))
    candidates = ["huffman", "2 x huffman", "flat", "kn2"]
    return compare(splits, candidates, tmp_path_factory.mktemp("c"), stop=hstree.Epochs(3), seeds=2)


@pytest.mark.parametrize("name", ["huffman", "2 x huffman"])
def test_candidates_are_mixed_with_the_n_gram_model(complementary, name):
    """The weight is fitted on the validation split, and the mixture scored on the test split."""
    candidate = complementary.candidate(name)
    valid, test = (
        list(map(mean_probability, np.array_split(token_nlls(complementary, name, split), 2)))
        for split in ("valid", "test")
    )
    (kn_valid,) = token_nlls(complementary, "kn2", "valid")
    (kn_test,) = token_nlls(complementary, "kn2")
    weights = [best_weight(nll, kn_valid) for nll in valid]
    assert all(0.1 < weight < 0.9 for weight in weights)
    on_test = [best_weight(nll, kn_test) for nll in test]
    assert abs(np.mean(weights) - np.mean(on_test)) > 0.01
    mixed = [
        -np.log(weight * np.exp(-nll) + (1 - weight) * np.exp(-kn_test))
        for weight, nll in zip(weights, test, strict=True)
    ]
    tests = [perplexity(float(nll.sum()), len(nll)) for nll in mixed]
    assert candidate.mixture.ngram == "kn2"
    assert candidate.mixture.weight == pytest.approx(np.mean(weights))
    assert candidate.mixture.test == pytest.approx(np.mean(tests))
    assert candidate.mixture.test < min(candidate.test, complementary.candidate("kn2").test)
    assert complementary.candidate("kn2").mixture is None


def test_the_best_weight_has_the_lowest_total(complementary):
    (first, *_), (other,) = (
        token_nlls(complementary, "huffman", "valid"),
        token_nlls(complementary, "kn2", "valid"),
    )
    totals = [
        float(mixed_nll(weight, first, other).sum()) for weight in np.linspace(0.01, 0.99, 99)
    ]
    assert best_weight(first, other) == pytest.approx(0.01 + 0.01 * np.argmin(totals), abs=0.01)


def test_the_recommended_candidate_is_compared_with_its_rival(complementary):
    choice = complementary.choice
    chosen, rival = (token_nlls(complementary, name) for name in (choice.chosen, choice.rival))
    pairs = [[mean_probability(pair) for pair in np.array_split(nll, 2)] for nll in (chosen, rival)]
    assert choice.chosen != choice.rival
    assert choice.to_rival == paired_ratio(*pairs)
    assert choice.to_rival.ratio < 0.99


def test_bands_partition_words_and_test_tokens(compared, splits):
    bands, band_of_token = frequency_bands(splits)
    assert sum(band.words for band in bands) == len(splits.train.vocabulary)
    assert sum(band.tokens for band in bands) == len(splits.test) == len(band_of_token)
    candidate = compared.candidate("flat")
    logs = [n.tokens * np.log(p) for n, p in zip(bands, candidate.by_band, strict=True) if p]
    assert np.exp(sum(logs) / len(splits.test)) == pytest.approx(candidate.test, rel=1e-3)


def test_seconds_count_from_the_text(compared):
    candidate, random = compared.candidate("gmm epsilon=0.4"), compared.candidate("random")
    assert candidate.timings.vectors > 0
    assert candidate.timings.total == pytest.approx(
        candidate.timings.vectors
        + candidate.timings.tree
        + candidate.timings.preparation
        + candidate.timings.training
    )
    assert random.timings.vectors == 0


def test_the_same_comparison_again_trains_nothing(compared, splits, tmp_path):
    home = tmp_path / "copy"
    shutil.copytree(compared.folder, home)
    models = {p: b for p, b in contents(home).items() if "results" not in p.name}
    again = hstree.compare(
        splits, CANDIDATES, home, stop=hstree.Epochs(2), seeds=2, speed_rounds=1, **QUICK
    )
    assert again.candidates == compared.candidates
    assert {p: b for p, b in contents(home).items() if "results" not in p.name} == models


def test_a_new_candidate_joins_those_in_the_folder_also_when_a_tree_file_is_gone(splits, tmp_path):
    file, tree = tmp_path / "tree.json", hstree.build("balanced", splits.train)
    tree.save(file)
    before_names = [f"2 x {file}", f"{file} + ngrams", f"tree-{tree.sha256[:8]}.json"]
    compare(splits, [*before_names[:2], tree], tmp_path / "c")
    before = contents(tmp_path / "c/runs")
    file.unlink()
    found = compare(splits, ["random"], tmp_path / "c")
    assert names(found) == [*before_names, "random"]
    assert before.items() <= contents(tmp_path / "c/runs").items()
    assert names(compare(splits, ["random"], tmp_path / "c", only=True)) == ["random"]


def test_the_same_seed_gives_the_same_weights_in_any_company(splits, tmp_path):
    compare(splits, ["huffman", "random"], tmp_path / "two")
    compare(splits, ["random"], tmp_path / "one")
    weights = "runs/random/seed-0/model/weights.safetensors"
    assert (tmp_path / "one" / weights).read_bytes() == (tmp_path / "two" / weights).read_bytes()


def test_each_finished_candidate_is_told_with_those_that_are_pending(splits, tmp_path):
    told = []
    compare(
        splits, ["huffman", "random", "flat"], tmp_path,
        updated=lambda found: told.append((names(found), found.pending)),
    )  # fmt: skip
    assert told == [
        (["huffman"], ["random", "flat"]),
        (["huffman", "random"], ["flat"]),
        (["huffman", "random", "flat"], []),
    ]


def test_the_plan_has_every_job_and_the_seconds_of_finished_ones(compared, splits):
    planned = plan(splits, ["balanced"], compared.folder, stop=hstree.Epochs(2), seeds=2, **QUICK)
    to_do = [(job.candidate.name, job.seed) for job, p in planned.jobs.items() if not p.is_finished]
    assert to_do == [("balanced", 0), ("balanced", 1)]
    assert len(planned.jobs) == 21
    assert all(p.seconds > 0 for p in planned.jobs.values() if p.is_finished)


def test_another_model_text_or_rule_needs_force(splits, tmp_path):
    compare(splits, ["huffman"], tmp_path)
    other = Splits(splits.train, splits.test, splits.valid)
    for text, options, saying in [
        (splits, {"dim": 4}, "its dim is 8, here it is 4; choose another folder, or force"),
        (splits, {"stop": hstree.Epochs(3)}, "its rule is at most 1 epoch"),
        (other, {}, r"its valid split is lines .* of text\.txt"),
    ]:
        with pytest.raises(InputError, match=saying):
            compare(text, ["huffman"], tmp_path, **options)
    assert len(compare(splits, ["random"], tmp_path, force=True, dim=4).candidates) == 1


def test_a_folder_at_work_is_refused(splits, tmp_path):
    with locked(tmp_path), pytest.raises(InputError, match="another process"):
        compare(splits, ["huffman"], tmp_path)


@pytest.mark.parametrize(
    ("options", "saying"),
    [
        ({"epochs": 3}, r"stop=hstree.Epochs\(3\)"),
        ({"seconds": 3}, r"stop=hstree.Seconds\(3\)"),
        ({"minutes": 3}, r"stop=hstree.Halving\(3\)"),
        ({"stop": 5}, r"stop is 5; give hstree.Epochs\(20\)"),
        ({"stop": hstree.Halving(0)}, r"stop is Halving\(minutes=0\)"),
        ({"seeds": 0}, "seeds is 0"),
        ({"seeds": "2"}, "seeds is '2'"),
        ({"seeds": 1.5}, "seeds is 1.5"),
        ({"speed_rounds": "a"}, "speed_rounds is 'a'"),
        ({"speed_rounds": -1}, "speed_rounds is -1"),
        ({"nosuch": 1}, "nosuch"),
        ({"model": "cbow"}, "remove the n-gram models"),
    ],
)
def test_bad_options_are_refused_before_anything_is_written(splits, tmp_path, options, saying):
    options = {name: v for name, v in QUICK.items() if options.get("model") != "cbow"} | options
    with pytest.raises(OptionError, match=saying):
        hstree.compare(splits, ["huffman", "kn2"], tmp_path / "new", **{"stop": ONE, **options})
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("candidates", ["huffman", Candidate.parse("huffman")])
def test_one_candidate_is_a_list_too(candidates, splits, tmp_path):
    with pytest.raises(OptionError, match=r'candidates=\["huffman"\]'):
        hstree.compare(splits, candidates, tmp_path)


@pytest.mark.filterwarnings("ignore:.*diverged")
@pytest.mark.parametrize("stop", [hstree.Epochs(1), hstree.Halving(5)])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_tree_whose_vectors_cannot_be_learned_ends_its_candidate(stop, n_jobs, splits, tmp_path):
    options = {"stop": stop, "n_jobs": n_jobs, "learning_rate": 1e200}
    candidates = ["gmm", "2 x gmm + ngrams", "kn2"]
    for _ in range(2):  # the second comparison reads the results of the first
        with pytest.warns(UserWarning, match="gmm: random has no vectors: .*diverged"):
            compared = compare(splits, candidates, tmp_path, **options)
        gmm, twice, kn2 = compared.candidates
        assert "no vectors" in gmm.failed
        assert "no vectors" in twice.failed
        assert gmm.tree is None
        assert kn2.test is not None
        page = report.write(compared, tmp_path / "page.html")
        assert "no vectors" in page.read_text(encoding="utf-8")


def test_an_evaluation_is_a_comparison_of_one_candidate(splits, tmp_path):
    models = []
    found = hstree.evaluate("gmm", splits, stop=ONE, trained=models.append, **QUICK)
    assert models == [found.model]
    same = compare(splits, ["gmm"], tmp_path)
    assert found.candidate.perplexity == same.candidates[0].perplexity
    assert found.model.perplexity(splits.test) == pytest.approx(found.perplexity)
    assert found.train == pytest.approx(found.model.perplexity(splits.train), rel=1e-6)


def test_an_evaluation_takes_one_model_to_train(splits):
    for candidate in ("kn2", "2 x huffman"):
        with pytest.raises(OptionError, match="is not one model to train"):
            hstree.evaluate(candidate, splits, **QUICK)


@pytest.mark.skipif(find_spec("numba") is None, reason=NUMBA)
def test_a_job_is_done_anew_by_other_kernels(splits, tmp_path, monkeypatch):
    """Sums of kernels are rounded otherwise, and what they train may be word by word."""
    weights = []
    for asked in ("1", "0"):
        monkeypatch.setenv("HSTREE_FAST", asked)
        found = hstree.evaluate("huffman", splits, folder=tmp_path, stop=ONE, **QUICK)
        assert (found.comparison.versions["kernels"] == "numpy") == (asked == "0")
        weights.append(found.model.layer.weight)
    assert not np.array_equal(*weights)


@pytest.mark.skipif(find_spec("numba") is None, reason=NUMBA)
@pytest.mark.parametrize(
    ("epochs", "options", "compiles"),
    [(1, {}, False), (10**6, {}, True), (1, {"model": "cbow", "online": True}, True)],
)
def test_kernels_train_where_the_text_is_long_or_they_are_asked_for(
    splits, monkeypatch, epochs, options, compiles
):
    monkeypatch.delenv("HSTREE_FAST", raising=False)
    setting, _ = read_setting(splits, ["huffman"], hstree.Epochs(epochs), 1, options)
    with setting.backend():
        assert (backend_name() != "numpy") == compiles
