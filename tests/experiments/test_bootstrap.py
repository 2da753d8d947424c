"""The bootstrap: every artefact kept, nothing finished done twice, nothing stale reused."""

import json

import numpy as np
import pytest

import hstree
from hstree import progress
from hstree._displays import Lines
from hstree.errors import FileFormatError, InputError, OptionError
from hstree.experiments.bootstrap import bootstrap, plan_of
from hstree.experiments.entries import Method
from hstree.experiments.evaluation import corpus_splits
from hstree.experiments.runs import built_tree, run, vectors_of
from hstree.models.lbl import LanguageModel, LogBilinearTrainer
from tests.texts import corpus_of, markov_lines

SMALL = {"dim": 8, "context": 2, "epochs": 2, "batch_size": 64}


@pytest.fixture
def splits(tmp_path):
    return corpus_splits(corpus_of(tmp_path, markov_lines(4_000, 0)[0]))


def test_a_bootstrap_keeps_every_artefact(splits, tmp_path):
    done = dict(bootstrap(splits, tmp_path / "b", rounds=2, **SMALL))
    assert list(done) == ["round-0", "round-1", "round-2"]
    for name, result in done.items():
        folder = tmp_path / "b" / name
        assert json.loads((folder / "result.json").read_text()) == result.as_dict()
        tree = hstree.load(folder / "tree.json")
        assert tree.sha256 == result.tree.sha256
        assert vectors_of(folder).labels == tree.labels
        model = LanguageModel.load(folder / "model")
        assert model.perplexity(splits.test) == result.perplexity["test"]
    assert done["round-0"].tree.method == "random"
    assert done["round-1"].tree.method == "gmm"


def test_later_rounds_grow_from_the_better_model(splits, tmp_path):
    done = dict(bootstrap(splits, tmp_path / "b", rounds=2, **SMALL))
    better = min(("round-0", "round-1"), key=lambda name: done[name].valid)
    tree = hstree.load(tmp_path / "b" / "round-2" / "tree.json")
    assert tree.meta["input"]["sha256"] == vectors_of(tmp_path / "b" / better).sha256


def test_a_warm_start_takes_the_vectors_of_the_better_model(splits, tmp_path, trainings):
    given = {"rounds": 2, "warm_start": True, **SMALL}
    done = dict(bootstrap(splits, tmp_path / "b", **given))
    better = min(("round-0", "round-1"), key=lambda name: done[name].valid)
    source = LanguageModel.load(tmp_path / "b" / better / "model")
    tree = hstree.load(tmp_path / "b" / "round-2" / "tree.json")
    again = LanguageModel(tree, **SMALL).fit(splits.train, splits.valid, warm_start=source)
    assert again.perplexity(splits.test) == done["round-2"].perplexity["test"]
    trained = len(trainings)
    assert dict(bootstrap(splits, tmp_path / "b", **given)) == done
    assert len(trainings) == trained
    with pytest.raises(InputError, match="round-1 has a finished round of another"):
        dict(bootstrap(splits, tmp_path / "b", rounds=2, **SMALL))
    for warm, kept in ((True, [True, True, True]), (False, [True, False, False])):
        plan = plan_of(splits, tmp_path / "b", rounds=2, warm_start=warm, **SMALL)
        assert [round.finished for round in plan.runs] == kept


def test_a_warm_run_is_of_the_vectors_that_it_began_with(splits, tmp_path, trainings):
    tree = hstree.build("huffman", splits.train)
    run(tree, splits, tmp_path / "a", **SMALL)
    given = {"warm_start": tmp_path / "a", **SMALL}
    first = run(tree, splits, tmp_path / "b", **given)
    assert run(tree, splits, tmp_path / "b", **given) == first
    assert len(trainings) == 2
    other = LanguageModel(tree, **{**SMALL, "random_state": 1}).fit(splits.train)
    other.save(tmp_path / "a" / "model")
    assert run(tree, splits, tmp_path / "b", **given).perplexity != first.perplexity
    with pytest.raises(FileFormatError, match=r"config\.json"):
        run(tree, splits, tmp_path / "b", warm_start=tmp_path / "none", **SMALL)


