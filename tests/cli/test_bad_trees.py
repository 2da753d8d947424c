"""Bad tree files through every command that reads one: one line, exit status 1.

Each kind of damage by itself is tested where trees are read.
"""

import hashlib
import json

from tests.tree.documents import DOCUMENT

LABELS = {"labels": ["<eos>", "w0", "w1", "<unk>"], "counts": [3, 2, 1, 1]}
SOUND = DOCUMENT | LABELS | {"children": [[1, 2], [-1, -2], [-3, -4]]}


def changed(**changes):
    return json.dumps(SOUND | changes).encode()


def test_a_bad_tree_is_refused_in_one_line(refused, corpus, tmp_path):
    (tmp_path / "cycle.json").write_bytes(changed(children=[[1, 2], [-1, 0], [-3, -4, -2]]))
    for command in (["check"], ["stats"], ["show", "--word", "w0"], ["evaluate", "--epochs", 0]):
        text = [corpus] if "evaluate" in command else []
        refused(*command, "cycle.json", *text, saying="cycle.json")


def test_check_names_every_broken_rule(hstree, tmp_path):
    children = [[1, -1], [2], [-2, -2, -9]]
    (tmp_path / "bad.json").write_bytes(changed(children=children, counts=[1, 1, -1, 1]))
    ran = hstree("check", "bad.json", status=1)
    rules = {line.split("bad.json: ")[1].split(":")[0] for line in ran.errors}
    assert rules == {"fan-out", "known label", "no child twice", "every label placed", "counts"}


def test_a_hostile_meta_is_printed_or_ignored(hstree, tmp_path, corpus):
    digest = hashlib.sha256(corpus.read_bytes()).hexdigest()
    for lines in (["a", "b"], [1], None, [True, 10**30], {"words": None}):
        meta = {
            "coverage": lines,
            "method": {"a": [1]},
            "options": {"x": "\x1b[2J"},
            "input": {"kind": 3, "sha256": digest, "lines": lines, "words_without_vector": []},
        }
        (tmp_path / "odd.json").write_bytes(changed(meta=meta))
        for command in ("stats", "show", "check"):
            assert "\x1b" not in hstree(command, "odd.json").out
        hstree("evaluate", "odd.json", corpus, "--epochs", "0", warns=True)
