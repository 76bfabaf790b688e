"""The figure of `kf-linreg`: the weights, the test error and the distance to ridge regression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from credo.plots import PALETTE, new_figure
from credo_papers.kalman.kf_linreg_world import ROWS, TEST_ROWS, WEIGHTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(series: Mapping[str, np.ndarray], ridge_rmse: float, count: int) -> Figure:
    """Draw the two weights, the test error, the distance to ridge and the prequential error against rows.

    Arguments:
        series: as in the outcome.
        ridge_rmse: the test error of ridge regression on all rows.
        count: how many data sets.
    """
    figure = new_figure(12.0, 11.0)
    figure.suptitle("Linear regression row by row meets ridge regression on all rows")
    (first, second), (error, gap), (ahead, squares) = figure.subplots(3, 2)
    t = series["t"]
    for i, axes in enumerate((first, second)):
        mean = series[f"mean_{i}"]
        sd = series[f"sd_{i}"]
        axes.fill_between(
            t, mean - 2 * sd, mean + 2 * sd, color=PALETTE["blue"], alpha=0.2, lw=0, label="± 2 sd"
        )
        axes.plot(t, mean, color=PALETTE["blue"], label="recursive mean")
        axes.axhline(series[f"ridge_{i}"][-1], color=PALETTE["orange"], ls="--", label="ridge, all rows")
        axes.axhline(WEIGHTS[i], color=PALETTE["ink"], ls=":", lw=1.5, label="truth")
        axes.set(
            title=f"Weight {i + 1}, one data set",
            ylabel=f"$w_{i + 1}$",
            ylim=(WEIGHTS[i] - 3, WEIGHTS[i] + 2.2),
        )
        axes.legend(loc="lower right", ncols=2)
    error.plot(t, series["test_rmse"], color=PALETTE["blue"], label="recursive")
    error.axhline(ridge_rmse, color=PALETTE["orange"], ls="--", label="ridge, all rows")
    error.set(title=f"Error on {TEST_ROWS} test rows, one data set", xlabel="rows seen t", ylabel="RMSE")
    error.legend(loc="upper right")
    floor = 1e-17
    gap.plot(t, np.maximum(series["gap_largest"], floor), color=PALETTE["green"], lw=1.2, label="largest")
    gap.plot(t, np.maximum(series["gap_median"], floor), color=PALETTE["blue"], lw=1.2, label="median")
    gap.axhline(np.finfo(float).eps, color=PALETTE["ink"], ls=":", lw=1.5, label="machine epsilon")
    gap.set(title=f"Distance to ridge on the first t rows, {count} data sets", xlabel="rows seen t")
    gap.set(ylabel="|mean - ridge|", yscale="log", ylim=(floor, 1e-13), xscale="log", xlim=(1, ROWS))
    gap.set_xticks([1, 10, 100, ROWS], ["1", "10", "100", f"{ROWS}"])
    gap.legend(loc="upper center", ncols=3)
    _prequential(ahead, squares, series, count)
    return figure


def _prequential(ahead: Axes, squares: Axes, series: Mapping[str, np.ndarray], count: int) -> None:
    """Draw the error of each row before it is learned: its running mean, and by rows beside the forecasts."""
    t = series["t"]
    ahead.plot(t, series["prequential_rmse"], color=PALETTE["blue"], label="before learning the row")
    ahead.plot(t, series["hindsight_rmse"], color=PALETTE["orange"], ls="--", label="ridge, all rows")
    ahead.set(title="Prequential error so far, one data set", xlabel="rows seen t", ylabel="RMSE")
    ahead.legend(loc="lower right")
    squares.plot(t, series["square_mean"], ".", ms=3, color=PALETTE["blue"], label="squared error of row t")
    squares.plot(t, series["square_said"], color=PALETTE["ink"], lw=1.5, label="variance of its forecast")
    squares.set(title=f"Prequential error by row, {count} data sets", xlabel="row t", ylabel="mean square")
    squares.set(xscale="log", xlim=(1, ROWS), ylim=(0, None))
    squares.set_xticks([1, 10, 100, ROWS], ["1", "10", "100", f"{ROWS}"])
    squares.legend(loc="upper right")
