"""The figure of `bong-linreg` and `bong-logreg`: divergence from the exact posterior against observations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from credo.experiments.bong_grid import COLOURS
from credo.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]

_STYLES = {"lin-hess": "-", "lin-ef": "--", "mc-ef": ":", "mc-hess": "-."}


def draw(task: str, series: dict[str, np.ndarray]) -> Figure:
    """A panel a family, a line a cell with a band of two standard errors."""
    names = [name for name in series if name != "t" and not name.endswith(" se")]
    families = [f for f in ("full", "diagonal", "low-rank") if any(n.endswith(" " + f) for n in names)]
    figure = new_figure()
    word = {"linreg": "linear", "logreg": "logistic"}[task]
    figure.suptitle(f"Online {word} regression: divergence from the exact posterior")
    panels = figure.subplots(1, len(families), squeeze=False, sharey=True)[0]
    t = series["t"]
    for axes, family in zip(panels, families, strict=True):
        for name in names:
            rule, curvature, kind = name.split(" ")
            if kind != family:
                continue
            mean, se = np.maximum(series[name], 1e-12), series[f"{name} se"]
            axes.plot(t, mean, _STYLES[curvature], color=COLOURS[rule], label=f"{rule} {curvature}")
            axes.fill_between(
                t, np.maximum(mean - 2 * se, 1e-12), mean + 2 * se, color=COLOURS[rule], alpha=0.12, lw=0
            )
        axes.set(yscale="log", title=family, xlabel="observations t")
    panels[0].set_ylabel("KL from belief to exact posterior, nats")
    panels[0].legend(fontsize=7, ncols=2)
    return figure
