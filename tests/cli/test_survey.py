"""`hstree survey`: the plan, the tables, the page, what is kept and what it refuses."""

import pytest
from hstree_cli.method_strings import parse_rows

from hstree.errors import FileFormatError, OptionError
from hstree.experiments import survey
from hstree.layers.registry import LAYERS

QUICK = ("--dim", "8", "--context", "2", "--epochs", "1", "--batch-size", "64", "--budget", "0.02")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Measure speeds for a moment only, and draw no plots."""
    monkeypatch.setattr("hstree.experiments.throughput.TURN", 0.001)
    monkeypatch.setattr("hstree.experiments.throughput.TESTING_TURN", 0.001)
    monkeypatch.setattr("hstree.report.write_survey", lambda folder: folder / "survey.html")
    monkeypatch.setitem(LAYERS.native, "own", "tests.layers.dense:SelfNormalised")


@pytest.mark.parametrize("columns", [60, 80])
def test_the_plan_and_the_tables_fit_the_terminal(hstree, corpus, tmp_path, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = ("--rows", "huffman, gmm --epsilon 0.4 --trees 2", "-r", "own --scale 0.5")
    ran = hstree("survey", corpus, *rows, "--kneser-ney", "2", "-o", "s", *QUICK)
    assert (ran.status, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= columns
    found = survey.load(tmp_path / "s")
    names = ["huffman", "gmm --epsilon 0.4 --trees 2", "own --scale 0.5", "flat"]
    assert [row.name for row in found.rows] == names
    out = " ".join(ran.out.split())
    for regime, comparison in found.regimes().items():
        assert f"after {regime.replace('_', ' ')}" in out
        for row in comparison.rows:
            assert f"{row.perplexity['test'].mean:.1f}" in out
            assert f"{row.to_flat.ratio:.3f}" in out
    for row in found.rows:
        assert f"{row.training.tokens_per_second:,.0f}" in out
        assert f"{row.with_kneser_ney['equal_epochs'].test:.1f}" in out
    for said in (
        "random (vectors",
        "to train on",
        "ln Z",
        "unnormalised",
        "one score",
        "+ kn2",
        "s before",
        "written to",
    ):
        assert said in out
    again = hstree("survey", corpus, *rows, "--kneser-ney", "2", "-o", "s", *QUICK)
    assert again.out.count("kept") == 8 + 1  # random has no run of equal seconds


def test_a_budget_alone(hstree, corpus, tmp_path):
    ran = hstree("survey", corpus, "-r", "huffman", "--no-equal-epochs", "-o", "s", *QUICK)
    assert (ran.status, ran.err) == (0, "")
    assert "after equal epochs" not in ran.out
    assert survey.load(tmp_path / "s").equal_epochs is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-r", "hufman"), "there is no method or output layer 'hufman'; did you mean 'huffman'?"),
        (("-r", "huffman, kn5"), "kn5 is not an output layer"),
        (("-r", "own --sclae 2"), "no option --sclae for own; did you mean '--scale'?"),
        (("--budget", "0"), "--budget is 0.0; it must be a number, above 0\n"),
        (("--no-equal-epochs",), "nothing to survey without --budget SECONDS"),
        (("-r", "differentiated --bands 9:4"), "differentiated: --bands is '9:4'; it must"),
        (("-r", "adaptive --cutoffs abc"), "adaptive: --cutoffs is 'abc'; it must"),
        (("-r", "sampled --proposal foo"), "sampled: --proposal is 'foo'; it must"),
        (("-r", "huffman", "--seconds", "3"), "--seconds"),
        (("-r", "none.json"), "none.json"),
    ],
)
def test_what_is_refused_before_anything_is_trained(hstree, corpus, tmp_path, arguments, said):
    ran = hstree("survey", corpus, "-o", "s", *arguments, "--dim", "8")
    assert ran.status != 0
    assert said in ran.err
    assert not (tmp_path / "s" / "runs").exists()


def test_commas_separate_rows_but_not_the_digits_of_a_value():
    rows = parse_rows("huffman, gmm --trees 4,flat")
    assert [row.name for row in rows] == ["huffman", "gmm --trees 4", "flat"]
    bands = parse_rows("differentiated --bands 10:4,*:2,flat")
    assert [row.options for row in bands] == [{"bands": "10:4,*:2"}, {}]
    with pytest.raises(FileFormatError, match=r"2\.json"):
        parse_rows("adaptive --cutoffs 10,20, 2.json")
    with pytest.raises(OptionError, match="100,200"):
        parse_rows("gmm --trees 100,200")
