"""The figure of `bone-bandit`: regret against time, and over worlds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from credo.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(series: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray]) -> Figure:
    """Draw the mean pseudo-regret so far, and the regret of every world.

    Arguments:
        series, arrays: as in the outcome.
    """
    figure = new_figure()
    figure.suptitle("A restless bandit: ten arms whose chances walk")
    curves, boxes = figure.subplots(1, 2, width_ratios=[1.3, 1])
    labels = [label for label in series if label != "step"]
    for number, label in enumerate(labels):
        dashes = "-" if number < 7 else "--"  # there are seven colours
        curves.plot(series["step"], series[label], dashes, label=label)
    curves.set(xlabel="pulls", ylabel="pseudo-regret so far, mean over worlds")
    curves.legend(loc="upper left")
    boxes.boxplot([arrays[f"pseudo {label}"] for label in labels], orientation="horizontal")
    boxes.set_yticks(range(1, len(labels) + 1), labels)
    boxes.invert_yaxis()
    boxes.set(xlabel="pseudo-regret of a world")
    return figure
