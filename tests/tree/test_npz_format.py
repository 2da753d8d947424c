"""Bad trees in .npz: each refused in one clear line that names the file."""

import io
import json
import zipfile

import numpy as np
import pytest

from hstree.errors import FileFormatError
from tests.tree.documents import TREE, members_of, refusal


def header(**fields):
    text = json.dumps({"format": "hstree", "version": 1, "meta": {}} | fields)
    return np.frombuffer(text.encode(), np.uint8)


ANY = np.array([1, 2])
BAD_MEMBERS = [
    ({"header": None}, "has no member 'header'"),
    ({"names": None}, "has no member 'names'"),
    ({"more": ANY}, "has the unknown member 'more'"),
    ({"header": header(version=3)}, "is of version 3"),
    ({"header": np.frombuffer(b"{", np.uint8)}, "holds no tree: Input data was truncated"),
    ({"header": np.array("hstree")}, "has the member 'header' as <U6"),
    ({"child": ANY.astype(np.int32)}, "'child' as <i4"),
    ({"child": ANY[:, None]}, "of shape (2, 1)"),
    ({"counts": ANY.astype(float)}, "'counts' as <f8"),
    ({"labels": np.array(["a", "b"])}, "has the member 'labels' as <U1"),
    ({"labels": np.array(["a", {}], object)}, "not a sound .npz: "),
    ({"labels": np.full(20, 255, np.uint8)}, "broken member 'labels' or 'label_start': 'utf-8'"),
    ({"label_start": np.array([0, 3, 2, 6, 6, 20])}, "'label_start': the offsets do not run"),
    ({"label_start": np.array([0, 3, -(2**63), -1, 20])}, "'label_start': the offsets do not run"),
    ({"label_start": np.array([0, 3, 6, 6, 7, 20])}, "'label_start': an offset cuts a character"),
    ({"named": np.array([0, 0, 0])}, "broken member 'named'"),
    ({"named": np.array([-1, 1, 2])}, "broken member 'named'"),
    ({"child_start": ANY[:0]}, "broken member 'named'"),
]


@pytest.mark.parametrize(("fields", "says"), BAD_MEMBERS)
def test_bad_members_of_an_npz_are_refused(tmp_path, fields, says):
    members = members_of(TREE) | fields
    path = tmp_path / "bad.npz"
    np.savez(path, **{name: array for name, array in members.items() if array is not None})
    assert says in refusal(path, FileFormatError)


def test_zips_that_are_no_npz_are_refused(tmp_path):
    path = tmp_path / "bad.npz"
    members = members_of(TREE)
    np.savez_compressed(path, **members)
    assert "compressed" in refusal(path, FileFormatError)
    array = io.BytesIO()
    np.save(array, members["child"])
    npy = array.getvalue()
    huge = npy.replace(b"(9,), }" + b" " * 15, b"(9000000000000000,), }")
    for content in (npy, b""):
        path.write_bytes(content)
        assert "is not a sound .npz" in refusal(path, FileFormatError)
    for content in (b"not an array", huge, npy[:-1]):
        np.savez(path, header=members["header"], child_start=members["child_start"])
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("child.npy", content)
        refusal(path, FileFormatError)
