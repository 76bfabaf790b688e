"""The figure of `kf-tracking`: one track with its ellipses, and the error against time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from credo.plots import PALETTE, new_figure
from credo_papers.engine.pictures import ellipse
from credo_papers.kalman.kf_tracking_plan import LEVEL
from credo_papers.kalman.kf_tracking_world import STEPS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(series: Mapping[str, np.ndarray], plane: np.ndarray, count: int) -> Figure:
    """Draw one track with its ellipses, and the error against time over all tracks.

    Arguments:
        series: as in the outcome.
        plane: the covariances of the position (15, 2, 2).
        count: how many tracks.
    """
    figure = new_figure()
    figure.suptitle("Kalman filter tracking: position and velocity from noisy positions")
    top, left, right = figure.subplot_mosaic("tt;re", height_ratios=[1.25, 1]).values()
    _track(top, series, plane)
    t = series["t"]
    left.plot(t, series["rms_raw"], "s-", color=PALETTE["grey"], ms=5, label="raw observations")
    left.plot(t, series["rms_filtered"], "o-", color=PALETTE["blue"], ms=5, label="filtered")
    left.plot(t, series["rms_claimed"], "--", color=PALETTE["ink"], lw=1.5, label="what the filter claims")
    left.set(title=f"Error over {count:,} tracks", xlabel="step t", ylabel="rms [length]", ylim=(0, 2))
    left.legend(loc="lower right")
    right.axhline(LEVEL, color=PALETTE["ink"], ls="--", lw=1.5, label="if calibrated")
    error = np.sqrt(LEVEL * (1 - LEVEL) / count)
    label = "measured ± 2 se"
    right.errorbar(
        t, series["inside_90"], 2 * error, fmt="o", color=PALETTE["blue"], ms=5, capsize=3, label=label
    )
    right.set(title="Truth inside the 90% ellipse", xlabel="step t", ylabel="fraction", ylim=(0.8, 1.0))
    right.legend(loc="lower right", ncols=2)
    return figure


def _track(axes: Axes, series: Mapping[str, np.ndarray], plane: np.ndarray) -> None:
    mean = np.stack([series["filtered_x"], series["filtered_y"]], axis=1)
    for t in range(STEPS):
        curve = ellipse(mean[t], plane[t], 2.0)
        label = "_" if t else "2-sd ellipse"
        axes.fill(*curve.T, facecolor=PALETTE["blue"], alpha=0.10, edgecolor="none", label=label)
        axes.plot(*curve.T, color=PALETTE["blue"], lw=0.8, alpha=0.6)
    axes.plot(series["truth_x"], series["truth_y"], "-", color=PALETTE["ink"], lw=2, label="truth")
    observations = (series["observed_x"], series["observed_y"])
    axes.plot(*observations, "x", color=PALETTE["orange"], ms=8, mew=2, label="observed")
    axes.plot(*mean.T, "o-", color=PALETTE["blue"], ms=5, lw=1.5, label="filtered mean")
    axes.set(title="One track", xlabel="x [length]", ylabel="y [length]")
    axes.set_aspect("equal", adjustable="datalim")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
