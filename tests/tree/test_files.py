"""Tree files: what is written comes back, and nothing is lost when it cannot be."""

import gzip
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hstree.errors import FileFormatError
from hstree.tree import Tree, load
from hstree.tree.files import ENDINGS, save
from tests.strategies import chain, children_of, trees
from tests.tree.documents import DOCUMENT, TREE, refusal


@given(tree=trees(max_labels=10) | st.just(TREE))
def test_every_tree_comes_back_from_every_ending_and_gives_the_same_bytes(tmp_path_factory, tree):
    folder = tmp_path_factory.getbasetemp()
    for ending in ENDINGS:
        path = folder / f"any{ending}"
        tree.save(path)
        before, other = path.read_bytes(), load(path)
        assert (other.sha256, other.meta) == (tree.sha256, tree.meta)
        save(other, str(path))
        assert path.read_bytes() == before


def test_more_nodes_than_are_written_at_once(tmp_path):
    tree = chain(140_000)
    save(tree, tmp_path / "t.json")
    children = json.dumps(children_of(tree)).replace("], [", "],\n[")
    assert f'"children": [\n{children[1:-1]}\n],\n' in (tmp_path / "t.json").read_text()


def test_gzip_holds_the_same_text_and_no_time_and_no_name(tmp_path):
    save(TREE, tmp_path / "t.json")
    save(TREE, tmp_path / "t.json.gz")
    packed = (tmp_path / "t.json.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "t.json").read_bytes()
    assert packed[3] == 0  # no flags, so no name
    assert packed[4:8] == bytes(4)


def test_numpy_alone_reads_the_members(tmp_path):
    save(TREE, tmp_path / "t.npz")
    with np.load(tmp_path / "t.npz", allow_pickle=False) as members:
        start = members["label_start"]
        text = members["labels"].tobytes()
        other = {name: members[name].dtype.str for name in members.files}
    assert text[start[3] : start[4]].decode() == 'é"漢🎈'
    assert other == {
        "header": "|u1", "labels": "|u1", "label_start": "<i8", "counts": "<i8",
        "child_start": "<i8", "child": "<i8", "named": "<i8", "names": "|u1", "name_start": "<i8",
    }  # fmt: skip
    with zipfile.ZipFile(tmp_path / "t.npz") as archive:
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_counts_names_and_meta_may_be_missing(tmp_path):
    bare = {key: DOCUMENT[key] for key in ("format", "version", "labels", "children")}
    (tmp_path / "t.json").write_text(json.dumps(bare))
    tree = load(tmp_path / "t.json")
    assert (tree.counts, tree.names, tree.meta) == (None, None, {})


@pytest.mark.parametrize("ending", [".JSON", ".txt", ".gz", "", ".npy", ".json.bz2"])
def test_an_unknown_ending_is_refused_before_anything_is_written(tmp_path, ending):
    path = tmp_path / f"tree{ending}"
    with pytest.raises(FileFormatError, match=r"\.json, \.json\.gz, \.npz"):
        save(TREE, path)
    assert not path.exists()
    assert ".npz" in refusal(path, FileFormatError)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    "meta", [{"a": float("nan")}, {"a": {1, 2}}, {"a": "\ud800"}, {(1, 2): 3}, {"a": b"b"}]
)
def test_meta_that_json_cannot_hold_leaves_the_old_file(tmp_path, ending, meta):
    path = tmp_path / f"tree{ending}"
    save(TREE, path)
    before = path.read_bytes()
    with pytest.raises(FileFormatError, match="meta cannot be written as JSON"):
        save(TREE.with_meta(meta), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path):
    (tmp_path / "folder.json").mkdir()
    assert refusal(tmp_path / "none.npz") == "cannot read FILE: there is no such file"
    assert refusal(tmp_path / "folder.json") == "cannot read FILE: it is a folder"
    with pytest.raises(FileFormatError, match="cannot write"):
        save(TREE, tmp_path / "no" / "such" / "folder.json")


def test_real_files_hold_to_the_schema(tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    docs = Path(__file__).parents[2] / "docs"
    schema = json.loads((docs / "tree.schema.json").read_text("utf-8"))
    judge = jsonschema.Draft202012Validator
    judge.check_schema(schema)
    for tree in (TREE, Tree(["only"], [0], [])):
        save(tree, tmp_path / "t.json")
        judge(schema).validate(json.loads((tmp_path / "t.json").read_text("utf-8")))
    for bad in (
        {"labels": ["a", "a"]},
        {"children": [[-1, -1]]},
        {"children": [[-1, 0.5]]},
        {"version": 2},
        {"more": 1},
    ):
        assert not judge(schema).is_valid(DOCUMENT | bad), bad
    assert judge(schema).is_valid(DOCUMENT)
