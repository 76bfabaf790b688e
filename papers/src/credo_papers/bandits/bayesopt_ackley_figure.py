"""The figure of `bayesopt-ackley`: beliefs after some evaluations, and how many seeds found the top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from credo.plots import PALETTE, new_figure
from credo_papers.bandits.bayesopt_ackley_plan import METHODS

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

__all__ = ["draw"]

SHOWN = (METHODS[0].label, METHODS[3].label)
"""The methods whose beliefs are shown."""


def draw(series: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray], labels: Sequence[str]) -> Figure:
    """Draw the belief, the truth and the points of one seed for two methods, and below all methods.

    Arguments:
        series, arrays: as in the outcome.
        labels: the methods that have a belief.
    """
    figure = new_figure(12.0, 11.0)
    figure.suptitle("Bayesian optimisation of an Ackley-like function, ten evaluations")
    parts = [row[0] for row in figure.subfigures(3, 1, squeeze=False, height_ratios=[1, 1, 1.1])]
    for part, label in zip(parts, SHOWN, strict=False):
        if label in labels:
            _beliefs(part, arrays, label)
    axes = parts[2].subplots()
    names = [name for name in series if name != "evaluation"]
    colours = ["grey", "blue", "sky", "orange", "amber", "pink", "green"]
    if len(names) < len(colours):
        colours.remove("pink")
    for name, colour, marker in zip(names, colours, "xos^vDP", strict=False):
        axes.plot(series["evaluation"], series[name], color=PALETTE[colour], marker=marker, label=name)
    count = len(arrays[f"values {names[0]}"])
    axes.set(title=f"Share of {count} seeds whose best value is within 2% of the range", ylim=(-0.03, 1.03))
    axes.set(xlabel="evaluations", ylabel="share of seeds", xticks=series["evaluation"])
    axes.legend(loc="upper left", fontsize=10)
    return figure


def _beliefs(figure: SubFigure, arrays: Mapping[str, np.ndarray], label: str) -> None:
    panels = figure.subplots(1, len(arrays["panels"]), sharex=True, sharey=True)
    grid = arrays["grid"]
    mean = arrays[f"mean {label}"]
    sd = arrays[f"sd {label}"]
    x = arrays[f"x {label}"][0]
    values = arrays[f"values {label}"][0]
    for i, (axes, count) in enumerate(zip(panels, arrays["panels"], strict=True)):
        low = mean[i] - 2 * sd[i]
        high = mean[i] + 2 * sd[i]
        axes.fill_between(grid, low, high, color=PALETTE["blue"], alpha=0.2, lw=0, label="mean ± 2 sd")
        axes.plot(grid, mean[i], color=PALETTE["blue"], label="mean")
        axes.plot(grid, arrays["truth"], color=PALETTE["ink"], lw=1.2, ls="--", label="truth")
        axes.plot(x[:count], values[:count], "o", color=PALETTE["orange"], ms=7, mec="white", label="tried")
        words = "evaluation" if count == 1 else "evaluations"
        axes.set(title=f"after {count} {words}")
        axes.set(ylim=(-6, 18), xlabel="x")
    panels[0].set_ylabel(f"{label}\nf(x)", fontsize=11)
    panels[-1].legend(loc="upper right", fontsize=9, ncols=2)
