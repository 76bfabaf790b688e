"""The plot of what a drift says of changes: run lengths, the probability of a change, reports, or experts."""

from __future__ import annotations

import numpy as np

from credo.cli.changes import ChangeTally
from credo.cli.plots import BLUE, GREEN, GREY, ORANGE, SKY, figure, thousands

__all__ = ["draw"]

MARKED, LEAST = 60, 1e-3
"""The most reported changes that are marked by a line, and the least probability that is drawn."""


def draw(changes: ChangeTally) -> tuple[bytes, str]:
    """The plot as PNG bytes, and its caption."""
    return _experts(changes) if changes.kind == "mixture" else _run_lengths(changes)


def _run_lengths(changes: ChangeTally) -> tuple[bytes, str]:
    from matplotlib.colors import LogNorm

    soft, counts = changes.kind == "soft-reset", np.maximum(changes.counts, 1)
    share = changes.grid / counts[:, None]
    used = int(np.max(np.nonzero(share.sum(axis=0) > 1e-6)[0], initial=0)) + 1
    edges = np.minimum(changes.size * np.arange(len(share) + 1), changes.rows) + 0.5
    lengths = changes.width * np.arange(used + 1)
    with figure(nrows=2, sharex=True, height_ratios=[2, 1]) as (whole, (axes, below), buffer):
        whole.set_size_inches(7.2, 5.2)
        shown = np.ma.masked_less(share[:, :used], LEAST)
        image = axes.pcolormesh(edges, lengths, shown.T, cmap="Blues", norm=LogNorm(LEAST, 1.0), linewidth=0)
        image.set_rasterized(True)
        whole.colorbar(image, ax=[axes, below], label="probability", shrink=0.6, pad=0.02, aspect=30)
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
        below.xaxis.set_major_formatter(thousands())
        rows = changes.alarms[:, 0]
        if len(rows) <= MARKED:
            for row in rows:
                for panel in (axes, below):
                    panel.axvline(row, color=ORANGE, linewidth=0.8, alpha=0.6, zorder=0.5)
        if len(rows):
            word = "full reset" if soft else "change reported"
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
    if soft:
        return buffer.getvalue(), (
            "Soft resets. Above: rows since the last full reset. Below: how much of the belief was given up "
            "for the prior" + _blocks(changes, "the largest of each block")
        )
    return buffer.getvalue(), (
        "Changes. Above: the probability of each run length, the rows since the current segment began; a "
        "ridge that falls back to zero is a change. Below: the probability that a segment began with the row"
        + _blocks(changes, "the largest of each block")
    )


def _blocks(changes: ChangeTally, how: str) -> str:
    return "." if changes.size == 1 else f" ({how} of {changes.size:,} rows)."


def _experts(changes: ChangeTally) -> tuple[bytes, str]:
    share = changes.grid / np.maximum(changes.counts, 1)[:, None]
    edges = np.minimum(changes.size * np.arange(len(share) + 1), changes.rows) + 0.5
    upto = np.cumsum(share, axis=1)
    with figure() as (_, axes, buffer):
        floor = np.zeros(len(share))
        for top, name, colour in zip(upto.T, changes.experts, (SKY, BLUE, ORANGE, GREEN, GREY), strict=False):
            axes.stairs(top, edges, baseline=floor, fill=True, color=colour, label=name)
            floor = top
        axes.set_ylim(0, 1)
        axes.set_xlim(edges[0], edges[-1])
        axes.set_xlabel("rows")
        axes.set_ylabel("weight of each expert")
        axes.xaxis.set_major_formatter(thousands())
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, fontsize=9)
    return buffer.getvalue(), (
        "Experts: how much each is believed after each row" + _blocks(changes, "the mean of each block")
    )
