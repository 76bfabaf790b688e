"""The figure of `bandit-memory`: reward against the size of what is kept, a column for each world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from credo.plots import PALETTE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]

NAMES = {
    "rank": "low-rank covariance: its rank",
    "replay": "replay, epsilon-greedy: rewards in memory",
    "subspace": "random subspace: its directions",
    "neural-linear": "neural-linear: rewards in memory",
    "bootstrap": "bootstrap: networks",
}


def draw(
    worlds: Sequence[str], sizes: Mapping[str, Sequence[int]], arrays: Mapping[str, np.ndarray], steps: int
) -> Figure:
    """Draw the reward a step of every run, and a line through the means, for each way of keeping the past.

    Arguments:
        worlds: the names of the columns.
        sizes: the sizes of each family.
        arrays: as in the outcome.
        steps: the decisions of a run.
    """
    figure = new_figure(4.5 + 4.5 * len(worlds), 6.0)
    figure.suptitle("What a network keeps of the past, and what it earns by bandit feedback")
    columns = figure.subplots(1, len(worlds), squeeze=False)[0]
    colours = list(PALETTE.values())[1:]
    for axes, world in zip(columns, worlds, strict=True):
        for (family, amounts), colour in zip(sizes.items(), colours, strict=False):
            runs = np.stack([arrays[f"total {world}: {family} {amount}"] for amount in amounts]) / steps
            axes.plot(amounts, runs.mean(axis=1), color=colour, label=NAMES[family])
            axes.plot(amounts, runs, "o", color=colour, alpha=0.5, ms=6, mew=0)
        axes.set(title=world, xscale="log", xlabel="size", ylabel=f"reward a step, {steps:,} steps")
        axes.xaxis.set_major_formatter("{x:,.0f}")
    columns[-1].legend(loc="lower right")
    return figure
