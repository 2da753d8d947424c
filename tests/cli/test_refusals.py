"""Input that is refused in one line, and output without control characters."""

import os
import shlex

import pytest

from hstree._text import printable

TOO_LARGE = 10**29
#: More digits than Python converts to an integer.
DIGITS = "7" * 5000
#: Command lines with wrong usage, and parts of the message.
WRONG_USAGE = [
    ("--frob", "--frob", "`hstree --help`"),
    (f"--threads {DIGITS} methods", "--threads"),
    ("--threads 0 methods", "--threads", "1"),
    ("bild corpus.txt", "bild", "`hstree --help`"),
    (f"methods kn{DIGITS}", "kn2 to kn7"),
    ("methods hufman", "did you mean 'huffman'?"),
    ("vocab corpus.txt -q", "`hstree -q vocab ...`"),
    ("vocab corpus.txt --min-cuont 3", "--min-cuont", "--min-count"),
    ("vocab corpus.txt --min-count", "--min-count", "--help`"),
    # build
    ("build corpus.txt", "--method", "`hstree build --help`"),
    ("build -m gmm v.npy epsilon=0.4", "epsilon=0.4"),
    ("build corpus.txt --seed x", "--seed", "`hstree build --help`"),
    ("build corpus.txt -m 'huffman epsilon=1'", "no option 'epsilon'", "arity"),
    ("build corpus.txt -m 'huffman --arity 3'", "--arity", "key=value"),
    ("build corpus.txt -m 'huffman + ngrams'", "`hstree compare CORPUS 'huffman + ngrams'"),
    ("build corpus.txt -m 'huffman arity=x'", "arity is 'x'"),
    ("build corpus.txt -m huffman -o tree.txt", ".json"),
    ("build corpus.txt -m huffman --min-count 0", "--min-count"),
    ("build corpus.txt -m huffman --max-size 0", "--max-size"),
    ("build vocab.tsv -m huffman --train-split-only", "--train-split-only"),
    ("build vocab.tsv -m huffman --lower", "--lower"),
    ("build vocab.tsv -m huffman --min-count 2", "--min-count"),
    ("build vocab.tsv -m huffman --max-size 9", "--max-size"),
    ("build corpus.txt -m huffman --labels vocab.tsv", "--labels"),
    ("build corpus.txt -m huffman --vocabulary vocab.tsv --min-count 2", "--min-count: "),
    ("build corpus.txt -m huffman --vocabulary vocab.tsv --no-unk", "--no-unk: "),
    ("convert huffman.json x.dot --to svg", "'svg'"),
    ("convert huffman.json x.npz --labels w", "--labels"),
    # compare and bootstrap
    ("compare corpus.txt", "--output"),
    ("compare corpus.txt flat -o c -m flat", "-m", "`hstree compare --help`"),
    ("compare corpus.txt hufman -o c", "no candidate 'hufman'"),
    ("compare corpus.txt flat -o c --seeds 0", "--seeds"),
    ("compare corpus.txt flat -o c --seed 4294967295 --seeds 2", "4294967295"),
    ("compare corpus.txt flat -o c --jobs 0", "--jobs is 0"),
    ("compare corpus.txt flat -o c --dropout 1", "dropout"),
    ("compare corpus.txt flat -o c --epochs 1 --minutes 1", "--epochs", "--minutes"),
    (f"compare corpus.txt '{DIGITS} x flat' -o c", "77777"),
    (f"compare corpus.txt flat -o c --seconds {DIGITS}", "--seconds is inf"),
    ("compare corpus.txt flat -o c --seconds 0", "--seconds is 0"),
    ("compare corpus.txt flat -o c --vocabulary v.tsv --min-count 2", "--min-count"),
    ("compare corpus.txt 'huffman + ngrams' --model cbow -o c", "'ngrams' needs the words before"),
    ("bootstrap corpus.txt -o b --rounds 0", "--rounds", "1"),
    ("bootstrap corpus.txt 'gmm epsilon=0.9' -o b", "epsilon"),
    ("bootstrap corpus.txt -o b --min-count 9999", "training split: --min-count 9999"),
    # evaluate and embed
    ("evaluate huffman", "CORPUS", "`hstree evaluate --help`"),
    ("evaluate huffman.json corpus.txt --min-count 2", "--min-count: ", "labels"),
    *((f"evaluate huffman.json corpus.txt {option} {value}", option.strip("-").partition("-")[0])
      for option, values in {
          "--dim": ("0", TOO_LARGE), "--context": ("0", TOO_LARGE), "--epochs": ("-1", TOO_LARGE),
          "--batch-size": ("0", TOO_LARGE), "--learning-rate": ("0", "nan"),
          "--dropout": ("1", "-0.1", "x"), "--seed": ("-1",),
      }.items() for value in values),
    ("evaluate huffman.json corpus.txt --model cbow --context 3", "cbow", "--context"),
    ("evaluate huffman.json corpus.txt --model 'lbl window=3'", "lbl", "'window'"),
    ("evaluate huffman.json corpus.txt --model 'cbow --sample 1'", "key=value"),
    ("evaluate huffman.json corpus.txt --vectors-out v.txt", ".npy"),
    ("embed corpus.txt huffman.json -o v.vec --min-count 2", "--min-count: ", "labels"),
    ("embed corpus.txt -o v.pt", ".vec or .txt or .bin"),
    ("embed corpus.txt no -o v.vec", "no candidate 'no'"),
    ("embed corpus.txt gmm -o v.vec", "gmm is not"),
    ("embed corpus.txt 'gmm epsilon=0.4 + ngrams' -o v.vec", "--method 'gmm epsilon=0.4'"),
    ("embed corpus.txt '2 x huffman' -o v.vec", '"huffman"'),
    ("embed corpus.txt -o v.vec --model 'cbow sample=-1'", "sample is -1"),
    ("embed corpus.txt -o v.vec --model lbl", "--model lbl", "`hstree evaluate"),
    # trained models
    ("predict model", '"TEXT"'),
    ("predict model w1 -k 0", "-k", "1"),
    ("sample model --words -1", "--words"),
]  # fmt: skip
#: Command lines with files that cannot be read or written, and parts of the message.
BAD_FILES = [
    ("vocab missing.txt -o x.tsv", "missing.txt"),
    ("vocab corpus.txt -o missing/vocab.tsv", "missing"),
    ("build -m gmm missing.npy", "missing.npy"),
    ("build -m huffman missing.tsv", "missing.tsv"),
    ("build -m huffman corpus.txt -o missing/tree.json", "missing"),
    ("build -m huffman corpus.txt -o corpus.txt/tree.json", "corpus.txt"),
    ("check corpse.json", "corpse.json"),
    ("check huffmann.json", "did you mean huffman.json?"),
    ("check no/t.json", "there is no folder no"),
    ("show huffman.json --word w00", "'w00'"),
    ("convert huffman.json no/x.dot", "cannot write no/x.dot"),
    ("convert bad.nwk x.json", "bad.nwk: Newick"),
    ("demo -o corpus.txt", "corpus.txt is a file"),
    ("compare corpus.txt none.json -o c", "none.json"),
    ("evaluate huffman.json corpus.txt --save corpus.txt", "--save"),
    ("evaluate huffman.json corpus.txt --json .", "folder"),
    ("embed corpus.txt -o no/v.vec", "no/v.vec"),
    ("embed corpus.txt -o vocab.vec", "--force"),
    ("predict nosuch 'a b'", "there is no folder nosuch"),
    ("sample corpus.txt", "corpus.txt"),
    ("score model missing.txt", "missing.txt"),
    ("score model corpus.txt -o no/where.tsv", "no/where.tsv"),
]


