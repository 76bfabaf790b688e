"""Plots: one palette for every figure that credo draws, a large style and a compact one, and PNG bytes.

Nothing here imports matplotlib until a figure is drawn; it is in the extra `plot`.
"""

from credo.plots.figures import (
    COMPACT_PALETTE,
    MISSING,
    PALETTE,
    CompactFigure,
    Times,
    available,
    compact_figure,
    count_rows,
    legend_above,
    new_figure,
    png,
    shortened,
    style,
    thousands,
)

__all__ = [
    "COMPACT_PALETTE",
    "MISSING",
    "PALETTE",
    "CompactFigure",
    "Times",
    "available",
    "compact_figure",
    "count_rows",
    "legend_above",
    "new_figure",
    "png",
    "shortened",
    "style",
    "thousands",
]
