"""The plots of a series: the forecast of the steps after the last row, and the CRPS at each step."""

from __future__ import annotations

import numpy as np

from credo.cli.html_report import Picture
from credo.plots import COMPACT_PALETTE, compact_figure, legend_above, shortened
from credo.sessions import SeriesEncoding
from credo.sessions.run_summary import Ahead

__all__ = ["draw"]

BLUE, ORANGE, GREY, SKY = (COMPACT_PALETTE[name] for name in ("blue", "orange", "grey", "sky"))

# How many horizons of the past are drawn, and the longest name of a target beside an axis.
BEFORE = 3
LONGEST = 36

_LINES = {"credo": (BLUE, "-"), "naive": (GREY, ":"), "seasonal_naive": (ORANGE, "--")}


def draw(ahead: Ahead, encoding: SeriesEncoding) -> dict[str, Picture]:
    """The plots, by file name without suffix."""
    pictures = {
        "forecast": Picture(
            _fan(ahead, encoding),
            f"The latest targets, and the forecast of the steps after {_last(ahead, encoding)}: its mean, "
            "and the intervals that hold a target with probability 50% and 90%.",
        )
    }
    if ahead.scores["origins"]:
        pictures["horizons"] = Picture(
            _by_step(ahead),
            "The mean CRPS of forecasts so many steps ahead, in units of the target; lower is better.",
        )
    return pictures


def _last(ahead: Ahead, encoding: SeriesEncoding) -> str:
    """The time of the latest target."""
    return encoding.columns.clock.texts(ahead.forecast.ticks[:1] - 1, encoding.history.offset)[0]


def _fan(ahead: Ahead, encoding: SeriesEncoding) -> bytes:
    forecast = ahead.forecast
    history = encoding.history
    start = int(forecast.ticks[0]) - 1
    count = len(forecast.ticks)
    past = np.arange(max(start - BEFORE * count, int(history.ticks[0])), start + 1)
    steps = forecast.ticks - start
    low, lower, upper, high = forecast.quantile((0.05, 0.25, 0.75, 0.95)).T
    with compact_figure() as drawing:
        axes = drawing.panels[0]
        axes.fill_between(steps, low, high, color=SKY, alpha=0.25, linewidth=0, label="90%")
        axes.fill_between(steps, lower, upper, color=SKY, alpha=0.45, linewidth=0, label="50%")
        axes.plot(steps, forecast.mean, color=BLUE, linewidth=1.3, label="mean of the forecast")
        axes.plot(past - start, history.at(past), color=ORANGE, linewidth=1.3, label="observed")
        axes.axvline(0.5, color=GREY, linewidth=0.8)
        axes.set_xlabel(f"steps after {_last(ahead, encoding)}")
        axes.set_ylabel(shortened(encoding.target, LONGEST))
        legend_above(axes, 4)
    return drawing.png


def _by_step(ahead: Ahead) -> bytes:
    with compact_figure() as drawing:
        axes = drawing.panels[0]
        for name, crps in ahead.scores["crps"].items():
            colour, style = _LINES[name]
            label = name.replace("_", " ")
            axes.plot(ahead.scores["horizon"], crps, color=colour, linestyle=style, marker=".", label=label)
        axes.set_xlabel("steps ahead")
        axes.set_ylabel("CRPS")
        axes.set_ylim(bottom=0)
        legend_above(axes, 3)
    return drawing.png
