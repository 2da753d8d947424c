"""Vocabulary: choice and order of words, file, hash, refusals."""

import hashlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import hstree
from hstree.data.vocabulary import EOS, UNK, Vocabulary
from hstree.errors import InputError, OptionError

WORDS = st.text(
    st.characters(blacklist_categories=("Cs",), blacklist_characters="\0\t\n\r"), min_size=1
)
TEXTS = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "Z", "é", UNK, EOS]), max_size=60)


def chosen_by_hand(tokens, min_count, max_size, unk):
    """Return the result of the rule, written plainly; None if nothing can be chosen."""
    counts = Counter(tokens)
    eos = counts.pop(EOS)
    counts.pop(UNK, None)
    kept = sorted((-n, word) for word, n in counts.items() if n >= min_count)

    def size(with_unk):
        return len(kept) + 1 + with_unk

    with_unk = unk
    if unk is None:
        with_unk = UNK in tokens or len(kept) < len(counts)
        if max_size is not None and size(with_unk) > max_size:
            with_unk = True
    while max_size is not None and size(with_unk) > max_size:
        if not kept:
            return None
        kept.pop()
    entries = [*kept, (-eos, EOS)]
    if with_unk:
        entries.append((-(len(tokens) + sum(n for n, _ in entries)), UNK))
    return [(word, -n) for n, word in sorted(entries)]


@given(
    TEXTS, st.integers(1, 4), st.none() | st.integers(1, 9), st.sampled_from([None, True, False])
)
def test_from_counts_follows_the_rule(text, min_count, max_size, unk):
    tokens = [*text, EOS]
    counts = Counter(tokens)
    expected = chosen_by_hand(tokens, min_count, max_size, unk)
    options = {"min_count": min_count, "max_size": max_size, "unk": unk}
    if expected is None:
        with pytest.raises(OptionError, match="no room"):
            Vocabulary.from_counts(list(counts), list(counts.values()), **options)
        return
    vocabulary = Vocabulary.from_counts(counts, **options)
    assert list(zip(vocabulary.words, vocabulary.counts.tolist(), strict=True)) == expected
    if vocabulary.unk:
        assert vocabulary.counts.sum() == len(tokens)
    if max_size is not None:
        assert len(vocabulary) <= max_size


@pytest.mark.parametrize(
    ("option", "value"), [("max_size", 0), ("max_size", 1), ("max_size", -3), ("min_count", 0)]
)
def test_options_without_room_for_a_word_are_refused(option, value):
    with pytest.raises(OptionError, match=f"{option} is {value}"):
        Vocabulary.from_counts(["a", EOS], [1, 1], **{option: value})


@pytest.mark.parametrize("name", ["items.csv", "ITEMS.CSV"])
@pytest.mark.parametrize(
    "text",
    [
        'item,count\ncat,3\n"a, b",2\n',
        'sku,units\ncat,3\n"a, b",2\n',
        'cat,3\n\n"a, b",2\n',
        "artikel;anzahl\ncat;3\na, b;2\n",
        ',0\ncat,3\n"a, b",2\n',
        'Count,note,Word\n3,,cat\n2,new,"a, b"\n',
        "cat\t3\na, b\t2\n",
    ],
)
def test_counts_of_a_csv_file(tmp_path, text, name):
    (tmp_path / name).write_text(text)
    vocabulary = Vocabulary.from_file(tmp_path / name)
    assert (vocabulary.words, vocabulary.counts.tolist()) == (("cat", "a, b"), [3, 2])
    assert hstree.build("huffman", tmp_path / name).labels == ("cat", "a, b")


