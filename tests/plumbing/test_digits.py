"""Numbers of thousands of digits, which Python does not convert: in every file and spelling."""

import zipfile

import numpy as np
import pytest

import hstree
from hstree import HstreeError, formats
from hstree._files import read_json
from hstree._parallel import n_threads
from hstree.data.multilabel import read_multilabel
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import OptionError
from hstree.experiments.candidate import Candidate
from hstree.experiments.results import load as load_results
from hstree.interop.sklearn import HierarchicalSoftmaxClassifier, ProbabilisticLabelTreeClassifier

#: More than an int64 has, than a float has, and than Python converts.
LENGTHS = (20, 400, 5000)
WORDS = Vocabulary(["<eos>", "a", "b"], [3, 2, 1])
TREE = '{"format": "hstree", "version": 1, "labels": ["a", "b"], "children": [[-1, -2]]%s}'
GRAPHML = (
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    '<key id="d0" for="node" attr.name="count" attr.type="int"/>'
    '<key id="d1" for="edge" attr.name="branch" attr.type="int"/>'
    '<graph edgedefault="directed"><node id="n0"/><node id="l0"><data key="d0">%s</data></node>'
    '<node id="l1"><data key="d0">1</data></node><edge source="n0" target="l0">'
    '<data key="d1">%s</data></edge><edge source="n0" target="l1"/></graph></graphml>'
)
RECORD = '# hstree\t{"texts": [%s]}\na\t1\n'

#: Name of each file, its reader and its content, with N instead of the digits.
FILES = [
    ("samples.txt", read_multilabel, "N 4 2\n0 0:1\n"),
    ("samples.txt", read_multilabel, "1 N 2\n0 0:1\n"),
    ("samples.txt", read_multilabel, "1 4 N\n0 0:1\n"),
    ("samples.txt", read_multilabel, "1 4 2\nN 0:1\n"),
    ("samples.txt", read_multilabel, "1 4 2\n0 N:1\n"),
    ("samples.txt", read_multilabel, "1 4 2\n0 0:N\n"),
    ("samples.txt", read_multilabel, "1 4 2\n0 0:1e-N\n"),
    ("samples.txt", read_multilabel, "N N:N\n"),
    ("vectors.vec", WordVectors.read, "N 2\na 0.1 0.2\n"),
    ("vectors.vec", WordVectors.read, "1 N\na 0.1 0.2\n"),
    ("vectors.vec", WordVectors.read, "1 2\na N 0.2\n"),
    ("vectors.txt", WordVectors.read, "a N. .2 .2 .2 .2\nb .1 .2 .2 .2 .2e-N\n"),
    ("vectors.bin", WordVectors.read, "N 1\na \0\0\0\0\n"),
    ("vectors.bin", WordVectors.read, "1 N\na \0\0\0\0\n"),
    ("words.tsv", Vocabulary.from_file, "a\tN\nb\t1\n"),
    ("words.tsv", Vocabulary.from_file, RECORD % '{"sha256": "0", "lines": [0, N]}'),
    ("words.tsv", Vocabulary.from_file, RECORD % "N"),
    ("tree.paths", formats.read, "0\ta\tN\n1\tb\t1\n"),
    ("tree.napkinxc", formats.read, "N 3\n-1 0\n0 1 0\n0 2 1\n"),
    ("tree.napkinxc", formats.read, "2 N\n-1 0\n0 1 0\n0 2 1\n"),
    ("tree.napkinxc", formats.read, "2 3\n-1 0\n0 N 0\n0 2 1\n"),
    ("tree.napkinxc", formats.read, "2 3\n-1 0\n0 1 N\n0 2 1\n"),
    ("tree.nwk", formats.read, "(N:N,b:1e-N)N;"),
    ("tree.csv", formats.read, "parent,child\nN,a\nN,b\n"),
    ("tree.graphml", formats.read, GRAPHML % ("N", "0")),
    ("tree.graphml", formats.read, GRAPHML % ("1", "N")),
    ("tree.json", hstree.load, TREE.replace("[-1,", "[-N,") % ""),
    ("tree.json", hstree.load, TREE.replace("1,", "N,", 1) % ""),
    ("tree.json", hstree.load, TREE.replace('"a"', "N") % ""),
    ("tree.json", hstree.load, TREE.replace('"hstree"', "N") % ""),
    ("tree.json", hstree.load, TREE % ', "counts": [N, 1]'),
    ("tree.json", hstree.load, TREE % ', "names": [N]'),
    ("tree.json", hstree.load, TREE % ', "meta": {"a": [-N, 1e-N]}'),
    ("tree.json", hstree.load, TREE % ', "meta": {"input": {"lines": [0, N]}}'),
    ("model/config.json", hstree.load_model, '{"format": "hstree model", "version": N}'),
    ("model/config.json", hstree.load_model, '{"format": "hstree model", "version": 1, "dim": N}'),
    (
        "model/config.json",
        ProbabilisticLabelTreeClassifier.load,
        '{"format": "hstree label tree", "version": N}',
    ),
    ("which/results.json", load_results, '{"format": "hstree", "version": N}'),
    ("values.json", lambda path: read_json(path, dict), '{"a": N}'),
]


