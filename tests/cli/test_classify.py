"""`hstree classify`: what it prints, saves and refuses."""

import json
import pickle
import warnings
import zipfile

import pytest
from sklearn.datasets import make_multilabel_classification
from sklearn.feature_extraction.text import CountVectorizer

from hstree import load
from hstree.data.multilabel import read_multilabel, write_multilabel
from hstree.interop.sklearn import ProbabilisticLabelTreeClassifier
from hstree.metrics import precision_at_k


@pytest.fixture
def files(tmp_path):
    """Names of files of 200 training and 50 test samples."""
    X, Y = make_multilabel_classification(250, 30, n_classes=12, n_labels=3, random_state=0)
    write_multilabel(tmp_path / "train.txt", X[:200], Y[:200])
    write_multilabel(tmp_path / "test.txt", X[200:], Y[200:])
    return "train.txt", "test.txt"


def test_it_prints_precision_times_and_memory_in_80_columns(hstree, files, tmp_path):
    ran = hstree("classify", *files, "--json", "results.json")
    for name in ("P@k", "propensity-scored", "nDCG@k", "fitting", "predicting", "memory"):
        assert name in ran.out
    results = json.loads((tmp_path / "results.json").read_text())
    assert [figures["k"] for figures in results["figures"]] == [1, 3, 5]
    for figures in results["figures"]:
        assert f"{figures['P@k']:.2f}" in ran.out
    assert results["peak_bytes"] > 1 << 20


def test_the_saved_model_predicts_what_was_scored(hstree, files, tmp_path):
    hstree("classify", *files, "--method", "kmeans arity=4", "-o", "model", "--json", "r.json")
    model = ProbabilisticLabelTreeClassifier.load(tmp_path / "model")
    test = read_multilabel(tmp_path / "test.txt")
    figures = json.loads((tmp_path / "r.json").read_text())["figures"]
    precision = precision_at_k(test.Y, model.predict_proba(test.X, k=5), 3)
    assert figures[1]["P@k"] == pytest.approx(100 * precision)
    tree = load(tmp_path / "model" / "tree.json")
    assert tree == model.tree_
    assert tree.fan_out.max() <= 4


def test_a_model_is_replaced_with_force_alone(hstree, refused, files, tmp_path):
    hstree("classify", *files)
    refused("classify", *files, saying="labels/config.json exists; add --force")
    hstree("classify", *files, "--force", "--C", 0.5)
    assert ProbabilisticLabelTreeClassifier.load(tmp_path / "labels").C == 0.5


def test_texts_of_fasttext_are_counted(hstree, refused, tmp_path):
    """A label of the test alone is a miss, and the model has the words."""
    lines = [
        "no",
        "__label__a __label__x one é word",
        "",
        "two __label__b words",
        "one more __label__a",
    ]
    (tmp_path / "train.txt").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "test.txt").write_text("__label__b Two __label__c\n__label__a one\nnothing\n")
    hstree("classify", "train.txt", "test.txt", "--json", "r.json", "--C", 100)
    precision = json.loads((tmp_path / "r.json").read_text())["figures"][0]["P@k"]
    assert precision == pytest.approx(200 / 3)
    model = ProbabilisticLabelTreeClassifier.load(tmp_path / "labels")
    assert model.classes_.tolist() == ["a", "b", "x"]
    assert model.words_.tolist() == ["more", "no", "one", "two", "word", "words", "é"]
    with warnings.catch_warnings(action="error"):
        counted = CountVectorizer(vocabulary=model.words_, token_pattern=r"\w+")
        assert model.top_k(counted.transform(["two words"]), 1)[0].tolist() == [["b"]]

    (tmp_path / "none.txt").write_text("no label\n")
    (tmp_path / "latin.txt").write_bytes(b"__label__a \xe9\n")
    (tmp_path / "empty.txt").write_text("__label__a !\n")
    refused("classify", "train.txt", "none.txt", "--force", saying="none.txt: no line has a label")
    refused("classify", "latin.txt", "test.txt", "--force", saying="latin.txt: byte 0xe9")
    refused("classify", "empty.txt", "test.txt", "--force", saying="empty.txt: no text has a word")


@pytest.mark.parametrize("name", ["train.txt", "test.txt"])
def test_pickles_and_zips_are_named(refused, files, tmp_path, name):
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(pickle.dumps(content))
    refused("classify", *files, saying=f"{name} is a pickle")
    with zipfile.ZipFile(tmp_path / name, "w") as packed:
        packed.writestr("samples.txt", content)
    refused("classify", *files, saying=f"{name} is a zip")


def test_what_it_cannot_use_is_refused_in_one_line(refused, files, tmp_path):
    (tmp_path / "narrow.txt").write_text("1 30 11\n3 0:1\n")
    refused("classify", files[0], "narrow.txt", saying="narrow.txt has 30 features and 11 labels")
    (tmp_path / "empty.txt").write_text("1 30 12\n 0:1\n")
    refused("classify", "empty.txt", files[1], saying="no sample has a label")
    refused("classify", "missing.txt", files[1], saying="missing.txt")
    refused("classify", *files, "--method", "classes cluster_by=exchange", saying="corpus")
    refused("classify", *files, "--method", "kmeans arity=1", status=2, saying="arity")
    refused("classify", *files, "--C", 0, status=2, saying="--C is 0")
    refused("classify", *files, "-o", files[0], saying="-o")
