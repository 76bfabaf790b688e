"""The figure of `bandit-mab`: regret against log T and against T, and the posteriors of the arms."""

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
    series: Mapping[str, np.ndarray],
    arrays: Mapping[str, np.ndarray],
    arms: Sequence[str],
    linear: Sequence[str],
    chances: Sequence[float],
    bound: float,
) -> Figure:
    """Draw regret curves with bands of 80% of the runs above, and the posteriors of one run below.

    Arguments:
        series, arrays: as in the outcome.
        arms: the policies for Bernoulli arms.
        linear: those for arms on a circle.
        chances: the chances of the arms.
        bound: the least slope of regret against log T.
    """
    figure = new_figure(13.0, 9.0)
    figure.suptitle("Arms without contexts: how regret grows, and what is believed")
    above, below = np.ravel(figure.subfigures(2, 1, height_ratios=[1.25, 1], squeeze=False))
    bernoulli, circle = above.subplots(1, 2)
    _curves(bernoulli, series, arrays, arms)
    step = series["step"]
    late = step >= step[-1] / 10
    anchor = series["Thompson"][late][0]
    guide = anchor + bound * np.log(step[late] / step[late][0])
    bernoulli.plot(step[late], guide, "--", color=PALETTE["ink"], label=f"slope {bound:.2f} (Lai & Robbins)")
    top = max(series[label][-1] for label in arms if "greedy" not in label)
    bernoulli.set(title="Bernoulli arms", xscale="log", xlabel="pulls T", ylabel="regret so far")
    bernoulli.set_ylim(0, 2.2 * top)
    bernoulli.set_xlim(10, step[-1])
    bernoulli.legend(loc="upper left", fontsize=10)
    _curves(circle, series, arrays, linear)
    last = series[linear[0]][-1]
    circle.plot(step, last * np.sqrt(step / step[-1]), "--", color=PALETTE["ink"], label=r"$\sqrt{T}$")
    circle.set(title="Arms on a circle, linear rewards", xscale="log", yscale="log", xlabel="pulls T")
    circle.set_xlim(10, step[-1])
    circle.set_ylim(bottom=last / 100)
    circle.legend(loc="upper left", fontsize=10)
    for axes in (bernoulli, circle):
        axes.xaxis.set_major_formatter("{x:,.0f}")
    circle.yaxis.set_major_formatter("{x:,.0f}")
    _posteriors(below.subplots(1, 3, sharex=True), arrays["posteriors"], chances)
    return figure


def _curves(
    axes: Axes, series: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray], labels: Sequence[str]
) -> None:
    for label, colour in zip(labels, list(PALETTE.values())[1:], strict=False):
        low, high = np.quantile(arrays[f"regret {label}"], [0.1, 0.9], axis=0)
        axes.fill_between(series["step"], low, high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(series["step"], series[label], color=colour, label=label)


def _posteriors(panels: Sequence[Axes], posteriors: np.ndarray, chances: Sequence[float]) -> None:
    """The density of every arm's chance, in units of its largest value."""
    grid = np.linspace(0.001, 0.999, 999)
    for axes, beliefs in zip(panels, posteriors, strict=True):
        pulls = round(float(beliefs.sum()) - 2 * len(chances))
        for arm, ((a, b), chance) in enumerate(zip(beliefs, chances, strict=True)):
            colour = list(PALETTE.values())[1 + arm]
            log_density = (a - 1) * np.log(grid) + (b - 1) * np.log(1 - grid)
            density = np.exp(log_density - log_density.max())
            label = f"arm {arm}: {a + b - 2:,.0f} pulls"
            axes.fill_between(grid, density, color=colour, alpha=0.2, linewidth=0)
            axes.plot(grid, density, color=colour, label=label)
            axes.axvline(chance, ymax=0.72, color=colour, linestyle=":", linewidth=1.2)
        axes.set(
            title=f"Posteriors after {pulls:,} pulls", xlabel="chance of a reward", yticks=[], xlim=(0, 1)
        )
        axes.set_ylim(0, 1.65)
        axes.legend(loc="upper left", fontsize=9, ncols=2)
