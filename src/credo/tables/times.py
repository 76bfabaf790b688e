"""The reading of cells as times, and their features: seconds, and sine and cosine of what repeats."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence

import numpy as np

from credo.tables.cells import MISSING, Cells, cell_text, is_missing, to_list, to_numbers
from credo.tables.schema import ColumnSpec, Cycle
from credo.tables.styles import EPOCHS, Style

__all__ = ["find_cycles", "read_times", "to_times"]

_NAN = float("nan")
_EPOCH = dt.datetime(1970, 1, 1)
_EXACT = 2**53
_PATTERN = np.array([ord(sign) for sign in "dddd-dd-ddTdd:dd:dd.dddddd"], np.uint32)
_LENGTHS = (7, 10, 16, 19, 23, 26)
"""The places of digits and signs in the usual spelling of a time, and the lengths at which it may end."""

_MONTH = re.compile(r"\d{4}-\d{2}")

_DAY = 86400.0
_YEAR = 365.2425
_SPAN = 60.0
"""The least number of days that the first rows must span for the day of the year to be a feature."""


def to_times(cells: Cells, style: Style | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read cells as times of a style, by default of ISO 8601, UTC without a zone: seconds since 1970 in UTC,
    and by the clock as written (n,), NaN if missing or unreadable, in float64; and which cells are no times
    (n,).
    """
    if style is not None and style.kind == "epoch":
        numbers, wrong = to_numbers(cells)
        seconds = numbers / EPOCHS[style.unit]
        return seconds, seconds, wrong
    count = len(cells)
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "M":
        micros = cells.astype("datetime64[us]")
        seconds = np.where(np.isnat(micros), np.nan, micros.astype(np.int64) / 1e6)
        return seconds, seconds, np.zeros(count, bool)
    cells = to_list(cells)
    dated = "" if style is None else style.date
    quick = None if dated else _usual(cells)
    if quick is not None:
        return *quick, np.zeros(count, bool)
    utc = np.full(count, _NAN)
    clock = np.full(count, _NAN)
    wrong = np.zeros(count, bool)
    for place, cell in enumerate(cells):
        moment = _moment(cell, style if dated else None)
        if moment is None:
            wrong[place] = not is_missing(cell)
            continue
        bare = moment.replace(tzinfo=None)
        clock[place] = (bare - _EPOCH).total_seconds()
        utc[place] = clock[place] - (moment.utcoffset() or dt.timedelta()).total_seconds()
    return utc, clock, wrong


def _moment(cell: object, style: Style | None) -> dt.datetime | None:
    if style is not None and isinstance(cell, (str, int, float, np.number)):
        return None if is_missing(cell) else style.moment(cell_text(cell))
    if isinstance(cell, str):
        text = cell.strip()
        try:
            return dt.datetime.fromisoformat(f"{text}-01" if _MONTH.fullmatch(text) else text)
        except ValueError:
            return None
    if isinstance(cell, np.datetime64):
        cell = cell.astype("datetime64[us]").item()
    if isinstance(cell, dt.datetime) and not is_missing(cell):
        return cell
    if isinstance(cell, dt.date) and not is_missing(cell):
        return dt.datetime(cell.year, cell.month, cell.day)
    return None


def _usual(cells: Sequence[object]) -> tuple[np.ndarray, np.ndarray] | None:
    """The times (n,), in UTC and as written, of cells like 2024-05-01T12:30:00+02:00; None for others."""
    try:
        present = [place for place, cell in enumerate(cells) if cell not in MISSING]
    except TypeError:
        return None
    texts = [cell for place in present if isinstance(cell := cells[place], str)]
    if not texts or len(texts) < len(present) or len(set(map(len, texts))) > 1:
        return None
    zone = _zone(texts[0])
    if zone and any(not text.endswith(zone) for text in texts):
        return None
    length = len(texts[0]) - len(zone)
    if length not in _LENGTHS:
        return None
    signs = np.array([text[:length] for text in texts]).view(np.uint32).reshape(len(texts), length)
    pattern = _PATTERN[:length]
    digits = pattern == ord("d")
    fits = np.where(digits, (signs >= ord("0")) & (signs <= ord("9")), signs == pattern)
    if length > 10:
        fits[:, 10] |= signs[:, 10] == ord(" ")
    if not fits.all() or (signs[:, :4] == ord("0")).all(axis=1).any():
        return None
    try:
        micros = signs.view(f"<U{length}").ravel().astype("datetime64[us]").astype(np.int64)
    except ValueError:
        return None
    if np.abs(micros).max() >= _EXACT:
        return None
    offset = dt.datetime.fromisoformat(f"2000-01-01T00:00{zone}").utcoffset() or dt.timedelta()
    utc = np.full(len(cells), _NAN)
    clock = np.full(len(cells), _NAN)
    clock[present] = micros / 1e6
    utc[present] = clock[present] - offset.total_seconds()
    return utc, clock


def _zone(text: str) -> str:
    """The zone at the end of a time, such as Z or +02:00; nothing if there is none."""
    if text.endswith("Z"):
        return "Z"
    if len(text) > 16 and text[-6] in "+-" and text[-3] == ":":
        return text[-6:]
    return ""


def read_times(column: ColumnSpec, cells: Cells, x: np.ndarray, at: int) -> tuple[np.ndarray, np.ndarray]:
    """The seconds since a column's origin (n,), NaN if missing, and which cells are no times. Behind the
    place `at` in `x` (n, D), a cycle with the phase u in turns is sin(2 pi u) and cos(2 pi u).
    """
    seconds, clock, wrong = to_times(cells, column.style)
    days = clock / _DAY
    for place, cycle in enumerate(column.cycles):
        angle = 2 * np.pi * np.nan_to_num(_turns(days, cycle) % 1.0)
        first = at + 1 + 2 * place
        x[:, first] = np.where(np.isnan(clock), 0.0, np.sin(angle))
        x[:, first + 1] = np.where(np.isnan(clock), 0.0, np.cos(angle))
    return seconds - column.origin, wrong


def _turns(days: np.ndarray, cycle: Cycle) -> np.ndarray:
    """The number of turns of a cycle since 1970 began, on a Thursday; years have their mean length."""
    if cycle == "hour":
        return days
    if cycle == "weekday":
        return (days + 3.0) / 7.0
    return days / _YEAR


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
