"""A series is forecast again and again on its way into a session, and the forecasts are scored."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from credo.live.encoding import Images
from credo.live.series import SeriesEncoding
from credo.sessions.horizons import HorizonScores
from credo.sessions.paths import Known, PathForecast, known_cells, origin_of
from credo.sessions.session import Session
from credo.tables import Chunk
from credo.tables.cells import to_numbers

__all__ = ["Origins"]

# The least rows that are learned before a forecast is scored; two of each season that is not `LONG` are.
FEWEST = 30
LONG = 200


class Origins:
    """Rows on their way into a session, cut where the steps after them are forecast and scored.

    Whoever takes a chunk learns it before the next is asked for. Then, every so many rows, the next steps are
    forecast by what was learned so far, and compared with the rows that come. These are read ahead, but of
    them a forecast is given the columns that are known in advance alone.

    Arguments:
        session: a session of a series.
        every: how many rows lie between two forecasts that are scored.
        forecast: what forecasts the steps after the latest target, given the columns that are known, and is
            then stretched by the widths of the encoding.
    """

    def __init__(self, session: Session, every: int, forecast: Callable[[Known], PathForecast]) -> None:
        encoding = session.encoding
        assert isinstance(encoding, SeriesEncoding)
        self.session: Session = session
        self.encoding: SeriesEncoding = encoding
        self.every: int = every
        self.forecast: Callable[[Known], PathForecast] = forecast
        self.horizon: int = encoding.horizon
        self.scores: HorizonScores = HorizonScores(encoding, self.horizon)
        self.first: int = max(FEWEST, 2 * max((one for one in encoding.used if one <= LONG), default=0))
        self.waiting: dict[int, dict[str, object]] = {}
        self._queue: deque[Chunk] = deque()
        self._since = 0

    def cut(self, chunks: Iterator[Chunk | Images]) -> Iterator[Chunk | Images]:
        """The chunks in parts, between which forecasts are made."""
        while True:
            self._fill(chunks, self.every + self.horizon)
            if not self._queue:
                return
            chunk = self._queue.popleft()
            part = chunk.part(0, self.every - self._since)
            if len(part) < len(chunk):
                self._queue.appendleft(chunk.part(len(part), len(chunk)))
            yield part
            self._note(part)
            self._since += len(part)
            if self._since == self.every:
                self._since = 0
                self._fill(chunks, self.horizon)
                if self._queue and self.session.rows_used >= self.first:
                    self._score()

    def _fill(self, chunks: Iterator[Chunk | Images], rows: int) -> None:
        while sum(map(len, self._queue)) < rows:
            chunk = next(chunks, None)
            if chunk is None:
                return
            assert isinstance(chunk, Chunk)
            self._queue.append(chunk)

    def _note(self, rows: Chunk) -> None:
        """Take rows that were learned into the spreads, and keep the columns known after the last target."""
        ticks, values = self._targets(rows)
        self.scores.note(ticks, values)
        if self.encoding.columns.known and len(ticks):
            self.waiting |= known_cells(self.encoding, rows)
            known = np.isfinite(self.encoding.history.values)
            last = origin_of(self.encoding) if known.any() else -(2**62)
            self.waiting = {tick: cells for tick, cells in self.waiting.items() if tick > last}

    def _targets(self, rows: Chunk) -> tuple[np.ndarray, np.ndarray]:
        """The places and targets of the rows whose place is known."""
        columns = self.encoding.columns
        if not len(rows):
            return np.zeros(0, np.int64), np.zeros(0)
        absent = [None] * len(rows)
        read = columns.clock.read(rows.columns.get(columns.clock.name, absent))
        cells = rows.columns.get(columns.target, absent)
        kept = np.ones(len(rows), bool)
        kept[list(read.why)] = False
        return read.ticks[kept], to_numbers(cells, columns.decimal)[0][kept]

    def last(self) -> PathForecast:
        """The forecast of the steps after the latest target."""
        factors = self.encoding.widths.factors(self.horizon)
        return self.forecast(self.waiting).widened(factors)

    def _score(self) -> None:
        known: dict[int, dict[str, object]] = {}
        seen: dict[int, float] = {}
        left = self.horizon
        for chunk in self._queue:
            some = chunk.part(0, left)
            known |= known_cells(self.encoding, some) if self.encoding.columns.known else {}
            ticks, values = self._targets(some)
            seen |= dict(zip(ticks.tolist(), values.tolist(), strict=True))
            left -= len(some)
            if left <= 0:
                break
        computed = self.forecast(self.waiting | known)
        y = np.array([seen.get(tick, np.nan) for tick in computed.ticks.tolist()])
        widths = self.encoding.widths
        self.scores.add(computed.widened(widths.factors(self.horizon)), y)
        self.encoding.widths = widths.add((y - computed.mean) / computed.sd)
