"""The figure of `bong-linreg` and `bong-logreg`: divergence from the exact posterior against observations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from credo.plots import new_figure
from credo_papers.bong.bong_exact_world import Task
from credo_papers.bong.bong_grid import COLOURS, FAMILIES, LINES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(task: Task, series: Mapping[str, np.ndarray]) -> Figure:
    """Draw a panel for each family, and in it a line for each cell with a band of two standard errors.

    Arguments:
        task: "linreg" or "logreg".
        series: as in the outcome.
    """
    names = [name for name in series if name != "t" and not name.endswith(" se")]
    families = [family for family in FAMILIES if any(name.endswith(" " + family) for name in names)]
    figure = new_figure()
    word = "linear" if task == "linreg" else "logistic"
    figure.suptitle(f"Online {word} regression: divergence from the exact posterior")
    panels = figure.subplots(1, len(families), squeeze=False, sharey=True)[0]
    t = series["t"]
    for axes, family in zip(panels, families, strict=True):
        for name in names:
            rule, curvature, kind = name.split(" ")
            if kind != family:
                continue
            line = LINES[curvature]
            colour = COLOURS[rule]
            mean = np.maximum(series[name], 1e-12)
            se = series[f"{name} se"]
            low = np.maximum(mean - 2 * se, 1e-12)
            axes.plot(t, mean, line, color=colour, label=f"{rule} {curvature}")
            axes.fill_between(t, low, mean + 2 * se, color=colour, alpha=0.12, lw=0)
        axes.set(yscale="log", title=family, xlabel="observations t")
    panels[0].set_ylabel("KL from belief to exact posterior, nats")
    entries = panels[0].get_legend_handles_labels()
    figure.legend(*entries, loc="outside lower center", ncols=4, fontsize=10)
    return figure
