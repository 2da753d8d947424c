"""Several trees under one budget, each finished run kept."""

import json
from dataclasses import replace

import numpy as np
import pytest

import hstree
from hstree.errors import FileFormatError, InputError, OptionError
from hstree.experiments import compare, results
from hstree.experiments.entries import Ensemble, Layer, Method, NamedOutput
from hstree.experiments.evaluation import corpus_splits, evaluate
from hstree.experiments.results import TreeFigures
from hstree.experiments.runs import locked, nll_of, vectors_of
from hstree.layers.registry import LAYERS, layer_spec
from hstree.models.lbl import LanguageModel
from tests.texts import corpus_of, markov_lines

pytestmark = pytest.mark.usefixtures("short_turns")

QUICK = {"dim": 8, "context": 2, "epochs": 2, "batch_size": 64}
ENTRIES = (
    "random",
    "huffman",
    ("gmm", {"epsilon": 0.4}),
    ("classes", {"cluster_by": "vectors"}),
    "flat",
)
METHODS = ("random", "huffman", "gmm epsilon=0.4", "classes cluster_by=vectors", "flat")


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    return corpus_splits(corpus_of(tmp_path_factory.mktemp("text"), markov_lines(2_500, 0)[0]))


def timeless(found):
    """Return results without what a clock measured."""
    clock = {"seconds", "tokens_per_second", "seconds_per_epoch", "speed_up", "from_text"}
    clock |= {"speed_rounds", "scoring"}
    found = found.as_dict() if isinstance(found, results.Comparison) else found
    if isinstance(found, dict):
        kept = {key: timeless(value) for key, value in found.items() if key not in clock}
        if kept.get("choice"):
            kept["choice"] = {"best": kept["choice"]["best"]}
        return kept
    return [timeless(value) for value in found] if isinstance(found, list) else found


@pytest.fixture(scope="module")
def compared(splits, tmp_path_factory):
    home = tmp_path_factory.mktemp("compared")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("hstree.experiments.throughput.TURN", 0.001)
        found = compare(splits, [*ENTRIES, "kn2"], home, seeds=2, **QUICK)
    return home, found


def test_every_row_has_its_figures(compared, splits):
    home, found = compared
    assert [row.name for row in found.rows] == [*METHODS, "kn2"]
    for row in found.rows[:-1]:
        assert [run.seed for run in row.runs] == [0, 1]
        tree = hstree.load(home / row.tree_file)
        assert row.tree == TreeFigures.of(tree.stats())
        assert (row.method, row.options) == (tree.meta["method"], tree.meta["options"])
        lengths = row.code_lengths
        assert sum(band.codes for band in lengths) == row.tree.codes_per_label * tree.n_labels
        assert sum(band.tokens for band in lengths) == pytest.approx(len(splits.train))
        model = LanguageModel.load(home / row.runs[0].folder / "model")
        arrays = (
            *(model.context_model.embedding, model.context_model.position),
            *(model.layer.weight, model.layer.bias),
        )
        assert row.parameters == sum(array.size for array in arrays)
        tests = [run.perplexity["test"] for run in row.runs]
        assert row.perplexity["test"].mean == pytest.approx(np.mean(tests))
        assert row.perplexity["test"].sd == pytest.approx(np.std(tests, ddof=1))
        assert row.seconds_per_epoch * row.tokens_per_second == pytest.approx(len(splits.train))
        # A chain of first order has a lower perplexity than its unigram distribution.
        assert row.perplexity["test"].mean < found.unigram


def test_a_row_is_what_evaluate_finds(compared, splits):
    _, found = compared
    for row in found.rows:
        if row.name in ("huffman", "flat"):
            tree = hstree.build(row.name, splits.train)
            for seed, run in enumerate(row.runs):
                alone = evaluate(tree, splits, **QUICK, random_state=seed)
                assert run.perplexity["test"] == alone.test.perplexity


