"""Lags, seasonal terms and calendar: rows of a series become rows with more columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from credo.core.errors import DataError, FormatError
from credo.tables.cells import Cells, Mark, cell_text, to_list, to_numbers
from credo.tables.chunks import BadRow, Chunk
from credo.tables.clock import Clock

__all__ = ["History", "LagColumns", "LaggedChunk", "usual_lags"]

RECENT = 3
"""The number of latest targets that are lags."""

_DAY = 86400.0
_WAVES = (1, 2)


class LaggedChunk(Chunk):
    """Rows that have their lags already."""


@dataclass(frozen=True)
class History:
    """The latest targets of a series.

    Arguments:
        ticks: their places in steps (m,) int64, in order.
        values: the targets (m,), NaN if missing.
        offset: by how many seconds the clock of the latest row is ahead of UTC.

    Example:
        >>> History.empty().last is None
        True
    """

    ticks: np.ndarray
    values: np.ndarray
    offset: float = 0.0

    @staticmethod
    def empty() -> History:
        """The state before the first row."""
        return History(np.zeros(0, np.int64), np.zeros(0))

    @property
    def last(self) -> int | None:
        """The place of the latest row."""
        if len(self.ticks):
            return int(self.ticks[-1])
        return None

    def at(self, ticks: np.ndarray) -> np.ndarray:
        """The targets at some places, of any shape, NaN if there is none."""
        if not len(self.ticks):
            return np.full(ticks.shape, np.nan)
        places = np.minimum(np.searchsorted(self.ticks, ticks), len(self.ticks) - 1)
        return np.where(self.ticks[places] == ticks, self.values[places], np.nan)

    def merged(self, ticks: np.ndarray, values: np.ndarray) -> History:
        """The history with some more rows; of two at one place the earlier one stays."""
        both = np.concatenate([self.ticks, ticks])
        places, first = np.unique(both, return_index=True)
        return replace(self, ticks=places, values=np.concatenate([self.values, values])[first])

    def latest(self, steps: int) -> History:
        """The part of the history at most so many steps before the last place."""
        if not len(self.ticks):
            return self
        kept = self.ticks > self.ticks[-1] - steps
        return replace(self, ticks=self.ticks[kept], values=self.values[kept])

    def arrays(self) -> dict[str, np.ndarray]:
        """The state as arrays."""
        return {"ticks": self.ticks, "values": self.values, "offset": np.array(self.offset)}

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray]) -> History:
        """Restore what `arrays` gave; a FormatError says where it fits not together."""
        ticks = np.asarray(arrays["ticks"], np.int64)
        values = np.asarray(arrays["values"], float)
        if ticks.ndim != 1 or ticks.shape != values.shape or (np.diff(ticks) <= 0).any():
            raise FormatError("history must have as many growing ticks as values.", field="history")
        return History(ticks, values, float(arrays["offset"]))


@dataclass(frozen=True)
class LagColumns:
    """The columns that a row of a series gets: y[t - lag], calendar, and waves of seasons.

    With the place t of a row in steps, `target[t-24]` is the target 24 steps before, `sin(2 pi t/12)` a wave
    of a season of 12 steps, and `hour(time)`, `weekday(time)` and `month(time)` are read from the clock.

    Arguments:
        clock: the clock of the series.
        target: the column that is predicted.
        lags: how many steps before a row the targets lie that it gets.
        seasons: the seasons in steps that get waves, since clock and calendar do not show them.
        calendar: which of "hour", "weekday" and "month" are columns.
        known: the other columns, whose values are known in advance.
        keep: how many steps the history goes back.
        decimal: the decimal mark of targets in texts.

    Example:
        >>> clock = Clock.infer("t", [1, 2, 3])
        >>> columns = LagColumns(clock, "y", (1, 2), keep=2)
        >>> chunk, history = columns.rows(Chunk({"t": [1, 2, 3], "y": [5.0, 6.0, 8.0]}, np.arange(3)), None)
        >>> chunk.columns["y[t-1]"].tolist(), history.values.tolist()
        ([nan, 5.0, 6.0], [6.0, 8.0])
    """

    clock: Clock
    target: str
    lags: tuple[int, ...]
    seasons: tuple[int, ...] = ()
    calendar: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    keep: int = 1
    decimal: Mark = "."

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the lags."""
        return tuple(f"{self.target}[t-{lag}]" for lag in self.lags)

    def calendar_name(self, part: str) -> str:
        """The name of a column of the calendar."""
        return f"{part}({self.clock.name})"

    def rows(
        self, chunk: Chunk, history: History | None, *, learn: bool = True
    ) -> tuple[LaggedChunk, History]:
        """The rows with their lags, less those that have no place, and the history after them.

        Arguments:
            chunk: raw rows.
            history: the targets before them; None for none.
            learn: whether the rows follow the history in time, and join it. Otherwise they may be any rows,
                whose own targets count for one another, and the history stays as it is.

        Raises:
            DataError: the column of times or a known column is missing.
        """
        history = History.empty() if history is None else history
        for name in (self.clock.name, *self.known):
            if name not in chunk.columns and not chunk.loose:
                raise DataError(f"column {name!r} is missing; the columns are {', '.join(chunk.names[:30])}.")
        absent = [None] * len(chunk)
        read = self.clock.read(chunk.columns.get(self.clock.name, absent))
        values = to_numbers(chunk.columns.get(self.target, absent), self.decimal)[0]
        why = dict(read.why)
        if learn:
            self._refuse_order(read.ticks, history.last, chunk, why)
        kept = np.ones(len(chunk), bool)
        kept[list(why)] = False
        ticks = read.ticks[kept]
        clock = read.clock[kept]
        whole = history.merged(ticks, values[kept])
        columns: dict[str, Cells] = {
            name: _part(chunk.columns.get(name, absent), kept)
            for name in dict.fromkeys((self.clock.name, *self.known, self.target))
            if name in chunk.columns or name != self.target
        }
        columns |= self.made(ticks, clock, whole.at(ticks[:, None] - np.asarray(self.lags)))
        bad = [*chunk.bad, *(BadRow(int(chunk.lines[row]), one, chunk.unit) for row, one in why.items())]
        bad.sort(key=lambda row: row.line)
        made = LaggedChunk(
            columns, chunk.lines[kept], bad, chunk.unit, chunk.loose, chunk.ignored, chunk.semicolons
        )
        if not learn or not kept.any():
            return made, history
        return made, replace(whole, offset=float(read.offset[kept][-1])).latest(self.keep)

    def _refuse_order(self, ticks: np.ndarray, last: int | None, chunk: Chunk, why: dict[int, str]) -> None:
        """Say which rows are not after the good ones before them."""
        good = [row for row in range(len(ticks)) if row not in why]
        highest = -(2**62) if last is None else last
        if (np.diff(ticks[good], prepend=highest) > 0).all():
            return
        for row in good:
            tick = int(ticks[row])
            if tick > highest:
                highest = tick
                continue
            how = "is in the same step as" if tick == highest else "is before"
            cell = cell_text(to_list(chunk.columns[self.clock.name])[row])[:40]
            why[row] = (
                f"has the time {cell!r} in {self.clock.name!r}, which {how} an earlier row; times must grow "
                f"from row to row, {self.clock.words}"
            )

    def made(self, ticks: np.ndarray, clock: np.ndarray, lagged: np.ndarray) -> dict[str, Cells]:
        """The columns that are made, of rows (n,) with targets (n, L) before them."""
        columns: dict[str, Cells] = dict(zip(self.names, np.ascontiguousarray(lagged.T), strict=True))
        for season in self.seasons:
            for wave in _WAVES:
                angle = 2 * np.pi * wave * (ticks % season) / season
                columns[f"sin({2 * wave} pi t/{season})"] = np.sin(angle)
                columns[f"cos({2 * wave} pi t/{season})"] = np.cos(angle)
        for part in self.calendar:
            columns[self.calendar_name(part)] = _calendar(part, clock)
        return columns

    def to_dict(self) -> dict[str, object]:
        """The columns as JSON data."""
        saved = {**asdict(self), "clock": self.clock.to_dict()}
        return {name: list(part) if isinstance(part, tuple) else part for name, part in saved.items()}

    @staticmethod
    def from_dict(saved: Mapping[str, Any]) -> LagColumns:
        """The inverse of `to_dict`."""
        parts: dict[str, Any] = {
            name: tuple(part) if isinstance(part, list) else part for name, part in saved.items()
        }
        parts["clock"] = Clock.from_dict(saved["clock"])
        return LagColumns(**parts)


