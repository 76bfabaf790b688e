"""The common figure of the BONE experiments: scores of all methods, and how they do along the stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from credo.plots import PALETTE, new_figure
from credo_papers.bone.bone_plan import Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "draw_lines", "draw_run_lengths", "smooth"]

_CURVES = 4  # how many methods are drawn along the stream


def smooth(values: np.ndarray, window: int) -> np.ndarray:
    """Return the mean of the latest `window` values, or of fewer at the start.

    Arguments:
        values: (T,).
        window: at least 1.

    Example:
        >>> smooth(np.array([1.0, 3.0, 5.0]), 2).tolist()
        [1.0, 2.0, 4.0]
    """
    total = np.cumsum(np.concatenate([[0.0], values]))
    last = np.arange(1, len(values) + 1)
    first = np.maximum(last - window, 0)
    means: np.ndarray = (total[last] - total[first]) / (last - first)
    return means


def draw(plan: Plan, series: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray]) -> Figure:
    """Draw the mean score of every method with its standard error, and the best methods along the stream.

    Arguments:
        plan: the plan of the experiment.
        series, arrays: as in the outcome.
    """
    figure = new_figure()
    figure.suptitle(plan.title)
    scores, curves = figure.subplots(1, 2, width_ratios=[1, 1.3])
    ordered = _scores(scores, plan, series, arrays)
    _curves(curves, plan, series, ordered)
    return figure


def _scores(
    axes: Axes, plan: Plan, series: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray]
) -> list[str]:
    """Draw the scores, best on top, and return the labels in that order."""
    measure = "accuracy" if plan.binary else "RMSE"
    labels = [label for label in series if label != "t"]
    means = {label: float(np.mean(arrays[f"{measure} {label}"])) for label in labels}
    ordered = sorted(labels, key=lambda label: means[label], reverse=plan.binary)
    published = {method.label: method.published for method in plan.methods}
    for place, label in enumerate(ordered):
        values = arrays[f"{measure} {label}"]
        se = float(np.std(values, ddof=1) / np.sqrt(len(values)))
        ours = label in published
        axes.errorbar(
            means[label], place, xerr=2 * se, fmt="o", color=PALETTE["blue" if ours else "grey"], capsize=3
        )
        number = published.get(label)
        if isinstance(number, int | float):
            axes.plot(number, place, "x", color=PALETTE["orange"], ms=8)
    axes.plot([], [], "o", color=PALETTE["blue"], label="ours (± 2 se)")
    axes.plot([], [], "o", color=PALETTE["grey"], label="peers (± 2 se)")
    if any(isinstance(number, int | float) for number in published.values()):
        axes.plot([], [], "x", color=PALETTE["orange"], label="published")
    axes.set_yticks(range(len(ordered)), ordered)
    axes.invert_yaxis()
    goal = " to y" if plan.to_observation else " to the true mean"
    if plan.binary:
        goal = ""
    axes.set(xlabel=measure + goal)
    _legend_above(axes)
    return ordered


def _legend_above(axes: Axes) -> None:
    """Put the legend above the panel, where it covers no curve."""
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.3, fontsize=9)


def _curves(axes: Axes, plan: Plan, series: Mapping[str, np.ndarray], ordered: list[str]) -> None:
    window = max(1, len(series["t"]) // 30)
    for label in ordered[:_CURVES] + [label for label in ordered[_CURVES:] if label == "C-Static"]:
        axes.plot(series["t"], smooth(series[label], window), label=label, lw=1.5)
    ylabel = "accuracy" if plan.binary else "absolute error to the true mean"
    axes.set(xlabel="step t", ylabel=f"{ylabel}, mean of {window} steps")
    _legend_above(axes)


def draw_run_lengths(
    plan: Plan, series: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray]
) -> Figure:
    """Draw the scores, and the probabilities of the run lengths of four streams with the true changes.

    Arguments:
        plan: the plan of the experiment.
        series, arrays: as in the outcome.
    """
    figure = new_figure()
    figure.suptitle(plan.title)
    ((left, right),) = figure.subfigures(1, 2, squeeze=False, width_ratios=[1, 1.4])
    _scores(left.subplots(), plan, series, arrays)
    key = next(name for name in arrays if name.startswith("lengths "))
    panels = right.subplots(2, 2, sharex=True, sharey=True)
    image = None
    for axes, lengths, change in zip(panels.flat, arrays[key], arrays["change"], strict=False):
        logs = np.log10(np.maximum(lengths.T, 1e-6))
        image = axes.imshow(logs, origin="lower", aspect="auto", cmap="magma", vmin=-6, vmax=0)
        for when in np.flatnonzero(change):
            axes.axvline(when, color=PALETTE["sky"], lw=1.2, ls="--")
        axes.grid(False)
    for axes in panels[-1]:
        axes.set_xlabel("step t (dashed: a change)")
    for axes in panels[:, 0]:
        axes.set_ylabel("run length")
    assert image is not None
    bar = right.colorbar(image, ax=panels, fraction=0.03, pad=0.02)
    bar.set_label("log10 P(run length | data so far)")
    return figure


def draw_lines(axes: Axes, series: Mapping[str, np.ndarray], labels: Sequence[str], window: int) -> None:
    """Draw the running mean of every method.

    Arguments:
        axes: where to draw.
        series: as in the outcome.
        labels: the labels of the methods.
        window: of how many steps the mean is.
    """
    for number, label in enumerate(labels):
        line = "-" if number < len(PALETTE) - 1 else "--"
        axes.plot(series["t"], smooth(series[label], window), line, label=label, lw=1.5)
