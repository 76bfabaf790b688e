"""The plots of a run, as PNG bytes; matplotlib is an extra and is imported only here."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from credo.cli.tally import BINS, Tally

__all__ = ["MISSING", "available", "draw"]

MISSING = "matplotlib is not installed, so there are no plots: pip install 'credo[plot]'."

# Okabe and Ito's colours, which colour-blind people tell apart.
BLUE, ORANGE, GREEN, GREY, SKY = "#0072B2", "#D55E00", "#009E73", "#666666", "#56B4E9"
_STYLE: Any = {
    "figure.figsize": (7.2, 4.0),
    "figure.dpi": 130,
    "savefig.dpi": 130,
    "font.size": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "axes.edgecolor": "#888888",
    "axes.axisbelow": True,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "figure.constrained_layout.use": True,
}


def available() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


@contextmanager
def figure(**kwargs: Any) -> Iterator[tuple[Any, Any, io.BytesIO]]:
    """A figure, its axes, and a buffer that holds the PNG when the context ends."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        made, buffer = Figure(), io.BytesIO()
        FigureCanvasAgg(made)
        yield made, made.subplots(**kwargs), buffer
        made.savefig(buffer, format="png")


def draw(
    tally: Tally, *, target: str, baseline: str, ordered: bool, uncertain: bool
) -> dict[str, tuple[bytes, str]]:
    """All plots that apply.

    Arguments:
        tally: the scores.
        target: what is predicted.
        baseline: its name.
        ordered: whether the last value is shown as a further baseline.
        uncertain: whether there is a posterior.

    Returns:
        PNG bytes and a caption, by file name without suffix.
    """
    number = tally.task == "regression"
    word = f"RMSE ({target})" if number else "error (share of wrong classes)"
    made: dict[str, tuple[bytes, str]] = {}
    if tally.scored:
        window = int(max(20, min(1000, tally.scored // 10)))
        name = "rmse" if number else "error"
        made[name] = (
            _curves(tally, "loss", "base_loss", word, baseline, window, "last_loss" if ordered else None),
            f"Each row is predicted before it is learned from. Thin: over the latest {window:,} rows; "
            "thick: over all rows so far; dashed: the baseline on the same rows.",
        )
        made["nlpd"] = (
            _curves(tally, "nlpd", "base_nlpd", "NLPD (nats a row)", baseline, window, None),
            "The negative log predictive density, which judges the whole forecast and not only its "
            "centre; lower is better.",
        )
        made["reliability"] = _coverage(tally) if number else _reliability(tally)
    if number and len(tally.recent):
        made["bands"] = (
            _bands(tally, target, ordered),
            f"The latest {len(tally.recent)} rows{'' if ordered else ', sorted by prediction'}: what came, "
            "what was predicted, and the predicted mean plus and minus "
            "one and two standard deviations.",
        )
    if len(tally.trace) > 1:
        made["parameters"] = (
            _trace(tally, uncertain),
            "How the weights settle: the norm of their mean"
            + (", and how uncertain they are." if uncertain else "."),
        )
    return made


def _curves(
    tally: Tally, ours: str, base: str, label: str, baseline: str, window: int, last: str | None
) -> bytes:
    with figure() as (_, axes, buffer):
        rows, recent = tally.curve(ours, window)
        _, overall = tally.curve(ours)
        _, floor = tally.curve(base)
        axes.plot(rows, recent, color=SKY, linewidth=0.9, label=f"credo, latest {window:,} rows")
        axes.plot(rows, overall, color=BLUE, linewidth=2.2, label="credo, all rows so far")
        axes.plot(rows, floor, color=ORANGE, linestyle="--", label=baseline)
        shown = [recent, overall, floor]
        if last is not None:
            shown.append(tally.curve(last)[1])
            axes.plot(rows, shown[-1], color=GREY, linestyle=":", label="the last value again")
        _limits(axes, shown, rows, bottom=0.0 if ours == "loss" else None)
        axes.set_xlabel("rows")
        axes.set_ylabel(label)
        axes.xaxis.set_major_formatter(thousands())
        axes.legend(loc="best", fontsize=9)
    return buffer.getvalue()


def thousands() -> Any:
    """A formatter of axis labels."""
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: f"{value:,.0f}")


def _limits(axes: Any, curves: list[np.ndarray], rows: np.ndarray, bottom: float | None) -> None:
    """Limits that the first few rows, whose means jump about, do not set."""
    skip = int(np.searchsorted(rows, max(10.0, 0.02 * rows[-1])))
    values = np.concatenate([curve[skip:] if skip < len(curve) else curve[-1:] for curve in curves])
    values = values[np.isfinite(values)]
    if not values.size:
        return
    low = float(values.min()) if bottom is None else bottom
    high = float(np.quantile(values, 0.995))
    margin = 0.06 * max(high - low, 1e-9)
    axes.set_ylim(low if bottom is not None else low - margin, high + 2 * margin)
    axes.set_xlim(0, rows[-1])


def _reliability(tally: Tally) -> tuple[bytes, str]:
    count, confidence, correct = tally.bins.T
    there = count > 0
    with figure(nrows=2, sharex=True, height_ratios=[3, 1]) as (whole, (axes, below), buffer):
        whole.set_size_inches(5.4, 5.0)
        axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1.2, label="calibrated")
        size = 18 + 130 * np.sqrt(count[there] / count.max())
        axes.plot(
            confidence[there] / count[there],
            correct[there] / count[there],
            color=BLUE,
            linewidth=1.2,
            zorder=2,
        )
        axes.scatter(
            confidence[there] / count[there],
            correct[there] / count[there],
            s=size,
            color=BLUE,
            zorder=3,
            label="credo",
        )
        axes.set_ylabel("share that was right")
        axes.set_ylim(-0.03, 1.05)
        axes.legend(loc="upper left")
        below.bar((np.arange(BINS) + 0.5) / BINS, count, width=0.9 / BINS, color=SKY)
        below.set_xlabel("probability of the predicted class")
        below.set_ylabel("rows")
        below.yaxis.set_major_formatter(thousands())
        below.set_xlim(0, 1.02)
    return buffer.getvalue(), (
        "Reliability: of the rows predicted with a probability, how many were right; on the diagonal, "
        "probabilities mean what they say. Larger dots stand for more rows."
    )


def _coverage(tally: Tally) -> tuple[bytes, str]:
    count = tally.bins[:, 0]
    levels = np.arange(1, BINS + 1) / BINS
    inside = np.cumsum(count) / count.sum()
    with figure(nrows=2, sharex=True, height_ratios=[3, 1]) as (whole, (axes, below), buffer):
        whole.set_size_inches(5.4, 5.0)
        axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1.2, label="calibrated")
        axes.plot(np.r_[0, levels], np.r_[0, inside], color=BLUE, marker="o", markersize=4, label="credo")
        axes.set_ylabel("share of rows inside")
        axes.set_ylim(-0.03, 1.05)
        axes.legend(loc="upper left")
        below.bar(levels - 0.5 / BINS, count, width=0.9 / BINS, color=SKY)
        below.axhline(count.mean(), color=GREY, linestyle="--", linewidth=1)
        below.set_xlabel("probability of the central interval")
        below.set_ylabel("rows")
        below.yaxis.set_major_formatter(thousands())
        below.set_xlim(0, 1.02)
    return buffer.getvalue(), (
        "Coverage: what share of the targets lay inside the central interval of each probability. "
        "Below the diagonal "
        "the forecasts are too sure, above it too timid; the bars below are level where they are calibrated."
    )