def test_vectors_are_learned_once_on_the_random_tree(compared, splits):
    home, found = compared
    for row, seed in ((row, seed) for row in found.rows[2:4] for seed in (0, 1)):
        folder = home / row.runs[seed].folder
        tree = hstree.load(folder / "tree.json")
        learned = vectors_of(home / "runs" / "random" / f"seed-{seed}")
        assert tree.meta["random_state"] == seed
        if row.method == "gmm":
            assert tree.meta["input"]["sha256"] == learned.sha256
        else:
            same = hstree.build(
                "classes",
                splits.train,
                cluster_by="vectors",
                vectors_file=home / "runs" / "random" / f"seed-{seed}" / "vectors.npy",
                random_state=seed,
            )
            assert tree == same


def test_ratios_are_to_the_flat_softmax(compared, splits):
    home, found = compared
    by_name = {row.name: row for row in found.rows}
    flat = by_name["flat"]
    assert (flat.to_flat.ratio, flat.to_flat.p, flat.speed_up) == (1, None, 1)
    means = {
        name: np.mean([nll_of(home / run.folder, splits).mean() for run in row.runs])
        for name, row in by_name.items()
        if row.kind == "tree"
    }
    for name, mean in means.items():
        ratio = by_name[name].to_flat
        assert ratio.ratio == pytest.approx(np.exp(mean - means["flat"]), rel=1e-3)
    # 252 tokens of a test part are too short to tell.
    kn2 = by_name["kn2"]
    assert (kn2.to_flat.low, kn2.to_flat.p, kn2.to_flat.blocks) == (None, None, 0)
    assert kn2.speed_up is None


def test_costs_count_from_the_text_on(compared):
    home, found = compared
    by_name = {row.name: row for row in found.rows}
    for name, row in by_name.items():
        steps = row.from_text
        before = steps.vectors + steps.tree + steps.preparation
        assert steps.seconds == pytest.approx(before + steps.training)
        flat = by_name["flat"].from_text.seconds
        assert steps.speed_up == pytest.approx(flat / steps.seconds)
        if name == "kn2":
            continue
        epochs = np.mean([len(run.epochs) for run in row.runs])
        assert steps.training == pytest.approx(epochs * row.seconds_per_epoch)
        built = [json.loads((home / run.folder / "build.json").read_text()) for run in row.runs]
        assert steps.tree == pytest.approx(np.mean([one["seconds"] for one in built]))
    # What is built from vectors includes the model that learned them: the random tree's.
    random = by_name["random"].from_text
    for name in ("gmm epsilon=0.4", "classes cluster_by=vectors"):
        assert by_name[name].from_text.vectors == pytest.approx(random.seconds)
    for name in ("random", "huffman", "flat"):
        assert by_name[name].from_text.vectors == 0


def test_a_tree_that_was_not_built_here_has_no_seconds_from_the_text(splits, tmp_path):
    folder = tmp_path / "c"
    tree = hstree.build("huffman", splits.train, arity=3)
    entries = ["huffman", "gmm", NamedOutput("mine.json", tree)]
    given = {**QUICK, "epochs": 1}
    first = {row.name: row.from_text for row in compare(splits, entries, folder, **given).rows}
    assert first["mine.json"] is None
    # The random tree was not asked for: it is timed for what it is to the mixture tree.
    assert first["gmm"].vectors > 0
    for place in folder.glob("runs/*/seed-0/build.json"):
        place.write_text('{"tree": "another", "seconds": 1.0}' if "random" in str(place) else "[]")
    again = {row.name: row.from_text for row in compare(splits, entries, folder, **given).rows}
    assert again == dict.fromkeys(again)


def test_vectors_come_from_the_row_that_is_named(splits, tmp_path):
    first = Method("gmm", {"trees": 2})
    second = Method("gmm", name="second round", vectors_from=first)
    (row,) = compare(splits, [second], tmp_path / "c", **QUICK).rows
    tree = hstree.load(tmp_path / "c" / row.tree_file)
    learned = tmp_path / "c" / "runs" / first.slug / "seed-0"
    assert tree.meta["input"]["sha256"] == vectors_of(learned).sha256
    assert second.slug == f"gmm-from-{first.slug}"
    # The random tree's model and the first mixture tree's come before it.
    alone = compare(splits, [first], tmp_path / "c", only=True, **QUICK).rows[0].from_text
    assert row.from_text.vectors > alone.tree
    assert len(list(tmp_path.glob("c/runs/*/seed-0/result.json"))) == 3


