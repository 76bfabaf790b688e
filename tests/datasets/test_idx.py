"""The IDX format."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from credo.core.errors import DataError
from credo.datasets.loading import TYPES, parse_idx


@given(st.data())
def test_every_array_survives_the_round_trip(data: st.DataObject) -> None:
    code = data.draw(st.sampled_from(sorted(TYPES)))
    dtype = np.dtype(TYPES[code])
    shape = data.draw(array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4))
    array = data.draw(arrays(dtype.newbyteorder("="), shape))
    content = (
        bytes([0, 0, code, array.ndim]) + np.array(shape, ">u4").tobytes() + array.astype(dtype).tobytes()
    )
    read = parse_idx(content)
    assert read.dtype == array.dtype
    assert read.dtype.isnative
    np.testing.assert_array_equal(read, array)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "no IDX file; it begins with nothing"),
        (b"\x89PNG....", "no IDX file; it begins with 89504e47"),
        (bytes([0, 0, 7, 1, 0, 0, 0, 0]), "no IDX file"),
        (bytes([0, 0, 8, 0]), "no IDX file"),
        (bytes([0, 0, 8, 2, 0, 0, 0, 1]), "cut off within its header"),
        (bytes([0, 0, 8, 1, 0, 0, 0, 3, 1, 2]), r"must have 11 bytes for the shape \(3,\); got 10"),
        (bytes([0, 0, 8, 1, 0, 0, 0, 1, 1, 2]), "must have 9 bytes"),
        (bytes([0, 0, 8, 3]) + b"\xff" * 12, "must have 79228162458924105385300197391 bytes"),
    ],
)
def test_what_is_no_idx_file_is_refused(content: bytes, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        parse_idx(content)
