"""What an encoder has learned, and what it says about the rows of a chunk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from credo.tables.chunks import BadRow
from credo.tables.moments import Moments

__all__ = ["EncodeReport", "EncoderState"]


@dataclass(frozen=True)
class EncoderState:
    """What an encoder has learned: the moments of the K numeric and datetime columns.

    Arguments:
        moments: the running count, mean and spread of those columns.

    Example:
        >>> state = EncoderState(Moments.empty(2))
        >>> sorted(state.arrays())
        ['centre', 'count', 'rows', 's1', 's2']
    """

    moments: Moments

    def arrays(self) -> dict[str, np.ndarray]:
        """The state as named arrays, from which `from_arrays` continues bitwise."""
        return self.moments.arrays()

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray]) -> EncoderState:
        """Restore what `arrays` gave.

        Raises:
            FormatError: an array is missing or has another shape.
        """
        return EncoderState(Moments.from_arrays(arrays))


@dataclass(frozen=True)
class EncodeReport:
    """What happened to the rows of one chunk.

    Arguments:
        read: the number of rows read, good and bad.
        used: the number of rows encoded.
        kept: the places of those rows in the chunk, (used,) int64.
        lines: the places of those rows in the source, (used,) int64.
        bad: the skipped rows, including those that the chunk came with, in the order of the source.
        missing: the number of missing or infinite cells in used rows, by column.
        unseen: the number of cells of an unknown category in used rows, by column.
        labels: the labels that became new classes, in the order in which they came.

    Example:
        >>> EncodeReport(read=2, used=1, kept=np.array([1]), lines=np.array([3])).missing
        {}
    """

    read: int
    used: int
    kept: np.ndarray
    lines: np.ndarray
    bad: list[BadRow] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)
    unseen: dict[str, int] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
