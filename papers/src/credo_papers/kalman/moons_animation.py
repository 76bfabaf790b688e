"""The animation of the two moons: the boundary, and how sure the network is of it, as labels arrive."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from credo.plots import PALETTE, new_figure
from credo_papers.engine.pictures import animation

__all__ = ["animate"]


def animate(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Draw the predictive probability beside the standard deviation of its logit, and give a GIF.

    Arguments:
        arrays: as in the outcome.
    """
    x = arrays["x"]
    y = arrays["y"]
    steps = arrays["frames"]
    sides = (arrays["frame_x"], arrays["frame_y"])
    chances = arrays["frame_surface"]
    spread = arrays["frame_logit_sd"]
    figure = new_figure(8.0, 3.7)
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    chance = np.linspace(0.0, 1.0, 11)
    doubt = np.linspace(0.0, float(np.quantile(spread, 0.98)), 9)
    probability = {"levels": chance, "cmap": "RdBu_r", "alpha": 0.75}
    uncertainty = {"levels": doubt, "cmap": "Greys", "extend": "max"}
    panels = ((left, chances, probability), (right, spread, uncertainty))
    bars = []
    for axes, surface, look in panels:
        areas = axes.contourf(*sides, surface[0], **look)
        bars.append(figure.colorbar(areas, ax=axes, fraction=0.05, pad=0.02))
        axes.set(xlabel="$x_1$", xlim=sides[0][[0, -1]], ylim=sides[1][[0, -1]])
        axes.grid(False)
    bars[0].set_label("p(label = 1 | x)", fontsize=10)
    bars[1].set_label("sd of the logit", fontsize=10)
    bars[0].set_ticks([0.0, 0.5, 1.0])
    bars[1].set_ticks(doubt[::4].tolist(), labels=[f"{level:.1f}" for level in doubt[::4]])
    left.set_ylabel("$x_2$")
    right.set_title("where the network is in doubt", fontsize=12)

    def draw(i: int) -> None:
        step = int(steps[i])
        left.set_title(f"after {step} labels", fontsize=12)
        for axes, surface, look in panels:
            for old in list(axes.collections):
                old.remove()
            axes.contourf(*sides, surface[i], **look)
            axes.contour(*sides, chances[i], levels=[0.5], colors=PALETTE["ink"], linewidths=1.5)
            for label, marker, colour in ((0, "o", PALETTE["blue"]), (1, "^", PALETTE["orange"])):
                points = x[:step][y[:step] == label]
                axes.scatter(*points.T, s=24, marker=marker, color=colour, edgecolor="white", linewidth=0.4)

    return animation(figure, draw, len(steps), 200)
