"""The pictures of `bone-moons` and `bone-moons-long`: the stream, decision surfaces, and an animation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from credo.plots import PALETTE, new_figure
from credo_papers.bone.bone_moons_surfaces import EVERY, Sides
from credo_papers.engine.pictures import animation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.contour import QuadContourSet
    from matplotlib.figure import Figure

__all__ = ["animate", "draw_stream", "draw_surfaces", "sides_of"]

_LEVELS = np.linspace(0.0, 1.0, 11)
_LABELS = ((0, "o", PALETTE["blue"]), (1, "^", PALETTE["orange"]))
"""The mark and the colour of each label."""


def sides_of(x: np.ndarray, width: int = 60) -> Sides:
    """Return the sides of a square grid around all points of a stream (T, 2)."""
    reach = 1.05 * float(np.abs(x).max())
    side = np.linspace(-reach, reach, width)
    return Sides(side, side)


def draw_stream(arrays: Mapping[str, np.ndarray], angles: list[float]) -> Figure:
    """Draw the points of each regime in a panel of their own, and those of the whole stream in the last.

    Arguments:
        arrays: as in the outcome.
        angles: of the regimes, in degrees.
    """
    figure = new_figure(3.0 * (len(angles) + 1), 4.2)
    figure.suptitle("Moons that are turned: each regime, and the whole stream")
    *panels, whole = figure.subplots(1, len(angles) + 1, sharex=True, sharey=True)
    count = len(arrays["x"]) // len(angles)
    for number, (axes, angle) in enumerate(zip(panels, angles, strict=True)):
        first = number * count
        _points(axes, arrays, first, first + count)
        axes.set_title(f"labels {first + 1} to {first + count}, {angle:g}°", fontsize=12)
    _points(whole, arrays, 0, len(arrays["x"]), 0.6)
    whole.set_title("all labels", fontsize=12)
    for axes in (*panels, whole):
        _frame(axes, arrays)
    panels[0].set_ylabel("$x_2$")
    return figure


def draw_surfaces(arrays: Mapping[str, np.ndarray], labels: Mapping[str, str], angles: list[float]) -> Figure:
    """Draw for each method the probability of label 1 at the end of every regime, with its points.

    Arguments:
        arrays: as in the outcome.
        labels: the methods, and what each does, in words.
        angles: of the regimes, in degrees.
    """
    figure = new_figure(3.0 * len(angles) + 1.0, 3.1 * len(labels) + 0.6)
    figure.suptitle("What is believed at the end of each regime, and its points")
    panels = figure.subplots(len(labels), len(angles), squeeze=False, sharex=True, sharey=True)
    count = len(arrays["x"]) // len(angles)
    areas = None
    for line, (label, words) in zip(panels, labels.items(), strict=True):
        for number, axes in enumerate(line):
            last = (number + 1) * count
            areas = _surface(axes, arrays, label, last // EVERY - 1)
            _points(axes, arrays, last - count, last)
            right = arrays[f"hits {label}"][last - count : last].mean()
            axes.set_title(f"after {last} labels, {right:.0%} right", fontsize=12)
            _frame(axes, arrays)
            axes.set_xlabel("")
        line[0].set_ylabel(f"{label}: {words}\n$x_2$", fontsize=11)
    for axes in panels[-1]:
        axes.set_xlabel("$x_1$")
    assert areas is not None
    bar = figure.colorbar(areas, ax=panels, ticks=[0, 0.5, 1], fraction=0.025, pad=0.01)
    bar.set_label("p(label = 1 | x)")
    return figure


def animate(arrays: Mapping[str, np.ndarray], label: str, words: str, angles: list[float]) -> bytes:
    """Draw the surface of one method after every tenth label with the points of the regime, and give a GIF.

    Arguments:
        arrays: as in the outcome.
        label: the method.
        words: what it does.
        angles: of the regimes, in degrees.
    """
    figure = new_figure(5.2, 4.8)
    axes = figure.subplots()
    figure.suptitle(f"{label}: {words}", fontsize=12)
    count = len(arrays["x"]) // len(angles)
    bar = figure.colorbar(_surface(axes, arrays, label, 0), ax=axes, fraction=0.05, pad=0.02)
    bar.set_label("p(label = 1 | x)", fontsize=10)
    bar.set_ticks([0.0, 0.5, 1.0])

    def draw(i: int) -> None:
        last = (i + 1) * EVERY
        regime = (last - 1) // count
        for old in list(axes.collections):
            old.remove()
        _surface(axes, arrays, label, i)
        _points(axes, arrays, regime * count, last)
        _frame(axes, arrays)
        axes.set_ylabel("$x_2$")
        axes.set_title(f"after {last} labels, turned by {angles[regime]:g}°", fontsize=12)

    return animation(figure, draw, len(arrays[f"surface {label}"]), 200)


def _surface(axes: Axes, arrays: Mapping[str, np.ndarray], label: str, place: int) -> QuadContourSet:
    sides = (arrays["surface_x"], arrays["surface_y"])
    chances = arrays[f"surface {label}"][place]
    areas = axes.contourf(*sides, chances, levels=_LEVELS, cmap="RdBu_r", alpha=0.7)
    axes.contour(*sides, chances, levels=[0.5], colors=PALETTE["ink"], linewidths=1.5)
    return areas


def _points(
    axes: Axes, arrays: Mapping[str, np.ndarray], first: int, last: int, opacity: float = 1.0
) -> None:
    x = arrays["x"][first:last]
    y = arrays["y"][first:last]
    for label, marker, colour in _LABELS:
        one, other = x[y == label].T
        axes.scatter(
            one, other, s=20, marker=marker, color=colour, alpha=opacity, edgecolor="white", linewidth=0.4
        )


def _frame(axes: Axes, arrays: Mapping[str, np.ndarray]) -> None:
    axes.set(xlabel="$x_1$", xlim=arrays["surface_x"][[0, -1]], ylim=arrays["surface_y"][[0, -1]])
    axes.set_aspect("equal")
    axes.grid(False)
