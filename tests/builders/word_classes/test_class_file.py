import gzip

import pytest

from hstree.builders.word_classes.class_file import read_classes
from hstree.errors import InputError


def written(tmp_path, text, name="classes.tsv"):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_words_and_classes(tmp_path):
    found = read_classes(written(tmp_path, "\ufeffcat\tanimal\r\n\r\nred\tcolour 1\r\ndog\tanimal"))
    assert found.class_of == {"cat": "animal", "red": "colour 1", "dog": "animal"}
    assert not found.is_paths


def test_paths_plain_and_compressed(tmp_path):
    text = "00\tcat\t5\n00\tdog\t3\n01\tred\t1\n1\tthe\t9\n"
    plain = read_classes(written(tmp_path, text))
    assert plain.is_paths
    assert plain.class_of == {"cat": "00", "dog": "00", "red": "01", "the": "1"}
    packed = written(tmp_path, gzip.compress(text.encode()), "paths.gz")
    assert read_classes(packed) == plain
    assert read_classes(written(tmp_path, "\tcat\t5\n")).class_of == {"cat": ""}


@pytest.mark.parametrize(
    ("text", "saying"),
    [
        ("", "no line in it"),
        ("cat animal\n", "line 1"),
        ("a\tb\tc\td\n", "line 1"),
        ("cat\ta\ndog\n", "line 2: expected a word, a tab and a class, found 'dog'"),
        ("cat\ta\ndog\t\n", "line 2"),
        ("cat\ta\n0\tdog\t4\n", "line 2"),
        ("01\tcat\t5\n02\tdog\t3\n", "line 2: expected bits of 0 and 1"),
        ("01\t\t3\n", "line 1"),
        ("cat\ta\ndog\ta\n\ncat\tb\n", "line 4: the word 'cat' is on line 1 too"),
        ("01\tcat\t5\n011\tdog\t3\n", "'01' is a prefix of '011'"),
        (b"caf\xe9\ta\n", "not UTF-8"),
        (b"a\0\tb\n", "NUL"),
    ],
)
def test_bad_lines_are_named(tmp_path, text, saying):
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_classes(path)
    assert str(path) in str(caught.value)
    assert saying in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    for path in (tmp_path / "none.tsv", tmp_path):
        with pytest.raises(InputError, match="cannot read"):
            read_classes(path)
    whole = gzip.compress(b"cat\ta\n" * 1000)
    for bad in (b"plain", whole[:-9], whole[:20] + b"xxxx" + whole[24:]):
        with pytest.raises(InputError, match="cannot read"):
            read_classes(written(tmp_path, bad, "bad.gz"))
