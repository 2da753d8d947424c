"""`hstree compare`: the table, the errors, and that it continues after any interruption."""

import re

import pytest

import hstree as library
from hstree._text import format_change
from hstree.experiments import results
from hstree.models.lbl import LogBilinearTrainer

QUICK = ("--dim", "8", "--context", "2", "--epochs", "2", "--batch-size", "64")


@pytest.fixture
def compare(hstree, corpus):
    """Compare candidates of the corpus into the folder c."""

    def run(*candidates, options=(), **expected):
        return hstree("compare", corpus, *candidates, "-o", "c", *QUICK, *options, **expected)

    return run


def test_every_figure_fits_the_terminal(compare, tmp_path, monkeypatch):
    candidates = ["random", "gmm epsilon=0.4 trees=2 max_codes=8", "sampled samples=3", "flat"]
    candidates.append("kn2")
    for columns in (60, 80):
        monkeypatch.setenv("COLUMNS", str(columns))
        ran = compare(*candidates, options=("--seeds", "2"))
        comparison = results.load(tmp_path / "c")
        assert [candidate.name for candidate in comparison.candidates] == candidates
        for candidate in comparison.candidates:
            assert f"{candidate.test:.1f}" in ran.out
            assert format_change(candidate.to_flat.ratio) in ran.out
            if candidate.training:
                assert f"{candidate.training.times_flat:,.1f}" in ran.out
        assert len(re.findall(r"^ ─+ *$", ran.out, re.M)) == 1, "one table"
        (left_out,) = re.findall(r"^Columns that do not fit: (.*?)\.$", ran.out, re.M | re.S)
        assert "scores/target" in left_out


def test_what_the_figures_depend_on_is_said(compare):
    told = " ".join(compare("huffman", "flat", options=("--seeds", "2")).out.split())
    for saying in (
        "sample standard deviation over 2 seeds",
        "* stopped at the epoch limit",
        "no interval: fewer than 20 blocks of 1,000 tokens",
        "tokens train 1,440, valid 180, test 180",
        "at most 2 epochs; 64 positions per batch",
    ):
        assert saying in told


def test_a_warning_of_the_library_is_one_line_of_the_program(compare, tmp_path):
    result = tmp_path / "c/runs/kn2/result.json"
    result.parent.mkdir(parents=True)
    result.write_text("{")
    (line,) = compare("kn2", warns=True).warnings
    assert "result.json" in line
    assert line.endswith("; the job runs again")


def test_the_plan_lists_the_seconds_of_each_job_and_trains_nothing(hstree, corpus, tmp_path):
    usual = ("compare", corpus, "random", "huffman", "flat", "--dim", "4", "-o", "c", "--plan")
    out = hstree(*usual, "--minutes", "1").out
    assert "0 of 3 jobs are finished" in out
    jobs = re.findall(r"^ (?:random|huffman|flat) +0 +to do +\d+\.\d to \d+\.\d $", out, re.M)
    assert len(jobs) == 3
    assert re.search(r": 3 candidates, [\d.]+ s each; 2 candidates, [\d.]+ s each", out)
    out = hstree(*usual, "--seconds", "7").out
    assert len(re.findall(r"to do +7\.0 $", out, re.M)) == 3
    assert not (tmp_path / "c" / "runs" / "random").exists()


def test_a_log_says_what_is_trained_and_the_time_left(hstree, corpus, monkeypatch):
    monkeypatch.setattr("hstree._displays.LINE_PATIENCE", 0.0)
    candidates = ("gmm", "huffman", "flat")
    usual = ("compare", corpus, *candidates, "--dim", "4", "-o", "c", "--minutes", "0.1")
    lines = hstree(*usual, warns=True).err.splitlines()
    first = re.compile(
        r"round 1 of 2, \d s per candidate, candidate \d of 3: (vectors for gmm|gmm|huffman|flat), "
        r"epoch \d+, validation perplexity [\d.]+, \d s left of 6 s"
    )
    matches = [match for line in lines if (match := first.fullmatch(line))]
    assert matches[0][1] == "vectors for gmm"
    assert {match[1] for match in matches} == {"vectors for gmm", *candidates}
    assert results.load("c").stop == library.Halving(minutes=0.1)


def test_the_words_of_a_tree_are_taken_where_nothing_else_chooses_them(compare, tree):
    # Built with --train-split-only: <unk> is among its labels, and no word of this text is.
    compare("flat", tree)
    assert "<unk>" in library.load(tree).labels
    assert results.load("c").vocabulary.size == 42
    flat = library.load(f"c/{results.load('c').candidates[0].tree_file}")
    counts = dict(zip(flat.labels, flat.counts.tolist(), strict=True))
    assert list(counts) == sorted(counts, key=lambda word: (-counts[word], word))


def test_trees_over_other_words_are_refused(refused, hstree, tree, corpus):
    few = ("--max-size", "9", "--train-split-only", "-o", "few.json")
    hstree("build", "-m", "huffman", corpus, *few)
    refused("compare", corpus, tree, "few.json", "-o", "c", *QUICK, saying="few.json has 9")
    refused("compare", corpus, tree, "--min-count", "60", "-o", "c", saying="has 42 words")


def test_ctrl_c_says_how_to_go_on_and_what_is_finished_has_a_page(
    compare, hstree, tmp_path, monkeypatch
):
    step, runs = LogBilinearTrainer.step, tmp_path / "c" / "runs"

    def interrupted(self, *given):
        if (runs / "random/seed-0/result.json").exists():
            raise KeyboardInterrupt
        return step(self, *given)

    with monkeypatch.context() as patched:
        patched.setattr(LogBilinearTrainer, "step", interrupted)
        ran = compare("random", "flat", status=130)
    assert ran.out == ""
    assert "the same command continues" in ran.errors[0]
    assert not (runs / "flat/seed-0/result.json").exists()
    stopped = results.load(tmp_path / "c")
    assert [candidate.name for candidate in stopped.candidates] == ["random"]
    assert stopped.pending == ["flat"]
    hstree("report", "c")
    assert "flat" in (tmp_path / "c/report.html").read_text().partition('role="status"')[2][:200]
    compare("random", "flat")
