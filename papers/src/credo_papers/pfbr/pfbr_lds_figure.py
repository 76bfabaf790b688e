"""The figure of `pfbr-lds`: cross-entropy by stage, and by the number of particles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from credo.plots import PALETTE, new_figure
from credo_papers.pfbr.pfbr_lds_plan import LinearPlan

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]

_LINES = {
    "exact draws": ("ink", "-", 3.0),
    "PFBR, ours": ("blue", "-", 2.0),
    "PFBR, published": ("orange", "-", 2.0),
    "affine map": ("sky", "--", 2.0),
    "stochastic EnKF": ("green", "--", 1.5),
    "fully adapted": ("pink", "--", 1.5),
    "AESMC, mlp": ("amber", "-.", 1.5),
    "bootstrap, 8192": ("grey", "-.", 1.5),
    "bootstrap": ("grey", ":", 2.0),
    "Liu-West": ("pink", ":", 2.0),
    "SVGD": ("amber", ":", 2.0),
    "KBR": ("green", ":", 2.0),
}
"""The methods of the figure, one or two of each kind: colour, dashes and width. The table has them all."""

CEILING = 100.0
"""Nats above which a line leaves the panel: a set that has collapsed can have any number."""


def draw(series: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray], plan: LinearPlan) -> Figure:
    """Draw a panel by stage for each dimension, and one by the number of particles.

    Arguments:
        series, arrays: as in the outcome.
        plan: what was run.
    """
    figure = new_figure(15.0, 7.0)
    figure.suptitle("Linear dynamical systems: how far sets of particles are from the exact posterior")
    *panels, last = figure.subplots(1, len(plan.dims) + 1)
    for axes, dim in zip(panels, plan.dims, strict=True):
        floor = series[f"entropy, d={dim}"]
        lines = {name: series[f"KDE, d={dim}, {name}"] - floor for name in _LINES if name in plan.names(dim)}
        _plot(axes, series["stage"], lines)
        axes.set(title=f"d = {dim}, {plan.particles} particles", xlabel="observations t")
    panels[0].set_ylabel("KDE cross-entropy above the entropy, nats")
    dim = min(plan.dims)
    level = series[f"entropy, d={dim}"].mean()
    lines = {name: arrays[f"KDE by particles, {name}"] - level for name in _LINES if name in plan.curve}
    _plot(last, arrays["particles"], lines, marker="o")
    last.set(title=f"d = {dim}, mean over t", xlabel="particles", xscale="log")
    last.set_xticks(plan.numbers, [str(number) for number in plan.numbers])
    last.minorticks_off()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _plot(axes: Axes, places: np.ndarray, lines: Mapping[str, np.ndarray], marker: str = "") -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    for name, line in lines.items():
        colour, dashes, width = _LINES[name]
        axes.plot(
            places,
            np.maximum(line, 1e-3),
            color=PALETTE[colour],
            linestyle=dashes,
            linewidth=width,
            marker=marker,
            label=name,
        )
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylim(top=min(CEILING, axes.get_ylim()[1]))
