"""Places along an axis that are easy to read, with their labels: numbers, whole numbers and times."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

__all__ = ["Mark", "Times", "number_marks", "symlog_marks", "time_marks"]

Times: TypeAlias = tuple[np.ndarray, np.ndarray] | None
"""The numbers of some rows (n,), and when they were observed (n,), in seconds since 1970 that do not fall."""


class Mark(NamedTuple):
    """A labelled place along an axis."""

    place: float
    label: str


def number_marks(low: float, high: float, most: int, whole: bool = False) -> list[Mark]:
    """At most so many multiples of 1, 2, 2.5 or 5 times a power of ten, or of whole ones.

    Arguments:
        low, high: the ends of the axis.
        most: the largest number of marks.
        whole: whether the places are whole numbers.

    Example:
        >>> [mark.label for mark in number_marks(0.0, 100.0, 6, whole=True)]
        ['0', '20', '40', '60', '80', '100']
    """
    wide = (high - low) / most
    power = 10.0 ** math.floor(math.log10(wide)) if wide > 0 else 1.0
    steps = [power * size for size in (1, 2, 2.5, 5, 10, 20, 25)]
    if whole:
        steps = [round(step) for step in steps if step >= 1 and step == round(step)] or [1]
    found = [low]
    step = steps[-1]
    for step in steps:
        found = list(np.arange(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1) * step)
        if len(found) <= most:
            break
    return [Mark(float(place), _written(float(place), float(step))) for place in found]


def _written(value: float, step: float) -> str:
    """A number to the decimals of its step, and with a power of ten where there would be too many."""
    largest = max(abs(value), step)
    if largest >= 1e7 or step < 1e-5:
        return f"{value:.3g}"
    decimals = next((d for d in range(6) if abs(step - round(step, d)) < 1e-3 * step), 6)
    return f"{round(value, decimals) + 0.0:,.{decimals}f}"


def symlog_marks(low: float, high: float, linear: float) -> list[Mark]:
    """Zero and the powers of ten beyond it, on an axis that is linear up to `linear` and logarithmic above.

    Arguments:
        low, high: the ends of the axis.
        linear: the size up to which the axis is linear, a power of ten.

    Example:
        >>> [mark.label for mark in symlog_marks(-0.1, 20.0, 0.1)]
        ['-0.1', '0', '0.1', '1', '10']
    """
    largest = max(abs(low), abs(high), linear)
    first = math.ceil(math.log10(linear) - 1e-9)
    sizes = [10.0**k for k in range(first, math.floor(math.log10(largest) + 1e-9) + 1)]
    places = [*(-size for size in sizes[::-1]), 0.0, *sizes]
    return [Mark(place, f"{place:g}") for place in places if low <= place <= high]


# The steps between marks in time: a unit of NumPy, how many of it, and the seconds that takes about.
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "D": 86400.0, "M": 30.44 * 86400.0, "Y": 365.25 * 86400.0}
_COUNTS = {
    "s": (1, 2, 5, 10, 15, 30),
    "m": (1, 2, 5, 10, 15, 30),
    "h": (1, 2, 3, 6, 12),
    "D": (1, 2, 3, 7, 14),
    "M": (1, 2, 3, 6),
    "Y": (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000),
}
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def time_marks(low: float, high: float, most: int = 8) -> tuple[list[Mark], str]:
    """Times that are easy to read, as short as their neighbours allow, and what all of them share.

    Arguments:
        low, high: the ends in seconds since 1970.
        most: the largest number of marks.

    Returns:
        The marks in seconds; and the year, the month or the day of the last mark, if the labels leave it out.

    Example:
        >>> marks, shared = time_marks(0.0, 4 * 86400.0)
        >>> [mark.label for mark in marks], shared
        (['1970', '2', '3', '4', '5'], '1970-Jan')
    """
    steps = [(unit, count) for unit, counts in _COUNTS.items() for count in counts]
    unit, count = next(
        (one for one in steps if (high - low) / (_SECONDS[one[0]] * one[1]) <= most - 1), steps[-1]
    )
    marks = []
    shared = ""
    for moment in _moments(low, high, unit, count):
        year, month, day, clock = _parts(moment)
        seconds = float(moment.astype("datetime64[s]").astype(np.int64))
        label = {
            "Y": year,
            "M": year if month == "Jan" else month,
            "D": _day(year, month, day),
        }.get(unit, clock if unit == "s" else clock[:5])
        if unit in "hms" and clock == "00:00:00":
            label = f"{day} {month}"
        shared = {"Y": "", "M": year, "D": f"{year}-{month}"}.get(unit, f"{year}-{month}-{day}")
        marks.append(Mark(seconds, label))
    return marks, shared


def _moments(low: float, high: float, unit: str, count: int) -> Iterator[np.datetime64]:
    """The moments between two times, so many units apart; days begin anew with each month."""
    ends = np.array([low, high]).astype("datetime64[s]")
    first, last = ends.astype(f"datetime64[{unit}]").astype(np.int64)
    offset = 1970 if unit == "Y" else 0
    numbers = np.arange(first, last + 1)
    for number, moment in zip(numbers.tolist(), numbers.astype(f"datetime64[{unit}]"), strict=True):
        at = number + offset
        if unit == "D":
            at = int((moment - moment.astype("datetime64[M]").astype("datetime64[D]")).astype(int))
            near = count > 1 and at + count / 2 > 30  # the first of the next month comes soon
            at = 1 if near else at
        if at % count == 0 and ends[0] <= moment.astype("datetime64[s]") <= ends[1]:
            yield moment


def _parts(moment: np.datetime64) -> tuple[str, str, str, str]:
    """The year, month, day and time of day of a moment."""
    text = str(moment.astype("datetime64[s]"))
    date, clock = text.split("T")
    year, month, day = date.rsplit("-", 2)
    return year, _MONTHS[int(month) - 1], day, clock


def _day(year: str, month: str, day: str) -> str:
    """The label of a day: that of the month or year that begins with it, or its number."""
    if day != "01":
        return str(int(day))
    return year if month == "Jan" else month
