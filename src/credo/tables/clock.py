"""The clock of a series: its times become whole numbers of steps, and these become times again."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from credo.core.errors import DataError, FormatError
from credo.tables.cells import Cells, cell_text, is_missing, to_list, to_numbers
from credo.tables.styles import ISO, NUMBER, Style, find_date_style, numbered_times
from credo.tables.times import to_times

__all__ = ["Clock", "Readings"]

StepKind: TypeAlias = Literal["seconds", "months", "weekdays", "numbers"]
"""In what the steps of a clock are counted."""

# The fewest first times, the least share of them that must lie on the grid, and how far a time may lie from
# its place in the grid, in steps.
FEWEST = 3
FITTING = 0.95
SLACK = 0.25

_DAY = 86400.0
_EPOCH = dt.datetime(1970, 1, 1)
_MONTH = re.compile(r"\s*\d{4}-\d{2}\s*")
_SECONDS = {1.0: "second", 60.0: "minute", 3600.0: "hour", _DAY: "day", 7 * _DAY: "week"}
_MONTHS = {1.0: "month", 3.0: "quarter", 12.0: "year"}


class Readings(NamedTuple):
    """Times of n rows: steps since the first row (n,) int64; seconds since 1970 by the clock as written (n,),
    or the numbers; how far that clock is before UTC, in seconds (n,); and what is wrong with some, by row.
    """

    ticks: np.ndarray
    clock: np.ndarray
    offset: np.ndarray
    why: dict[int, str]


@dataclass(frozen=True)
class Clock:
    """Equal steps of time: seconds, months of the calendar, days from Monday to Friday, or numbers.

    Arguments:
        name: the column of times.
        kind: in what steps are counted, "seconds", "months", "weekdays" or "numbers".
        step: the length of a step in these.
        origin: the first time, in seconds since 1970 in UTC, or the number.
        style: how times are written: "month", "date", "minute" or "second"; "" for numbers.
        zoned: whether times are written with their zone.
        form: how they are written where that is otherwise than ISO 8601 has it; None where it is not.

    Example:
        >>> clock = Clock.infer("t", ["2024-01-31", "2024-02-29", "2024-03-31"])
        >>> clock.words, clock.texts(np.array([3, 4]), 0.0)
        ('every month', ['2024-04-30', '2024-05-31'])
    """

    name: str
    kind: StepKind
    step: float
    origin: float
    style: str = ""
    zoned: bool = False
    form: Style | None = None

    @staticmethod
    def infer(name: str, cells: Cells) -> Clock:
        """The clock of the first times of a series.

        Raises:
            DataError: there are fewer than 3 times, they are no times, or they have no common step.
        """
        cells = [cell for cell in to_list(cells) if not is_missing(cell)]
        if len(cells) < FEWEST:
            raise DataError(
                f"time {name!r} must have at least {FEWEST} values; got {len(cells)}.", field="time"
            )
        numbers, no_number = to_numbers(cells)
        bad = no_number | np.isnan(numbers)
        form = find_date_style(cells) if bad.any() else numbered_times(name, cells, numbers, certain=True)
        if bad.any() or form is not None:
            return _timed(name, cells, bad, form)
        gaps = _gaps(name, numbers)
        step = _commonest(gaps)
        return _fitting(Clock(name, "numbers", step, float(numbers[0])), numbers, cells)

    def read(self, cells: Cells) -> Readings:
        """The times of some rows."""
        cells = to_list(cells)
        if self.kind == "numbers":
            clock, wrong = to_numbers(cells)
            utc = clock
        else:
            utc, clock, wrong = to_times(cells, self.cells)
        places = self._places(utc, clock)
        ticks = np.nan_to_num(np.round(places), nan=-1.0).astype(np.int64)
        kind = "number" if self.kind == "numbers" else "ISO time"
        if self.form is not None:
            kind = f"time such as {self._text(self.clock(np.zeros(1, int), 0.0)[0], 0.0)!r}"
        why = {
            row: f"has the time {cell_text(cells[row])[:40]!r} in {self.name!r}, which is no {kind}"
            if wrong[row]
            else f"has no time: {self.name!r} is missing"
            for row in np.flatnonzero(wrong | np.isnan(places)).tolist()
        }
        why |= {
            row: f"has the time {cell_text(cells[row])[:40]!r} in {self.name!r}, which lies between two "
            f"steps; allowed is a time {self.words}"
            for row in np.flatnonzero(np.abs(places - ticks) > SLACK).tolist()
            if row not in why
        }
        return Readings(ticks, clock, np.nan_to_num(clock - utc), why)

    def _places(self, utc: np.ndarray, clock: np.ndarray) -> np.ndarray:
        """The number of steps from the first time to each time (n,), NaN if it is missing."""
        if self.kind in ("seconds", "numbers"):
            return (utc - self.origin) / self.step
        known = ~np.isnan(clock)
        days = _days(np.where(known, clock, 0.0))
        first = _days(np.array([self.origin]))
        if self.kind == "months":
            months = (_months(days) - _months(first)) / self.step
        else:
            months = np.busday_count(first, days).astype(float)
            months = np.where(np.is_busday(days), months, months - 0.5)
        return np.where(known, months, np.nan)

    def clock(self, ticks: np.ndarray, offset: float) -> np.ndarray:
        """The times of ticks (n,) by a clock that is `offset` seconds ahead of UTC, or the numbers."""
        if self.kind in ("seconds", "numbers"):
            return np.asarray(self.origin + ticks * self.step + offset)
        first = _days(np.array([self.origin]))[0]
        if self.kind == "weekdays":
            days = np.busday_offset(first, ticks)
            return days.astype(np.int64) * _DAY + self.origin % _DAY
        months = first.astype("datetime64[M]") + (ticks * int(self.step)).astype("timedelta64[M]")
        start = months.astype("datetime64[D]")
        end = (months + np.timedelta64(1, "M")).astype("datetime64[D]")
        last = (end - start).astype(np.int64) - 1
        day = (first - first.astype("datetime64[M]").astype("datetime64[D]")).astype(np.int64)
        closing = (first + np.timedelta64(1, "D")).astype("datetime64[M]") != first.astype("datetime64[M]")
        days = start + (last if closing else np.minimum(last, day)).astype("timedelta64[D]")
        return np.asarray(days.astype(np.int64) * _DAY + self.origin % _DAY)

    def texts(self, ticks: np.ndarray, offset: float) -> list[str]:
        """The times of ticks as they are written in the series."""
        return [self._text(seconds, offset) for seconds in self.clock(ticks, offset).tolist()]

    def _text(self, seconds: float, offset: float) -> str:
        if self.kind == "numbers":
            return f"{seconds:.0f}" if seconds == int(seconds) else f"{seconds:.10g}"
        if self.form is not None:
            return self.form.text(seconds, offset)
        moment = _EPOCH + dt.timedelta(seconds=round(seconds, 6))
        if self.style in ("month", "date"):
            if self.style == "month":
                return f"{moment:%Y-%m}"
            return moment.date().isoformat()
        text = moment.isoformat(timespec="minutes" if self.style == "minute" else "auto")
        if not self.zoned:
            return text
        minutes = round(offset / 60)
        return f"{text}{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"

    @property
    def seasons(self) -> tuple[int, ...]:
        """The steps of a day, a week and a year, as far as these are whole numbers that suit the step."""
        if self.kind == "weekdays":
            return (5,)
        if self.kind == "numbers":
            return ()
        if self.kind == "months":
            year = 12 / self.step
            if year == int(year) and year > 1:
                return (int(year),)
            return ()
        lengths = [_DAY, 7 * _DAY] if self.step < 7 * _DAY else []
        if self.step == 7 * _DAY:
            lengths.append(52 * 7 * _DAY)
        elif self.step == _DAY:
            lengths.append(365 * _DAY)
        return tuple(round(length / self.step) for length in lengths if _whole(length / self.step))

    @property
    def words(self) -> str:
        """The step in words, such as every hour."""
        if self.kind == "weekdays":
            return "every day from Monday to Friday"
        if self.kind == "numbers":
            return f"every {self.step:g}"
        if self.kind == "months":
            return f"every {_MONTHS.get(self.step) or f'{self.step:g} months'}"
        if self.step in _SECONDS:
            return f"every {_SECONDS[self.step]}"
        unit = next((one for one in (_DAY, 3600.0, 60.0) if self.step % one == 0), 1.0)
        return f"every {self.step / unit:g} {_SECONDS[unit]}s"

    @property
    def cells(self) -> Style:
        """The style in which its column is read."""
        if self.kind == "numbers":
            return NUMBER
        marked = self.form is None or "-" in self.form.date
        if marked and not to_times(self.texts(np.zeros(1, int), 0.0))[2].any():
            return ISO
        return self.form or ISO

    def to_dict(self) -> dict[str, object]:
        """The clock as JSON data."""
        return {name: part for name, part in asdict(self).items() if name != "form" or part is not None}

    @staticmethod
    def from_dict(saved: Mapping[str, Any]) -> Clock:
        """The inverse of `to_dict`; a FormatError says where it is none."""
        clock = Clock(**{**saved, "form": Style.from_saved(saved.get("form"))})
        if clock.kind not in get_args(StepKind) or not clock.step > 0 or not np.isfinite(clock.origin):
            raise FormatError(f"clock must have a kind and a step above 0; got {saved!r}.", field="clock")
        return clock


def _timed(name: str, cells: list[object], bad: np.ndarray, form: Style | None) -> Clock:
    """The clock of times, in this form where ISO 8601 does not read them, or writes them otherwise."""
    utc, clock, wrong = to_times(cells)
    iso = not wrong.any() and bad.any()
    if not iso and form is not None:
        utc, clock, wrong = to_times(cells, form)
    if wrong.any():
        both = wrong & bad
        example = cells[int(np.argmax(both if both.any() else wrong))]
        raise DataError(
            f"time {name!r} must hold times such as 2024-05-01, 2024-05-01T12:30 or 01.05.2024, all "
            f"written in one way, or numbers; got {cell_text(example)[:40]!r}.",
            field="time",
        )
    made = _of_times(name, cells, utc, clock)
    alike = iso and made.texts(np.zeros(1, int), float(clock[0] - utc[0]))[0] == cell_text(cells[0])
    return made if alike or form is None else replace(made, form=form)


def _of_times(name: str, cells: list[object], utc: np.ndarray, clock: np.ndarray) -> Clock:
    gaps = _gaps(name, utc)
    days = _days(clock)
    step = _commonest(gaps)
    months = all(isinstance(cell, str) and _MONTH.fullmatch(cell) for cell in cells)
    time_of_day = clock % _DAY
    style = "second"
    if months:
        style = "month"
    elif not time_of_day.any():
        style = "date"
    elif not (clock % 60.0).any():
        style = "minute"
    zoned = bool((clock != utc).any()) or any(
        isinstance(cell, str) and cell.strip()[-1:] == "Z" for cell in cells
    )
    origin = float(utc[0])
    if step >= 28 * _DAY and len(set(time_of_day.tolist())) == 1:
        counts = np.diff(_months(days))
        return _fitting(Clock(name, "months", _commonest(counts), float(clock[0]), style), clock, cells)
    sixth = (days.astype(np.int64) + 3) % 7 > 4
    if step == _DAY and len(days) > 10 and not sixth.any() and len(set(time_of_day.tolist())) == 1:
        return Clock(name, "weekdays", 1.0, float(clock[0]), style)
    return _fitting(Clock(name, "seconds", step, origin, style, zoned), utc, cells)


def _fitting(clock: Clock, times: np.ndarray, cells: list[object]) -> Clock:
    places = clock._places(times, times)
    share = float(np.mean(np.abs(places - np.round(places)) <= SLACK))
    if share < FITTING:
        raise DataError(
            f"time {clock.name!r} must have a common step; got times of which {share:.0%} fit the commonest "
            f"gap ({clock.words}), and {FITTING:.0%} must.",
            field="time",
        )
    return clock


def _gaps(name: str, times: np.ndarray) -> np.ndarray:
    """The gaps between times that follow one another; a DataError if most do not."""
    gaps = np.diff(times)
    if np.mean(gaps > 0) < FITTING:
        worst = int(np.argmax(gaps <= 0)) + 2
        raise DataError(
            f"time {name!r} must grow from row to row; got {int(np.sum(gaps <= 0))} of the first "
            f"{len(times)} rows, such as row {worst}, with a time that is not after the one before. Sort the "
            "rows.",
            field="time",
        )
    return gaps[gaps > 0]


def _commonest(gaps: np.ndarray) -> float:
    """The commonest gap; gaps count as equal up to a thousandth of the median."""
    unit = float(np.median(gaps)) * 1e-3
    values, counts = np.unique(np.round(gaps / unit), return_counts=True)
    like = gaps[np.round(gaps / unit) == values[int(np.argmax(counts))]]
    mean = float(np.mean(like))
    if abs(mean - round(mean)) < 1e-6 * max(1.0, mean):
        return float(round(mean))
    return mean


def _days(clock: np.ndarray) -> np.ndarray:
    return np.floor(clock / _DAY).astype(np.int64).astype("datetime64[D]")


def _months(days: np.ndarray) -> np.ndarray:
    return np.asarray(days.astype("datetime64[M]").astype(np.int64))


def _whole(number: float) -> bool:
    return number >= 2 and abs(number - round(number)) < 1e-6
