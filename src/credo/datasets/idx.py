"""The IDX format of MNIST and its kin: a magic number, the sizes as big-endian integers, then the bytes.

The magic number is two zeros, a byte for the type of the numbers and a byte for the number of dimensions.
"""

from __future__ import annotations

import numpy as np

from credo.core.errors import DataError
from credo.datasets.dataset import Array

__all__ = ["parse_idx"]

TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def parse_idx(content: bytes) -> Array:
    """The array, of the shape and type that it states, in the uncompressed content of an IDX file."""
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in TYPES or content[3] == 0:
        raise DataError(f"the file is no IDX file; it begins with {content[:4].hex() or 'nothing'}.")
    dtype, rank = np.dtype(TYPES[content[2]]), content[3]
    start = 4 + 4 * rank
    if len(content) < start:
        raise DataError(f"the IDX file is cut off within its header; it has {len(content)} bytes.")
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", rank, 4))
    wanted = start + dtype.itemsize * int(np.prod(shape, dtype=object))
    if len(content) != wanted:
        raise DataError(f"the IDX file must have {wanted} bytes for the shape {shape}; got {len(content)}.")
    return np.frombuffer(content, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))
