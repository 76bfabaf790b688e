"""The figure of the two moons: decision surfaces as labels arrive, and accuracy against time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from credo.plots import PALETTE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

__all__ = ["draw"]


def draw(series: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray]) -> Figure:
    """Draw four panels of the predictive probability of one stream, and below the accuracy of all streams.

    Arguments:
        series, arrays: as in the outcome.
    """
    figure = new_figure()
    figure.suptitle("Two moons: a small network with a full covariance, one pass over 200 labels")
    (upper,), (lower,) = figure.subfigures(2, 1, squeeze=False, height_ratios=[1, 1.2])
    _surfaces(upper, arrays)
    axes = lower.subplots()
    t = series["t"]
    count = arrays["test_accuracy"].shape[1]
    for i, (name, colour, marker) in enumerate((("published", "blue", "o"), ("tuned", "orange", "s"))):
        low, high = np.quantile(arrays["test_accuracy"][i], [0.1, 0.9], axis=0)
        mean = series[f"test_accuracy_{name}"]
        se = series[f"test_accuracy_{name}_se"]
        axes.fill_between(t, low, high, color=PALETTE[colour], alpha=0.12, lw=0)
        axes.fill_between(t, mean - 2 * se, mean + 2 * se, color=PALETTE[colour], alpha=0.35, lw=0)
        axes.plot(t, mean, color=PALETTE[colour], marker=marker, markevery=4, ms=5, label=f"{name} setting")
    axes.fill_between([], [], [], color=PALETTE["grey"], alpha=0.5, lw=0, label="mean ± 2 se")
    axes.fill_between([], [], [], color=PALETTE["grey"], alpha=0.2, lw=0, label="10% to 90% of streams")
    for step in arrays["panels"]:
        axes.axvline(step, color=PALETTE["grey"], lw=0.8, ls=":")
    axes.set(title=f"Accuracy on 1,000 test points, {count} streams")
    axes.set(xlabel="labels seen t", ylabel="accuracy", xlim=(0, t[-1] + 2), ylim=(0.45, 1.0))
    axes.legend(loc="lower right", ncols=2)
    return figure


def _surfaces(figure: SubFigure, arrays: Mapping[str, np.ndarray]) -> None:
    x = arrays["x"]
    y = arrays["y"]
    sides = (arrays["surface_x"], arrays["surface_y"])
    extent = (sides[0][0], sides[0][-1], sides[1][0], sides[1][-1])
    image = None
    panels = figure.subplots(1, len(arrays["panels"]), sharex=True, sharey=True)
    for axes, surface, step in zip(panels, arrays["surface"], arrays["panels"], strict=True):
        image = axes.imshow(
            surface,
            extent=extent,
            origin="lower",
            aspect="auto",
            interpolation="bilinear",
            cmap="RdBu_r",
            vmin=0,
            vmax=1,
            alpha=0.7,
        )
        axes.contour(*sides, surface, levels=[0.5], colors=PALETTE["ink"], linewidths=1.5)
        for label, marker, colour in ((0, "o", PALETTE["blue"]), (1, "^", PALETTE["orange"])):
            points = x[:step][y[:step] == label]
            axes.scatter(*points.T, s=22, marker=marker, color=colour, edgecolor="white", linewidth=0.5)
        axes.set(title=f"after {step} labels", xlabel="$x_1$")
        axes.grid(False)
    panels[0].set_ylabel("$x_2$")
    assert image is not None
    bar = figure.colorbar(image, ax=panels, ticks=[0, 0.25, 0.5, 0.75, 1], fraction=0.02, pad=0.01)
    bar.set_label("p(label = 1 | x)")
