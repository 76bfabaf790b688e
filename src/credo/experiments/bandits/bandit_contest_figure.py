"""The figure of a contest: the regret of every agent along the run, a panel for each world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from credo.plots import PALETTE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]

_MARKERS = "DsvP"


def draw(
    title: str,
    worlds: Sequence[str],
    labels: Sequence[str],
    series: Mapping[str, np.ndarray],
    arrays: Mapping[str, np.ndarray],
    peers: Mapping[str, Sequence[tuple[str, float]]],
) -> Figure:
    """Draw the mean regret so far with a band from the best run to the worst, and the peers at the end.

    Arguments:
        title: of the figure.
        worlds: names of the panels.
        labels: names of the agents.
        series, arrays: as in the outcome.
        peers: the names and final regrets of other agents, by world.
    """
    columns = min(3, len(worlds))
    lines = -(-len(worlds) // columns)
    figure = new_figure(max(7.5, 5.5 * columns), 1.6 + 4.4 * lines)
    figure.suptitle(title)
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True).ravel()
    colours = [*list(PALETTE.values())[1:], PALETTE["ink"]]
    step = series["step"]
    for axes, world in zip(panels, worlds, strict=False):
        for label, colour in zip(labels, colours, strict=False):
            runs = arrays[f"regret {world}: {label}"]
            axes.fill_between(step, runs.min(0), runs.max(0), color=colour, alpha=0.18, linewidth=0)
            axes.plot(step, series[f"{world}: {label}"], color=colour, label=label)
        for (name, regret), marker in zip(peers.get(world, ()), _MARKERS, strict=False):
            axes.plot(
                step[-1],
                regret,
                marker,
                color=PALETTE["ink"],
                mfc="white",
                ms=8,
                clip_on=False,
                zorder=5,
                linestyle="none",
                label=name,
            )
        axes.set(title=world, xscale="log", yscale="log", xlabel="decisions", ylabel="regret so far")
        axes.set_xlim(10, step[-1])
        axes.set_ylim(
            bottom=max(1.0, 0.3 * min(arrays[f"regret {world}: {one}"].mean() for one in labels) / 10)
        )
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter("{x:,.0f}")
    for axes in panels[len(worlds) :]:
        axes.remove()
    known: dict[str, object] = {}
    for axes in figure.axes:
        handles, names = axes.get_legend_handles_labels()
        known.update(zip(names, handles, strict=True))
    figure.legend(list(known.values()), list(known), loc="outside lower center", ncols=3, fontsize=10)
    return figure