def test_a_corpus_is_split_as_every_command_splits_it(tmp_path, splits):
    text = corpus_of(tmp_path, markov_lines(2_500, 0)[0])
    found = compare(text, ["huffman", hstree.build("flat", text)], tmp_path / "c", **QUICK)
    assert found.tokens == {name: len(part) for name, part in splits.as_dict().items()}
    assert found.rows[1].name.startswith("tree ")


def test_the_choice_is_made_on_the_validation_part(compared):
    _, found = compared
    trees = [row for row in found.rows if row.kind == "tree"]
    best = min(trees, key=lambda row: row.perplexity["valid"].mean)
    assert found.choice.by == "valid"
    assert (found.choice.best, found.choice.among) == (best.name, len(trees))


def test_rows_that_stopped_at_the_limit_of_epochs_are_told(compared, splits, tmp_path, monkeypatch):
    _, found = compared
    assert {row.name: row.at_epoch_limit for row in found.rows} == {
        **dict.fromkeys(METHODS, 2), "kn2": 0,
    }  # fmt: skip
    # At a rate this low the validation perplexity never falls by as much as it must.
    given = QUICK | {"epochs": 30, "learning_rate": 1e-12}
    (row,) = compare(splits, ["huffman"], tmp_path / "c", **given).rows
    assert row.at_epoch_limit == 0
    # Converged in its last epoch: that is not the limit's doing.
    given["epochs"] = len(row.runs[0].epochs)
    (row,) = compare(splits, ["huffman"], tmp_path / "d", **given).rows
    assert (len(row.runs[0].epochs), row.at_epoch_limit) == (given["epochs"], 0)
    # A schedule that ends with its epochs has no limit to stop at.
    given = {"model": "cbow", "dim": 8, "epochs": 1}
    (row,) = compare(splits, ["huffman"], tmp_path / "e", **given).rows
    assert row.at_epoch_limit == 0


def test_rows_say_how_many_tokens_wordnet_has(tmp_path):
    lines = ["the dogs and the cat ran"] * 60
    splits = corpus_splits(corpus_of(tmp_path, lines))
    found = compare(splits, ["wordnet", "huffman"], tmp_path / "c", **QUICK).rows
    # dogs, cat and ran of six words and an <eos>.
    assert [row.in_wordnet for row in found] == [pytest.approx(3 / 7), None]
    ids = splits.test.ids(slice(None))
    covered = [splits.train.vocabulary.words[i] in ("dogs", "cat", "ran") for i in ids]
    for row in found:
        (nll,) = (np.load(tmp_path / "c" / run.folder / "test_nll.npy") for run in row.runs)
        assert row.covered == pytest.approx(np.exp(nll[covered].mean()))


def test_bands_add_up_to_the_perplexity(compared, splits):
    _, found = compared
    tokens = np.array([band.tokens for band in found.bands])
    assert tokens.sum() == len(splits.test)
    assert sum(band.words for band in found.bands) == len(splits.train.vocabulary)
    kn2 = found.rows[-1]  # one run, so that nothing is averaged
    own = np.array([np.nan if p is None else p for p in kn2.by_band])
    total = np.nansum(tokens * np.log(own)) / tokens.sum()
    assert np.exp(total) == pytest.approx(kn2.perplexity["test"].mean)


