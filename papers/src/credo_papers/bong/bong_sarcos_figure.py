"""The figure of `bong-sarcos`: plug-in NLPD on test rows against observations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from credo.plots import PALETTE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(series: Mapping[str, np.ndarray], names: Sequence[str], source: str) -> Figure:
    """Draw a line for each learner, with bands of two standard errors.

    Arguments:
        series: as in the outcome.
        names: the names of the learners.
        source: what was measured.
    """
    figure = new_figure(9, 6)
    axes = figure.subplots()
    for name, colour in zip(names, list(PALETTE.values())[1:], strict=False):
        mean = series[name]
        se = series[f"{name} se"]
        axes.plot(series["t"], mean, color=colour, marker="o", ms=4, label=name)
        axes.fill_between(series["t"], mean - 2 * se, mean + 2 * se, color=colour, alpha=0.2, lw=0)
    low = min(series[name].min() for name in names)
    high = max(series[name][0] for name in names)
    axes.set(ylim=(low - 0.1, high + 0.2), xlabel="observations t", ylabel="plug-in NLPD on test rows, nats")
    axes.set_title(f"Inverse dynamics: {source}")
    axes.legend()
    return figure
