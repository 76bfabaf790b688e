"""The features of times: seconds, and sine and cosine of what repeats by the clock and the calendar."""

from __future__ import annotations

import numpy as np

from credo.tables.cells import Cells
from credo.tables.schema import ColumnSpec, Cycle
from credo.tables.times import to_times

__all__ = ["find_cycles", "read_times"]

_DAY = 86400.0
_YEAR = 365.2425
_SPAN = 60.0
"""The least number of days that the first rows must span for the day of the year to be a feature."""


def read_times(column: ColumnSpec, cells: Cells, x: np.ndarray, at: int) -> tuple[np.ndarray, np.ndarray]:
    """The seconds since a column's origin (n,), NaN where missing, and which cells are no times. Behind the
    place `at` in `x` (n, D), a cycle with the phase u in turns is sin(2 pi u) and cos(2 pi u).
    """
    seconds, clock, wrong = to_times(cells)
    days = clock / _DAY
    for place, cycle in enumerate(column.cycles):
        angle = 2 * np.pi * np.nan_to_num(_turns(days, cycle) % 1.0)
        first = at + 1 + 2 * place
        x[:, first] = np.where(np.isnan(clock), 0.0, np.sin(angle))
        x[:, first + 1] = np.where(np.isnan(clock), 0.0, np.cos(angle))
    return seconds - column.origin, wrong


def _turns(days: np.ndarray, cycle: Cycle) -> np.ndarray:
    """How often a cycle has turned since 1970 began, on a Thursday; years have their mean length."""
    if cycle == "hour":
        return days
    return (days + 3.0) / 7.0 if cycle == "weekday" else days / _YEAR


def find_cycles(clock: np.ndarray) -> tuple[Cycle, ...]:
    """The cycles that times by the clock (n,), seconds since 1970, show: hour and weekday where these vary,
    and the day of the year where they span 60 days.
    """
    days = clock[~np.isnan(clock)] / _DAY
    cycles: list[Cycle] = []
    if np.ptp(days % 1.0) > 0:
        cycles.append("hour")
    if np.ptp(np.floor(days) % 7.0) > 0:
        cycles.append("weekday")
    if np.ptp(days) >= _SPAN:
        cycles.append("yearday")
    return tuple(cycles)
