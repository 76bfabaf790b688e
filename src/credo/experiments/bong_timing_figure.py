"""The figure of the costs: time of a step against P, a panel a family, a line a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from credo.experiments.bong_grid import COLOURS
from credo.plots import PALETTE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]

_STYLES = {"lin-hess": "-", "lin-ef": "--", "mc-ef": ":", "mc-hess": "-."}


def draw(series: dict[str, np.ndarray], names: list[str]) -> Figure:
    """Seconds a step against P, with grey lines of slope 1 and 2."""
    figure = new_figure()
    figure.suptitle("Time of one update on the processor at hand")
    panels = figure.subplots(1, 3)
    of_p = series["axis"] == 0
    for axes, family in zip(panels, ("full", "diagonal", "low-rank"), strict=True):
        seen = None
        for k, name in enumerate(names):
            rule, curvature, kind = name.split(" ")
            chosen = of_p & (series["cell"] == k)
            if kind != family or not chosen.any():
                continue
            sizes, times = series["size"][chosen], series["seconds"][chosen] * 1e3
            axes.plot(
                sizes, times, _STYLES[curvature], color=COLOURS[rule], marker=".", label=f"{rule} {curvature}"
            )
            seen = sizes if seen is None or sizes[-1] > seen[-1] else seen
        if seen is not None:
            power = 2 if family == "full" else 1
            low = min(series["seconds"][of_p & np.isin(series["cell"], _of(names, family))]) * 1e3
            axes.plot(
                seen,
                low * (seen / seen[0]) ** power,
                color=PALETTE["grey"],
                lw=3,
                alpha=0.4,
                label=f"slope {power}",
            )
        axes.set(xscale="log", yscale="log", title=family, xlabel="parameters P", ylabel="milliseconds")
        if seen is not None:
            axes.set_xticks(seen, [f"{n:,.0f}" for n in seen])
            axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
            axes.legend(fontsize=6, ncols=2)
    return figure


def _of(names: list[str], family: str) -> list[int]:
    return [k for k, name in enumerate(names) if name.endswith(" " + family)]