@pytest.mark.parametrize("words", [["a", "b"], "ab", {"a"}, None, [("a", 2), ("b", 1)]])
def test_words_without_counts_are_refused(words):
    with pytest.raises(InputError, match=r"\A[^\n]* no list of counts; give a dict [^\n]*\Z"):
        Vocabulary.from_counts(words)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,title,units\n1,cat,3\n", r"line 1: the columns are id, title, units; .* word or item"),
        ("word,item,count\na,b,3\n", "line 1: the columns are word, item, count"),
        ("item,count\ncat,3\n\ndog,many\n", "line 4: expected a word and a whole number"),
        ("item,count,note\ncat\n", "line 2: expected a word and a whole number"),
        ('item,count\n"cat"s,3\n', "line 2: .*; correct the quotes"),
    ],
)
def test_a_csv_file_of_other_columns_is_refused(tmp_path, text, message):
    (tmp_path / "items.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        Vocabulary.from_file(tmp_path / "items.csv")


def test_an_explicit_order_stays():
    vocabulary = Vocabulary(["b", "c", "a"], [1, 5, 3])
    assert vocabulary.words == ("b", "c", "a")
    assert vocabulary.ids(["a", "b", "x", "c"]).tolist() == [2, 0, -1, 1]
    assert vocabulary.ids([]).dtype == np.int32
    assert Vocabulary(["b", "<unk>"], [1, 1]).ids(["x", "b", "<unk>"]).tolist() == [1, 0, 1]
    assert "a" in vocabulary
    assert 3 not in vocabulary
    assert (vocabulary.unk, vocabulary.eos) == (None, None)


def test_index_of_a_stranger_is_an_error():
    with pytest.raises(InputError, match="'x' is not one of the 1 words"):
        Vocabulary(["a"], [1]).index("x")


def test_it_cannot_be_changed_from_outside():
    given_counts = np.array([1, 2])
    vocabulary = Vocabulary(["a", "b"], given_counts)
    given_counts[0] = 7
    assert vocabulary.counts.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        vocabulary.counts[0] = 3


def test_the_hash_is_over_the_sorted_words():
    expected = hashlib.sha256(b"a\nb\n").hexdigest()
    assert Vocabulary(["b", "a"], [1, 5]).sha256 == expected
    assert Vocabulary(["a", "b"], [9, 9]).source == {"kind": "vocabulary", "sha256": expected}
    assert Vocabulary(["ab"], [1]).sha256 != expected


@pytest.mark.parametrize(
    ("words", "counts", "message"),
    [
        ([], [], "vocabulary is empty"),
        (["a", "b", "a"], [1, 1, 1], "duplicate word 'a'"),
        (["a", "b"], [1], r"shape \(1,\) for 2 words"),
        (["a", "b"], [2**63 - 1, 1], "sum of the counts is above"),
    ],
)
def test_what_is_no_vocabulary_is_refused(words, counts, message):
    with pytest.raises(InputError, match=message):
        Vocabulary(words, counts)


@example({"\ufeffa": 2**63 - 2, "\ufeffb": 1})
@example({"# hstree": 7, '{"texts": []}': 7})
@example({'# hstree {"a": 1}': 7})
@given(st.dictionaries(WORDS, st.integers(0, 2**50), min_size=1).filter(lambda d: any(d.values())))
def test_a_file_gives_back_words_counts_and_order(tmp_path_factory, entries):
    path = tmp_path_factory.mktemp("v") / "vocab.tsv"
    Vocabulary(list(entries), list(entries.values())).save(path)
    again = Vocabulary.from_file(path)
    assert again.words == tuple(entries)
    assert again.counts.tolist() == list(entries.values())
    assert path.read_bytes().count(b"\n") == len(entries)


@pytest.mark.parametrize(
    "content",
    [b"a\t2\nb\t0\n", b"a\t2\r\nb\t0\r\n", b"a\t2\nb\t0", b"\xef\xbb\xbfa\t2\n\nb\t0\n\n"],
    ids=["plain", "crlf", "no last line end", "byte order mark, blank lines"],
)
def test_files_of_other_makers(tmp_path, content):
    path = tmp_path / "vocab.tsv"
    path.write_bytes(content)
    vocabulary = Vocabulary.from_file(path)
    assert vocabulary.words == ("a", "b")
    assert vocabulary.counts.tolist() == [2, 0]


def test_a_line_ends_nowhere_but_at_a_newline(tmp_path):
    path = tmp_path / "vocab.tsv"
    path.write_text("a\u2028b\t1\nc\x0bd\x85 \re\t2\n", encoding="utf-8", newline="\n")
    assert Vocabulary.from_file(path).words == ("a\u2028b", "c\x0bd\x85 \re")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"a\t1\nb\n", "line 2: expected a word, a tab and a whole number, found 'b'"),
        (b"a\t" + b"9" * 5000 + b"\n", "line 1"),
        (b"a\t9999999999999999999\n", "vocab.tsv: a count is above"),
        (b"a\t1\nb\t2\na\t3\n", "vocab.tsv: .*duplicate word 'a'"),
        (b"a\t0\nb\t0\n", "every count is zero"),
        (b"a\t1\nb\xff\t1\n", "byte 0xff at line 2, byte offset 5 is not UTF-8"),
        (b"a\t1\nb\0\t1\n", "NUL byte at line 2, byte offset 5"),
        (b"a" * 500 + b"\n", r"found 'a{40}\.\.\.'"),
        (b'# hstree\t{"texts": 3}\na\t1\n', "line 1: the record of .* is damaged"),
    ],
)
def test_bad_files_are_named_for_what_they_are(tmp_path, content, message):
    path = tmp_path / "vocab.tsv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        Vocabulary.from_file(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("word", ["", "a\tb", "a\nb", "a\rb", "a\0b", "a\ud800"])
def test_words_that_no_file_holds_are_refused_and_nothing_is_written(tmp_path, word):
    path = tmp_path / "vocab.tsv"
    path.write_text("old")
    with pytest.raises(InputError, match="cannot write"):
        Vocabulary(["fine", word], [1, 1]).save(path)
    assert path.read_text() == "old"
    assert len(Vocabulary(["fine", word], [1, 1]).sha256) == 64


def test_the_lines_that_it_was_counted_on_come_back(tmp_path):
    counted_on = [{"lines": [0, 8], "name": "c.txt", "sha256": "ab"}]
    source = {"kind": "corpus", **counted_on[0], "lower": True}
    made = Vocabulary(["\ufeffa", "b"], [2, 1], source=source)
    made.save(tmp_path / "v.tsv")
    again = Vocabulary.from_file(tmp_path / "v.tsv")
    assert (again.words, again.counts.tolist()) == (made.words, [2, 1])
    assert again.source == {"kind": "vocabulary", "sha256": made.sha256, "texts": counted_on}
    again.save(tmp_path / "w.tsv")
    assert (tmp_path / "w.tsv").read_bytes() == (tmp_path / "v.tsv").read_bytes()