@pytest.mark.parametrize(
    ("status", "line", "parts"),
    [
        *((2, line, parts) for line, *parts in WRONG_USAGE),
        *((1, line, parts) for line, *parts in BAD_FILES),
    ],
)
@pytest.mark.usefixtures("corpus", "tree", "model")
def test_wrong_usage_and_bad_files_are_one_line(refused, tmp_path, status, line, parts):
    (tmp_path / "vocab.tsv").write_text("w0\t2\nw1\t1\n")
    (tmp_path / "vocab.vec").write_text("mine")
    (tmp_path / "bad.nwk").write_text("(a,b")
    error = refused(*shlex.split(line), status=status).err
    assert [part for part in parts if part not in error] == [], error


def test_a_file_that_may_not_be_read_is_bad_input(refused, tree, monkeypatch):
    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    monkeypatch.setattr("hstree._files.open", denied, raising=False)
    for command in (["check"], ["build", "-m", "huffman", "w.tsv", "--vocabulary"]):
        refused(*command, tree, status=1, saying="Permission denied")


#: Red, the title of a window, C1's version of the same, a bell, and a text from right to left.
EVIL = ["\x1b[31mred", "\x1b]0;title\x07", "\x9b31m", "\x7f", "a\u202etxt.exe"]


@pytest.fixture
def evil(hstree, tmp_path):
    (tmp_path / "evil.txt").write_text(f"{' '.join(EVIL)} plain\n" * 30)
    hstree("build", "-m", "huffman", "evil.txt", "-o", "evil.json")
    arguments = ["--epochs", 0, "--dim", 4, "--save", "model"]
    hstree("evaluate", "evil.json", "evil.txt", *arguments, warns=True)
    return tmp_path / "evil.txt"


def test_words_and_names_are_printed_without_control_characters(hstree, evil, tmp_path):
    commands = [
        ["sample", "model", "--words", 60],
        ["score", "model", evil],
        ["score", "model", evil, "--per-word"],
        ["predict", "model", EVIL[0], "-k", 7],
        ["show", "evil.json"],
        ["show", "evil.json", "--word", EVIL[1]],
    ]
    for arguments in commands:
        ran = hstree(*arguments, warns=True)
        assert printable(ran.out, keep="\n\t") == ran.out
        assert printable(ran.err, keep="\n") == ran.err
        assert "\\x1b" in ran.out
    hstree("score", "model", evil, "-o", "scores.tsv", warns=True)
    assert EVIL[0] in (tmp_path / "scores.tsv").read_text(), "a file has the words themselves"
    evil.rename(evil.with_name("\x1b[2J.txt"))
    ran = hstree("build", "-m", "flat", "\x1b[2J.txt", "-o", "\x1b[2J.json")
    assert "\x1b" not in ran.out
    assert "\\x1b[2J.json" in ran.out


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_out_of_range_is_refused_by_every_command(refused, tree, corpus, seed):
    for command in (
        ["build", "-m", "random", corpus, "-o", "t.json"],
        ["evaluate", tree, corpus],
        ["embed", corpus, "-o", "v.vec"],
        ["bootstrap", corpus, "-o", "d"],
        ["compare", corpus, "flat", "-o", "d"],
    ):
        refused(*command, "--seed", seed, status=2, saying="--seed" if seed < 0 else str(seed))
