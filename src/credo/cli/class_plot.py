"""The plot of the reliability of each class: how often it came if it was given a probability."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from credo.cli.html_report import Picture
from credo.plots import COMPACT_PALETTE, compact_figure, shortened
from credo.sessions import Tally

__all__ = ["draw", "select_classes"]

COLOURS = ("blue", "orange", "green", "pink", "sky", "amber")

LEAST = 3
"""The fewest rows of a point: fewer say nothing about a share."""


def select_classes(rows: np.ndarray, most: int = len(COLOURS)) -> list[int]:
    """The classes to show, by falling numbers of rows: all, or the most frequent and the rarest in halves."""
    order = [int(c) for c in np.argsort(-rows, kind="stable") if rows[c] > 0]
    if len(order) <= most:
        return order
    return order[: most - most // 2] + order[-(most // 2) :]


def draw(tally: Tally, names: Sequence[str]) -> Picture:
    """The plot."""
    tables = tally.by_class.bins
    rows = tally.by_class.scores().rows
    shown = select_classes(rows)
    with compact_figure() as drawing:
        drawing.figure.set_size_inches(7.2, 4.4)
        axes = drawing.panels[0]
        axes.plot([0, 1], [0, 1], color=COMPACT_PALETTE["grey"], linestyle="--", linewidth=1.2)
        for c, colour in zip(shown, COLOURS, strict=False):
            count, predicted, observed = tables[c][tables[c][:, 0] >= LEAST].T
            axes.plot(
                predicted / count,
                observed / count,
                marker="o",
                markersize=4,
                linewidth=1.3,
                color=COMPACT_PALETTE[colour],
                label=f"{shortened(names[c], 24)} ({rows[c]:,})",
            )
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.03, 1.05)
        axes.set_xlabel("probability of the class")
        axes.set_ylabel("share of rows of the class")
        axes.legend(title="class (rows)", loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=9)
    some = "" if len(shown) == len(names) else " The most frequent and the rarest classes are shown."
    return Picture(
        drawing.png,
        "Reliability of each class: of the rows that gave a class some probability, whether or not it was "
        f"the largest, how many were of that class; on the diagonal, probabilities mean what they say.{some}",
    )
