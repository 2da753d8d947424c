"""Sources: their bytes, keys that change with the bytes, and messages for missing texts."""

import bz2
import gzip
import hashlib
import importlib
import io
import lzma
import os
import sys

import pytest

from hstree import _files
from hstree.data.encoding import encode
from hstree.data.sources import BLOCK_BYTES, open_source
from hstree.errors import InputError, MissingExtraError
from tests.needs import shared


@pytest.fixture
def tiny_nltk(tmp_path, monkeypatch):
    """Register a corpus of two tagged files with NLTK; return its folder."""
    import nltk
    from nltk.corpus.reader import TaggedCorpusReader

    class Reader(TaggedCorpusReader):
        def sents(self):
            yield from super().sents()
            yield ["New York", " ", "", "a\n\tb", " edge ", "no\u00a0break"]
            yield []

    # NLTK reads nothing outside its own folders.
    monkeypatch.setattr(nltk.data, "path", [*nltk.data.path, str(tmp_path)])
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "a.txt").write_text("the/DT cat/NN sat/VB ./.\nit/PRP did/VB ./.\n")
    (folder / "b.txt").write_text("yes/UH\n")
    corpora = importlib.import_module("nltk.corpus")  # nltk.corpus may be NLTK's lazy stand-in
    monkeypatch.setattr(corpora, "tiny", Reader(str(folder), r".*\.txt"), raising=False)
    return folder


def text_of(source):
    return b"".join(open_source(source).blocks())


@pytest.mark.parametrize(("packer", "ending"), [(gzip, "gz"), (lzma, "xz"), (bz2, "bz2")])
def test_a_compressed_file_is_the_same_text(tmp_path, packer, ending):
    text = b"a b\nc\n" * (BLOCK_BYTES // 3)
    (tmp_path / f"text.txt.{ending}").write_bytes(packer.compress(text))
    source = open_source(tmp_path / f"text.txt.{ending}")
    assert source.key() == hashlib.sha256(text).hexdigest()
    assert b"".join(source.blocks()) == text


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(b"\xef\xbb\xbfa\n")
    assert text_of(path) == b"a\n"
    rest = b"x" * BLOCK_BYTES + b"\xef\xbb\xbfa\n"
    path.write_bytes(rest)
    assert text_of(path) == rest


def test_a_path_is_always_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nltk:brown").write_text("a file\n")
    assert text_of(tmp_path / "nltk:brown") == b"a file\n"
    assert text_of("./nltk:brown") == b"a file\n"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("none.txt", "no such file: none.txt; a corpus is a text file"),
        ("a\0b", "no such file"),
        (os.devnull, "is not a regular file"),
        ("nltk:", "NLTK has no corpus ''"),
        ("nltk:nope", "NLTK has no corpus 'nope'; try nltk:brown"),
        ("nltk:reader", "NLTK has no corpus"),
        (
            "builtin:perl",
            "builtin:perl: no such built-in text.*builtin:python",
        ),
    ],
)
def test_what_is_not_there_is_said_in_one_line(source, message):
    with pytest.raises(InputError, match=message) as caught:
        open_source(source)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["vocab.tsv", "v.BIN", "tree.json.gz", "texts.zip"])
def test_what_is_no_prose_is_not_read_as_prose(tmp_path, name):
    path = tmp_path / name
    path.write_text("the\t3\n")
    with pytest.raises(InputError, match=r"looks like [^\n]+text file.*text=True[^\n]+\Z"):
        open_source(path)


@pytest.mark.parametrize("head", [b"", b"2 5\n", b"\xef\xbb\xbf"])
def test_a_text_of_vectors_is_not_read_as_prose(tmp_path, head):
    path = tmp_path / "glove.txt"
    path.write_bytes(head + b"the 0.1 -0.2 3.5 1.0 -7.1e-05\ncat 0.5 0.2 0.1 2.0 1.5\n")
    with pytest.raises(InputError, match=r"looks like word vectors [^\n]+\Z"):
        text_of(path)
    assert b"".join(open_source(path, text=True).blocks()).endswith(b"1.5\n")


def test_names_without_ending_are_texts_and_any_file_is_one_on_demand(tmp_path):
    for name in ("tsv", "corpus"):
        (tmp_path / name).write_text("the cat\n")
        assert text_of(tmp_path / name) == b"the cat\n"
    for name in ("lines.jsonl", "a.csv", "tree.json"):
        (tmp_path / name).write_text("the cat\n")
        assert b"".join(open_source(tmp_path / name, text=True).blocks()) == b"the cat\n"


def test_the_files_of_a_folder_are_one_text_in_the_order_of_their_names(tmp_path):
    (tmp_path / "sub").mkdir()
    for name, content in {"b.txt": b"b", ".c": b"x", "a.txt": b"\xef\xbb\xbfa\n"}.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "sub" / "c.txt.gz").write_bytes(gzip.compress(b"c\n"))
    assert text_of(tmp_path) == b"a\nb\nc\n"
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="contains no file"):
        open_source(tmp_path / "empty")


