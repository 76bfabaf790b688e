"""The plot of what a drift reports about changes: run lengths, the probability of a change, or experts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from credo.cli.html_report import Picture
from credo.plots import COMPACT_PALETTE, Times, compact_figure, count_rows, legend_above, thousands
from credo.sessions import ChangeTally

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]

BLUE = COMPACT_PALETTE["blue"]
ORANGE = COMPACT_PALETTE["orange"]
EXPERTS = ("sky", "blue", "orange", "green", "grey")

# The most reported changes that are marked by a line, and the least probability that is drawn.
MARKED = 60
LEAST = 1e-3


def draw(changes: ChangeTally, times: Times = None) -> Picture:
    """The plot that suits the drift."""
    return (_experts if changes.kind == "mixture" else _run_lengths)(changes, times)


def _edges(changes: ChangeTally) -> np.ndarray:
    """The rows between which the blocks lie."""
    rows = np.minimum(changes.size * np.arange(len(changes.grid) + 1), changes.rows)
    return np.asarray(rows + 0.5)


def _run_lengths(changes: ChangeTally, times: Times) -> Picture:
    from matplotlib.colors import LogNorm

    soft = changes.kind == "soft-reset"
    edges = _edges(changes)
    share = changes.grid / np.maximum(changes.counts, 1)[:, None]
    used = int(np.max(np.nonzero(share.sum(axis=0) > 1e-6)[0], initial=0)) + 1
    lengths = changes.width * np.arange(used + 1)
    with compact_figure((2, 1)) as drawing:
        drawing.figure.set_size_inches(7.2, 5.2)
        axes, below = drawing.panels
        visible = np.ma.masked_less(share[:, :used], LEAST)
        image = axes.pcolormesh(
            edges, lengths, visible.T, cmap="Blues", norm=LogNorm(LEAST, 1.0), linewidth=0
        )
        image.set_rasterized(True)
        drawing.figure.colorbar(image, ax=[axes, below], label="probability", shrink=0.6, pad=0.02, aspect=30)
        axes.set_ylabel("rows since the last reset" if soft else "run length (rows)")
        axes.yaxis.set_major_formatter(thousands())
        axes.set_ylim(0, 1.05 * lengths[-1])
        axes.grid(False)
        below.stairs(changes.curves[:, 0], edges, color=BLUE, fill=True, alpha=0.35)
        below.stairs(changes.curves[:, 0], edges, color=BLUE, linewidth=1.1)
        below.set_ylim(0, 1.05)
        below.set_ylabel("P(change)")
        below.set_xlabel("rows")
        below.set_xlim(edges[0], edges[-1])
        count_rows(below, times)
        _mark(axes, below, changes.alarms[:, 0], "full reset" if soft else "change reported")
    if soft:
        return Picture(
            drawing.png,
            "Soft resets. Above: rows since the last full reset. Below: how much of the belief was given up "
            "for the prior" + _blocks(changes, "the largest of each block"),
        )
    return Picture(
        drawing.png,
        "Changes. Above: the probability of each run length, the rows since the current segment began; a "
        "ridge that falls back to zero is a change. Below: the probability that a segment began with the row"
        + _blocks(changes, "the largest of each block"),
    )


def _mark(axes: Axes, below: Axes, rows: np.ndarray, word: str) -> None:
    """Mark the rows at which something was reported."""
    if len(rows) <= MARKED:
        for row in rows:
            for panel in (axes, below):
                panel.axvline(row, color=ORANGE, linewidth=0.8, alpha=0.6, zorder=0.5)
    if len(rows):
        axes.plot(
            rows,
            np.full(len(rows), 1.0),
            "v",
            color=ORANGE,
            markersize=6,
            clip_on=False,
            transform=axes.get_xaxis_transform(),
            label=word,
        )
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.02), borderaxespad=0.0, fontsize=9)


def _blocks(changes: ChangeTally, how: str) -> str:
    if changes.size == 1:
        return "."
    return f" ({how} of {changes.size:,} rows)."


def _experts(changes: ChangeTally, times: Times) -> Picture:
    share = changes.grid / np.maximum(changes.counts, 1)[:, None]
    edges = _edges(changes)
    upto = np.cumsum(share, axis=1)
    with compact_figure() as drawing:
        axes = drawing.panels[0]
        floor = np.zeros(len(share))
        for top, name, colour in zip(upto.T, changes.experts, EXPERTS, strict=False):
            axes.stairs(top, edges, baseline=floor, fill=True, color=COMPACT_PALETTE[colour], label=name)
            floor = top
        axes.set_ylim(0, 1)
        axes.set_xlim(edges[0], edges[-1])
        axes.set_xlabel("rows")
        axes.set_ylabel("weight of each expert")
        count_rows(axes, times)
        legend_above(axes, 3)
    return Picture(
        drawing.png,
        "Experts: how much each is believed after each row" + _blocks(changes, "the mean of each block"),
    )
