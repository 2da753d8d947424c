"""The Python and the commands of pages run as printed, in order, and print what they promise."""

import io
import platform
import re
import shlex
from ast import literal_eval
from contextlib import chdir, redirect_stdout

import pytest

from tests import needs
from tests.scripts import ROOT, run_python, scripts_of

pytestmark = pytest.mark.usefixtures("short_turns")


def run_page(page, folder, scripts=slice(None), more=""):
    """Run some scripts of a page as one, and more after them; return the lines that they print."""
    code = "\n".join([*scripts_of(page)[scripts], more])
    with chdir(folder), redirect_stdout(io.StringIO()) as printed:
        exec(code, {"__name__": page})
    return printed.getvalue().splitlines()


@pytest.mark.parametrize("page", ["scikit-learn.md", "multi-label.md"])
def test_a_page_of_classifiers(page, tmp_path):
    run_page(page, tmp_path)


NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def same_output(printed, shown):
    """Compare two outputs: decimals to 2%; seconds and the width of columns may differ."""
    printed, shown = (" ".join(text.split()) for text in (printed, shown))
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
    for number, expected in zip(NUMBER.finditer(printed), NUMBER.finditer(shown), strict=True):
        if re.match(" m?s ", shown[expected.end() :]):
            continue
        if "." in expected[0]:
            tolerance = {"rel": 0.02, "abs": 0.002}
            assert float(number[0]) == pytest.approx(float(expected[0]), **tolerance)
        else:
            assert number[0] == expected[0]


@pytest.mark.slow
def test_the_tutorial_shows_what_its_code_prints(tmp_path):
    """From the block on that reads Python's documentation, in the release that the page names."""
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", page, re.M | re.S)
    release = re.search(r"Python (\d+\.\d+\.\d+)", page)[1]
    reads_documentation = False
    names = {"__name__": "tutorial"}
    for code, shown in blocks:
        with chdir(tmp_path), redirect_stdout(io.StringIO()) as printed:
            exec(code, names)
        reads_documentation |= "builtin:python" in code
        if not reads_documentation or platform.python_version() == release:
            same_output(printed.getvalue(), shown)
    assert (tmp_path / "which.html").exists()


def test_arrays(tmp_path):
    pytest.importorskip("pandas", reason="needs pandas: pip install '.[notebook]'")
    words, lengths, is_in, code, near, sessions, stream, *models = run_page("arrays.md", tmp_path)
    assert literal_eval(words) == ("tea", "milk", "<unk>", "<eos>")
    weighted, huffman = map(float, lengths.split())
    assert weighted == pytest.approx(huffman)
    assert is_in == "True 2000"
    assert code.startswith("[(0, ")
    assert near.count("item") == 5
    assert sessions == "('0', '1', '2', '3', '4', '5', '6', '7', '<eos>')"
    assert stream == "[4, 1, 7, 9, 0, 9, 7, 2, 9] <eos>"
    assert models[-2] in ("huffman", "random")
    assert 1 < float(models[-1]) < 10


@pytest.mark.slow
def test_the_comparison_of_two_models(tmp_path):
    pytest.importorskip("pandas", reason=needs.NOTEBOOK)
    first, *_, last = run_page("compare-two-models.md", tmp_path)
    ratio, low, high, *_ = map(float, re.findall(r"\d\.\d{3}", first))
    assert low < ratio < high
    assert last.startswith("Ratio(ratio=1.")


@pytest.mark.slow
def test_items(tmp_path):
    printed = run_page("items.md", tmp_path)
    assert printed[0].startswith("Tree(20000 labels, ")
    assert 1 < float(printed[1].split()[0]) < 15  # fewer than log2(20,000) + 1
    assert printed[2].count("'") == 10
    assert printed[-1] in ("take huffman", "take flat")


def test_taxonomies(tmp_path):
    printed = run_page("taxonomies.md", tmp_path)
    assert printed[:2] == [
        "('cat', 'dog', 'oak', 'car', 'pen')",
        "(None, 'living', 'animal', 'thing')",
    ]
    assert f"# {printed[2]}\n" in (ROOT / "docs" / "taxonomies.md").read_text(encoding="utf-8")
    assert printed[5] == "2 ['animal', 'plant', 'car', 'pen']"
    assert "'plant'" in printed[10]  # of one child


@pytest.mark.parametrize("page", ["items.md", "taxonomies.md"])
def test_the_part_of_a_page_on_torch(page, tmp_path):
    pytest.importorskip("torch", reason=needs.TORCH)
    [*_, part] = scripts_of(page, "py")
    run_page(page, tmp_path, slice(1), part)


def test_torch(tmp_path):
    pytest.importorskip("torch", reason=needs.TORCH)
    first, *_ = run_page("torch.md", tmp_path)
    start, end = map(float, re.findall(r"\d+\.\d+", first))
    assert end < start
    assert (tmp_path / "model" / "weights.safetensors").exists()


@pytest.mark.slow
def test_hugging_face(tmp_path):
    pytest.importorskip("transformers", reason=needs.TRANSFORMERS)
    printed = run_page("hugging-face.md", tmp_path)
    assert printed[0].startswith("Tree(")
    assert printed[0].endswith(" 0")
    *_, losses, generated, added = printed
    start, end = map(float, re.findall(r"\d+\.\d+", losses))
    assert end < start
    assert "the simple form" in generated
    assert added == "2 new tokens"
    assert (tmp_path / "model" / "tree.json").exists()


def test_the_comparison_of_heads(tmp_path):
    pytest.importorskip("torch", reason=needs.TORCH)
    printed = run_page("torch-compare.md", tmp_path)
    start, end = map(float, re.findall(r"\d+\.\d+", printed[-1]))
    assert end < start


@pytest.mark.slow
def test_gensim(tmp_path):
    pytest.importorskip("gensim", reason="needs gensim: pip install '.[gensim]'")
    assert len(run_page("gensim.md", tmp_path)) == 7


@pytest.mark.slow
def test_word2vec(tmp_path):
    pytest.importorskip("gensim", reason="needs gensim: pip install '.[gensim]'")
    first, words, second, *similar = run_page("word2vec.md", tmp_path)
    assert first.startswith("word given window ")
    unigram = 606  # the perplexity of a model that learned nothing
    assert all(1 < float(line.split()[-1]) < unigram for line in (first, second))
    assert len(literal_eval(words)[0]) == 3
    ours, gensims = (dict(literal_eval(line)) for line in similar)
    assert ours == pytest.approx(gensims, abs=1e-6)


@pytest.mark.slow
def test_the_commands_of_word2vec(tmp_path):
    pytest.importorskip("numba", reason=needs.NUMBA)
    commands = "".join(scripts_of("word2vec.md", "sh")).splitlines()
    cache = {"HSTREE_CACHE": str(tmp_path / "cache")}
    printed = [
        run_python(["-m", "hstree_cli", *shlex.split(line)[1:]], tmp_path, **cache)
        for line in commands
    ]
    written = {"tree.json", "cbow.vec", "skipgram.bin", "batches.vec"}
    assert written <= {path.name for path in tmp_path.iterdir()}
    assert "word given window" in printed[3]
