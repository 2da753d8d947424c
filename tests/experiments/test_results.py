"""Results of a comparison: their files, and the one list of columns."""

import csv
import json
import random

import pytest
from msgspec.structs import asdict, replace

import hstree
from hstree.errors import FileFormatError, HstreeError, InputError, OptionError
from hstree.experiments import results
from hstree.experiments.recommendation import choose
from hstree.experiments.results import COLUMNS, Speed, Spread, Timings, mean_record
from hstree.ngrams.kneser_ney import KneserNey
from hstree.report import write
from tests import needs
from tests.damage import changed_values


def test_a_comparison_is_the_same_after_saving_and_loading(compared, tmp_path):
    results.save(compared, tmp_path)
    again = results.load(tmp_path)
    assert again == compared
    assert again.folder == tmp_path


def test_the_csv_file_has_the_columns_of_every_candidate(compared):
    with (compared.folder / results.CSV).open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["name"] for line in lines] == [candidate.name for candidate in compared.candidates]
    assert list(lines[0]) == [column.key for column in COLUMNS]
    huffman = compared.candidate("huffman")
    line = lines[compared.candidates.index(huffman)]
    assert float(line["test"]) == huffman.test
    assert float(line["to_flat_p"] or -1) == (huffman.to_flat.p or -1)
    assert float(line["nll_times_flat"]) == huffman.nll.times_flat
    assert float(line["seconds_training"]) == huffman.timings.training
    assert (line["mixed_with"], line["ln_z_mean"]) == ("kn2", "")


def test_the_models_of_a_comparison_compare_as_its_candidates(compared, splits):
    huffman, flat = (
        [hstree.load_model(compared.folder / job.folder / "model") for job in candidate.jobs]
        for candidate in map(compared.candidate, ("huffman", "flat"))
    )
    ratio = hstree.compare_models(huffman, flat, splits.test)
    assert ratio.ratio == pytest.approx(compared.candidate("huffman").to_flat.ratio, rel=1e-6)
    assert hstree.compare_models(flat, flat[0], splits.test).blocks == ratio.blocks


def test_models_of_another_kind_or_of_other_words_are_refused(compared, splits):
    train, _, test = splits
    model = hstree.load_model(compared.folder / compared.candidate("flat").jobs[0].folder / "model")
    ngrams = KneserNey(2).fit(train)
    assert hstree.compare_models(ngrams, model, test).ratio > 0
    fewer_words = hstree.build("huffman", train.select_vocabulary(max_size=4))
    for other, error in (
        (hstree.CBOW(model.tree, epochs=0).fit(train), OptionError),
        (hstree.LanguageModel(fewer_words, epochs=0).fit(train), InputError),
        ("flat", OptionError),
        ([], OptionError),
    ):
        with pytest.raises(error):
            hstree.compare_models(model, other, test)


def test_the_frame_has_the_columns_of_the_csv_file(compared):
    pytest.importorskip("pandas", reason=needs.NOTEBOOK)
    frame = compared.to_frame()
    assert list(frame) == [column.key for column in COLUMNS]
    assert list(frame["name"]) == [candidate.name for candidate in compared.candidates]


def test_a_formula_is_no_formula_in_the_csv_file(compared, tmp_path):
    candidate = replace(compared.candidate("flat"), seen="=1+1")
    results.save(replace(compared, candidates=[candidate], choice=None), tmp_path)
    assert ",'=1+1" in (tmp_path / results.CSV).read_text()


def test_the_table_shows_the_columns_that_a_candidate_has(compared):
    titles = set(compared.table().columns)
    assert {"candidate", "total s", "training s", "mixed with kn2", "vs flat"} <= titles
    assert "ln Z" not in titles
    alone = replace(compared, candidates=[compared.candidate("kn2")], choice=None)
    assert "scores/target" not in alone.table().columns


@pytest.mark.parametrize(
    ("change", "saying"),
    [
        (lambda figures: figures["candidates"].append(figures["candidates"][0]), "same name"),
        (
            lambda figures: figures["candidates"][0]["perplexity"].pop("test"),
            r">= 3 - at .*perplexity`",
        ),
        (lambda figures: figures["candidates"][0].update(tree=None), "is missing or unexpected"),
        (lambda figures: figures["bands"].pop(), "number of bands"),
        (lambda figures: figures["candidates"][0]["to_flat"].update(low=1.0), "only one bound"),
        (lambda figures: figures["choice"].update(chosen="none"), "unknown candidate"),
        (lambda figures: figures["corpus"].pop("valid"), r">= 3 - at .*\.corpus`"),
        (lambda figures: figures.update(version=5), "reads version 6; compare again"),
        (lambda figures: figures.update(format="other"), "is not a results file"),
    ],
)
def test_figures_that_do_not_fit_together_are_refused(compared, tmp_path, change, saying):
    figures = json.loads((compared.folder / results.JSON).read_bytes())
    change(figures)
    (tmp_path / results.JSON).write_text(json.dumps(figures))
    with pytest.raises(FileFormatError, match=saying):
        results.load(tmp_path)


def test_changed_results_have_a_page_and_a_table_or_are_refused(request, compared, tmp_path):
    figures = json.loads((compared.folder / results.JSON).read_bytes())
    changes = list(changed_values(figures))
    random.Random(0).shuffle(changes)
    for changed in changes[: 5_000 if request.config.getoption("--slow") else 150]:
        (tmp_path / results.JSON).write_text(json.dumps(changed))
        try:
            comparison = results.load(tmp_path)
            write(comparison, tmp_path / "report.html")
        except HstreeError:
            continue
        assert str(comparison)
        assert comparison._repr_html_()


def test_a_candidate_far_below_the_epochs_of_its_training_has_a_page(compared, tmp_path):
    """The figure of the learning curves then leaves out all of them."""
    candidates = [
        replace(
            candidate, perplexity=candidate.perplexity | {"valid": Spread(mean=0.01, sd=None, n=2)}
        )
        for candidate in compared.candidates
        if candidate.models == 1 and candidate.kind != "ngram"
    ]
    choice = choose(candidates)
    results.save(replace(compared, candidates=candidates, choice=choice), tmp_path)
    assert write(results.load(tmp_path), tmp_path / "report.html").exists()


def test_a_page_needs_the_folder_of_the_trees(compared, tmp_path):
    with pytest.raises(InputError, match="has no folder"):
        write(replace(compared), tmp_path / "page.html")


def test_what_is_not_known_has_no_mean():
    assert Spread.of([2.0, None]) == Spread(mean=None, sd=None, n=2)
    assert Spread.of([2.0]) == Spread(mean=2.0, sd=None, n=1)
    steps = [Timings(vectors=None, training=1.0), Timings(vectors=3.0, training=2.0)]
    assert asdict(mean_record(steps, times=2)) == asdict(Timings(vectors=None, training=3.0))
    assert mean_record(steps).total is None


def test_speeds_are_compared_with_the_median_of_flat():
    speed = Speed.of([4.0, 6.0, 5.0], [1.0, 2.0, 4.0])
    assert (speed.median, speed.times_flat, speed.low, speed.high) == (5.0, 2.5, 2.0, 3.0)
    assert Speed.of([4.0], [1.0, 2.0, 4.0]).times_flat == 2.0
