"""Input files: pipes, devices and compression bombs are refused at once, in one line."""

import gzip
import json
import os
import pickle
import tracemalloc
import zipfile

import pytest

from hstree import Corpus, LanguageModel, Tree, WordVectors, build, formats
from hstree._files import ALWAYS, MAX_RATIO
from hstree.errors import HstreeError
from hstree.models import load_model
from hstree.tree import load
from tests.campaigns.readers import READERS
from tests.tree.documents import TREE

#: 64 MB of blanks; as many as are wanted may follow one another in a file.
BLANKS = gzip.compress(b" " * (1 << 26), 9)


def refused(read, path, named=None):
    with pytest.raises(HstreeError) as caught:
        read(path)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert str(named or path) in message
    return message


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_pipes_and_devices_are_refused_without_waiting_for_their_end(tmp_path, reader):
    files, *_ = reader.seeds(tmp_path)
    for name in files:
        for other, its_content in files.items():
            (tmp_path / other).write_bytes(its_content)
        path = tmp_path / name
        path.unlink()
        os.mkfifo(path)
        said = refused(reader.read, tmp_path / next(iter(files)), path)
        assert "it is a pipe, not a regular file" in said
        path.unlink()
        path.symlink_to("/dev/zero")
        said = refused(reader.read, tmp_path / next(iter(files)), path)
        assert "it is a device or a socket, not a regular file" in said
        path.unlink()


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("tree.json.gz", load),
        ("tree.paths.gz", lambda path: formats.read(path, "brown")),
        ("vectors.vec.gz", WordVectors.read),
    ],
)
def test_a_compression_bomb_is_refused_before_it_unpacks(tmp_path, name, read):
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"a 1 2\nb 1 2\n") + BLANKS * 45)  # 3 MB, and 3 GB
    tracemalloc.start()
    try:
        said = refused(read, path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 29
    finally:
        tracemalloc.stop()
    assert f"more than {MAX_RATIO} times its size; if that is right, decompress it" in said


@pytest.mark.parametrize(
    ("read", "endings"),
    [
        (load, "model gz json json.gz npz npy paths vec"),
        (formats.read, "model gz json json.gz npz npy paths vec"),
        (WordVectors.read, "model gz json json.gz npz npy paths vec"),
        (Corpus.read, "model gz"),
        (lambda path: build("gmm", path), "model gz npy vec"),
    ],
)
def test_a_pickle_and_a_zip_are_refused_with_the_way_out(tmp_path, read, endings):
    for protocol in range(2, 6):
        content = pickle.dumps({"vectors": [1.0]}, protocol)
        for ending in endings.split():
            model = tmp_path / f"w2v.{ending}"
            model.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
            said = refused(read, model, model.name)
            assert "tree_of(model).save(" in said
            assert "save_word2vec_format(" in said
    with zipfile.ZipFile(tmp_path / "glove.zip", "w") as packed:
        packed.writestr("glove.txt", "a 1 2\nb 1 2\n")
    assert "unzip" in refused(read, tmp_path / "glove.zip")


def test_small_files_may_unpack_to_more(tmp_path):
    """A tree with long equal names packs well, and few of them are not a bomb."""
    names = ["x" * 1000] * 3 + [""]
    tree = Tree(TREE.labels, TREE.child_start, TREE.child, names=names, meta={"x": " " * 200_000})
    tree.save(tmp_path / "t.json.gz")
    unpacked = len(gzip.decompress((tmp_path / "t.json.gz").read_bytes()))
    assert MAX_RATIO * (tmp_path / "t.json.gz").stat().st_size < unpacked < ALWAYS
    assert load(tmp_path / "t.json.gz") == tree


def test_no_tree_is_written_that_would_not_be_read(tmp_path):
    tree = Tree(["a"], [0], [], meta={"x": " " * ALWAYS})
    with pytest.raises(HstreeError, match=r"write \.json or \.npz"):
        tree.save(tmp_path / "t.json.gz")
    assert os.listdir(tmp_path) == []


def test_entities_of_xml_are_refused(tmp_path):
    bomb = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
    bomb += "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdef", "bcdefg", strict=True)
    )
    (tmp_path / "t.graphml").write_text(f"{bomb}]><graphml>&g;</graphml>")
    assert "amplification" in refused(formats.read, tmp_path / "t.graphml")


def test_a_model_allocates_no_more_than_its_file_holds(tmp_path):
    LanguageModel(Tree.from_children(["a", "<eos>"], [[~0, ~1]]), dim=2).save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"dim": 1 << 16, "context": 1 << 12}  # 70 TB
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(HstreeError, match=r"must be float32 of shape \(2, 65536\)"):
        load_model(tmp_path)
