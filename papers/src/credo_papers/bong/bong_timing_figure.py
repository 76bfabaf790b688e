"""The figure of the costs: time of a step against P, a panel a family, a line a cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from credo.plots import PALETTE, new_figure
from credo_papers.bong.bong_grid import COLOURS, FAMILIES, LINES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(series: Mapping[str, np.ndarray], names: Sequence[str]) -> Figure:
    """Draw the seconds of a step against P, with grey lines of slope 1 and 2.

    Arguments:
        series: as in the outcome.
        names: the names of the cells.
    """
    figure = new_figure()
    figure.suptitle("Time of one update on the processor at hand")
    panels = figure.subplots(1, 3)
    of_p = series["axis"] == 0
    for axes, family in zip(panels, FAMILIES, strict=True):
        longest = None
        for k, name in enumerate(names):
            rule, curvature, kind = name.split(" ")
            points = of_p & (series["cell"] == k)
            if kind != family or not points.any():
                continue
            sizes = series["size"][points]
            times = series["seconds"][points] * 1e3
            label = f"{rule} {curvature}"
            axes.plot(sizes, times, LINES[curvature], color=COLOURS[rule], marker=".", label=label)
            longest = sizes if longest is None or sizes[-1] > longest[-1] else longest
        if longest is not None:
            power = 2 if family == "full" else 1
            low = min(series["seconds"][of_p & np.isin(series["cell"], _of(names, family))]) * 1e3
            line = low * (longest / longest[0]) ** power
            axes.plot(longest, line, color=PALETTE["grey"], lw=3, alpha=0.4, label=f"slope {power}")
        axes.set(xscale="log", yscale="log", title=family, xlabel="parameters P", ylabel="milliseconds")
        if longest is not None:
            axes.set_xticks(longest, [f"{n:,.0f}" for n in longest])
            axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
            axes.legend(fontsize=6, ncols=2)
    return figure


def _of(names: Sequence[str], family: str) -> list[int]:
    return [k for k, name in enumerate(names) if name.endswith(" " + family)]
