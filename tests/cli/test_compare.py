"""`hstree compare`: the table, what it refuses, and that it goes on after anything."""

import json
import signal
import subprocess
import time

import pytest
from hstree_cli.result_tables import perplexity_comparison, wordnet_fact

import hstree as library
from hstree.experiments import results
from hstree.experiments.significance import Ratio
from hstree.models.lbl import LogBilinearTrainer
from tests.experiments.made_up import a_row
from tests.experiments.test_comparison import timeless

QUICK = ("--dim", "8", "--context", "2", "--epochs", "2", "--batch-size", "64")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Measure speeds for a moment only, and draw no plots."""
    monkeypatch.setattr("hstree.experiments.throughput.TURN", 0.001)
    monkeypatch.setattr("hstree.report.write", lambda folder: folder / "report.html")


def test_the_table_has_every_row_in_80_columns(hstree, corpus, tmp_path):
    long = "gmm --epsilon 0.4 --trees 2 --max-codes 8"
    ran = hstree(
        *("compare", corpus, "-m", "random", "-m", long, "-m", "flat", "--baseline", "kn2"),
        *("--seeds", "2", "-o", "c", *QUICK),
    )
    assert (ran.status, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= 80
    found = results.load(tmp_path / "c")
    assert [row.name for row in found.rows] == ["random", long, "flat", "kn2"]
    assert found.options["seeds"] == [0, 1]
    for row in found.rows:
        assert f"{row.perplexity['test'].mean:.1f}" in ran.out
        assert f"{row.to_flat.ratio:.3f}" in ran.out
        if row.kind == "tree":
            assert f"{row.tree.scores_per_target:.1f}" in ran.out
            assert f"{row.tokens_per_second:,.0f}" in ran.out
    short = "no interval: the test text, 180 tokens, has fewer than 20 blocks of 1,000 tokens"
    for said in ("± ", " [-] ", short, "41 words", "written to"):
        assert said in " ".join(ran.out.split())
    assert (
        f"Which tree? Of 2 trees and the flat softmax, {found.choice.best} has the lowest "
        "validation perplexity"
    ) in " ".join(ran.out.split())
    assert (tmp_path / "c" / "results.csv").read_text().count("\n") == 5


def test_a_tree_may_have_another_layer_over_it(hstree, corpus, tmp_path):
    given = ("compare", corpus, "-m", "huffman", "-m", "huffman + ngrams", "-m", "flat + ngrams")
    ran = hstree(*given, "-o", "c", *QUICK)
    assert (ran.status, ran.err) == (0, "")
    plain, with_features, flat = results.load(tmp_path / "c").rows
    assert plain.layer is None
    assert with_features.layer.name == flat.layer.name == "ngrams"
    assert with_features.tree == plain.tree
    assert with_features.parameters > plain.parameters
    assert not flat.is_flat
    built = (tmp_path / "c" / row.runs[0].folder / "build.json" for row in (plain, with_features))
    assert len({file.read_text() for file in built}) == 1  # one build
    cbow = hstree(*given, "-o", "d", "--model", "cbow", "--epochs", "1")
    assert cbow.errors == [
        "hstree: error: huffman + ngrams needs the words before each target; cbow predicts a word "
        "given window: train a language model, or leave the row out"
    ]
    assert hstree(*given, "-o", "c", *QUICK).status == 0
    again = results.load(tmp_path / "c").rows
    assert [r.perplexity for r in again] == [r.perplexity for r in (plain, with_features, flat)]


@pytest.mark.parametrize("columns", [60, 80])
def test_every_figure_fits_the_terminal(hstree, corpus, tmp_path, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    methods = ("-m", "gmm --epsilon 0.4 --trees 2", "-m", "wordnet", "-m", "flat")
    ran = hstree("compare", corpus, *methods, "--seeds", "2", "-o", "c", *QUICK)
    assert (ran.status, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= columns
    assert "in WordNet share of the training tokens that WordNet has" in " ".join(ran.out.split())
    assert "* stopped at the limit of 2 epochs" in " ".join(ran.out.split())
    for row in results.load(tmp_path / "c").rows:
        _, *own = (  # the first is the plan's
            line for line in ran.out.splitlines() if line.startswith(f" {row.name[:7]}")
        )
        test, cost = row.perplexity["test"], row.from_text
        assert f" {row.perplexity['valid'].mean:.1f} " in own[0]
        assert f" {test.mean:.1f} ± {test.sd:.1f}*  2 " in own[0]
        assert f" {row.parameters} " in own[1] or f"{row.parameters / 1000:#.3g}k" in own[1]
        assert f" {cost.seconds:.1f} " in own[2]
        assert own[1].split()[-1] == ("-" if row.in_wordnet is None else "0%")


def test_the_row_that_is_named_below_the_table_is_bold():
    drawn = perplexity_comparison([a_row(name="one"), a_row(name="two")], "two")
    assert [row.style for row in drawn.rows] == [None, "bold"]


def test_perplexities_on_the_words_of_wordnet_are_told_beside_its_tree():
    rows = [a_row(name="of it", in_wordnet=0.41, covered=98.12), a_row(name="other", covered=97.0)]
    ((name, told),) = wordnet_fact(rows)
    assert name == "in WordNet"
    assert told.endswith("test perplexity over the tokens of its words: of it 98.1, other 97.0")
    assert wordnet_fact([a_row(), a_row()]) == []


def test_an_interval_where_the_text_is_long_enough():
    """What a table says of one row for the two kinds of test texts."""
    ratio = Ratio(1.306, 1.278, 1.334, 0.0, 82)
    unknown = Ratio(1.306, None, None, None, 8)
    drawn = perplexity_comparison([a_row(to_flat=ratio), a_row(to_flat=unknown)])
    cells = [list(column.cells) for column in drawn.columns]
    assert cells[4] == ["1.306 [1.278,1.334]", "1.306 [-]"]
    assert cells[5] == ["<0.001", "-"]


def test_the_last_line_says_where_the_page_is(hstree, corpus, tmp_path):
    ran = hstree("compare", corpus, "-m", "huffman", "-o", "c", *QUICK)
    assert ran.out.splitlines()[-1] == "A page to look at: c/report.html"


def test_without_flat_there_are_no_ratios(hstree, corpus, tmp_path):
    ran = hstree("compare", corpus, "-m", "huffman", "-o", "c", *QUICK)
    assert ran.status == 0
    (row,) = results.load(tmp_path / "c").rows
    assert row.to_flat is None
    assert row.speed_up is None
    assert "; no tree within 3% of it trains faster" in " ".join(ran.out.split())
    assert "95% interval" not in ran.out


def test_the_words_of_a_tree_are_taken_where_nothing_else_chooses_them(hstree, tree, corpus):
    # Built with --train-split-only: <unk> is among its labels, and no word of this text is.
    ran = hstree("compare", corpus, "-m", "flat", "--tree", tree, "-o", "c", *QUICK)
    assert (ran.status, ran.err) == (0, "")
    found = results.load("c")
    assert "<unk>" in library.load(tree).labels
    assert [row.tree.labels for row in found.rows] == [42, 42]
    # The same words in the same order as ever: nothing is trained again for the tree's sake.
    before = found.rows[0].runs
    flat = library.load(f"c/{found.rows[0].tree_file}")
    counts = dict(zip(flat.labels, flat.counts.tolist(), strict=True))
    assert list(counts) == sorted(counts, key=lambda word: (-counts[word], word))
    hstree("compare", corpus, "-m", "flat", "--tree", tree, "-o", "c", *QUICK)
    assert results.load("c").rows[0].runs == before


def test_a_tree_over_other_words_is_refused(refused, hstree, tree, corpus):
    hstree(
        "build", "-m", "huffman", corpus, "--max-size", "9", "--train-split-only", "-o", "few.json"
    )
    given = ("compare", corpus, "--tree", tree, "--tree", "few.json", "-o", "c", *QUICK)
    refused(*given, saying="few.json is over 9 words")
    refused("compare", corpus, "--max-size", "9", "--tree", tree, "-o", "c", saying="42 words")


def test_a_tree_that_saw_the_test_lines_is_called_out(hstree, corpus):
    hstree("build", "-m", "huffman", corpus, "-o", "seen.json")
    ran = hstree("compare", corpus, "--tree", "seen.json", "-o", "c", *QUICK)
    assert ran.status == 0
    assert len(ran.warnings) == 2
    assert "words of the vocabulary were chosen on lines 181 to 200" in ran.warnings[0]
    assert "seen.json: the tree's builder read lines 181 to 200" in ran.warnings[1]


@pytest.mark.parametrize(
    ("options", "status", "saying"),
    [
        (("-m", "gmm --arity 3"), 2, "no option --arity for gmm; its own options are"),
        (("-m", "hufman"), 2, "did you mean 'huffman'"),
        (("-m", "gmm --tres 4"), 2, "no option --tres for gmm; did you mean '--trees'?"),
        (("-m", "hufman", "--valid", "none.txt"), 2, "did you mean 'huffman'"),
        (("--baseline", "kn9"), 2, "kn2 to kn7"),
        (("-m", "flat", "-m", "flat"), 2, "flat occurs twice"),
        (("-m", "flat", "--seeds", "0"), 2, "--seeds"),
        (("-m", "flat", "--dropout", "1"), 2, "dropout"),
        (("-m", "flat", "--vocabulary", "v.tsv", "--min-count", "2"), 2, "--min-count"),
        (("--tree", "none.json"), 1, "none.json"),
    ],
)
def test_what_is_refused_is_one_line(refused, corpus, options, status, saying):
    refused("compare", corpus, "-o", "c", *options, status=status, saying=saying)


def test_results_that_cannot_be_written_are_printed(hstree, corpus, tmp_path):
    (tmp_path / "c" / "results.json").mkdir(parents=True)
    ran = hstree("compare", corpus, "-m", "huffman", "-o", "c", *QUICK)
    assert ran.status == 1
    assert len(ran.errors) == 1
    assert "c/results.json" in ran.errors[0]
    assert "Which tree? Of 1 tree, huffman" in ran.out
    assert "report.html" not in ran.out


def test_a_place_that_cannot_be_written(refused, corpus):
    refused("compare", corpus, "-m", "flat", "-o", "corpus.txt/c", saying="-o")


def test_ctrl_c_says_how_to_go_on(hstree, corpus, tmp_path, monkeypatch):
    step = LogBilinearTrainer.step

    def interrupted(self, *given):
        if (tmp_path / "c" / "runs" / "random" / "seed-0" / "result.json").exists():
            raise KeyboardInterrupt
        return step(self, *given)

    given = ("compare", corpus, "-m", "random", "-m", "flat", "-o", "c", *QUICK)
    with monkeypatch.context() as patched:
        patched.setattr(LogBilinearTrainer, "step", interrupted)
        ran = hstree(*given)
    assert ran.status == 130
    assert "Which tree?" not in ran.out
    assert "every finished run is kept in c/runs" in ran.errors[0]
    assert (tmp_path / "c" / "runs" / "random" / "seed-0" / "result.json").exists()
    assert not (tmp_path / "c" / "runs" / "flat" / "seed-0" / "result.json").exists()
    assert hstree(*given).status == 0


@pytest.mark.slow
def test_killed_in_the_middle_it_ends_with_the_same_table(hstree, corpus, tmp_path, program):
    command, environment = program
    given = ("compare", str(corpus), "-m", "random", "-m", "gmm", "-m", "flat", "--seeds", "2")
    given = (*given, "--baseline", "kn2", *QUICK)
    running = subprocess.Popen(
        [*command, *given, "-o", str(tmp_path / "killed")],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    first = tmp_path / "killed" / "runs" / "random" / "seed-0" / "result.json"
    for _ in range(6000):
        if first.exists() or running.poll() is not None:
            break
        time.sleep(0.01)
    running.send_signal(signal.SIGSTOP)
    ran = hstree(*given, "-o", "killed")
    running.kill()
    assert running.wait() == -signal.SIGKILL
    assert ran.status == 1
    assert "another process is at work" in ran.errors[0]
    finished = list((tmp_path / "killed").glob("runs/*/*/result.json"))
    assert first in finished
    assert len(finished) < 6
    kept = {place: place.stat().st_mtime_ns for place in finished}

    assert hstree(*given, "-o", "killed").status == 0
    assert {place: place.stat().st_mtime_ns for place in finished} == kept
    assert hstree(*given, "-o", "whole").status == 0
    killed, whole = (
        timeless(json.loads((tmp_path / name / "results.json").read_text()))
        for name in ("killed", "whole")
    )
    assert killed == whole
