"""Forecasts of the next steps of a series: sample paths, whose draws are the lags of the steps after them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax
import numpy as np

from credo.core.errors import CredoError, DataError
from credo.core.outlying import known_spread
from credo.live.passes import draw_rows
from credo.live.series import SeriesEncoding
from credo.live.targets import SCALER, WARMUP
from credo.sessions.session import Session
from credo.tables import Chunk
from credo.tables.cells import Cells, to_list
from credo.tables.lags import LaggedChunk

__all__ = [
    "Known",
    "PathForecast",
    "forecast_paths",
    "known_cells",
    "origin_of",
    "ready",
    "require_ready",
    "row_cells",
]

Known = Mapping[int, Mapping[str, object]]
"""The cells of columns that are known in advance, by the place in steps and by column."""


class PathForecast(NamedTuple):
    """The forecast of the H steps after the latest target of a series, by M sample paths.

    Attributes:
        ticks: the places of the steps (H,), counted from the first row.
        times: the times of the steps, as they are written in the series.
        mean: the means (H,), averaged over the one-step forecasts of the paths.
        sd: the standard deviations (H,), of these forecasts and their spread together.
        paths: the paths (M, H), each a draw of the whole future.
        means, sds: the one-step forecasts along each path (M, H).

    Example:
        >>> one = np.ones((2, 1))
        >>> paths = np.array([[1.0], [3.0]])
        >>> PathForecast(np.array([5]), ["5"], one[0], one[0], paths, one, one).quantile(0.5)
        array([2.])
    """

    ticks: np.ndarray
    times: list[str]
    mean: np.ndarray
    sd: np.ndarray
    paths: np.ndarray
    means: np.ndarray
    sds: np.ndarray

    def widened(self, factors: np.ndarray) -> PathForecast:
        """The forecast with each step stretched about its mean.

        Arguments:
            factors: how many times as wide each step becomes (H,).
        """
        if (factors == 1.0).all():
            return self
        paths, means = (self.mean + factors * (part - self.mean) for part in (self.paths, self.means))
        return self._replace(sd=factors * self.sd, paths=paths, means=means, sds=factors * self.sds)

    def quantile(self, p: float | Sequence[float]) -> np.ndarray:
        """Quantiles of each step: (H,) for one probability, and (H, L) for L of them.

        A new draw lies below the m-th smallest of M draws with probability m / (M + 1), so the quantile p is
        the draw number (M + 1) p (Hyndman & Fan 1996, definition 6): of the intervals between the 5% and the
        95% quantile of 100 draws, 90% hold the next draw. Paths of a direct forecast are quantiles
        (m - 1/2) / M themselves, so there it is number M p + 1/2. Between two numbers it is interpolated, and
        beyond the last it is the last.

        Arguments:
            p: probabilities; of M draws from 1 / (M + 1) to M / (M + 1).
        """
        return np.asarray(np.quantile(self.paths, p, axis=0, method="weibull" if self.drawn else "hazen").T)

    @property
    def drawn(self) -> bool:
        """Whether the paths are draws, and not quantiles of each step."""
        return len(self.means) > 1


def origin_of(encoding: SeriesEncoding) -> int:
    """The place of the latest target that is known; a DataError if there is none."""
    history = encoding.history
    known = history.ticks[np.isfinite(history.values)]
    if not len(known):
        raise DataError(f"the series has no target {encoding.target!r} yet; learn some rows first.")
    return int(known[-1])


def ready(session: Session) -> bool:
    """Whether enough targets were seen to say in which units forecasts are."""
    moments = session.scaler
    spread = session.own_units or known_spread(moments.mean(), moments.sd())[0]
    return bool(moments.count[0] >= WARMUP and spread)


def require_ready(session: Session) -> None:
    """Refuse to forecast before there are enough targets."""
    if not ready(session):
        raise DataError(f"the series must have {WARMUP} targets, of which some differ, to be forecast.")


def known_cells(encoding: SeriesEncoding, rows: Chunk) -> dict[int, dict[str, object]]:
    """The cells of the columns that are known in advance, by the place of their row."""
    columns = encoding.columns
    read = columns.clock.read(rows.columns.get(columns.clock.name, [None] * len(rows)))
    cells = {name: to_list(rows.columns.get(name, [None] * len(rows))) for name in columns.known}
    return {
        int(read.ticks[row]): {name: cells[name][row] for name in columns.known}
        for row in range(len(rows))
        if row not in read.why
    }


def forecast_paths(session: Session, horizon: int, paths: int, known: Known | None = None) -> PathForecast:
    """The joint forecast of the next steps, by recursion. Nothing is learned.

    With D the rows so far and y_1 .. y_h the steps after them, path m draws

        y_h^m ~ p(y | lags from D and y_1^m .. y_(h-1)^m, calendar, D)

    and with mu_h^m and s_h^m the moments of that forecast, E[y_h] is the mean of mu_h^m over m, and Var[y_h]
    the mean of (s_h^m)^2 plus the variance of mu_h^m. The belief is that of D on the whole path. The draws
    depend on the seed of the session and on how many rows it has learned.

    Arguments:
        session: a session of a series.
        horizon: H, the number of steps.
        paths: M, the number of paths.
        known: the cells of columns that are known in advance; others are missing.

    Raises:
        CredoError: the session is not one of a series.
        DataError: nothing was learned yet.
    """
    encoding = session.encoding
    if not isinstance(encoding, SeriesEncoding):
        raise CredoError("session must be one of a series; got one of a table or of images.")
    require_ready(session)
    columns = encoding.columns
    start = origin_of(encoding)
    lags = np.asarray(columns.lags)
    longest = max(columns.lags)
    window = np.full((paths, longest + horizon), np.nan)
    window[:, :longest] = encoding.history.at(np.arange(start - longest + 1, start + 1))
    ticks = np.arange(start + 1, start + horizon + 1)
    texts = columns.clock.texts(ticks, encoding.history.offset)
    root = jax.random.fold_in(jax.random.key(session.settings.seed), session.rows_used)
    means = np.empty((paths, horizon))
    sds = np.empty((paths, horizon))
    for step in range(horizon):
        cells = row_cells(encoding, np.full(paths, ticks[step]), window[:, longest + step - lags], known)
        means[:, step], sds[:, step], window[:, longest + step] = _draw(
            session, LaggedChunk(cells, np.arange(1, paths + 1), unit="row"), jax.random.fold_in(root, step)
        )
    mean = means.mean(axis=0)
    sd = np.sqrt((sds**2).mean(axis=0) + means.var(axis=0))
    return PathForecast(ticks, texts, mean, sd, window[:, longest:], means, sds)


def row_cells(
    encoding: SeriesEncoding, ticks: np.ndarray, lagged: np.ndarray, known: Known | None
) -> dict[str, Cells]:
    """The columns of rows at some places (n,) with targets (n, L) before them."""
    columns = encoding.columns
    offset = encoding.history.offset
    given = [{} if known is None else known.get(tick, {}) for tick in ticks.tolist()]
    cells: dict[str, Cells] = {columns.clock.name: columns.clock.texts(ticks, offset)}
    cells |= {name: [one.get(name) for one in given] for name in columns.known}
    return cells | columns.made(ticks, columns.clock.clock(ticks, offset), lagged)


def _draw(session: Session, rows: LaggedChunk, key: jax.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means, standard deviations and draws (M,) of rows, in the target's own units."""
    x = session.encoding.encode(rows, learn=False, need_target=False).x
    mean, sd, draws = (np.asarray(one, float) for one in draw_rows(session.packed, x, key))
    if not session.own_units:
        mean, sd = SCALER.inverse(session.scaler, mean, sd)
        draws = SCALER.inverse(session.scaler, draws, draws)[0]
    return mean, sd, draws
