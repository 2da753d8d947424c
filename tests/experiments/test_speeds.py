"""Kept rounds of measured speeds."""

import json

from hstree.experiments import speeds
from hstree.experiments.speeds import KeptSpeeds

FLAT, HUFFMAN = {"flat": "k1"}, {"huffman": "k2"}


def test_rounds_are_added_and_never_replaced(tmp_path):
    file = tmp_path / "speeds.json"
    KeptSpeeds(file).add(FLAT | HUFFMAN, {"training": {"flat": [1.0], "huffman": [9.0]}})
    KeptSpeeds(file).add(FLAT | HUFFMAN, {"training": {"flat": [2.0], "huffman": [8.0]}})
    found = KeptSpeeds(file).common(FLAT | HUFFMAN)
    assert found == {"training": {"flat": [1.0, 2.0], "huffman": [9.0, 8.0]}}


def test_rows_are_compared_over_the_rounds_that_they_share(tmp_path):
    kept = KeptSpeeds(tmp_path / "speeds.json")
    kept.add(FLAT, {"training": {"flat": [100.0]}})
    kept.add(
        FLAT | HUFFMAN, {"training": {"flat": [1.0], "huffman": [9.0]}, "nll": {"flat": [5.0]}}
    )
    assert kept.common(FLAT | HUFFMAN)["training"] == {"flat": [1.0], "huffman": [9.0]}
    assert kept.common(FLAT)["training"]["flat"] == [100.0, 1.0]
    assert kept.common(FLAT | HUFFMAN)["nll"] == {"flat": [5.0]}
    assert kept.common({"flat": "retrained"}) == {}


def test_speeds_of_other_threads_are_kept_and_not_used(tmp_path, monkeypatch):
    file = tmp_path / "speeds.json"
    KeptSpeeds(file).add(FLAT, {"training": {"flat": [1.0]}})
    monkeypatch.setattr(speeds, "n_threads", lambda: 99)
    assert KeptSpeeds(file).common(FLAT) == {}
    KeptSpeeds(file).add(FLAT, {"training": {"flat": [7.0]}})
    assert KeptSpeeds(file).common(FLAT) == {"training": {"flat": [7.0]}}
    assert len(json.loads(file.read_bytes())["sessions"]) == 2


def test_a_damaged_file_counts_as_empty(tmp_path):
    file = tmp_path / "speeds.json"
    for content in ("", "{", '{"format": "hstree speeds", "version": 1, "sessions": 3}'):
        file.write_text(content)
        assert KeptSpeeds(file).common(FLAT) == {}
    KeptSpeeds(file).add(FLAT, {"training": {"flat": [1.0]}})
    assert KeptSpeeds(file).common(FLAT) == {"training": {"flat": [1.0]}}
