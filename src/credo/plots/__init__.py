"""Plots: one palette for all that credo draws, charts of the reports, and figures of the experiments.

Charts are written as SVG at once. Figures are drawn by matplotlib, which is in the extra `plot`, and nothing
here imports it until a figure is drawn.
"""

from credo.plots.charts import RAMPS, Chart, Legend, Panel, Pen, shade, shortened, stepped
from credo.plots.figures import (
    COMPACT_PALETTE,
    MISSING,
    PALETTE,
    available,
    new_figure,
    png,
    style,
)
from credo.plots.marks import Mark, Times, number_marks, symlog_marks, time_marks

__all__ = [
    "COMPACT_PALETTE",
    "MISSING",
    "PALETTE",
    "RAMPS",
    "Chart",
    "Legend",
    "Mark",
    "Panel",
    "Pen",
    "Times",
    "available",
    "new_figure",
    "number_marks",
    "png",
    "shade",
    "shortened",
    "stepped",
    "style",
    "symlog_marks",
    "time_marks",
]
