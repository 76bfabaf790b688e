"""The figure of `pfbr-mixture`: particles over the exact posterior, and the divergence by stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from credo.experiments.pfbr.pfbr_figure import style_of
from credo.experiments.pfbr.pfbr_mixture_world import EDGE
from credo.plots import PALETTE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SHOWN", "draw"]

SHOWN = (1, 5, 10, 30)
"""The stages of the pictures."""


def draw(series: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray], names: Sequence[str]) -> Figure:
    """Draw a row of pictures for each of the first few methods, and the divergence of all by stage.

    Arguments:
        series, arrays: as in the outcome.
        names: of the methods.
    """
    shown = [name for name in names if f"particles, {name}" in arrays][:4]
    figure = new_figure()
    figure.suptitle("A posterior with two modes")
    grid = figure.add_gridspec(len(shown), len(SHOWN) + 2)
    for line, name in enumerate(shown):
        for column, stage in enumerate(SHOWN):
            axes = figure.add_subplot(grid[line, column])
            density = arrays["density"][column].T ** 0.5
            axes.imshow(
                density, origin="lower", extent=(-EDGE, EDGE, -EDGE, EDGE), cmap="Greys", aspect="equal"
            )
            points = arrays[f"particles, {name}"][column]
            axes.plot(*points.T, ".", color=PALETTE["orange"], ms=1.5, alpha=0.5)
            axes.set(xlim=(-3, 3), ylim=(-3.5, 3.5), xticks=(), yticks=())
            axes.grid(False)
            if line == 0:
                axes.set_title(f"t = {stage}", fontsize=11)
            if column == 0:
                axes.set_ylabel(name, fontsize=9)
    half = max(1, len(shown) // 2)
    places = (slice(0, half), slice(half, None)) if len(shown) > 1 else (slice(0, 1), slice(0, 1))
    panels = [figure.add_subplot(grid[place, len(SHOWN) :]) for place in places]
    for axes, words in zip(panels, ("published latent", "latents of the prior"), strict=True):
        for name in names:
            curve = np.maximum(series[f"KL, {words}, {name}"], 1e-3)
            axes.plot(series["stage"], curve, **style_of(name), label=name)
        axes.set_title(f"KL, {words}", fontsize=11)
        axes.set(yscale="log", xlabel="observations t")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9)
    return figure
