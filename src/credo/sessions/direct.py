"""Direct forecasts of several steps: sessions whose lags are known at the origin, each for a few steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from credo.live.series import SeriesEncoding
from credo.sessions.paths import Known, PathForecast, origin_of, require_ready, row_cells
from credo.sessions.session import Session
from credo.tables.lags import LaggedChunk

__all__ = ["forecast_direct", "groups"]

GROWTH = 3
"""How many times as far each group of steps reaches as the one before, about."""


def groups(horizon: int) -> tuple[int, ...]:
    """The last step of each group: 1, 3, 8, ... up to the horizon.

    >>> groups(24), groups(2)
    ((1, 3, 8, 24), (1, 2))
    """
    ends, end = {1, horizon}, horizon
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
    start, clock, offset = origin_of(encoding), encoding.columns.clock, encoding.history.offset
    ticks = np.arange(start + 1, start + horizon + 1)
    levels = ((np.arange(count) + 0.5) / count).tolist()
    means, sds, paths = np.empty((1, horizon)), np.empty((1, horizon)), np.empty((count, horizon))
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
        means[0, steps], sds[0, steps], paths[:, steps] = forecasts.mean, forecasts.sd, forecasts.quantiles.T
        begun = end
    return PathForecast(ticks, clock.texts(ticks, offset), means[0], sds[0], paths, means, sds)
