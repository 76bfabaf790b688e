"""The figure of the electricity demand: errors along two years."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from credo.experiments.bone_figure import smooth
from credo.experiments.figures import new_figure

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
    for label in labels:
        axes.plot(series["t"], smooth(series[label], window), label=label, lw=1.5)
    axes.set(xlabel="half hour", ylabel=f"mean absolute error of {window} steps, in units of the moving sd")
    axes.legend(loc="best", ncols=2)
    return figure
