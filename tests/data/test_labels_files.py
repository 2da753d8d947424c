"""Labels files: bound to their matrix by a hash, also after a kill between the two renames."""

import hashlib
import json

import numpy as np
import pytest

import hstree
from hstree import formats
from hstree.builders.linkage import tree_from_linkage
from hstree.data.vectors import WordVectors
from hstree.data.word_files import texts_of_file
from hstree.errors import FileFormatError, InputError

CORPUS = {"lines": [0, 9], "name": "c.txt", "sha256": "ab"}


def vectors(seed, *, reverse=False):
    words = [f"w{i}" for i in range(5)]
    draw = np.random.default_rng(seed).normal(size=(5, 3))
    return WordVectors(words[::-1] if reverse else words, draw, counts=range(5))


def write_linkage(path, *, reverse=False):
    labels = ["a", "b", "c"]
    merges = [[0, 1, 1, 2], [2, 3, 2, 3]] if reverse else [[1, 2, 1, 2], [0, 3, 2, 3]]
    formats.write(tree_from_linkage(merges, labels), path)


def write_napkinxc(path, *, reverse=False):
    labels = ["c", "b", "a"] if reverse else ["a", "b", "c"]
    flat = [[~0, ~1, ~2]] if reverse else [[~0, 1], [~1, ~2]]
    formats.write(hstree.Tree.from_children(labels, flat), path)


def write_vectors(path, *, reverse=False):
    vectors(int(reverse), reverse=reverse).save(path)


KINDS = [
    pytest.param(write_vectors, WordVectors.read, "x.npy", id="vectors"),
    pytest.param(write_linkage, formats.read, "x.npy", id="linkage"),
    pytest.param(write_napkinxc, formats.read, "x.napkinxc", id="napkinxc"),
]


@pytest.mark.parametrize(("write", "read", "name"), KINDS)
@pytest.mark.parametrize("before", ["pair", "labels by hand", "no labels", "nothing"])
def test_killed_between_the_two_renames_they_are_refused(
    tmp_path, monkeypatch, write, read, name, before
):
    path, labels = tmp_path / name, tmp_path / "x.labels.tsv"
    if before != "nothing":
        write(path)
    if before == "labels by hand":
        labels.write_text("".join(labels.read_text().splitlines(keepends=True)[1:]))
    if before == "no labels":
        labels.unlink()
    rename = hstree._files.os.replace
    done = []

    def killed_after_one(*paths):
        if done:
            raise KeyboardInterrupt
        done.append(rename(*paths))

    monkeypatch.setattr("hstree._files.os.replace", killed_after_one)
    with pytest.raises(KeyboardInterrupt):
        write(path, reverse=True)
    monkeypatch.undo()
    if before == "nothing":
        assert not path.exists()
        return
    refused = r"x.labels.tsv was not written with .*; write both"
    with pytest.raises(InputError, match=refused) as error:
        read(path)
    assert "\n" not in str(error.value)
    write(path, reverse=True)
    read(path)


@pytest.mark.parametrize(("write", "read", "name"), KINDS)
def test_a_file_replaced_alone_is_refused_also_where_the_labels_are_named(
    tmp_path, write, read, name
):
    write(tmp_path / name)
    (tmp_path / "old.labels.tsv").write_bytes((tmp_path / "x.labels.tsv").read_bytes())
    write(tmp_path / name, reverse=True)
    read(tmp_path / name)
    with pytest.raises(InputError, match=r"old.labels.tsv was not written with"):
        read(tmp_path / name, labels=tmp_path / "old.labels.tsv")


def test_labels_without_their_first_line_are_read_and_may_be_edited(tmp_path):
    vectors(0).save(tmp_path / "x.npy")
    vectors(1).save(tmp_path / "y.npy")
    labels = tmp_path / "x.labels.tsv"
    record, *words = labels.read_text().splitlines()
    assert json.loads(record.removeprefix("# hstree\t")) == {
        "file_sha256": hashlib.sha256((tmp_path / "x.npy").read_bytes()).hexdigest(),
        "texts": [],
    }
    labels.write_text("\r\n".join([record, *(f"{word}0" for word in words)]))
    assert WordVectors.read(tmp_path / "x.npy").counts.tolist() == [0, 10, 20, 30, 40]
    labels.write_text("\n".join(words))
    again = WordVectors.read(tmp_path / "y.npy", labels=labels)
    np.testing.assert_array_equal(again.vectors, vectors(1).vectors)


def test_the_texts_come_back_and_the_hash_is_of_these_vectors(tmp_path):
    made = WordVectors(["a"], [[1.0]], source={"kind": "mean predicted vectors", "corpus": CORPUS})
    made.save(tmp_path / "x.npy")
    again = WordVectors.read(tmp_path / "x.npy")
    assert again.source == {"kind": "vectors", "sha256": made.sha256, "texts": [CORPUS]}
    again.save(tmp_path / "y.npy")
    assert WordVectors.read(tmp_path / "y.npy").source == again.source
    assert texts_of_file(tmp_path / "x.npy") == texts_of_file(tmp_path / "x.labels.tsv") == [CORPUS]
    for other in ("none.npy", "x.txt"):
        assert texts_of_file(tmp_path / other) == []


@pytest.mark.parametrize("name", ["x.npy", "x.napkinxc"])
def test_a_converted_tree_keeps_the_texts_that_it_was_built_from(tmp_path, name):
    tree = hstree.Tree.from_children(["a", "b"], [[~0, ~1]], meta={"input": CORPUS})
    formats.write(tree, tmp_path / name)
    assert formats.read(tmp_path / name).meta["input"]["texts"] == [CORPUS]


def test_a_tree_does_not_take_the_labels_file_of_vectors(tmp_path):
    vectors(0).save(tmp_path / "w.npy")
    tree = hstree.build("gmm", tmp_path / "w.npy")
    with pytest.raises(FileFormatError, match=r"w\.labels\.tsv is the labels file of .*w\.npy"):
        formats.write(tree, tmp_path / "w.napkinxc")
    assert WordVectors.read(tmp_path / "w.npy").labels == vectors(0).labels
    vectors(1).save(tmp_path / "w.npy")  # which replaces both
    labels = tmp_path / "w.labels.tsv"
    labels.write_text(labels.read_text().replace("texts", "text", 1).replace("{", "{{", 1))
    vectors(2).save(tmp_path / "w.npy")  # a damaged record, too
    assert WordVectors.read(tmp_path / "w.npy").labels == vectors(2).labels
