"""Encoding: texts come back from their ids, for any blocks; damaged cache entries are rebuilt."""

import hashlib
import itertools
import multiprocessing
import os
import re
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hstree._files import cache_folder
from hstree.data import encoding
from hstree.data.encoding import encode
from hstree.data.sources import BLOCK_BYTES, TextFile
from hstree.errors import FileFormatError, InputError
from tests.limits import full_disk
from tests.texts import contents

PIECES = [
    *("a", "B", "é", "Σ", "ΑΣ", "İ", "<eos>", "<unk>", "eight888", "nine99999", "nine99998"),
    *("\u2028", "\u00a0", "\x1c", "\x85", "\ufeff"),
]
TEXTS = st.lists(st.sampled_from([*PIECES, " ", " ", "\n", "\n", "\r\n", "\t", "\v", "\f"])).map(
    "".join
)


class Given:
    """A source whose blocks a test chooses."""

    def __init__(self, blocks, name="given"):
        self.name = name
        self.text = list(blocks)
        self.n_reads = 0

    def key(self):
        return hashlib.sha256(repr(self.text).encode()).hexdigest()

    def blocks(self):
        self.n_reads += 1
        yield from self.text


def said_back(text):
    """The lines of an encoded text, without the end of each."""
    words = [[text.types[i] for i in text.ids[a:b]] for a, b in pairwise(text.line_start)]
    assert all(line[-1] == "<eos>" for line in words)
    return [line[:-1] for line in words]


def read_by_hand(text):
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [[word for word in re.split(r"[ \t\r\v\f]+", line) if word] for line in lines]


def split_at(data, positions):
    positions = sorted({min(position, len(data)) for position in positions})
    return [data[a:b] for a, b in pairwise([0, *positions, len(data)])]


@example("a\r\nb\rc\n\n \n<eos>", [], False)
@given(TEXTS.filter(bool), st.lists(st.integers(0, 40), max_size=5), st.booleans())
def test_ids_say_the_text_back_whatever_the_blocks(tmp_path_factory, text, positions, lower):
    folder = tmp_path_factory.mktemp("cache")
    encoded = encode(Given(split_at(text.encode(), positions)), lower=lower, cache=folder)
    assert said_back(encoded) == read_by_hand(text.lower() if lower else text)
    assert len(set(encoded.types)) == len(encoded.types)
    assert encoded.types[0] == "<eos>"
    first_places = [
        np.flatnonzero(encoded.ids == i)[:1].tolist() for i in range(1, len(encoded.types))
    ]
    assert first_places == sorted(first_places)
    assert encoded.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert (encoded.name, encoded.lower) == ("given", lower)


