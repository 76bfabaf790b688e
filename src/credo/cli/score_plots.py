"""The plots of the scores of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from credo.cli.html_report import Picture
from credo.metrics.calibration import coverage_of, ece_of
from credo.plots import COMPACT_PALETTE, compact_figure, count_rows, legend_above, shortened, thousands
from credo.sessions import Tally
from credo.sessions.tally import ColumnName

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]

LONGEST = 36
"""The longest name of a target that fits beside an axis."""

_BEFORE: dict[str, Any] = {"linewidth": 1.0, "markersize": 3.5, "zorder": 1.9, "label": "before scaling"}

BLUE, ORANGE, GREY, SKY = (COMPACT_PALETTE[name] for name in ("blue", "orange", "grey", "sky"))


def draw(tally: Tally, *, target: str, baseline: str, ordered: bool, uncertain: bool) -> dict[str, Picture]:
    """All plots that apply, by file name without suffix; if `ordered`, with the last value as a baseline."""
    numbers = not tally.kind.classed
    pictures: dict[str, Picture] = {}
    target = shortened(target, LONGEST)
    if tally.scored:
        window = int(max(20, min(1000, tally.scored // 10)))
        label = f"RMSE ({target})" if numbers else "error (share of wrong classes)"
        last: ColumnName | None = "last_loss" if ordered else None
        pictures["rmse" if numbers else "error"] = Picture(
            _curves(tally, "loss", "base_loss", label, baseline, window, last),
            "Each row is predicted before it is learned from. "
            + (f"Thin: over the latest {window:,} rows; t" if tally.scored > window else "T")
            + "hick: over all rows so far; dashed: the baseline on the same rows.",
        )
        pictures["nlpd"] = Picture(
            _curves(tally, "nlpd", "base_nlpd", "NLPD (nats a row)", baseline, window, None),
            "The negative log predictive density, which judges the whole forecast and not only its "
            "centre; lower is better.",
        )
        pictures["reliability"] = _coverage(tally) if numbers else _reliability(tally)
        if tally.pits[1].any():
            pictures["pit"] = _pit(tally)
    if numbers and len(tally.recent):
        pictures["bands"] = Picture(
            _bands(tally, target, ordered),
            f"The latest {len(tally.recent)} rows{'' if ordered else ', sorted by prediction'}: targets, "
            "and the predicted mean with bands of one and two standard deviations.",
        )
    if len(tally.trace) > 1 and np.isfinite(tally.trace[:, 1]).any():
        pictures["parameters"] = Picture(
            _trace(tally, uncertain),
            "How the weights settle: the norm of their mean"
            + (", and how uncertain they are." if uncertain else "."),
        )
    return pictures


def _curves(
    tally: Tally,
    ours: ColumnName,
    base: ColumnName,
    label: str,
    baseline: str,
    window: int,
    last: ColumnName | None,
) -> bytes:
    with compact_figure() as drawing:
        axes = drawing.panels[0]
        rows, recent = tally.curve(ours, window)
        _, overall = tally.curve(ours)
        _, floor = tally.curve(base)
        if tally.scored > window:
            axes.plot(rows, recent, color=SKY, linewidth=0.9, label=f"credo, latest {window:,} rows")
        axes.plot(rows, overall, color=BLUE, linewidth=2.2, label="credo, all rows so far")
        axes.plot(rows, floor, color=ORANGE, linestyle="--", label=baseline)
        curves = [recent, overall, floor]
        if last is not None:
            curves.append(tally.curve(last)[1])
            axes.plot(rows, curves[-1], color=GREY, linestyle=":", label="the last value again")
        _limits(axes, curves, rows, bottom=0.0 if ours == "loss" else None)
        axes.set_xlabel("rows")
        axes.set_ylabel(label)
        count_rows(axes, tally.timeline())
        legend_above(axes, 4 if last is None else 2)
    return drawing.png


def _limits(axes: Axes, curves: list[np.ndarray], rows: np.ndarray, bottom: float | None) -> None:
    """Limits that the first few rows, whose means jump about, do not set."""
    skip = int(np.searchsorted(rows, max(min(10.0, 0.1 * rows[-1]), 0.02 * rows[-1])))
    values = np.concatenate([curve[skip:] if skip < len(curve) else curve[-1:] for curve in curves])
    values = values[np.isfinite(values)]
    if not values.size:
        return
    low = float(values.min()) if bottom is None else bottom
    high = float(np.quantile(values, 0.995))
    margin = 0.06 * max(high - low, 1e-9)
    axes.set_ylim(low if bottom is not None else low - margin, high + 2 * margin)
    axes.set_xlim(0, rows[-1])


def _reliability(tally: Tally) -> Picture:
    count, confidence, correct = tally.bins.T
    bins = len(count)
    there = count > 0
    predicted = confidence[there] / count[there]
    observed = correct[there] / count[there]
    with compact_figure((3, 1)) as drawing:
        drawing.figure.set_size_inches(5.4, 5.0)
        axes, below = drawing.panels
        axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1.2, label="calibrated")
        size = 18 + 130 * np.sqrt(count[there] / count.max())
        if tally.unscaled.any():
            some, sure, right = tally.unscaled[tally.unscaled[:, 0] > 0].T
            axes.plot(sure / some, right / some, "s-", color=ORANGE, **_BEFORE)
        axes.plot(predicted, observed, color=BLUE, linewidth=1.2, zorder=2)
        axes.scatter(predicted, observed, s=size, color=BLUE, zorder=3, label="credo")
        axes.set_ylabel("share that was right")
        below.bar((np.arange(bins) + 0.5) / bins, count, width=0.9 / bins, color=SKY)
        below.set_xlabel("probability of the predicted class")
        _finish(axes, below)
    return Picture(
        drawing.png,
        "Reliability: of the rows predicted with a probability, how many were right; on the diagonal, "
        "probabilities mean what they say. Larger dots stand for more rows."
        + _before(tally, "calibration error", ece_of),
    )


def _coverage(tally: Tally) -> Picture:
    count = tally.bins[:, 0]
    bins = len(count)
    levels = np.arange(1, bins + 1) / bins
    inside = np.cumsum(count) / count.sum()
    with compact_figure((3, 1)) as drawing:
        drawing.figure.set_size_inches(5.4, 5.0)
        axes, below = drawing.panels
        axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1.2, label="calibrated")
        axes.plot(np.r_[0, levels], np.r_[0, inside], color=BLUE, marker="o", markersize=4, label="credo")
        if tally.unscaled.any():
            before = np.cumsum(tally.unscaled[:, 0]) / tally.unscaled[:, 0].sum()
            axes.plot(np.r_[0, levels], np.r_[0, before], "s-", color=ORANGE, **_BEFORE)
        axes.set_ylabel("share of rows inside")
        below.bar(levels - 0.5 / bins, count, width=0.9 / bins, color=SKY)
        below.axhline(count.mean(), color=GREY, linestyle="--", linewidth=1)
        below.set_xlabel("probability of the central interval")
        _finish(axes, below)
    return Picture(
        drawing.png,
        "Coverage: what share of the targets lay inside the central interval of each probability. "
        "Below the diagonal the forecasts are over-confident, above it under-confident; the bars below are "
        "flat if they are calibrated." + _before(tally, "coverage of the 90% interval", coverage_of),
    )


def _before(tally: Tally, name: str, measure: Callable[[np.ndarray], float]) -> str:
    """What a bank's forecasts were before they were scaled, in words."""
    if not tally.unscaled.any():
        return ""
    return (
        " Orange: the forecasts of the members as they compute them, before their widths are weighted; "
        f"{name} {measure(tally.unscaled):.3f} before, {measure(tally.bins):.3f} after."
    )


