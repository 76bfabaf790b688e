"""The figure of `kf-linreg`: the weights, the test error and the distance to ridge regression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from credo.plots import PALETTE, new_figure
from credo_papers.kalman.kf_linreg_world import ROWS, TEST_ROWS, WEIGHTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(series: Mapping[str, np.ndarray], ridge_rmse: float, count: int) -> Figure:
    """Draw the two weights, the test error and the distance to ridge against the number of rows.

    Arguments:
        series: as in the outcome.
        ridge_rmse: the test error of ridge regression on all rows.
        count: how many data sets.
    """
    figure = new_figure()
    figure.suptitle("Linear regression row by row meets ridge regression on all rows")
    (first, second), (error, gap) = figure.subplots(2, 2, sharex=True)
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
    return figure
