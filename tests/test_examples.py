"""The examples of the core run as they are, and print what they promise."""

import json
import re

import pytest

from hstree import Corpus, LanguageModel, build, load
from tests import needs
from tests.scripts import ROOT, python_path, run_python
from tests.texts import markov_lines, write_lines

NOTEBOOK = ROOT / "examples" / "which_output_layer.ipynb"


@pytest.fixture
def printed(tmp_path, request):
    """The lines that an example prints, as lists of words."""
    if request.param == "gensim_tree":
        pytest.importorskip("gensim", reason="needs gensim: pip install '.[gensim]'")
    path = ROOT / "examples" / f"{request.param}.py"
    assert f"python examples/{path.name}" in path.read_text(encoding="utf-8")
    return [line.split() for line in run_python([path], tmp_path).splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("printed", ["compare_trees"], indirect=True)
def test_compare_trees(printed, tmp_path):
    *rows, _, (*_, best) = printed[1:]
    perplexity = {" ".join(row[:-3]): float(row[-2]) for row in rows}
    assert list(perplexity) == ["huffman", "huffman arity=4", "classes", "flat"]
    assert max(perplexity.values()) < 100
    assert best in perplexity
    assert (tmp_path / "which" / "results.json").exists()


@pytest.mark.parametrize("printed", ["own_vectors"], indirect=True)
def test_own_vectors(printed, tmp_path):
    codes = {word: gmm for word, gmm, _ in printed[1:13]}
    assert len({codes[word][:2] for word in ("cat", "dog", "horse", "mouse")}) == 1
    assert load(tmp_path / "own_vectors.json").labels == tuple(codes)


@pytest.mark.slow
@pytest.mark.parametrize("printed", ["language_model"], indirect=True)
def test_language_model(printed, tmp_path):
    assert float(printed[0][1]) < 100
    probabilities = [float(row[3]) for row in printed[1:6]]
    assert probabilities == sorted(probabilities, reverse=True)
    assert (tmp_path / "model" / "weights.safetensors").exists()


@pytest.mark.slow
@pytest.mark.parametrize("printed", ["gensim_tree"], indirect=True)
def test_gensim_tree(printed):
    rows = {" ".join(row[:-3]): [float(figure) for figure in row[-3:]] for row in printed[1:]}
    assert list(rows) == ["gensim's own", "huffman", "gmm"]
    assert rows["huffman"][0] == rows["gensim's own"][0] < rows["gmm"][0]


@pytest.mark.slow
@pytest.mark.parametrize("printed", ["sklearn_many_classes"], indirect=True)
def test_sklearn_many_classes(printed):
    accuracy = {row[0]: float(row[2]) for row in printed[1:]}
    assert accuracy["flat"] == pytest.approx(accuracy["LogisticRegression"], abs=0.005)
    assert accuracy["random"] < accuracy["gmm"]


def test_hierarchical_softmax_from_scratch_has_the_perplexity_of_the_library(tmp_path):
    lines, _ = markov_lines(2000, seed=0, n_words=30)
    write_lines(tmp_path / "corpus.txt", ["three rare words", *lines])
    path = ROOT / "examples" / "hierarchical_softmax_from_scratch.py"
    printed = run_python([path, "corpus.txt"], tmp_path)
    text = Corpus.read(tmp_path / "corpus.txt")
    n_train = text.n_lines - text.n_lines // 10
    train, test = text.select_lines(0, n_train), text.select_lines(n_train, text.n_lines)
    tree = build("huffman", train.select_vocabulary(min_count=3, unk=True))
    options = {"dim": 50, "context": 3, "learning_rate": 0.03, "dropout": 0, "weight_decay": 0}
    model = LanguageModel(tree, epochs=3, batch_size=256, **options).fit(train)
    assert float(printed.split()[-1]) == pytest.approx(model.perplexity(test), rel=1e-5)


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def kinds(cells):
    """Return the kinds of output of each cell: tables, pictures, text."""
    return [[sorted(output.get("data", {})) for output in cell["outputs"]] for cell in cells]


def test_the_notebook_is_kept_executed():
    text = NOTEBOOK.read_text(encoding="utf-8")
    code = code_cells(json.loads(text))
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(cell["outputs"] for cell in code[1:])  # the first one switches progress on
    assert len(text) < 300_000
    assert not re.search(r"/(home|tmp|root|Users)/|[Ww]arning|Traceback", text)


@pytest.fixture
def notebook(tmp_path, monkeypatch):
    """The notebook as `scripts/execute_notebook.py` would keep it."""
    for package in ("nbclient", "ipykernel", "matplotlib", "pandas"):
        pytest.importorskip(package, reason=needs.NOTEBOOK)
    from scripts.execute_notebook import executed, remove_progress

    monkeypatch.setenv("PYTHONPATH", python_path())
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as in workers: other tests have the other cores
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = executed(tmp_path)
    bars = "".join(
        output["data"].get("text/html", "")
        for cell in code_cells(notebook)
        for output in cell["outputs"]
        if output["output_type"] == "display_data"
    )
    # Progress is gone when it is done. What may stay: which words the vocabulary leaves out, and
    # the kernel's remark that a bar's channel is closed.
    left = re.sub(r"<[^>]+>|No such comm: \w+|\s", "", bars)
    assert not re.sub(r"builtin:python:wordsthatoccuronce.*?keepsthem", "", left)
    remove_progress(notebook)
    return notebook


@pytest.mark.slow
def test_the_notebook(notebook, tmp_path):
    code = code_cells(notebook)
    kept = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert kinds(code) == kinds(code_cells(kept))

    def last(start):
        [cell] = [cell for cell in code if cell["source"].startswith(start)]
        return cell["outputs"][-1]["data"]

    names = ("huffman", "sampled", "flat")
    assert len(last("tree.plot")["image/png"]) > 10_000
    table = last("candidates = ")["text/html"]
    assert all(f"{name}</td><td>" in table for name in names)
    assert all(f"<th>{name}</th>" in last("frame = ")["text/html"] for name in names)
    assert len(last("axes = ")["image/png"]) > 5_000
    assert last("train, valid, test")["text/html"].count("<tr>") == 3  # the header, two epochs
    assert (tmp_path / "which.html").stat().st_size > 100_000
