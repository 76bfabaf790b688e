"""Rows of a series in time, encoded with their lags, seasonal terms and calendar."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from credo.core.errors import CredoError, DataError, FormatError, Named, Sentence
from credo.live.encoding import Block, Images, SavedTable, TableEncoding
from credo.recipes.options import SeriesOptions, TaskName
from credo.tables import Chunk, Dropped, EncoderState, Schema, infer_schema
from credo.tables.cells import is_missing, to_list
from credo.tables.clock import Clock
from credo.tables.infer import read_numbers
from credo.tables.lags import History, LagColumns, LaggedChunk, usual_lags
from credo.tables.schema import TARGET_KINDS

__all__ = ["SeriesEncoding", "Widths", "infer_series"]


# How many forecasts the width 1 counts for, the largest error in standard deviations that counts, and how
# many steps to either side share their errors with a step.
PRIOR = 5.0
FARTHEST = 5.0
NEAR = 2


@dataclass(frozen=True)
class Widths:
    """Running sums of the squared errors of forecasts in units of their computed variance, by step.

    With errors z in computed standard deviations, of which each counts as 5 at most, the width of a step is
    w^2 = (5 + sum z^2) / (5 + n), where both the sum and the number n of forecasts are means over the step
    and the two steps to either side.

    Arguments:
        squares: sums of z^2 (H,).
        counts: how many there are (H,).

    Example:
        >>> widths = Widths.empty(1).add(np.array([2.0]))
        >>> round(float(widths.factors(1)[0] ** 2), 6)
        1.5
    """

    squares: np.ndarray
    counts: np.ndarray

    @staticmethod
    def empty(horizon: int) -> Widths:
        """The state before any forecast."""
        return Widths(np.zeros(horizon), np.zeros(horizon))

    def add(self, errors: np.ndarray) -> Widths:
        """Take in the errors z (H,) of a forecast, NaN if nothing was observed."""
        before = self._of(len(errors))
        known = np.isfinite(errors)
        squares = np.minimum(np.where(known, errors, 0.0) ** 2, FARTHEST**2)
        return Widths(before.squares + squares, before.counts + known)

    def factors(self, horizon: int) -> np.ndarray:
        """The widths w (H,)."""
        whole = self._of(horizon)
        sums = np.array([_around(whole.squares), _around(whole.counts)])
        return np.asarray(np.sqrt((PRIOR + sums[0]) / (PRIOR + sums[1])))

    def _of(self, horizon: int) -> Widths:
        """The sums of so many steps, of which later ones begin again."""
        more = max(0, horizon - len(self.squares))
        return Widths(*(np.pad(part[:horizon], (0, more)) for part in (self.squares, self.counts)))

    def arrays(self) -> dict[str, np.ndarray]:
        """The state as arrays."""
        return {"width_squares": self.squares, "width_counts": self.counts}

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray]) -> Widths:
        """Restore what `arrays` gave; a FormatError says where it is malformed."""
        squares, counts = (np.asarray(arrays[f"width_{name}"], float) for name in ("squares", "counts"))
        fit = squares.ndim == 1 and squares.shape == counts.shape
        if not fit or not (np.isfinite(squares) & np.isfinite(counts) & (counts >= 0)).all():
            raise FormatError("widths must be finite, and as many as their counts.", field="widths")
        return Widths(squares, counts)


def _around(sums: np.ndarray) -> np.ndarray:
    """The means of each number and of those of the steps near it, (H,)."""
    total = np.concatenate([[0.0], np.cumsum(sums)])
    places = np.arange(len(sums))
    stop = np.minimum(places + NEAR + 1, len(sums))
    start = np.maximum(places - NEAR, 0)
    return np.asarray((total[stop] - total[start]) / (stop - start))


_DAY = 86400.0
ENOUGH = 2.5
"""The number of periods of a season that the first rows must hold for it to be used by default."""

UNKNOWN = Sentence(f"its values are not known in advance; name it in {Named('known')} if they are")


class SeriesEncoding(TableEncoding):
    """Rows of a series, which get their lags before they are encoded as those of any table.

    Arguments:
        schema: what the columns mean, with those that are made.
        columns: the columns that are made.
        horizon: how many steps are forecast.
        used: the seasons in steps.
        history: the latest targets; by default none.
        state: the running statistics; by default those of no rows.
        clip: the largest size of a standardised number; None leaves it to the session.
        widths: how much wider forecasts must be than they are computed; by default not at all.

    Example:
        >>> rows = Chunk({"t": list(range(60)), "y": [float(i % 7) for i in range(60)]}, np.arange(1, 61))
        >>> encoding = infer_series([rows], SeriesOptions("t", "y", lags=[1, 7]))
        >>> encoding.encode(rows, learn=True).x.shape, encoding.history.last
        ((60, 4), 59)
    """

    def __init__(
        self,
        schema: Schema,
        columns: LagColumns,
        horizon: int,
        used: tuple[int, ...] = (),
        history: History | None = None,
        state: EncoderState | None = None,
        clip: float | None = None,
        widths: Widths | None = None,
    ) -> None:
        super().__init__(schema, state, clip)
        self.columns = columns
        self.horizon = horizon
        self.used = used
        self.history = History.empty() if history is None else history
        self.widths = Widths.empty(horizon) if widths is None else widths

    @property
    def sentences(self) -> tuple[str, ...]:
        columns = self.columns
        made = [f"the targets {_listed(self.columns.lags)} steps before"]
        made += [f"waves of {_listed(columns.seasons)} steps"] if columns.seasons else []
        made += [f"the {part}" for part in columns.calendar]
        said = f"series {columns.clock.words} by {columns.clock.name!r}; each row gets {_listed(made)}"
        return (*super().sentences, said)

    def learned(self, rows: Chunk | Images) -> Iterable[Block]:
        """The blocks of a chunk; learn each before the next is asked for.

        Raises:
            DataError: the rows are images, or lack a column.
        """
        if not isinstance(rows, Chunk) or isinstance(rows, LaggedChunk):
            return super().learned(rows)
        if rows.weights is not None:
            raise DataError("weights must be left out for a series in time, whose rows count once each.")
        lagged, self.history = self.columns.rows(rows, self.history)
        return super().learned(lagged)

    def encode(self, rows: Chunk | Images, *, learn: bool, need_target: bool = True) -> Block:
        """Encode a chunk.

        Raises:
            DataError: the rows are images, or lack a column.
        """
        if not isinstance(rows, Chunk) or isinstance(rows, LaggedChunk):
            return super().encode(rows, learn=learn, need_target=need_target)
        lagged, after = self.columns.rows(rows, self.history, learn=learn)
        block = super().encode(lagged, learn=learn, need_target=need_target)
        self.history = after
        return block

    def to_dict(self) -> SavedTable:
        """The schema, and the columns that are made."""
        made = {"columns": self.columns.to_dict(), "horizon": self.horizon, "used": list(self.used)}
        return {**super().to_dict(), "kind": "series", "series": made}

    def arrays(self) -> dict[str, np.ndarray]:
        """The moments of the numeric columns, the latest targets, and the widths of forecasts."""
        return self.state.arrays() | self.history.arrays() | self.widths.arrays()

    @staticmethod
    def restored(saved: SavedTable, arrays: Mapping[str, np.ndarray]) -> SeriesEncoding:
        """The encoding that `to_dict` and `arrays` described; a FormatError says what does not fit."""
        made = saved.get("series")
        if made is None:
            raise FormatError("encoding.series is missing.", field="encoding.series")
        columns = LagColumns.from_dict(made["columns"])
        horizon = made["horizon"]
        if not isinstance(horizon, int) or horizon < 1:
            raise FormatError(f"horizon must be a whole number at least 1; got {horizon!r}.", field="horizon")
        return SeriesEncoding(
            Schema.from_dict(saved["schema"]),
            columns,
            horizon,
            tuple(made["used"]),
            History.from_arrays(arrays),
            EncoderState.from_arrays(arrays),
            float(saved["clip"]),
            Widths.from_arrays(arrays),
        )


def _listed(things: Sequence[object]) -> str:
    texts = list(map(str, things))
    if len(texts) == 1:
        return texts[0]
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def infer_series(
    chunks: Sequence[Chunk],
    options: SeriesOptions,
    *,
    task: TaskName | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
) -> SeriesEncoding:
    """The encoding of a series by its first rows.

    A season is used by default where the first rows are at least `ENOUGH` of it long.

    Arguments:
        chunks: the first rows.
        options: what is said about the series.
        task: regression, the default, or count.
        drop: columns to leave out.
        categorical: columns that are categories although they look like numbers.

    Raises:
        CredoError: the task is classification.
        DataError: a column is missing, or the times have no common step.
    """
    if task is not None and TARGET_KINDS[task].classed:
        raise CredoError("task must be regression or count for a series; got classification.", field="task")
    if not chunks:
        raise DataError(
            "the first rows hold none that can be used, so the series' meaning cannot be inferred."
        )
    names = chunks[-1].names
    for field, wanted in (
        ("time", options.time),
        ("target", options.target),
        *(("known", n) for n in options.known),
    ):
        if wanted not in names:
            shown = ", ".join(names[:30])
            raise DataError(f"{field} {wanted!r} is no column; the columns are {shown}.", field=field)
    if options.time == options.target:
        raise DataError(f"time {options.time!r} must be another column than the target.", field="time")
    cells = _cells(chunks, options.time)
    clock = Clock.infer(options.time, cells)
    count = len(cells)
    seasons = options.seasons
    if seasons is None:
        seasons = tuple(one for one in clock.seasons if ENOUGH * one <= count)
    known = tuple(
        name for name in options.known if name not in (options.time, options.target) and name not in drop
    )
    columns = _columns(chunks, clock, options, tuple(seasons), known)
    lagged: list[Chunk] = []
    history: History | None = None
    for chunk in chunks:
        some, history = columns.rows(chunk, history)
        lagged.append(some)
    kinds = [*(name for name in categorical if name in known), *map(columns.calendar_name, columns.calendar)]
    schema = infer_schema(
        _after(lagged, max(columns.lags)),
        options.target,
        task=task or "regression",
        categorical=kinds,
        styles={options.time: clock.cells},
    )
    rest = [name for name in names if name not in (options.time, options.target, *known)]
    left = [Dropped(name, "as asked" if name in drop else UNKNOWN) for name in rest]
    why = schema.target.why if task else f"target {options.target!r}: a series of numbers"
    schema = dataclasses.replace(
        schema,
        target=dataclasses.replace(schema.target, why=why),
        dropped=(*schema.dropped, *left),
    )
    return SeriesEncoding(schema, columns, options.horizon, tuple(seasons))


def _cells(chunks: Sequence[Chunk], name: str) -> list[object]:
    """The cells of a column, missing where a chunk lacks it."""
    return [cell for chunk in chunks for cell in to_list(chunk.columns.get(name, [None] * len(chunk)))]


def _columns(
    chunks: Sequence[Chunk],
    clock: Clock,
    options: SeriesOptions,
    seasons: tuple[int, ...],
    known: tuple[str, ...],
) -> LagColumns:
    present = [cell for cell in _cells(chunks, options.target) if not is_missing(cell)]
    mark = read_numbers(f"target {options.target!r}", present, chunks[-1].semicolons)[0]
    lags = tuple(sorted(set(options.lags or usual_lags(seasons, options.least))))
    calendar: list[str] = []
    if clock.kind == "seconds" and clock.step < _DAY:
        calendar.append("hour")
    if clock.kind == "weekdays" or (clock.kind == "seconds" and clock.step <= _DAY):
        calendar.append("weekday")
    if clock.kind == "months" or clock.seasons[-1:] in ((365,), (52,)):
        calendar.append("month")
    shown = () if clock.kind == "numbers" else clock.seasons
    waves = tuple(one for one in seasons if one not in shown)
    keep = max(lags) + options.horizon + 1
    return LagColumns(clock, options.target, lags, waves, tuple(calendar), known, keep, mark)


def _after(chunks: list[Chunk], rows: int) -> list[Chunk]:
    """The rows that have all lags, where these are half of them at least; else all rows."""
    if 2 * rows > sum(map(len, chunks)):
        return chunks
    rest: list[Chunk] = []
    for chunk in chunks:
        if rows < len(chunk):
            rest.append(chunk.part(rows, len(chunk)))
        rows = max(0, rows - len(chunk))
    return rest