def test_the_time_left_is_that_of_all_rounds(splits, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("hstree._displays.LINE_PATIENCE", 0.0)
    given = {"methods": ["gmm", "kmeans"], "planned": lambda plan: None, **SMALL}
    with progress.shown_by(Lines()):
        done = dict(bootstrap(splits, tmp_path / "b", **given))
    assert list(done) == ["round-0", "round-1", "round-2"]
    said = capsys.readouterr().err
    for round in ("round 0, random", "round 1, gmm", "round 2, kmeans"):
        assert f"{round}, epoch 1 of 2, validation" in said


def test_rounds_of_several_methods_grow_from_the_best_model_so_far(splits, tmp_path, trainings):
    by_vectors = ("classes", {"cluster_by": "vectors", "n_classes": 3})
    methods = [by_vectors, "kmeans", "balanced"]
    given = {"methods": methods, "first": "huffman", "rounds": 4, **SMALL}
    plans = []
    done = dict(bootstrap(splits, tmp_path / "b", planned=plans.append, **given))
    assert [result.tree.method for result in done.values()] == [
        "huffman", "classes", "kmeans", "balanced", "balanced",
    ]  # fmt: skip
    assert [run.entry.method for run in plans[0].runs] == [
        "huffman", "classes", "kmeans", "balanced", "balanced",
    ]  # fmt: skip
    trees = [hstree.load(tmp_path / "b" / name / "tree.json") for name in done]
    names = list(done)
    for number in (1, 2):
        best = min(names[:number], key=lambda name: done[name].valid)
        learned = vectors_of(tmp_path / "b" / best)
        if number == 2:
            expected = hstree.build("kmeans", learned, random_state=0)
        else:
            file = tmp_path / "b" / best / "vectors.npy"
            expected = hstree.build("classes", splits.train, vectors_file=file, **by_vectors[1])
        assert trees[number] == expected
    assert trees[3] == trees[4] == hstree.build("balanced", splits.train)
    trained = len(trainings)
    assert dict(bootstrap(splits, tmp_path / "b", **given)) == done
    assert len(trainings) == trained


def test_what_is_finished_is_not_done_again(splits, tmp_path, trainings):
    first = dict(bootstrap(splits, tmp_path / "b", **SMALL))
    assert len(trainings) == 2
    assert dict(bootstrap(splits, tmp_path / "b", **SMALL)) == first
    assert len(trainings) == 2
    (tmp_path / "b" / "round-1" / "result.json").write_text('{"half')
    assert dict(bootstrap(splits, tmp_path / "b", **SMALL)).keys() == first.keys()
    assert len(trainings) == 3
    dict(bootstrap(splits, tmp_path / "b", rounds=2, **SMALL))
    assert len(trainings) == 4


@pytest.mark.parametrize("change", [{"dim": 9}, {"random_state": 1}])
def test_nothing_stale_is_reused(splits, tmp_path, trainings, change):
    dict(bootstrap(splits, tmp_path / "b", **SMALL))
    before = {file: file.read_bytes() for file in (tmp_path / "b").rglob("*.json")}
    with pytest.raises(InputError, match="round-0 has a finished round of another text, tree"):
        dict(bootstrap(splits, tmp_path / "b", **{**SMALL, **change}))
    assert {file: file.read_bytes() for file in (tmp_path / "b").rglob("*.json")} == before
    dict(bootstrap(splits, tmp_path / "b", force=True, **{**SMALL, **change}))
    assert len(trainings) == 4


def test_other_options_of_the_builder_grow_another_tree(splits, tmp_path, trainings):
    dict(bootstrap(splits, tmp_path / "b", **SMALL))
    other = {"methods": [("gmm", {"split": "balanced"})], **SMALL}
    with pytest.raises(InputError, match="round-1 has a finished round of another"):
        dict(bootstrap(splits, tmp_path / "b", **other))
    dict(bootstrap(splits, tmp_path / "b", force=True, **other))
    assert len(trainings) == 3
    tree = hstree.load(tmp_path / "b" / "round-1" / "tree.json")
    assert tree.meta["options"]["split"] == "balanced"


def test_an_interrupted_training_stops_and_leaves_what_was_there(splits, tmp_path, monkeypatch):
    first = dict(bootstrap(splits, tmp_path / "b", **SMALL))
    step = LogBilinearTrainer.step
    calls = []

    def interrupted(self, *given):
        calls.append(given)
        if len(calls) > 60:
            raise KeyboardInterrupt
        return step(self, *given)

    monkeypatch.setattr(LogBilinearTrainer, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dict(bootstrap(splits, tmp_path / "b", force=True, **{**SMALL, "dim": 9}))
    monkeypatch.undo()
    assert dict(bootstrap(splits, tmp_path / "b", **SMALL)) == first
    assert vectors_of(tmp_path / "b" / "round-0").dimension == 8


@pytest.mark.parametrize("name", ["vectors.npy", "vectors.labels.tsv", "tree.json", "model"])
def test_a_run_with_a_file_missing_is_done_again(splits, tmp_path, trainings, name):
    first = dict(bootstrap(splits, tmp_path / "b", **SMALL))
    (tmp_path / "b" / "round-0" / name).rename(tmp_path / "away")
    again = dict(bootstrap(splits, tmp_path / "b", **SMALL))
    assert again["round-1"].perplexity == first["round-1"].perplexity
    # The tree is built anew, and then it is the one that the run was trained on.
    assert len(trainings) == (2 if name == "tree.json" else 3)


def test_a_damaged_tree_is_grown_anew(splits, tmp_path):
    run(hstree.build("random", splits.train), splits, tmp_path / "r", **SMALL)
    vectors = vectors_of(tmp_path / "r")
    tree = built_tree(vectors, tmp_path / "g", "gmm", {})
    (tmp_path / "g" / "tree.json").write_text("[]")
    assert built_tree(vectors, tmp_path / "g", "gmm", {}) == tree
    assert hstree.load(tmp_path / "g" / "tree.json") == tree


@pytest.fixture
def builds(monkeypatch):
    """Count the trees that `built_tree` builds."""
    seen = []
    build = hstree.build
    monkeypatch.setattr(
        "hstree.experiments.runs.build",
        lambda *given, **more: seen.append(given) or build(*given, **more),
    )
    return seen


@pytest.mark.parametrize("method", ["huffman", "classes"])
def test_a_tree_of_a_text_is_built_once(splits, tmp_path, builds, method):
    tree = built_tree(splits.train, tmp_path / "g", method, {})
    assert built_tree(splits.train, tmp_path / "g", method, {}) == tree
    assert len(builds) == 1


def test_a_tree_of_a_text_is_built_anew_for_other_words_counts_lines_or_options(
    splits, tmp_path, builds
):
    words = splits.train.select_vocabulary(max_size=5)
    fewer = splits.train.with_vocabulary(words)
    absent = [hstree.Vocabulary([*words.words, word], [*words.counts, 0]) for word in "xy"]
    changed = [
        (splits.train, {}),
        (fewer, {}),
        (fewer.limited_to(splits.train.select_vocabulary(max_size=4)), {}),
        *((splits.train.with_vocabulary(vocabulary), {}) for vocabulary in absent),
        (splits.train.select_lines(0, 50), {}),
        (splits.train.select_lines(0, 50), {"arity": 3}),
    ]
    for number, (corpus, options) in enumerate(changed, 1):
        tree = built_tree(corpus, tmp_path / "g", "huffman", options)
        assert len(builds) == number
        assert tree == hstree.build("huffman", corpus, **options)


def test_a_tree_is_built_anew_for_another_file_of_an_option(splits, tmp_path, builds):
    vectors = tmp_path / "v.npy"
    options = {"cluster_by": "vectors", "vectors_file": vectors}
    for number, seed in enumerate((0, 0, 1)):
        drawn = np.random.default_rng(seed).standard_normal((len(splits.train.vocabulary), 3))
        hstree.WordVectors(splits.train.vocabulary.words, drawn).save(vectors)
        tree = built_tree(splits.train, tmp_path / "g", "classes", options)
        assert len(builds) == max(1, number)
        assert tree == hstree.build("classes", splits.train, **options)


def test_what_a_folder_of_an_option_holds_is_not_known(splits, tmp_path, builds):
    for _ in range(2):
        with pytest.raises(InputError):
            built_tree(splits.train, tmp_path / "g", "wordnet", {"source": str(tmp_path)})
    built_tree(splits.train, tmp_path / "g", "huffman", {})
    assert len(builds) == 3


def test_a_tree_of_a_vocabulary_depends_on_its_counts(tmp_path, builds):
    for counts in ([9, 1, 1], [9, 1, 1], [1, 1, 9]):
        words = hstree.Vocabulary(["a", "b", "c"], counts)
        assert built_tree(words, tmp_path / "g", "huffman", {}) == hstree.build("huffman", words)
    assert len(builds) == 2


def test_there_is_at_least_one_round(splits, tmp_path):
    with pytest.raises(OptionError, match="rounds is 0"):
        bootstrap(splits, tmp_path / "b", rounds=0, **SMALL)


def test_arguments_are_checked_before_the_first_round_is_asked_for(splits, tmp_path):
    for wrong in (
        {"first": "gmm"},
        {"first": ("classes", {"cluster_by": "vectors"})},
        {"methods": [("gmm", {"trees": 0})]},
        {"methods": []},
        {"methods": ["gmm", "kmeans"], "rounds": 1},
        {"methods": ["sampled"]},
        {"methods": ["kn3"]},
        {"methods": [Method("gmm", vectors_from=Method("huffman"))]},
        {"dimm": 3},
    ):
        with pytest.raises(OptionError):
            bootstrap(splits, tmp_path / "b", **{**SMALL, **wrong})
    with pytest.raises(InputError, match=r"Corpus\.read"):
        bootstrap("c.txt", tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_rounds_may_have_another_layer_over_their_trees(splits, tmp_path, trainings):
    over = Method("gmm", layer="ngrams", layer_options={"words": 2})
    done = dict(bootstrap(splits, tmp_path / "b", methods=[over], **SMALL))
    assert done["round-0"].layer is None
    assert done["round-1"].layer.name == "ngrams"
    n_trained = len(trainings)
    again = dict(bootstrap(splits, tmp_path / "b", methods=[over], **SMALL))
    assert again["round-1"] == done["round-1"]
    assert len(trainings) == n_trained
    with pytest.raises(InputError, match="finished round of another"):
        dict(bootstrap(splits, tmp_path / "b", methods=["gmm"], **SMALL))
