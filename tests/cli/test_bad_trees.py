"""Every kind of bad tree file, through every command that reads one: one line, exit status 1."""

import gzip
import io
import json

import numpy as np
import pytest

SOUND = {
    "format": "hstree",
    "version": 1,
    "labels": ["<eos>", "w0", "w1", "<unk>"],
    "counts": [3, 2, 1, 1],
    "children": [[1, 2], [-1, -2], [-3, -4]],
    "names": None,
    "meta": {},
}


def changed(**changes):
    return json.dumps(SOUND | changes).encode()


TEXTS = {
    "empty": b"",
    "truncated": json.dumps(SOUND).encode()[:60],
    "not utf-8": json.dumps(SOUND).encode().replace(b"w0", b"\xff\xfe"),
    "binary": bytes(range(256)) * 4,
    "a list": b"[1, 2, 3]",
    "another object": b'{"a": 1}',
    "a number": b"7",
    "null": b"null",
    "nested deep": b"[" * 100_000 + b"]" * 100_000,
    "nested deep inside": b'{"format": "hstree", "children": ' + b"[" * 100_000,
    "cycle": changed(children=[[1, 2], [-1, 0], [-3, -4, -2]]),
    "unreachable node": changed(children=[[1, -2], [-1, -3], [-4, -2]]),
    "label placed nowhere": changed(children=[[1, -1], [-2, -3]]),
    "unknown label": changed(children=[[1, 2], [-1, -2], [-3, -4, -9]]),
    "one-child node": changed(children=[[1, -1], [2], [-2, -3, -4]]),
    "two parents": changed(children=[[1, 2], [2, -1], [-2, -3, -4]]),
    "wrong version": changed(version=2),
    "version as text": changed(version="1"),
    "another format": changed(format="tree"),
    "floats": changed(children=[[1.0, 2], [-1, -2], [-3, -4]]),
    "huge": changed(children=[[10**30, 2], [-1, -2], [-3, -4]]),
    "huge but 64 bits": changed(children=[[2**62, 2], [-1, -2], [-3, -4]]),
    "very negative": changed(children=[[1, 2], [-1, -2], [-3, -4, -(2**62)]]),
    "negative count": changed(counts=[3, 2, 1, -1]),
    "float counts": changed(counts=[3, 2, 1.5, 1]),
    "too few counts": changed(counts=[3]),
    "label twice": changed(labels=["<eos>", "w0", "w0", "<unk>"]),
    "labels of numbers": changed(labels=[1, 2, 3, 4]),
    "no label": changed(labels=[], counts=[], children=[]),
    "children as text": changed(children="abc"),
    "names too few": changed(names=["root"]),
    "NaN": changed().replace(b"[3, 2, 1, 1]", b"[3, 2, 1, NaN]"),
    "meta as list": changed(meta=[1]),
}


def pickled_npz():
    file = io.BytesIO()
    np.savez(file, child=np.array([{"a": 1}], dtype=object))
    return file.getvalue()


ARCHIVES = {"empty": b"", "not a zip": b"PK\x03\x04 and no more", "another zip": pickled_npz()}

COMMANDS = {
    "stats": ["stats"],
    "show": ["show"],
    "show --word": ["show", "--word", "w0"],
    "evaluate": ["evaluate", "--epochs", "0"],
}


def arguments(command, path, corpus):
    end = [corpus] if command == "evaluate" else []
    return [*COMMANDS[command], path, *end]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", TEXTS)
def test_bad_json_is_refused_in_one_line(kind, command, refused, corpus, tmp_path):
    path = tmp_path / "bad.json"
    path.write_bytes(TEXTS[kind])
    refused(*arguments(command, path, corpus), saying="bad.json")


@pytest.mark.parametrize("kind", TEXTS)
def test_check_names_what_is_wrong(kind, hstree, tmp_path):
    (tmp_path / "bad.json").write_bytes(TEXTS[kind])
    ran = hstree("check", "bad.json")
    assert ran.status == 1
    assert ran.out == ""
    assert ran.errors == ran.err.splitlines()
    assert all("bad.json" in line for line in ran.errors)


def test_check_names_every_broken_rule(hstree, tmp_path):
    children = [[1, -1], [2], [-2, -2, -9]]
    (tmp_path / "bad.json").write_bytes(changed(children=children, counts=[1, 1, -1, 1]))
    ran = hstree("check", "bad.json")
    assert ran.status == 1
    rules = {line.split("bad.json: ")[1].split(":")[0] for line in ran.errors}
    assert rules == {"fan-out", "known label", "no child twice", "every label placed", "counts"}


@pytest.mark.parametrize("command", [*COMMANDS, "check"])
@pytest.mark.parametrize("kind", ARCHIVES)
def test_bad_archives_are_refused_in_one_line(kind, command, refused, corpus, tmp_path):
    path = tmp_path / "bad.npz"
    path.write_bytes(ARCHIVES[kind])
    if command == "check":
        refused("check", path, saying="bad.npz")
    else:
        refused(*arguments(command, path, corpus), saying="bad.npz")


@pytest.mark.parametrize(
    "content", [b"", b"\x1f\x8b and no more", gzip.compress(b"{}", mtime=0)[:-4]]
)
def test_bad_gzip_is_refused_in_one_line(content, refused, tmp_path):
    (tmp_path / "bad.json.gz").write_bytes(content)
    refused("check", "bad.json.gz", saying="bad.json.gz")


@pytest.mark.parametrize("path", ["missing.json", "missing.npz", "tree.txt", "."])
@pytest.mark.parametrize("command", ["check", "stats", "show"])
def test_a_path_that_is_no_tree_file(path, command, refused):
    refused(command, path, saying=path)


def test_a_hostile_meta_is_printed_or_ignored(hstree, tmp_path, corpus):
    digest = __import__("hashlib").sha256(corpus.read_bytes()).hexdigest()
    for lines in (["a", "b"], [1], 7, None, [[], {}], [True, 10**30]):
        meta = {
            "method": {"a": [1]},
            "options": {"x": "\x1b[2J"},
            "max_codes_reached": "many",
            "input": {"kind": 3, "sha256": digest, "lines": lines, "words_without_vector": []},
        }
        (tmp_path / "odd.json").write_bytes(changed(meta=meta))
        for command in (["stats"], ["show"], ["check"]):
            ran = hstree(*command, "odd.json")
            assert ran.status == 0, ran.err
            assert "\x1b" not in ran.out
        ran = hstree("evaluate", "odd.json", corpus, "--epochs", "0")
        assert ran.status == 0, ran.err
