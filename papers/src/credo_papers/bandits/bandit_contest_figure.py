"""The figure of a contest: a column for each world, with the regret along the run and that of every run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from credo.plots import PALETTE, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(
    title: str,
    worlds: Sequence[str],
    labels: Sequence[str],
    series: Mapping[str, np.ndarray],
    arrays: Mapping[str, np.ndarray],
    peers: Mapping[str, Sequence[tuple[str, float]]],
) -> Figure:
    """Draw the mean regret so far with a band over all runs, and the final regret of every run.

    Arguments:
        title: the title of the figure.
        worlds: names of the columns.
        labels: names of the agents.
        series, arrays: as in the outcome.
        peers: the names and final regrets of other agents, by world.
    """
    others = list(dict.fromkeys(name for world in worlds for name, _ in peers.get(world, ())))
    figure = new_figure(4.2 + (4.8 if len(worlds) < 3 else 3.2) * len(worlds), 8.5)
    figure.suptitle(title)
    above, below = figure.subplots(2, len(worlds), squeeze=False, sharey="row")
    colours = dict(zip(labels, [*list(PALETTE.values())[1:], PALETTE["ink"]], strict=False))
    for curves, strip, world in zip(above, below, worlds, strict=True):
        _curves(curves, world, colours, series, arrays)
        _runs(strip, world, colours, arrays, others, dict(peers.get(world, ())))
    early = int(np.argmax(series["step"] >= 10))
    lowest = min(float(series[f"{world}: {label}"][early]) for world in worlds for label in labels)
    above[0].set_ylim(bottom=max(1.0, 0.5 * lowest))
    above[0].set_ylabel("regret so far, mean and range")
    above[0].yaxis.set_major_formatter("{x:,.0f}")
    below[0].set_yticks(range(len(labels) + len(others)), [*labels, *others])
    below[0].invert_yaxis()
    return figure


def _curves(
    axes: Axes,
    world: str,
    colours: Mapping[str, str],
    series: Mapping[str, np.ndarray],
    arrays: Mapping[str, np.ndarray],
) -> None:
    step = series["step"]
    for label, colour in colours.items():
        runs = arrays[f"regret {world}: {label}"]
        axes.fill_between(step, runs.min(0), runs.max(0), color=colour, alpha=0.18, linewidth=0)
        axes.plot(step, series[f"{world}: {label}"], color=colour)
    axes.set(title=world, xscale="log", yscale="log", xlabel="decisions", xlim=(10, step[-1]))
    axes.xaxis.set_major_formatter("{x:,.0f}")


def _runs(
    axes: Axes,
    world: str,
    colours: Mapping[str, str],
    arrays: Mapping[str, np.ndarray],
    others: Sequence[str],
    peers: Mapping[str, float],
) -> None:
    """A dot for every run and a bar at the mean; a diamond for the mean of other packages."""
    from matplotlib.ticker import LogLocator, NullFormatter

    for place, (label, colour) in enumerate(colours.items()):
        final = arrays[f"regret {world}: {label}"][:, -1]
        axes.plot(final, np.full(len(final), place), "o", color=colour, alpha=0.5, ms=6, mew=0)
        axes.plot(final.mean(), place, "|", color=colour, ms=18, mew=2.5)
    for place, name in enumerate(others, len(colours)):
        if name in peers:
            axes.plot(peers[name], place, "D", color=PALETTE["ink"], mfc="white", ms=7)
    axes.set(xscale="log", xlabel="regret of a run")
    low, high = axes.get_xlim()
    wide = high > 8 * low  # more labels would run into each other
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if wide else (1.0, 1.5, 2.0, 3.0, 4.0, 6.0)))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_minor_formatter(NullFormatter())
