"""The compact style of the reports: small figures between paragraphs of text, in the palette of `PALETTE`.

Nothing here imports matplotlib until a figure is drawn; it comes with `pip install credo[plot]`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from credo.plots.figures import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

__all__ = ["COMPACT_PALETTE", "CompactFigure", "compact_figure", "thousands"]

COMPACT_PALETTE = {**PALETTE, "grey": "#666666"}
"""The colours of `PALETTE`, with a darker grey for thinner lines."""

_STYLE: dict[str, object] = {
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


@dataclass
class CompactFigure:
    """A figure that `compact_figure` draws.

    Attributes:
        figure: the figure of matplotlib.
        panels: its panels, from top to bottom.
        png: the bytes of the picture, once the context has ended.

    Example:
        >>> with compact_figure() as drawing:
        ...     _ = drawing.panels[0].plot([1, 2, 3])
        >>> type(drawing).__name__, len(drawing.panels), drawing.png[:4]
        ('CompactFigure', 1, b'\\x89PNG')
    """

    figure: Figure
    panels: Sequence[Axes]
    png: bytes = field(default=b"")


@contextmanager
def compact_figure(height_ratios: Sequence[float] = (1.0,)) -> Iterator[CompactFigure]:
    """Draw a compact figure whose panels are stacked and share their horizontal axis.

    The user's own matplotlib settings are restored at the end.

    Arguments:
        height_ratios: the relative heights of the panels, from top to bottom.

    Returns:
        A context manager that gives the figure. After the context, `png` holds the bytes of the picture.

    Example:
        >>> with compact_figure((3, 1)) as drawing:
        ...     upper, lower = drawing.panels
        ...     _ = upper.plot([1, 2, 3], color=COMPACT_PALETTE["blue"])
        >>> drawing.png[:4]
        b'\\x89PNG'
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context(_STYLE):  # type: ignore[arg-type]  # the stubs list every setting by its name
        figure, buffer = Figure(), io.BytesIO()
        FigureCanvasAgg(figure)
        count = len(height_ratios)
        panels = figure.subplots(count, sharex=True, squeeze=False, height_ratios=height_ratios)[:, 0]
        drawing = CompactFigure(figure, list(panels))
        yield drawing
        figure.savefig(buffer, format="png")
    drawing.png = buffer.getvalue()


def thousands() -> FuncFormatter:
    """A formatter that writes the numbers along an axis as whole numbers with commas between the thousands.

    Example:
        >>> thousands()(45312.0)
        '45,312'
    """
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: f"{value:,.0f}")