def _pit(tally: Tally) -> Picture:
    edges = np.linspace(0.0, 1.0, tally.pits.shape[1] + 1)
    shares = tally.pits / np.maximum(tally.pits.sum(axis=1, keepdims=True), 1.0)
    with compact_figure() as drawing:
        drawing.figure.set_size_inches(5.4, 3.6)
        axes = drawing.panels[0]
        axes.stairs(shares[0], edges, fill=True, color=SKY, label="credo")
        axes.stairs(shares[1], edges, color=ORANGE, linewidth=1.6, label="before scaling")
        level = 1.0 / tally.pits.shape[1]
        axes.axhline(level, color=GREY, linestyle="--", linewidth=1.2, label="calibrated")
        axes.set_xlim(0, 1)
        axes.set_ylim(0, max(1.15 * float(shares.max()), 2 * level))
        axes.set_xlabel("P(Y ≤ observed)")
        axes.set_ylabel("share of rows")
        legend_above(axes, 3)
    return Picture(
        drawing.png,
        "The probability integral transform: the forecast probability of a value up to the observed one. "
        "It is flat if forecasts are calibrated, U-shaped if they are too narrow, a hill if they are too "
        "wide, and tilted if they are biased. Before scaling it is that of a normal distribution with their "
        "mean and standard deviation.",
    )


def _finish(axes: Axes, below: Axes) -> None:
    """What the two diagrams of calibration share."""
    axes.set_ylim(-0.03, 1.05)
    legend_above(axes, 3)
    below.set_ylabel("rows")
    below.yaxis.set_major_formatter(thousands())
    below.set_xlim(0, 1.02)


def _bands(tally: Tally, target: str, ordered: bool) -> bytes:
    rows, y, mean, sd = tally.recent.T
    if not ordered:
        order = np.argsort(mean, kind="stable")
        rows = np.arange(1.0, len(y) + 1)
        y = y[order]
        mean = mean[order]
        sd = sd[order]
    with compact_figure() as drawing:
        axes = drawing.panels[0]
        for width, alpha in ((2, 0.25), (1, 0.45)):
            low = mean - width * sd
            high = mean + width * sd
            low = np.maximum(low, 0.0) if tally.kind.whole else low  # no count lies below
            axes.fill_between(rows, low, high, color=SKY, alpha=alpha, linewidth=0, label=f"± {width} sd")
        axes.plot(rows, mean, color=BLUE, linewidth=1.3, label="predicted mean")
        axes.plot(rows, y, ".", color=ORANGE, markersize=4.5, label="observed")
        axes.set_xlabel("scored row" if ordered else "rows, sorted by predicted mean")
        axes.set_ylabel(target)
        axes.set_xlim(rows[0], max(rows[-1], rows[0] + 1))
        count_rows(axes, tally.timeline() if ordered else None)
        legend_above(axes, 4)
    return drawing.png


def _trace(tally: Tally, uncertain: bool) -> bytes:
    rows, norm, sd = tally.trace.T
    with compact_figure() as drawing:
        axes = drawing.panels[0]
        axes.plot(rows, norm, color=BLUE)
        axes.set_xlabel("rows")
        axes.set_ylabel("norm of the mean weights", color=BLUE)
        count_rows(axes, tally.timeline())
        if uncertain:
            other = axes.twinx()
            other.spines["right"].set_visible(True)
            other.grid(False)
            other.plot(rows, sd, color=ORANGE, linestyle="--")
            other.set_ylabel("mean posterior sd of a weight", color=ORANGE)
    return drawing.png
