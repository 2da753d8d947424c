import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hstree.tree.content import pack, unpack
from tests.strategies import texts


@given(st.lists(texts))
def test_packing_is_encoding_and_unpacking_undoes_it(strings):
    buffer, start = pack(strings)
    encoded = [string.encode() for string in strings]
    assert buffer.tobytes() == b"".join(encoded)
    assert np.diff(start).tolist() == [len(one) for one in encoded]
    assert unpack(buffer, start) == strings


@pytest.mark.parametrize(
    ("data", "start", "says"),
    [
        ("ab", [], "do not run"),
        ("ab", [0, 1], "do not run"),
        ("ab", [1, 2], "do not run"),
        ("ab", [0, 3, 2], "do not run"),
        ("ab", [0, 1, -(2**63), -1, 2], "do not run"),
        ("aé", [0, 2, 3], "cuts a character"),
        (b"a\xff", [0, 2], "utf-8"),
        (b"\xed\xa0\x80", [0, 3], "utf-8"),
    ],
)
def test_broken_buffers_are_refused(data, start, says):
    data = data.encode() if isinstance(data, str) else data
    with pytest.raises(ValueError, match=says):
        unpack(np.frombuffer(data, np.uint8), np.array(start, np.int64))