def _calendar(part: str, clock: np.ndarray) -> list[str]:
    """The hour, the weekday or the month of some times by the clock, in words."""
    days = np.floor(clock / _DAY)
    if part == "hour":
        return [f"{hour:02d} h" for hour in ((clock - days * _DAY) // 3600).astype(int).tolist()]
    if part == "weekday":
        return [_WEEKDAYS[day] for day in ((days + 3) % 7).astype(int).tolist()]
    months = days.astype(np.int64).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return [_MONTHS[month] for month in (months % 12).tolist()]


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def _part(cells: Cells, kept: np.ndarray) -> Cells:
    if kept.all():
        return cells
    if isinstance(cells, np.ndarray):
        return np.asarray(cells[kept])
    return [cell for cell, keep in zip(cells, kept, strict=True) if keep]


def usual_lags(seasons: Sequence[int], least: int = 1) -> tuple[int, ...]:
    """The lags of a series with some seasons in steps, of which none is shorter than `least` steps.

    These are the latest three targets, and for each season the target one and two seasons before and the ones
    beside that of one season; with `least` above 1, as many whole seasons before as that needs.

    >>> usual_lags([24])
    (1, 2, 3, 24, 25, 48)
    >>> usual_lags([24], 30)
    (30, 31, 32, 48, 49, 72)
    """
    lags = {least + step for step in range(RECENT)}
    for season in seasons:
        whole = -(-least // season) * season
        lags |= {whole, whole + 1, whole + season}
    return tuple(sorted(lags))