def _bands(tally: Tally, target: str, ordered: bool) -> bytes:
    rows, y, mean, sd = tally.recent.T
    if not ordered:
        order = np.argsort(mean, kind="stable")
        rows, y, mean, sd = np.arange(1.0, len(y) + 1), y[order], mean[order], sd[order]
    with figure() as (_, axes, buffer):
        axes.fill_between(
            rows, mean - 2 * sd, mean + 2 * sd, color=SKY, alpha=0.25, linewidth=0, label="± 2 sd"
        )
        axes.fill_between(rows, mean - sd, mean + sd, color=SKY, alpha=0.45, linewidth=0, label="± 1 sd")
        axes.plot(rows, mean, color=BLUE, linewidth=1.3, label="predicted mean")
        axes.plot(rows, y, ".", color=ORANGE, markersize=4.5, label="what came")
        axes.set_xlabel("scored row" if ordered else "rows, sorted by predicted mean")
        axes.set_ylabel(target)
        axes.set_xlim(rows[0], max(rows[-1], rows[0] + 1))
        axes.xaxis.set_major_formatter(thousands())
        low, high = axes.get_ylim()
        axes.set_ylim(low, high + 0.18 * (high - low))
        axes.legend(loc="upper center", ncols=4, fontsize=9)
    return buffer.getvalue()


def _trace(tally: Tally, uncertain: bool) -> bytes:
    rows, norm, sd = tally.trace.T
    with figure() as (_, axes, buffer):
        axes.plot(rows, norm, color=BLUE)
        axes.set_xlabel("rows")
        axes.set_ylabel("norm of the mean weights", color=BLUE)
        axes.xaxis.set_major_formatter(thousands())
        if uncertain:
            other = axes.twinx()
            other.spines["right"].set_visible(True)
            other.grid(False)
            other.plot(rows, sd, color=ORANGE, linestyle="--")
            other.set_ylabel("mean posterior sd of a weight", color=ORANGE)
    return buffer.getvalue()
