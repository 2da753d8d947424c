"""docs/tree-format.md is held to what hstree does: its example, numbers, reader and rules."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from hstree._files import ALWAYS, MAX_RATIO
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.tree import Tree, load
from hstree.tree.files import save
from tests.strategies import children_of, trees
from tests.tree.test_rules import ONCE

PAGE = (Path(__file__).parents[2] / "docs" / "tree-format.md").read_text("utf-8")
WORDS = " ".join(PAGE.split())


def block(language):
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return found


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "reader.py"
    path.write_text(block("python"), "utf-8")
    return runpy.run_path(str(path))


def test_the_page_says_how_far_gzip_may_unpack():
    assert f"may unpack to {MAX_RATIO} times its size, or to {ALWAYS >> 20} MiB" in WORDS


def test_the_example_is_a_tree_as_hstree_writes_it_and_has_the_hash_it_says(tmp_path):
    path = tmp_path / "tree.json"
    path.write_text(block("json"), "utf-8")
    tree = load(path)
    assert f"has the hash `{tree.sha256}`" in WORDS
    save(tree, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text("utf-8") == block("json")


@pytest.mark.parametrize(
    ("children", "bias", "expected"),
    [
        ([[1, 2], [-1, -2], [-3, -4]], "0.405465, 0.847298, -1.386294", [0.42, 0.18, 0.08, 0.32]),
        (
            [[1, 2, -4], [-1, -2], [-3, -1]],
            "log 0.5, log 0.3, log 0.2, 0.847298, -1.386294",
            [0.59, 0.15, 0.06, 0.2],
        ),
    ],
)
def test_the_numbers_are_those_of_the_layer_and_of_the_reader(reader, children, bias, expected):
    assert f"({bias})" in WORDS
    values = [
        np.log(float(text[4:])) if text.startswith("log") else float(text)
        for text in bias.split(", ")
    ]
    layer = HierarchicalSoftmax(Tree.from_children(list("abcd"), children), 3, dtype=np.float64)
    layer.bias[:] = values
    assert np.exp(layer.log_prob(np.ones((1, 3))))[0] == pytest.approx(expected, abs=1e-6)
    found = reader["probabilities"](list("abcd"), children, values.__getitem__)
    assert list(found.values()) == pytest.approx(expected, abs=1e-6)


@settings(max_examples=25)
@given(tree=trees(max_labels=10))
def test_the_reader_of_the_page_gives_the_probabilities_of_the_layer(
    tmp_path_factory, reader, tree
):
    path = tmp_path_factory.getbasetemp() / "page.json"
    save(tree, path)
    labels, children = reader["read"](path)
    assert (tuple(labels), children) == (tree.labels, children_of(tree))
    layer = HierarchicalSoftmax(tree, 4, dtype=np.float64)
    rng = np.random.default_rng(0)
    layer.weight[:] = rng.standard_normal(layer.weight.shape)
    hidden = rng.standard_normal(4)
    found = reader["probabilities"](
        labels, children, (layer.weight @ hidden + layer.bias).__getitem__
    )
    assert sum(found.values()) == pytest.approx(1)
    expected = np.exp(layer.log_prob(hidden[None])[0])
    assert [found[label] for label in labels] == pytest.approx(expected.tolist(), rel=1e-9)


def test_the_page_lists_every_rule_by_its_name():
    listed = set(
        re.findall(r"^\| `([^`]+)` +\| [^|]+\|$", PAGE.split("### Rules")[1], re.MULTILINE)
    )
    assert {rule for rule, *_ in ONCE} | {"offsets"} <= listed