def is_one_line(error):
    """Whether an error is one line of a length that people read."""
    return "\n" not in str(error) and len(str(error)) < 600


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(
    ("name", "read", "text"), FILES, ids=lambda value: "" if callable(value) else str(value)[:40]
)
def test_files_with_long_numbers_are_read_or_refused_in_one_line(
    tmp_path, name, read, text, length
):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.replace("N", "7" * length).encode())
    try:
        read(path if path.parent == tmp_path else path.parent)
    except HstreeError as error:
        assert is_one_line(error)  # noqa: PT017 - some of these files can be read


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("shape", ["(N, 2)", "(0, N)", "(-N, 2)"])
@pytest.mark.parametrize("name", ["vectors.npy", "tree.npz"])
def test_arrays_with_long_shapes_are_refused_in_one_line(tmp_path, name, shape, length):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n"
    header = header.replace("N", "7" * length)
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(8)
    path = tmp_path / name
    path.write_bytes(array)
    if name == "tree.npz":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("child.npy", array)
    with pytest.raises(HstreeError) as caught:
        (WordVectors.read if name == "vectors.npy" else hstree.load)(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(
    "candidate",
    [
        *(
            "N x flat",
            "knN",
            "N",
            "flat + N",
            "huffman N=1",
            "huffman arity=N",
            "sampled samples=-N",
        ),
        *("adaptive cutoffs=N", "adaptive cutoffs=1,N", "differentiated bands=N:4,*:2"),
        *("differentiated bands=1:N,*:2", "differentiated bands=1:4,*:N"),
    ],
)
def test_candidates_with_long_numbers_are_refused_in_one_line(candidate, length):
    with pytest.raises(OptionError) as caught:
        Candidate.parse(candidate.replace("N", "7" * length)).spec(WORDS, None).new(4)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("length", LENGTHS)
def test_values_with_too_many_digits_are_refused_in_one_line(tmp_path, length):
    number = 10**length
    calls = [
        lambda: hstree.Vocabulary(["a"], [number]),
        lambda: hstree.build("huffman", {"a": number, "b": 1}),
        lambda: hstree.build("huffman", {"a": 2, "b": 1}, arity=number),
        lambda: hstree.Tree(["a", "b"], [0, 2], [~0, ~1], counts=[number, 1]),
        lambda: hstree.Tree(["a", "b"], [0, 2], [number, ~1]),
        lambda: hstree.compare("builtin:python", ["flat"], tmp_path, seeds=number),
        lambda: hstree.compare("builtin:python", ["flat"], tmp_path, stop=hstree.Epochs(number)),
        lambda: hstree.bootstrap("builtin:python", tmp_path, rounds=number),
        lambda: ProbabilisticLabelTreeClassifier(n_jobs=number).fit(np.eye(3), np.eye(3)),
        lambda: HierarchicalSoftmaxClassifier(max_iter=number).fit(np.eye(3), [0, 1, 2]),
        lambda: HierarchicalSoftmaxClassifier(C=number * 10**400).fit(np.eye(3), [0, 1, 2]),
    ]
    for call in calls:
        with pytest.raises(HstreeError) as caught:
            call()
        assert is_one_line(caught.value)


def test_a_number_of_threads_of_thousands_of_digits_is_all_cores(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "")
    cores = n_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", "7" * 5000)
    assert n_threads() == cores
