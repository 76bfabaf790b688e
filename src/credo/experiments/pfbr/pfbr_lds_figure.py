"""The figure of `pfbr-lds`: cross-entropy by stage, and by the number of particles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from credo.experiments.pfbr.pfbr_figure import style_of
from credo.experiments.pfbr.pfbr_lds_plan import LinearPlan
from credo.plots import PALETTE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(series: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray], plan: LinearPlan) -> Figure:
    """Draw a panel by stage for each dimension, and one by the number of particles.

    Arguments:
        series, arrays: as in the outcome.
        plan: what was run.
    """
    figure = new_figure()
    figure.suptitle("Linear dynamical systems: particles against the exact posterior")
    panels = figure.subplots(1, len(plan.dims) + 1)
    for axes, dim in zip(panels, plan.dims, strict=False):
        floor = series[f"entropy, d={dim}"]
        for name in plan.methods:
            excess = series[f"KDE, d={dim}, {name}"] - floor
            axes.plot(series["stage"], np.maximum(excess, 1e-3), **style_of(name), label=name)
        title = f"d = {dim}, {plan.particles} particles"
        axes.set(title=title, xlabel="observations t", yscale="log")
    panels[0].set_ylabel("KDE cross-entropy above the entropy, nats")
    last, dim = panels[-1], plan.dims[0]
    floor = series[f"entropy, d={dim}"].mean()
    for name in plan.curve:
        last.plot(
            arrays["particles"], arrays[f"KDE by particles, {name}"] - floor, **style_of(name), marker="o"
        )
    last.set(title=f"d = {dim}", xlabel="particles", xscale="log", yscale="log")
    last.set_xticks(plan.numbers, [str(number) for number in plan.numbers])
    last.minorticks_off()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=10)
    for axes in panels:
        axes.tick_params(labelcolor=PALETTE["ink"])
    return figure
