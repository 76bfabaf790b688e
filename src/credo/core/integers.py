"""Whole numbers: how they are read from text, and how large some may be."""

from __future__ import annotations

__all__ = ["LARGEST_CHUNK", "LARGEST_SEED", "read_integer"]

LARGEST_SEED = 2**32 - 1
"""The largest seed: in single precision, the numbers behind draws have 32 bits."""

LARGEST_CHUNK = 2**16
"""The most rows in a compiled call, which takes memory for all of them at once."""


def read_integer(text: str) -> int:
    """The whole number that a text spells, "1e3" and "20.0" included; a ValueError for any other text."""
    try:
        return int(text)
    except ValueError:
        number = float(text)
    if not number.is_integer():
        raise ValueError(text)
    return int(number)
