"""What is noted of a stream now and then: how the weights settle, and when rows were observed."""

from __future__ import annotations

import numpy as np

__all__ = ["Marks"]

LEAST_STEP = 32
"""The least rows between two notes."""


class Marks:
    """Notes at 16 to 32 rows while the number of rows doubles.

    Attributes:
        trace: how the weights settle (n, 3): rows, the norm of their mean, and their mean posterior sd.
        times: when rows were observed, if that is noted (n, 2): their number among those that were learned
            from, and the time in seconds since 1970.

    Example:
        >>> marks = Marks()
        >>> marks.mark_time(1, 0.0)
        >>> marks.mark_time(marks.next_mark(1), 60.0)
        >>> [column.tolist() for column in marks.timeline()]
        [[1.0, 32.0], [0.0, 60.0]]
    """

    def __init__(self) -> None:
        self.trace = np.zeros((0, 3))
        self.times = np.zeros((0, 2))

    def mark(self, rows: int, norm: float, sd: float) -> None:
        """Note how the weights settle.

        Arguments:
            rows: how many rows were learned from.
            norm: the norm of the mean parameters.
            sd: the mean posterior standard deviation.
        """
        self.trace = np.concatenate([self.trace, [[rows, norm, sd]]])

    def mark_time(self, rows: int, seconds: float) -> None:
        """Note when a row was observed.

        Arguments:
            rows: its number among the rows that were learned from, from 1.
            seconds: the time in seconds since 1970.
        """
        self.times = np.concatenate([self.times, [[rows, seconds]]])

    @staticmethod
    def next_mark(rows: int) -> int:
        """After how many rows `mark` is due next: 16 to 32 times while their number doubles, however they are
        grouped into calls.

        Arguments:
            rows: how many rows were learned from.
        """
        step = max(LEAST_STEP, (1 << rows.bit_length()) // 32)
        return (rows // step + 1) * step

    def timeline(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The rows whose times were noted and these times (n,), None if they are fewer than 2 or fall."""
        rows, seconds = self.times.T
        return None if len(rows) < 2 or (np.diff(seconds) < 0).any() else (rows, seconds)
