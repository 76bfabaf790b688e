"""The figure of `bone-prices`: errors along two years."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from credo.plots import new_figure
from credo_papers.bone.bone_figure import draw_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(series: Mapping[str, np.ndarray]) -> Figure:
    """Draw the error of the latest four weeks, for every method.

    Arguments:
        series: as in the outcome.
    """
    figure = new_figure()
    figure.suptitle("Electricity prices, up or down")
    axes = figure.subplots()
    window = min(48 * 28, len(series["t"]) // 4)
    draw_lines(axes, series, [label for label in series if label != "t"], window)
    axes.set(xlabel="half hour", ylabel=f"error of the latest {window} rows")
    axes.legend(loc="upper right", ncols=3)
    return figure
