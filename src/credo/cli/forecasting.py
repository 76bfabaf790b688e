"""`credo learn --horizon`: forecasts of the next steps of a series, their scores, and how both are shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from credo.cli.html_report import Grid, Line, Section
from credo.cli.request import Request
from credo.core.files import write_atomically
from credo.sessions import PathForecast, SeriesEncoding, Session
from credo.sessions.forecast_table import as_csv
from credo.sessions.origins import Origins
from credo.sessions.paths import Known, forecast_paths, ready
from credo.sessions.run_summary import Ahead, number

__all__ = ["FILE", "LEVELS", "begin", "finish", "grids", "sections", "verdict"]

FILE = "forecast.csv"
"""The file with the forecast of the steps after the last row."""

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles in it."""

PATHS = 100
SHOWN = 8

_NAMES = {"credo": "credo", "naive": "naive", "seasonal_naive": "seasonal naive"}


def begin(request: Request, session: Session) -> Origins | None:
    """What forecasts a series on its way into a session; None for other rows."""
    encoding = session.encoding
    flags = request.flags_of_series
    if not isinstance(encoding, SeriesEncoding):
        return None
    paths = flags.paths or PATHS

    def forecast(known: Known) -> PathForecast:
        return forecast_paths(session, encoding.horizon, paths, known)

    return Origins(session, flags.every or encoding.horizon, forecast)


def finish(origins: Origins, folder: Path) -> Ahead | None:
    """Forecast the steps after the last row, and write them; None if too few rows were learned."""
    if not ready(origins.session):
        return None
    forecast = origins.last()
    heads = ["step", "time", "mean", "sd", *(f"q{100 * level:02.0f}" for level in LEVELS)]
    numbers = np.column_stack([forecast.mean, forecast.sd, forecast.quantile(LEVELS)])
    rows = [
        [str(step), time, *(f"{cell:.8g}" for cell in cells)]
        for step, (time, cells) in enumerate(zip(forecast.times, numbers.tolist(), strict=True), 1)
    ]
    write_atomically(folder / FILE, as_csv([heads, *rows]).encode())
    return Ahead(origins.scores.summary(), forecast)


def _shown(horizon: int) -> list[int]:
    """Some steps up to the horizon, the first and the last among them."""
    if horizon <= SHOWN:
        return list(range(1, horizon + 1))
    return sorted({round(step) for step in np.geomspace(1, horizon, SHOWN).tolist()})


def grids(ahead: Ahead) -> dict[str, Grid]:
    """The tables of the scores at some horizons, and of the forecast."""
    scores = ahead.scores
    steps = _shown(len(ahead.scores["horizon"]))
    tables: dict[str, Grid] = {}
    if scores["origins"]:
        names = list(scores["crps"])
        heads = [f"{_NAMES[name]}" for name in names]
        for word in ("crps", "nlpd"):
            columns = [scores[word][name] for name in names]
            if word == "crps":
                columns = [*columns, scores["coverage_90"]]
            lines = [
                Line(str(step), tuple(f"{column[step - 1]:.4g}" for column in columns)) for step in steps
            ]
            tables[word] = Grid((*heads, "inside 90%") if word == "crps" else tuple(heads), lines)
    forecast = ahead.forecast
    low, middle, high = forecast.quantile((0.05, 0.5, 0.95)).T
    lines = [
        Line(
            str(step),
            (
                forecast.times[step - 1],
                *(number(column[step - 1]) for column in (forecast.mean, low, middle, high)),
            ),
        )
        for step in steps
    ]
    tables["forecast"] = Grid(("time", "mean", "5%", "median", "95%"), lines)
    return tables


def verdict(ahead: Ahead) -> str:
    """How the forecasts compare with the naive ones, in words."""
    scores = ahead.scores
    horizon = len(ahead.scores["horizon"])
    if not scores["origins"]:
        return "The series is too short for forecasts of the next steps to be scored."
    means = {name: float(np.nanmean(column)) for name, column in scores["crps"].items()}
    ours = means.pop("credo")
    best = min(means, key=lambda name: means[name])
    gap = 1 - ours / means[best] if means[best] else 0.0
    steps = "the next step" if horizon == 1 else f"the next {horizon} steps"
    side = "below" if gap >= 0 else "above"
    season = f" (season of {scores['season']} steps)" if best == "seasonal_naive" else ""
    return (
        f"Over {steps} the CRPS is {ours:.4g} on average, {abs(gap):.0%} {side} the {means[best]:.4g} of the "
        f"{_NAMES[best]} forecast{season}, at {scores['origins']:,} origins."
    )


MEANING = (
    "The CRPS is in units of the target, and lower is better: for a forecast without spread it is the "
    "absolute error. The naive forecast is the last value, the seasonal one the value a season before; both "
    "are as wide as such forecasts were wrong so far. Forecasts were made before the rows were learned from."
)


def sections(ahead: Ahead) -> list[Section]:
    """The sections of the report."""
    tables = grids(ahead)
    found = list[Section]()
    if "crps" in tables:
        found.append(Section("CRPS by step ahead", [verdict(ahead), MEANING], tables["crps"], "step"))
        words = "The negative log predictive density at the same rows; lower is better."
        found.append(Section("NLPD by step ahead", [words], tables["nlpd"], "step"))
    words = f"The steps after the last row; all of them are in {FILE}."
    found.append(Section("Forecast", [words], tables["forecast"], "step"))
    return found