@pytest.mark.parametrize("blocks", [[], [b""], [b"", b""]])
def test_an_empty_text_is_refused(tmp_path, blocks):
    with pytest.raises(InputError, match="given is empty"):
        encode(Given(blocks), cache=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("blocks", "position"),
    [
        ([b"a b\nc \xff d\n"], "0xff at line 2, byte offset 6 is not UTF-8"),
        ([b"a b\nc ", b"\xe9t\xe9 d"], "0xe9 at line 2, byte offset 6 is not UTF-8"),
        ([b"a\n" * 70, b"b \xc3"], "0xc3 at line 71, byte offset 142 is not UTF-8"),
        ([b"a\nb ", b"c\0d\n"], "NUL byte at line 2, byte offset 5"),
        ([b"\xff\xfea\0\n\0"], "is UTF-16, not UTF-8; .*iconv -f utf-16"),
    ],
)
def test_bytes_that_are_not_text_are_named_by_position(tmp_path, blocks, position):
    with pytest.raises(InputError, match=position):
        encode(Given(blocks), cache=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_text_without_white_space_is_refused(tmp_path):
    with pytest.raises(InputError, match="line 2 has a word of more than"):
        encode(Given([b"a\n", *[b"x" * BLOCK_BYTES] * 5]), cache=tmp_path)


def test_the_second_use_reads_the_cache_alone(tmp_path):
    source = Given([b"a b\nc\n"])
    first = encode(source, cache=tmp_path)
    second = encode(source, cache=tmp_path)
    assert source.n_reads == 1
    assert said_back(second) == said_back(first)
    assert second.sha256 == first.sha256
    assert encode(source, cache=tmp_path, lower=True).lower
    assert source.n_reads == 2
    assert not second.ids.flags.writeable


DAMAGES = {
    "cut": lambda content: content[:-5],
    "nonsense": lambda content: b"no encoded text" * 10,
    "of another format": lambda content: content.replace(b'"format":6', b'"format":2'),
}


@pytest.mark.parametrize(
    ("ending", "damage"),
    [
        *itertools.product(["ids", "line_start", "json"], ["cut", "nonsense", "missing"]),
        ("json", "of another format"),
    ],
)
def test_a_damaged_entry_is_made_anew(tmp_path, ending, damage):
    source = Given([b"a b\nc d e\n" * 50])
    encode(source, cache=tmp_path)
    whole = contents(tmp_path)
    (path,) = tmp_path.glob(f"*.{ending}")
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert said_back(encode(source, cache=tmp_path)) == [["a", "b"], ["c", "d", "e"]] * 50
    assert source.n_reads == 2
    assert contents(tmp_path) == whole


@pytest.mark.parametrize("n_renamed", [0, 1, 2])
@pytest.mark.parametrize("before", ["nothing", "damaged"])
def test_after_a_kill_between_the_renames_the_text_is_encoded_again(
    tmp_path, monkeypatch, n_renamed, before
):
    source = Given([b"a b\nc d e\n" * 50])
    if before == "damaged":
        encode(source, cache=tmp_path)
        for path in [*tmp_path.glob("*.ids"), *tmp_path.glob("*.line_start")]:
            path.write_bytes(path.read_bytes()[:-5])
    rename = os.replace
    done = []

    def killed(*paths):
        if len(done) == n_renamed:
            raise KeyboardInterrupt
        done.append(rename(*paths))

    monkeypatch.setattr("hstree._files.os.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        encode(source, cache=tmp_path)
    monkeypatch.undo()
    assert said_back(encode(source, cache=tmp_path)) == [["a", "b"], ["c", "d", "e"]] * 50
    assert len(contents(tmp_path)) == 3


def test_a_temporary_folder_replaces_one_that_cannot_be_used(tmp_path):
    (tmp_path / "file").write_text("in the way")
    source = Given([b"a b\n"])
    for _ in range(2):
        assert said_back(encode(source, cache=tmp_path / "file" / "cache")) == [["a", "b"]]
    assert source.n_reads == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_entry_in_a_folder_that_cannot_be_written_is_used(tmp_path, monkeypatch):
    source = Given([b"a b\n"])
    encode(source, cache=tmp_path)
    monkeypatch.setattr(encoding, "is_writable", lambda folder: False)
    encode(source, cache=tmp_path)
    assert source.n_reads == 1


def test_where_the_cache_lies(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HSTREE_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == tmp_path / "home" / ".cache" / "hstree"
    for variable, name in (("XDG_CACHE_HOME", "xdg/hstree"), ("HSTREE_CACHE", "chosen")):
        monkeypatch.setenv(variable, str(tmp_path / name.partition("/")[0]))
        assert cache_folder() == tmp_path / name
    encode(Given([b"a"]))
    assert len(list((tmp_path / "chosen").iterdir())) == 3


def bytes_of_ids(path, cache):
    return encode(TextFile(path), cache=cache).ids.tobytes()


def test_processes_that_encode_one_text_at_once_do_not_harm_each_other(tmp_path):
    path, cache = tmp_path / "text.txt", tmp_path / "cache"
    path.write_text("".join(f"a{i % 97} b{i % 31} c\n" for i in range(60_000)))
    with multiprocessing.get_context("fork").Pool(3) as pool:
        ids = pool.starmap(bytes_of_ids, [(path, cache)] * 3, chunksize=1)
    assert set(ids) == {bytes_of_ids(path, tmp_path / "alone")}
    assert len(list(cache.iterdir())) == 3


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path):
    message = "cannot write .*, or set HSTREE_CACHE to a folder .*"
    with pytest.raises(FileFormatError, match=message), full_disk(20_000):
        encode(Given([b"a b\n" * 20_000]), cache=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("block", [b"\n" * (1 << 19), b"the cat sat on the mat\n" * 20_000])
def test_memory_does_not_grow_with_the_text(tmp_path, block):
    def peak_of(n_blocks):
        tracemalloc.start()
        encode(Given([block] * n_blocks, f"{n_blocks}"), cache=tmp_path / f"{n_blocks}")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert peak_of(8) - peak_of(3) < 2 << 20


@settings(max_examples=20)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_text_or_one_clear_line(tmp_path_factory, data):
    said = ""
    try:
        encode(Given([data]), cache=tmp_path_factory.mktemp("cache"))
    except InputError as error:
        said = str(error)
    assert "\n" not in said
