"""The scores of forecasts at each horizon, beside the naive and the seasonal naive forecast."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypedDict

import numpy as np

from credo.live.series import SeriesEncoding
from credo.metrics import normal_crps
from credo.sessions.paths import PathForecast
from credo.tables.lags import History

__all__ = ["HorizonScores", "HorizonSummary", "Spreads", "sample_crps"]

METHODS = ("credo", "naive", "seasonal_naive")
"""The methods whose forecasts are scored."""


class HorizonSummary(TypedDict):
    """The mean scores at each horizon, and how many forecasts were scored there."""

    season: int | None
    origins: int
    horizon: list[int]
    forecasts: list[int]
    crps: Mapping[str, list[float]]
    nlpd: Mapping[str, list[float]]
    rmse: Mapping[str, list[float]]
    coverage_90: list[float]


def sample_crps(y: np.ndarray, draws: np.ndarray, fair: bool = True) -> np.ndarray:
    """The CRPS (H,) of y (H,) by draws (M, H): E|X - y| - E|X - X'| / 2.

    The second mean is over pairs of different draws, so that its expectation is that of the distribution;
    with `fair` off it is over all pairs, as suits quantiles in place of draws.
    """
    count = len(draws)
    ordered = np.sort(draws, axis=0)
    weights = (2 * np.arange(1, count + 1) - count - 1) / (count * (count - fair))
    return np.asarray(np.abs(draws - y).mean(axis=0) - weights @ ordered)


class Spreads:
    """The gaps so far between targets and those h steps before, which give the naive forecasts their widths.

    `steps` are the distances (K,) in steps; `total` and `count` (K,) sum the squared gaps.
    """

    def __init__(self, steps: np.ndarray) -> None:
        self.steps = steps
        self.total = np.zeros(len(steps))
        self.count = np.zeros(len(steps))

    def add(self, history: History, ticks: np.ndarray, values: np.ndarray) -> History:
        """Take in rows that follow a history; the history after them, as long as it is needed."""
        if not len(ticks):
            return history
        before = -(2**62) if history.last is None else history.last
        later = ticks > np.maximum.accumulate(np.concatenate([[before], ticks[:-1]]))
        ticks = ticks[later]
        values = values[later]
        whole = history.merged(ticks, values)
        gaps = (values[:, None] - whole.at(ticks[:, None] - self.steps)) ** 2
        self.count += np.isfinite(gaps).sum(axis=0)
        known = np.where(np.isnan(gaps), 0.0, gaps)
        np.add.at(self.total[None], np.zeros(len(gaps), int), known)  # row by row, however they are grouped
        return whole.latest(int(self.steps[-1]) + 1)

    def sd(self, steps: np.ndarray) -> np.ndarray:
        """The root mean squared gaps at some of the distances, NaN if there was none."""
        places = np.searchsorted(self.steps, steps)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.sqrt(self.total[places] / self.count[places]))


class HorizonScores:
    """Running sums of the scores of credo, of the last value, and of the value a season before.

    Both of the latter forecast a normal that is as wide as such forecasts were wrong so far. The season is
    the one, of those in use, with the smallest errors so far.

    Arguments:
        encoding: the series.
        horizon: H, the number of steps.
    """

    def __init__(self, encoding: SeriesEncoding, horizon: int) -> None:
        self.horizon = horizon
        self.seasons = encoding.used
        self.steps = np.arange(1, horizon + 1)
        whole = [self._back(season) for season in self.seasons]
        self.spreads = Spreads(np.unique(np.concatenate([self.steps, *whole])))
        shape = len(METHODS), horizon
        self.sums = {name: np.zeros(shape) for name in ("crps", "nlpd", "square")}
        self.inside = np.zeros(horizon)
        self.count = np.zeros(horizon)
        self.origins = 0
        self.season: int | None = None
        self.history = History.empty()

    def note(self, ticks: np.ndarray, values: np.ndarray) -> None:
        """Take in the places and targets of rows that were learned (n,)."""
        self.history = self.spreads.add(self.history, ticks, values)

    def _back(self, season: int) -> np.ndarray:
        """The steps back from each of the next ones to the latest target of its part of the season."""
        return season * -(-self.steps // season)

    def naive(self, origin: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Mean and standard deviation (H,) of the naive and the seasonal naive forecast after a place."""
        last = np.full(self.horizon, self.history.at(np.array(origin)))
        forecasts = [(last, self.spreads.sd(self.steps))]
        if self.seasons:
            errors = [float(self.spreads.sd(np.array([season]))[0]) for season in self.seasons]
            self.season = self.seasons[int(np.argmin(np.nan_to_num(errors, nan=np.inf)))]
            back = self._back(self.season)
            forecasts.append((self.history.at(origin + self.steps - back), self.spreads.sd(back)))
        return forecasts

    def add(self, forecast: PathForecast, y: np.ndarray) -> None:
        """Score the forecasts after an origin; y (H,) is NaN if nothing was observed.

        A step counts where all three forecast it.
        """
        others = self.naive(int(forecast.ticks[0]) - 1)
        known = np.isfinite(y)
        for mean, sd in others:
            known &= np.isfinite(mean) & (np.nan_to_num(sd) > 0)
        if not known.any():
            return
        y0 = np.where(known, y, 0.0)
        density = _mixture_log_prob(y0, forecast.means, forecast.sds)
        crps = sample_crps(y0, forecast.paths, fair=forecast.drawn)
        self._take(0, known, crps, -density, (y0 - forecast.mean) ** 2)
        for row, (mean, sd) in enumerate(others, 1):
            mean = np.where(known, mean, 0.0)
            sd = np.where(known, sd, 1.0)
            nlpd = 0.5 * ((y0 - mean) / sd) ** 2 + np.log(sd) + 0.5 * math.log(2 * math.pi)
            self._take(row, known, normal_crps(y0, mean, sd), nlpd, (y0 - mean) ** 2)
        low, high = forecast.quantile((0.05, 0.95)).T
        self.inside += known & (low <= y0) & (y0 <= high)
        self.count += known
        self.origins += 1

    def _take(self, row: int, known: np.ndarray, *losses: np.ndarray) -> None:
        for total, loss in zip(self.sums.values(), losses, strict=True):
            total[row] += np.where(known, loss, 0.0)

    def summary(self) -> HorizonSummary:
        """The mean scores at each horizon; NaN if nothing was scored."""
        names = METHODS if self.seasons else METHODS[:2]
        with np.errstate(invalid="ignore", divide="ignore"):
            means = {name: total / self.count for name, total in self.sums.items()}
            inside = self.inside / self.count

        def listed(table: np.ndarray) -> dict[str, list[float]]:
            return {name: table[row].tolist() for row, name in enumerate(names)}

        return {
            "season": self.season,
            "origins": self.origins,
            "horizon": self.steps.tolist(),
            "forecasts": self.count.astype(int).tolist(),
            "crps": listed(means["crps"]),
            "nlpd": listed(means["nlpd"]),
            "rmse": listed(np.sqrt(means["square"])),
            "coverage_90": inside.tolist(),
        }


def _mixture_log_prob(y: np.ndarray, means: np.ndarray, sds: np.ndarray) -> np.ndarray:
    """The log density of y (H,) under the mixture of the normals of M paths (M, H)."""
    z = (y - means) / sds
    terms = -0.5 * z * z - np.log(sds) - 0.5 * math.log(2 * math.pi)
    highest = terms.max(axis=0)
    return np.asarray(highest + np.log(np.exp(terms - highest).mean(axis=0)))
