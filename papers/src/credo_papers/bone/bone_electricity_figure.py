"""The figure of `bone-electricity`: errors along two years."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from credo.plots import new_figure
from credo_papers.bone.bone_figure import draw_lines, smooth

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(series: Mapping[str, np.ndarray]) -> Figure:
    """Draw the mean absolute error of the latest four weeks, for every method.

    Arguments:
        series: as in the outcome.
    """
    figure = new_figure()
    figure.suptitle("Electricity demand one hour ahead")
    axes = figure.subplots()
    labels = [label for label in series if label != "t"]
    window = min(48 * 28, len(series["t"]) // 4)
    draw_lines(axes, series, labels, window)
    axes.set(xlabel="half hour", ylabel=f"mean absolute error of {window} steps, in units of the moving sd")
    # A method that diverges leaves the figure.
    most = max(smooth(series[label], window)[window:].max() for label in labels[:2])
    axes.set_ylim(0.0, 1.4 * most)
    axes.legend(loc="upper right", ncols=3)
    return figure
