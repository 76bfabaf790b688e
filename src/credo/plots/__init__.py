"""Plots: one palette and one style for every figure that credo draws, and PNG bytes.

Nothing here imports matplotlib until a figure is drawn; it comes with `pip install credo[plot]`.
"""

from credo.plots.figures import MISSING, PALETTE, available, ellipse, new_figure, png, style

__all__ = ["MISSING", "PALETTE", "available", "ellipse", "new_figure", "png", "style"]