def test_the_files_are_what_was_returned(compared):
    home, found = compared
    assert results.load(home) == found
    lines = (home / "results.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == [*METHODS, "kn2"]
    assert not list(home.glob("**/.*.json*"))


def test_what_is_finished_is_not_done_again_and_a_new_method_adds_its_row(
    splits, tmp_path, trainings
):
    methods = ["random", "gmm"]
    first = compare(splits, methods, tmp_path / "c", **QUICK)
    assert len(trainings) == 2
    again = compare(splits, methods, tmp_path / "c", **QUICK)
    assert timeless(again) == timeless(first)
    more = compare(splits, ["flat", "gmm", "random"], tmp_path / "c", **QUICK)
    assert len(trainings) == 3
    assert [row.name for row in more.rows] == ["random", "gmm", "flat"]
    for before, after in zip(first.rows, more.rows[:2], strict=True):
        assert after.runs == before.runs
        assert (before.to_flat, after.to_flat.blocks) == (None, 0)


@pytest.mark.parametrize(
    "change", [{"dim": 9}, {"random_state": 1}, {"learning_rate": 0.2}, {"vocabulary": 6}]
)
def test_nothing_stale_is_reused(splits, tmp_path, trainings, change):
    compare(splits, ["huffman"], tmp_path / "c", **QUICK)
    given = QUICK | change
    other = splits
    if (size := given.pop("vocabulary", None)) is not None:
        words = splits.train.select_vocabulary(max_size=size)
        other = type(splits)(
            *(p.with_vocabulary(words) for p in (splits.train, splits.valid, splits.test))
        )
    found = compare(other, ["huffman"], tmp_path / "c", force=True, **given)
    assert len(trainings) == 2
    if size is not None:
        assert found.vocabulary.size == found.rows[0].tree.labels == size
    alone = evaluate(hstree.build("huffman", other.train), other, **given)
    assert found.rows[0].runs[0].perplexity["test"] == alone.test.perplexity


def test_a_tree_that_is_there_already(splits, tmp_path, trainings):
    tree = hstree.build("huffman", splits.train, arity=3)
    found = compare(
        splits, ["huffman", NamedOutput("mine.json", tree)], tmp_path / "c", seeds=2, **QUICK
    )
    mine = found.rows[1]
    assert hstree.load(tmp_path / "c" / mine.tree_file) == tree
    assert (mine.name, mine.method, len(mine.runs)) == ("mine.json", "huffman", 2)
    assert len(trainings) == 4


def test_trees_without_counts_and_with_others_are_weighed_by_the_training_part(splits, tmp_path):
    built = hstree.build("huffman", splits.train)
    bare = hstree.Tree(built.labels, built.child_start, built.child)
    other = hstree.Tree(
        built.labels, built.child_start, built.child, counts=range(1, built.n_labels + 1)
    )
    found = compare(
        splits,
        [NamedOutput("bare.npz", bare), NamedOutput("other.npz", other)],
        tmp_path / "c",
        **QUICK | {"epochs": 0},
    )
    weighed = TreeFigures.of(built.stats())
    for row, tree in zip(found.rows, (bare, other), strict=True):
        assert (row.method, row.options, row.tree.method) == (None, {}, None)
        assert row.tree == replace(weighed, method=None, sha256=tree.sha256)
        tokens = sum(band.tokens for band in row.code_lengths)
        assert tokens == pytest.approx(len(splits.train))


def test_a_text_of_one_word_has_a_tree_without_codes(tmp_path):
    splits = corpus_splits(corpus_of(tmp_path, [""] * 30))
    found = compare(splits, ["random", "flat"], tmp_path / "c", **QUICK)
    for row in found.rows:
        assert (row.code_lengths, row.perplexity["test"].mean) == ([], 1)


def test_a_tree_over_other_words_is_refused_before_anything_is_trained(splits, tmp_path, trainings):
    words = splits.train.select_vocabulary(max_size=4)
    other = hstree.build("huffman", splits.train.with_vocabulary(words))
    with pytest.raises(InputError, match=r"mine\.json is over 4 words .* can be compared over"):
        compare(splits, ["flat", NamedOutput("mine.json", other)], tmp_path / "c", **QUICK)
    assert trainings == []
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("entries", "given", "said"),
    [
        ([("gmm", {"arity": 3})], {}, "gmm has no option 'arity'"),
        (["flat"], {"dropout": 2.0}, "dropout"),
        (["flat"], {"seeds": 0}, "seeds is 0"),
        (["flat"], {"seeds": 10**20}, "seeds is 1000.*; it must be 1 to 100"),
        (["kn9"], {}, "kn9"),
        (["random", ("classes", {"n_classes": 99})], {}, "n_classes is 99"),
        (["kn3"], {"model": "cbow"}, "leave out the baselines"),
        (["huffman", ("nce", {"proposal": "kn"})], {"model": "cbow"}, "nce proposal=kn needs the"),
        (["huffman", "adaptive-importance"], {"model": "skipgram"}, "skipgram predicts"),
        (["huffman", ("differentiated", {"bands": "5:7,*:6"})], {"dim": 6}, "hidden vectors, 6"),
    ],
)
def test_options_are_refused_before_anything_is_trained(
    splits, tmp_path, trainings, entries, given, said
):
    budget = {"dim": 8} if "model" in given else QUICK
    with pytest.raises(OptionError, match=said):
        compare(splits, entries, tmp_path / "c", **budget | given)
    assert trainings == []


