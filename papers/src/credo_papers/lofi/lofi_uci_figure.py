"""The figure of the regressions of UCI: the test error of every learner, ours beside the published one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from credo.plots import PALETTE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(sets: Sequence[str], learners: Sequence[str], table: np.ndarray, published: np.ndarray) -> Figure:
    """Draw a panel for each data set.

    Arguments:
        sets: names of the panels.
        learners: names along the axis.
        table: our mean RMSE and its standard error (sets, learners, 2).
        published: the published RMSE (sets, learners); NaN if there is none.
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    columns = min(3, len(sets))
    lines = -(-len(sets) // columns)
    figure = new_figure(6.0 + 4.0 * (columns - 1), max(5.0, 4.6 * lines))
    figure.suptitle("Test error after one pass, by learner")
    panels = figure.subplots(lines, columns, sharey=True, squeeze=False).ravel()
    place = np.arange(len(learners))[::-1]
    for axes, name, ours, theirs in zip(panels, sets, table, published, strict=False):
        mean, se = ours.T
        axes.errorbar(
            mean, place, xerr=2 * se, fmt="o", color=PALETTE["blue"], ms=5, capsize=3, label="ours ± 2 se"
        )
        axes.plot(
            theirs, place, "D", mfc="none", color=PALETTE["orange"], ms=5, label="published", clip_on=True
        )
        axes.set(title=name, xlabel="RMSE", xscale="log")
        axes.set_yticks(place, learners)
        axes.xaxis.set_major_formatter("{x:.3g}")
        axes.xaxis.set_minor_formatter("{x:.3g}")
        low, high = axes.get_xlim()
        if high > 4 * low:  # a label at every unit would run into the next
            axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.xaxis.set_minor_formatter(NullFormatter())
        axes.tick_params(axis="x", which="both", labelsize=9)
    for axes in panels[len(sets) :]:
        axes.remove()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=10)
    return figure
