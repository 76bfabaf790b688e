"""The common figure of the BONE experiments: scores of all methods, and how they do along the stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from credo.plots import PALETTE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "draw_run_lengths", "smooth"]

_CURVES = 4  # how many methods are drawn along the stream


def smooth(values: np.ndarray, window: int) -> np.ndarray:
    """The mean of the latest `window` values (of fewer, at the start).

    >>> smooth(np.array([1.0, 3.0, 5.0]), 2).tolist()
    [1.0, 2.0, 4.0]
    """
    total = np.cumsum(np.concatenate([[0.0], values]))
    last = np.arange(1, len(values) + 1)
    first = np.maximum(last - window, 0)
    return (total[last] - total[first]) / (last - first)


def draw(plan: Any, series: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray]) -> Figure:
    """Every method's mean score with its standard error, and the best along the stream."""
    figure = new_figure()
    figure.suptitle(plan.title)
    scores, curves = figure.subplots(1, 2, width_ratios=[1, 1.3])
    ordered = _scores(scores, plan, series, arrays)
    _curves(curves, plan, series, ordered)
    return figure


def _scores(axes: Any, plan: Any, series: Mapping[str, Any], arrays: Mapping[str, Any]) -> list[str]:
    """Draw the scores, best on top; gives the labels in that order."""
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
        if isinstance(published.get(label), int | float):
            axes.plot(published[label], place, "x", color=PALETTE["orange"], ms=8)
    axes.plot([], [], "o", color=PALETTE["blue"], label="ours (± 2 se)")
    axes.plot([], [], "o", color=PALETTE["grey"], label="peers (± 2 se)")
    if any(isinstance(number, int | float) for number in published.values()):
        axes.plot([], [], "x", color=PALETTE["orange"], label="published")
    axes.set_yticks(range(len(ordered)), ordered)
    axes.invert_yaxis()
    goal = "" if plan.binary else " to y" if plan.to_observation else " to the true mean"
    axes.set(xlabel=measure + goal)
    axes.legend(loc="best")
    return ordered


def _curves(axes: Any, plan: Any, series: Mapping[str, Any], ordered: list[str]) -> None:
    window = max(1, len(series["t"]) // 30)
    for label in ordered[:_CURVES] + [label for label in ordered[_CURVES:] if label == "C-Static"]:
        axes.plot(series["t"], smooth(series[label], window), label=label, lw=1.5)
    ylabel = "accuracy" if plan.binary else "absolute error to the true mean"
    axes.set(xlabel="step t", ylabel=f"{ylabel}, mean of {window} steps")
    axes.legend(loc="best")


def draw_run_lengths(plan: Any, series: Mapping[str, Any], arrays: Mapping[str, Any]) -> Figure:
    """The scores, and the probabilities of the run lengths of four streams with the true changes."""
    figure = new_figure()
    figure.suptitle(plan.title)
    parts: Any = figure.subfigures(1, 2, width_ratios=[1, 1.4])
    _scores(parts[0].subplots(), plan, series, arrays)
    key = next(name for name in arrays if name.startswith("lengths "))
    panels = parts[1].subplots(2, 2, sharex=True, sharey=True)
    for axes, lengths, change in zip(panels.flat, arrays[key], arrays["change"], strict=False):
        logs = np.log10(np.maximum(lengths.T, 1e-6))
        shown = axes.imshow(logs, origin="lower", aspect="auto", cmap="magma", vmin=-6, vmax=0)
        for when in np.flatnonzero(change):
            axes.axvline(when, color=PALETTE["sky"], lw=1.2, ls="--")
        axes.grid(False)
    for axes in panels[-1]:
        axes.set_xlabel("step t (dashed: a change)")
    for axes in panels[:, 0]:
        axes.set_ylabel("run length")
    bar = parts[1].colorbar(shown, ax=panels, fraction=0.03, pad=0.02)
    bar.set_label("log10 P(run length | data so far)")
    return figure
