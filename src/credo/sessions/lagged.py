"""A series in time, learned row by row, whose next steps are forecast as distributions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias, Unpack, get_args

import numpy as np

from credo.core.errors import CredoError, DataError, require_choice
from credo.live.intake import Rows, chunks_of
from credo.live.series import SeriesEncoding, infer_series
from credo.recipes.defaults import SCHEMA_ROWS, TABLE_CHUNK
from credo.recipes.options import EVERY, PATHS, Options, OptionWords, SeriesOptions, TaskName
from credo.sessions.horizons import HorizonSummary
from credo.sessions.origins import Origins
from credo.sessions.paths import (
    Known,
    PathForecast,
    forecast_paths,
    known_cells,
    origin_of,
    require_ready,
    row_cells,
)
from credo.sessions.session import Session
from credo.tables import Chunk
from credo.tables.lags import LaggedChunk

__all__ = ["Lagged", "Multistep", "groups"]


GROWTH = 3
"""The approximate factor by which each group of steps reaches further than the one before."""


def groups(horizon: int) -> tuple[int, ...]:
    """The last step of each group: 1, 3, 8, ... up to the horizon.

    >>> groups(24), groups(2)
    ((1, 3, 8, 24), (1, 2))
    """
    ends = {1, horizon}
    end = horizon
    while end > GROWTH:
        end = -(-end // GROWTH)
        ends.add(end)
    return tuple(sorted(ends))


def forecast_direct(
    sessions: Sequence[tuple[int, Session]], horizon: int, count: int, known: Known | None = None
) -> PathForecast:
    """The forecast of each of the next steps, by the session whose lags are known and the shortest.

    The paths are `count` quantiles of each step, (m - 1/2) / M, which belong together at no two steps.

    Raises:
        DataError: too few rows were learned.
    """
    encoding = sessions[0][1].encoding
    assert isinstance(encoding, SeriesEncoding)
    start = origin_of(encoding)
    clock = encoding.columns.clock
    offset = encoding.history.offset
    ticks = np.arange(start + 1, start + horizon + 1)
    levels = ((np.arange(count) + 0.5) / count).tolist()
    means = np.empty((1, horizon))
    sds = np.empty((1, horizon))
    paths = np.empty((count, horizon))
    begun = 0
    for end, session in sessions:
        require_ready(session)
        steps = slice(begun, min(end, horizon))
        own = session.encoding
        assert isinstance(own, SeriesEncoding)
        lagged = own.history.at(ticks[steps, None] - np.asarray(own.columns.lags))
        cells = row_cells(own, ticks[steps], lagged, known)
        block = own.encode(
            LaggedChunk(cells, np.arange(1, len(lagged) + 1), unit="row"), learn=False, need_target=False
        )
        forecasts = session.predict(block, levels)
        assert forecasts.mean is not None and forecasts.sd is not None and forecasts.quantiles is not None
        means[0, steps] = forecasts.mean
        sds[0, steps] = forecasts.sd
        paths[:, steps] = forecasts.quantiles.T
        begun = end
    return PathForecast(ticks, clock.texts(ticks, offset), means[0], sds[0], paths, means, sds)


Multistep: TypeAlias = Literal["recursive", "direct"]
"""The way in which several steps are forecast."""

FEWEST = 20
"""The fewest rows that say what the step and the seasons of a series are."""


class Lagged:
    """A learner of a series in time, which forecasts the next steps before they are seen.

    With the place t of a row in steps of the clock, each row is learned by one `Session` as

        p(y_t | y_(t-l) for the lags l, time, calendar, waves of seasons, known columns)

    The lags are by default 1, 2, 3 and s, s + 1, 2 s for each season s in use: of hourly times the day and
    the week, of daily times the week and the year, of monthly times the year. The session makes sine and
    cosine of the hour, the weekday and the day of the year of a column of times; hour, weekday and month are
    categories, too. A season is used where the first rows are two and a half of it long.

    "recursive" draws M sample paths, each of whose draws is a lag of the steps after it, so that the path is
    a draw of the joint forecast. "direct" keeps a session for each of a few groups of horizons (1, up to 3,
    up to 8, ...), whose lags are known at the origin: four times the cost for a row for 24 steps, far less
    for a forecast, and no joint distribution.

    Arguments:
        time: the column of times: ISO text, datetimes, or numbers with a common step.
        target: the column to predict, a number.
        horizon: H, how many steps are forecast.
        lags: how many steps before a row the targets lie that it gets; None for those above.
        seasons: the seasons in steps; None for those that suit the clock.
        known: other columns, whose values are known in advance; columns that are not named are left out.
        multistep: "recursive" or "direct".
        paths: M, the number of sample paths, or of quantiles of a direct forecast.
        strict: whether a row whose time is missing or does not follow is an error; otherwise it is skipped.
        task: "regression" or "count".
        options: see `credo.sessions.Options`.

    Raises:
        CredoError: an argument is out of its range; the sentence names it.

    Cost: a row costs what it costs a session; a recursive forecast M H forecasts of a row, a direct one H.
    Conditional on the belief, the paths are exact draws; the belief does not learn on a path, which makes
    them too narrow. So `evaluate` learns, for each step, how many times as wide forecasts must be.

    Example:
        >>> rows = [{"t": i, "y": float(i % 4)} for i in range(80)]
        >>> series = Lagged("t", "y", horizon=4, seasons=[4], budget="fast")
        >>> series.learn(rows)
        >>> forecast = series.forecast()
        >>> forecast.times, bool(abs(forecast.mean - [0, 1, 2, 3]).max() < 0.2)
        (['80', '81', '82', '83'], True)
    """

    def __init__(  # noqa: PLR0913 - settings, each by its name
        self,
        time: str,
        target: str,
        horizon: int = 24,
        *,
        lags: Sequence[int] | None = None,
        seasons: Sequence[int] | None = None,
        known: Sequence[str] = (),
        multistep: Multistep = "recursive",
        paths: int = 100,
        strict: bool = True,
        task: TaskName | None = None,
        **options: Unpack[OptionWords],
    ) -> None:
        require_choice("multistep", multistep, get_args(Multistep))
        PATHS.require("paths", paths)
        if multistep == "direct" and lags is not None:
            raise CredoError("lags must be None where multistep is direct, which has its own for each group.")
        self._said = SeriesOptions(time, target, horizon, lags, seasons, known)
        self.horizon = horizon
        self.multistep = multistep
        self.paths = paths
        self.strict = strict
        self._options = Options(**options)
        self._task: TaskName | None = task
        self.sessions: list[tuple[int, Session]] = []

    @property
    def session(self) -> Session:
        """The session, or of several the one for the next step; its scores are those of the next step.

        Raises:
            DataError: no row was learned yet.
        """
        if not self.sessions:
            raise DataError("the series has learned from no row; learn some rows first.")
        return self.sessions[0][1]

    @property
    def encoding(self) -> SeriesEncoding:
        """The encoding by which rows get their lags and become arrays."""
        encoding = self.session.encoding
        assert isinstance(encoding, SeriesEncoding)
        return encoding

    def learn(self, rows: Rows) -> None:
        """Forecast one step, score and learn every row, in order.

        The first call says what the step and the seasons are, and needs at least 20 rows. A row without a
        target is skipped, and is a lag that is missing.

        Arguments:
            rows: see `credo.sessions.Rows`; their times must grow.

        Raises:
            DataError: a column is missing; or, where the series is `strict`, a time is missing, is none, lies
                between two steps, or is not after the one before.
        """
        for chunk in self._chunks(rows):
            self._learn_chunk(chunk)

    def evaluate(self, rows: Rows, every: int | None = None) -> HorizonSummary:
        """`learn`, and score the forecasts of the next steps at every so many rows.

        Arguments:
            rows: see `learn`.
            every: how many rows lie between two forecasts; by default the horizon.

        Returns:
            The mean scores at each horizon, beside those of the naive and the seasonal naive forecast.

        Raises:
            CredoError: `every` is not a whole number of at least 1.
            DataError: see `learn`.

        Example:
            >>> rows = [{"t": i, "y": i % 4 + 0.1 * (i % 3)} for i in range(80)]
            >>> scores = Lagged("t", "y", 2, seasons=[4], budget="fast").evaluate(rows)
            >>> scores["origins"], scores["crps"]["credo"][1] < scores["crps"]["naive"][1]
            (25, True)
        """
        every = self.horizon if every is None else every
        EVERY.require("every", every)
        chunks = self._chunks(rows)
        origins = Origins(self.session, every, self._forecast)
        for part in origins.cut(iter(chunks)):
            if isinstance(part, Chunk):
                self._learn_chunk(part)
        scores: HorizonSummary = origins.scores.summary()
        return scores

    def forecast(self, rows: Rows | None = None) -> PathForecast:
        """The joint forecast of the H steps after the latest target that is known. Nothing is learned.

        It is as wide as `evaluate` found that forecasts must be, and without it as wide as computed.

        Arguments:
            rows: the rows of these steps as far as they are known: the time and the columns `known`.

        Raises:
            DataError: too few rows were learned.
        """
        known: dict[int, dict[str, object]] = {}
        for chunk in [] if rows is None else chunks_of(rows):
            if isinstance(chunk, Chunk):
                known |= known_cells(self.encoding, chunk)
        return self._forecast(known).widened(self.encoding.widths.factors(self.horizon))

    def _forecast(self, known: Known) -> PathForecast:
        if self.multistep == "direct":
            return forecast_direct(self.sessions, self.horizon, self.paths, known)
        return forecast_paths(self.session, self.horizon, self.paths, known)

    def _chunks(self, rows: Rows) -> list[Chunk]:
        chunks = [chunk for chunk in chunks_of(rows) if isinstance(chunk, Chunk)]
        if chunks and not self.sessions:
            self._begin(chunks)
        return chunks

    def _begin(self, chunks: list[Chunk]) -> None:
        first: list[Chunk] = []
        for chunk in chunks:
            first.append(chunk.part(0, SCHEMA_ROWS - sum(map(len, first))))
            if sum(map(len, first)) >= SCHEMA_ROWS:
                break
        count = sum(map(len, first))
        if count < FEWEST:
            raise DataError(f"the first rows must be at least {FEWEST}; got {count}.")
        for least in groups(self.horizon) if self.multistep == "direct" else (1,):
            said = SeriesOptions(**{**self._said.__dict__, "least": least})
            encoding = infer_series(first, said, task=self._task)
            self.sessions.append((least, Session.create(encoding, self._options, chunk=TABLE_CHUNK)))

    def _learn_chunk(self, chunk: Chunk) -> None:
        if self.strict:
            encoding = self.encoding
            lagged, _ = encoding.columns.rows(chunk, encoding.history)
            if len(lagged.bad) > len(chunk.bad):
                raise DataError(f"{next(row for row in lagged.bad if row not in chunk.bad)}.")
        for _, session in self.sessions:
            session.learn(chunk)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the series to a file, with which `credo learn` can go on, or a direct one to a folder.

        Arguments:
            path: the file, or the folder.

        Raises:
            DataError: it cannot be written, or nothing was learned.
        """
        if self.multistep == "recursive":
            return self.session.save(path)
        for least, session in self.sessions:
            session.save(Path(path) / f"{least}.credo")
        return Path(path)

    @staticmethod
    def load(path: str | os.PathLike[str], *, paths: int = 100, strict: bool = True) -> Lagged:
        """Read a series back; it goes on bit by bit.

        Arguments:
            path: what `save` or `credo learn` wrote.
            paths, strict: as for a new series.

        Raises:
            DataError: there is no such file.
            FormatError: it is damaged, or does not hold a series.
        """
        place = Path(path)
        files = sorted(place.glob("*.credo"), key=lambda file: int(file.stem)) if place.is_dir() else []
        loaded = [(int(file.stem), Session.load(file)) for file in files] or [(1, Session.load(place))]
        encoding = loaded[0][1].encoding
        if not isinstance(encoding, SeriesEncoding):
            raise DataError(f"{path} holds no series; load it with `Session.load`.")
        columns = encoding.columns
        kind = "direct" if files else "recursive"
        multistep = require_choice("multistep", kind, get_args(Multistep))
        series = Lagged(
            columns.clock.name,
            columns.target,
            encoding.horizon,
            seasons=encoding.used,
            known=columns.known,
            multistep=multistep,
            paths=paths,
            strict=strict,
        )
        series.sessions = loaded
        return series
