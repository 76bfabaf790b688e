"""The figure of `pfbr-mixture`: particles over the exact posterior, and the divergence by stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from credo.plots import PALETTE, new_figure
from credo_papers.pfbr.pfbr_figure import style_of
from credo_papers.pfbr.pfbr_mixture_world import EDGE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SHOWN", "draw"]

SHOWN = (1, 5, 10, 30)
"""The stages of the pictures."""

PICTURES = ("PFBR, ours, no base", "PFBR, shipped", "one-pass SMC", "tempered SMC")
"""The methods of the pictures."""

SIDE = 120
"""The number of cells across a picture."""


def draw(series: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray], names: Sequence[str]) -> Figure:
    """Draw the posterior at some stages, the kernel estimates of some methods, and all divergences by stage.

    Arguments:
        series, arrays: as in the outcome.
        names: the names of the methods.
    """
    shown = [name for name in PICTURES if f"particles, {name}" in arrays]
    figure = new_figure(13.0, 8.0)
    figure.suptitle("A posterior with two modes, and kernel estimates of particles (half Silverman's width)")
    grid = figure.add_gridspec(1 + len(shown), len(SHOWN) + 3)
    for line, name in enumerate(("posterior", *shown)):
        for column, stage in enumerate(SHOWN):
            axes = figure.add_subplot(grid[line, column])
            if name == "posterior":
                density = arrays["density"][column]
            else:
                density = _estimate(arrays[f"particles, {name}"][column])
            axes.imshow(
                density.T**0.5,
                origin="lower",
                extent=(-EDGE, EDGE, -EDGE, EDGE),
                cmap="Blues",
                aspect="equal",
            )
            axes.set(xlim=(-3, 3), ylim=(-3.5, 3.5), xticks=(-2, 0, 2), yticks=(-2, 0, 2))
            axes.tick_params(labelsize=7, labelleft=column == 0, labelbottom=line == len(shown))
            axes.grid(False)
            if line == 0:
                axes.set_title(f"t = {stage}", fontsize=11)
            if column == 0:
                axes.set_ylabel(name, fontsize=9)
    half = max(1, (1 + len(shown)) // 2)
    panels = [figure.add_subplot(grid[place, len(SHOWN) :]) for place in (slice(0, half), slice(half, None))]
    for axes, words in zip(panels, ("published latent", "latents of the prior"), strict=True):
        for name in names:
            curve = np.maximum(series[f"half-width KL, {words}, {name}"], 1e-2)
            axes.plot(series["stage"], curve, **style_of(name), label=name)
        axes.axhline(0.25, color=PALETTE["grey"], linewidth=0.8)
        axes.set_title(f"KL by stage, half width, {words}", fontsize=11)
        axes.set(yscale="log", xlabel="observations t", ylim=(0.01, 10.0))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=9)
    return figure


def _estimate(points: np.ndarray) -> np.ndarray:
    """The kernel estimate (SIDE, SIDE) of particles (N, 2), x1 first, with half of Silverman's width."""
    line = -EDGE + 2.0 * EDGE / SIDE * (np.arange(SIDE) + 0.5)
    width = 0.5 * len(points) ** (-1.0 / 6.0) * points.std(axis=0) + 1e-6
    first, second = (
        np.exp(-0.5 * ((line[:, None] - points[None, :, axis]) / width[axis]) ** 2) for axis in (0, 1)
    )
    density: np.ndarray = first @ second.T
    return density