def test_a_pattern_and_a_list_name_several_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b.txt", "a.txt", "c.md"):
        (tmp_path / name).write_text(name[0])
    assert text_of("*.txt") == b"a\nb"
    assert open_source("*.txt").name == "*.txt"
    assert text_of(["c.md", tmp_path / "a.txt"]) == b"c\na"
    assert open_source(["c.md", "a.txt"]).name == "c.md and 1 other"
    (tmp_path / "*.txt").write_text("itself")
    assert text_of("*.txt") == b"itself"
    for nothing in ("*.log", [], ["a.txt", "none.txt"]):
        with pytest.raises(InputError, match=r"no such file|an empty list of files"):
            open_source(nothing)


def zst(*texts):
    """Pack texts as Zstandard, a frame each."""
    zstd = pytest.importorskip(_files._ZSTANDARD, reason="needs zstd: pip install '.[zstd]'")
    return b"".join(map(zstd.compress, texts))


def test_a_zstandard_file_is_the_same_text(tmp_path):
    text = b"a b\nc\n" * 100_000
    (tmp_path / "text.txt.zst").write_bytes(zst(text, b"", b"d\n"))
    assert text_of(tmp_path / "text.txt.zst") == text + b"d\n"


@pytest.mark.parametrize("damage", [lambda data: data[:-3], lambda data: b"plain\n"])
def test_a_bad_zstandard_file(tmp_path, damage):
    (tmp_path / "text.txt.zst").write_bytes(damage(zst(b"the cat\n" * 99)))
    with pytest.raises(InputError, match=r"cannot read .*\.zst: .*(ended before|Unknown frame)"):
        text_of(tmp_path / "text.txt.zst")


def test_a_zstandard_file_needs_a_library(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, _files._ZSTANDARD, None)
    (tmp_path / "text.txt.zst").write_bytes(b"")
    with pytest.raises(MissingExtraError, match=r"not installed; .*pip install .*zstd"):
        text_of(tmp_path / "text.txt.zst")


def test_standard_input_holds_one_text(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbfthe cat\n")))
    encoded = encode(open_source("-"), cache=tmp_path / "cache")
    assert (encoded.name, encoded.types) == ("standard input", ["<eos>", "the", "cat"])
    with pytest.raises(InputError, match="- is given twice; give the other text as a file"):
        open_source("-")


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(b"the cat sat\n" * 1000)[:-12],
        gzip.compress(os.urandom(5000).hex().encode())[:2000],
        b"\x1f\x8b\x08\x00" + b"\0" * 30,
    ],
    ids=["no trailer", "truncated", "damaged"],
)
def test_a_bad_compressed_file(tmp_path, content):
    path = tmp_path / "text.txt.gz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"cannot read .*text\.txt\.gz"):
        open_source(path).key()


def test_an_empty_compressed_file_is_an_empty_text(tmp_path):
    path = tmp_path / "text.txt.gz"
    path.write_bytes(b"")
    with pytest.raises(InputError, match=r"text\.txt\.gz is empty"):
        encode(open_source(path), cache=tmp_path / "cache")


def test_a_file_that_changes_while_it_is_read(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("one\n")
    source = open_source(path)
    source.key()
    path.write_text("two\n")
    with pytest.raises(InputError, match="changed while it was read"):
        encode(source, cache=tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())


def test_nltk_gives_a_sentence_a_line(tiny_nltk):
    assert text_of("nltk:tiny").decode().split("\n") == [
        "the cat sat .",
        "it did .",
        "yes",
        "New_York   a_b edge no\u00a0break",
        "",
        "",
    ]


def test_the_key_of_an_nltk_corpus_is_that_of_its_files(tiny_nltk):
    before = open_source("nltk:tiny").key()
    assert open_source("nltk:tiny").key() == before
    (tiny_nltk / "b.txt").write_text("no/UH\n")
    assert open_source("nltk:tiny").key() != before


def test_an_nltk_reader_that_fails_is_one_line(tiny_nltk):
    (tiny_nltk / "b.txt").write_bytes(b"caf\xff/NN\n")
    with pytest.raises(InputError, match="nltk:tiny cannot be read: UnicodeDecodeError") as caught:
        text_of("nltk:tiny")
    assert "\n" not in str(caught.value)


def test_missing_nltk_data_says_how_to_get_it(monkeypatch, tmp_path):
    import nltk

    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    with pytest.raises(
        InputError, match=r"`python -m nltk\.downloader treebank`, or set NLTK_DATA"
    ):
        open_source("nltk:treebank")


def test_an_nltk_corpus_without_sentences():
    shared("nltk_data/corpora/stopwords.zip")
    with pytest.raises(InputError, match="nltk:stopwords has no sentences"):
        open_source("nltk:stopwords")


def test_an_nltk_corpus_that_needs_a_sentence_tokenizer():
    shared("nltk_data/corpora/inaugural.zip")
    with pytest.raises(InputError, match="needs punkt_tab of NLTK"):
        text_of("nltk:inaugural")