def test_only_one_comparison_at_a_time_works_in_a_folder(splits, tmp_path):
    with (
        locked(tmp_path / "c"),
        pytest.raises(InputError, match=r"another process is at work in .*c; wait"),
    ):
        compare(splits, ["flat"], tmp_path / "c", **QUICK)
    assert compare(splits, ["flat"], tmp_path / "c", **QUICK).rows


def test_a_baseline_is_fitted_once(splits, tmp_path, monkeypatch):
    first = compare(splits, ["kn3"], tmp_path / "c", **QUICK)
    assert first.choice is None
    monkeypatch.setattr("hstree.ngrams.kneser_ney.KneserNey.fit", lambda *a: pytest.fail("again"))
    assert compare(splits, ["kn3"], tmp_path / "c", **QUICK) == first


def test_output_layers_without_a_tree_are_rows(splits, tmp_path, monkeypatch):
    monkeypatch.setitem(LAYERS.native, "dense", "tests.layers.dense:DenseSoftmax")
    spec = layer_spec(splits.train.counted_vocabulary(), "dense", scale=2.0)
    entries = [Layer("flat", name="reference"), "dense", ("dense", {"scale": 0.5}), spec]
    comparison = compare(splits, entries, tmp_path / "c", **QUICK)
    flat, dense, *scaled = comparison.rows
    assert [(row.name, row.kind) for row in scaled] == [
        ("dense scale=0.5", "layer"),
        ("dense scale=2.0", "layer"),
    ]
    assert (flat.name, flat.kind, dense.method, dense.tree) == ("reference", "tree", "dense", None)
    assert dense.parameters == flat.parameters
    # The same softmax, as a tree of depth one and as one product
    assert dense.perplexity["test"].mean == pytest.approx(flat.perplexity["test"].mean, rel=1e-4)
    assert dense.to_flat.ratio == pytest.approx(1, rel=1e-4)
    assert dense.from_text.tree == 0
    assert comparison.choice.among == 4
    assert results.load(tmp_path / "c") == comparison
    assert timeless(compare(splits, entries, tmp_path / "c", **QUICK)) == timeless(comparison)


@pytest.mark.parametrize("projected", [True, False])
def test_bands_of_given_widths_are_rows(splits, tmp_path, projected):
    options = {"bands": "3:4,*:2", "projected": projected}
    found = compare(splits, [("differentiated", options)], tmp_path / "c", **QUICK | {"dim": 6})
    assert found.rows[0].options == options


def test_a_budget_of_seconds_is_recorded(splits, tmp_path, trainings):
    given = QUICK | {"epochs": 1000, "seconds": 0.01}
    (row,) = compare(splits, ["huffman"], tmp_path / "c", **given).rows
    assert (row.out_of_time, row.at_epoch_limit) == (1, 0)
    (run,) = row.runs
    assert all(epoch.share == 1 for epoch in run.epochs[:-1])
    assert sum(epoch.seconds for epoch in run.epochs) == pytest.approx(0.01, abs=0.1)
    training = sum(epoch.share for epoch in run.epochs) * row.seconds_per_epoch
    assert row.from_text.training == pytest.approx(training)
    found = results.load(tmp_path / "c")
    assert (found.rows[0], found.options["seconds"]) == (row, 0.01)
    kept = json.loads((tmp_path / "c" / run.folder / "result.json").read_text())
    assert (kept["out_of_time"], kept["converged"], kept["interrupted"]) == (True, False, False)
    compare(splits, ["huffman"], tmp_path / "c", **given)
    assert len(trainings) == 1
    # Without a budget it is not among the options, so that what was kept before it remains valid.
    compare(splits, ["huffman"], tmp_path / "d", **QUICK)
    assert "seconds" not in results.load(tmp_path / "d").options
    assert "seconds" not in (tmp_path / "d/runs/huffman/seed-0/model/config.json").read_text()


