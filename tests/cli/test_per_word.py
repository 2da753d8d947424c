"""`score --per-word`: a table that programs read, one line per token."""

import io

import pytest

import hstree as library
from tests.texts import write_lines

pandas = pytest.importorskip("pandas", reason="needs pandas: pip install '.[notebook]'")

#: Words that readers of tables take for something else.
ODD = [
    *('"', '""', '"a', 'a"b', "'", "#", "#w0", "nan", "NaN", "NA", "null", "None", "<NA>", "-inf"),
    *("1", "1.0", "1e5", "True", ",", ";", "\\", "\\t", "\u00a0", "\u200b", "\u2028", "\x85", "=1"),
]
LINES = [f"w0 {word}" for word in ODD] + ["", " ".join(ODD), "1 2 3", "w1 w2", '"', '" "']


def read(text):
    return pandas.read_csv(text, sep="\t", keep_default_na=False, dtype={"word": str})


@pytest.fixture
def odd(tmp_path):
    return write_lines(tmp_path / "odd.txt", LINES)


def tokens():
    return [
        (number, position, word)
        for number, line in enumerate(LINES, 1)
        for position, word in enumerate([*line.split(" ")] * (line != "") + ["<eos>"], 1)
    ]


def test_pandas_reads_every_token(hstree, model, odd):
    hstree("score", model, odd, "--per-word", "-o", "words.tsv", warns=True)
    table = read("words.tsv")
    assert list(table) == ["line", "position", "word", "log_prob", "is_oov"]
    assert list(table[["line", "position", "word"]].itertuples(index=False, name=None)) == tokens()
    loaded = library.load_model(model)
    expected = loaded.nll(library.Corpus.read(odd, vocabulary=loaded.vocabulary))
    assert table["log_prob"].to_numpy() == pytest.approx(-expected, abs=1e-6)
    known = set(loaded.vocabulary.words)
    assert table["is_oov"].dtype == bool
    assert table["is_oov"].tolist() == [word not in known for _, _, word in tokens()]


def test_the_table_alone_is_on_standard_output(hstree, model, odd):
    """With control characters escaped, which a terminal would execute."""
    ran = hstree("score", model, odd, "--per-word", warns=True)
    table = read(io.StringIO(ran.out))
    escaped = {"\u2028": "\\u2028", "\x85": "\\x85"}
    assert table["word"].tolist() == [escaped.get(word, word) for _, _, word in tokens()]
    assert "with OOV" in ran.err
    assert hstree("-q", "score", model, odd, "--per-word", warns=True).out == ran.out
