"""The figure of the electricity demand: errors along two years."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from credo.experiments.bone_figure import smooth
from credo.plots import PALETTE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(series: Mapping[str, np.ndarray]) -> Figure:
    """The mean absolute error of the latest four weeks, for every method."""
    figure = new_figure()
    figure.suptitle("Electricity demand one hour ahead")
    axes = figure.subplots()
    labels = [label for label in series if label != "t"]
    window = min(48 * 28, len(series["t"]) // 4)
    for number, label in enumerate(labels):
        line = "-" if number < len(PALETTE) - 1 else "--"
        axes.plot(series["t"], smooth(series[label], window), line, label=label, lw=1.5)
    axes.set(xlabel="half hour", ylabel=f"mean absolute error of {window} steps, in units of the moving sd")
    # A method that winds up leaves the figure.
    most = max(smooth(series[label], window)[window:].max() for label in labels[:2])
    axes.set_ylim(0.0, 1.4 * most)
    axes.legend(loc="upper right", ncols=3)
    return figure