def test_ln_z_has_figures_of_its_own(splits, tmp_path, monkeypatch):
    monkeypatch.setitem(LAYERS.native, "own", "tests.layers.dense:SelfNormalised")
    found = compare(splits, ["own", "huffman"], tmp_path / "c", seeds=2, **QUICK)
    own, huffman = found.rows
    folders = [tmp_path / "c" / run.folder for run in own.runs]
    kept = [json.loads((folder / "result.json").read_text()) for folder in folders]
    for name in ("mean", "sd", "unnormalised_perplexity"):
        mean = np.mean([one["log_normaliser"][name] for one in kept])
        assert getattr(own.log_normaliser, name) == pytest.approx(mean)
    perplexity = own.perplexity["test"].mean
    assert own.log_normaliser.unnormalised_perplexity != pytest.approx(perplexity, rel=1e-4)
    assert huffman.log_normaliser is None
    assert results.load(tmp_path / "c") == found
    # ln Z may be negative; results of before it was measured can be read.
    file = tmp_path / "c" / "results.json"
    document = json.loads(file.read_text())
    assert "log_normaliser" not in document["rows"][1]
    document["rows"][0]["log_normaliser"]["mean"] = -0.5
    file.write_text(json.dumps(document))
    assert results.load(file).rows[0].log_normaliser.mean == -0.5
    document["rows"][0]["log_normaliser"]["mean"] = "much"
    file.write_text(json.dumps(document))
    with pytest.raises(FileFormatError, match='"mean" holds'):
        results.load(file)


def test_a_layer_over_a_tree_is_refused_by_name():
    with pytest.raises(OptionError, match="'tree' is over a tree; name a builder"):
        Layer("tree")


