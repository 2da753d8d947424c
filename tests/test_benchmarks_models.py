"""The benchmarks of models run, on small sizes."""

from tests.test_benchmarks import run


def test_topk(monkeypatch, capsys, tmp_path):
    sizes = ("--labels", 300, "--dim", 4, "--contexts", 2, "--spread", 1)
    rows = run("topk", monkeypatch, capsys, tmp_path, *sizes)
    assert [row["tree"] for row in rows] == ["huffman", "random x 2", "random x 4", "flat"]
    assert all(row["agree"] == "yes" and row["top-k ms"] > 0 for row in rows)