@pytest.fixture(scope="module")
def of_ensembles(splits, tmp_path_factory):
    home = tmp_path_factory.mktemp("ensembles")
    gmm = Method("gmm", {"epsilon": 0.45})
    entries = [Ensemble(gmm, 2), gmm, Ensemble(Layer("sampled", {"samples": 5}), 3), "flat"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("hstree.experiments.throughput.TURN", 0.001)
        patched.setattr("hstree.experiments.throughput.TESTING_TURN", 0.001)
        found = compare(splits, entries, home, seeds=2, **QUICK)
    return home, found


def test_the_models_of_an_ensemble_have_random_states_of_their_own(of_ensembles):
    home, found = of_ensembles
    two, one, three, _ = found.rows
    assert [row.name for row in found.rows] == [
        "2 x gmm epsilon=0.45", "gmm epsilon=0.45", "3 x sampled samples=5", "flat",
    ]  # fmt: skip
    assert [row.models for row in found.rows] == [2, 1, 3, 1]
    assert [run.seed for run in two.runs] == [0, 1, 2, 3]
    assert [run.seed for run in three.runs] == [0, 1, 2, 3, 4, 5]
    assert one.runs == two.runs[:2]
    trees = {hstree.load(home / run.folder / "tree.json").sha256 for run in two.runs}
    assert len(trees) == 4
    assert len({path.parent.name for path in home.glob("runs/random/*/model")}) == 4


def test_an_ensemble_has_the_mean_of_the_probabilities(of_ensembles, splits):
    home, found = of_ensembles
    two = found.rows[0]
    per_seed = []
    for a, b in (two.runs[:2], two.runs[2:]):
        nlls = [nll_of(home / run.folder, splits) for run in (a, b)]
        per_seed.append(np.exp(-np.log(np.mean(np.exp(-np.array(nlls)), axis=0)).mean()))
        loaded = hstree.Ensemble([hstree.load_model(home / r.folder / "model") for r in (a, b)])
        assert loaded.perplexity(splits.test) == pytest.approx(per_seed[-1])
    test = two.perplexity["test"]
    assert (test.mean, test.n) == (pytest.approx(np.mean(per_seed)), 2)
    assert test.sd == pytest.approx(np.std(per_seed, ddof=1))
    valid = [
        np.exp(-np.log(np.mean(np.exp(-np.array(nlls)), axis=0)).mean())
        for pair in (two.runs[:2], two.runs[2:])
        for nlls in [[nll_of(home / run.folder, splits, "valid") for run in pair]]
    ]
    assert two.perplexity["valid"].mean == pytest.approx(np.mean(valid))
    of_flat = found.rows[3].perplexity["test"].mean
    assert two.to_flat.ratio == pytest.approx(test.mean / of_flat, rel=0.01)


def test_an_ensemble_costs_what_its_models_cost(of_ensembles):
    home, found = of_ensembles
    two, one, three, flat = found.rows
    folders = [home / run.folder for run in two.runs[:2]]
    trees = [hstree.load(folder / "tree.json") for folder in folders]
    of_trees = [TreeFigures.of(tree.stats()) for tree in trees]
    lengths = [figures.code_length.weighted for figures in of_trees]
    assert lengths[0] != lengths[1]
    assert two.tree.code_length.weighted == pytest.approx(sum(lengths))
    scores = [figures.scores_per_target for figures in of_trees]
    assert two.tree.scores_per_target == pytest.approx(sum(scores))
    assert two.tree.codes_per_label == 2 * one.tree.codes_per_label
    ensemble = hstree.Ensemble([hstree.load_model(folder / "model") for folder in folders])
    assert two.parameters == ensemble.n_parameters
    assert two.tokens_per_second == pytest.approx(one.tokens_per_second / 2)
    assert two.scoring.nll == pytest.approx(one.scoring.nll / 2)
    steps = ("vectors", "tree", "training")
    assert all(getattr(two.from_text, step) > 0 for step in steps)
    assert two.from_text.seconds > 1.2 * one.from_text.seconds
    assert two.from_text.training / one.from_text.training == pytest.approx(2, rel=0.5)
    assert (three.kind, three.tree, three.is_flat) == ("layer", None, False)
    assert flat.is_flat


def test_an_ensemble_is_kept_and_goes_on_with_more_seeds(of_ensembles, splits, trainings, tmp_path):
    home, found = of_ensembles
    again = compare(splits, ["huffman"], home, seeds=2, **QUICK)
    assert [row.name for row in again.rows] == [*(row.name for row in found.rows), "huffman"]
    assert timeless(again)["rows"][0] == timeless(found)["rows"][0]
    assert len(trainings) == 2  # of huffman alone


def test_a_flat_ensemble_is_not_the_flat_row(splits, tmp_path):
    found = compare(splits, ["huffman", Ensemble(Layer("flat"), 2)], tmp_path, **QUICK)
    assert found.rows[1].name == "2 x flat"
    assert [row.to_flat for row in found.rows] == [None, None]


def test_ensembles_are_refused_where_their_seconds_would_not_be_equal(of_ensembles, splits):
    with pytest.raises(OptionError, match=r"each model of 2 x gmm \S+ as long as any row"):
        compare(splits, ["flat"], of_ensembles[0], minutes=5, equal_seconds=True, **QUICK)


def test_a_kept_row_of_the_name_of_an_ensembles_models_is_refused(splits, tmp_path, trainings):
    compare(splits, [Method("huffman", name="a")], tmp_path, **QUICK)
    with pytest.raises(OptionError, match="an ensemble, are named a; give each another name"):
        compare(splits, [Ensemble(Method("flat", name="a"), 2)], tmp_path, **QUICK)
    assert len(trainings) == 1


def test_ensembles_are_of_language_models_and_of_legal_random_states(splits, tmp_path, trainings):
    entries = [Ensemble(Method("huffman"), 2), "flat"]
    with pytest.raises(OptionError, match="which is of language models; skipgram predicts"):
        compare(splits, entries, tmp_path, model="skipgram")
    with pytest.raises(OptionError, match="random_state"):
        compare(splits, entries, tmp_path, random_state=2**32 - 2, seeds=2, **QUICK)
    assert not trainings
