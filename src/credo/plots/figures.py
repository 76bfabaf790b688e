"""How figures look: one style, a palette that colour-blind readers can tell apart, ellipses, and PNG bytes.

Nothing here imports matplotlib until a figure is drawn; it comes with `pip install credo[plot]`.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MISSING", "PALETTE", "available", "ellipse", "new_figure", "png", "style"]

PALETTE = {
    "ink": "#222222",
    "blue": "#0072B2",
    "orange": "#D55E00",
    "green": "#009E73",
    "pink": "#CC79A7",
    "sky": "#56B4E9",
    "amber": "#E69F00",
    "grey": "#7F7F7F",
}
"""The colours of Okabe and Ito (2008), with an ink and a grey."""

MISSING = "No figure was drawn because matplotlib is not installed; run: pip install credo[plot]"
"""What to say where matplotlib is missing."""

_STYLE: dict[Any, Any] = {
    "font.size": 12.0,
    "axes.titlesize": 13.0,
    "axes.titlelocation": "left",
    "axes.labelsize": 12.0,
    "axes.edgecolor": PALETTE["ink"],
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.8,
    "lines.linewidth": 2.0,
    "legend.frameon": False,
    "legend.fontsize": 11.0,
    "text.color": PALETTE["ink"],
    "axes.labelcolor": PALETTE["ink"],
    "xtick.color": PALETTE["ink"],
    "ytick.color": PALETTE["ink"],
    "figure.titlesize": 15.0,
    "figure.titleweight": "bold",
    "savefig.facecolor": "white",
}


def available() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


@contextmanager
def style() -> Iterator[dict[str, str]]:
    """Draw in this house's style; gives the palette. The user's own settings come back at the end."""
    import matplotlib as mpl
    from cycler import cycler

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update({**_STYLE, "axes.prop_cycle": cycler(color=list(PALETTE.values())[1:])})
        yield PALETTE


def new_figure(width: float = 12.0, height: float = 8.0) -> Figure:
    """An empty figure, 1200 x 800 pixels unless asked otherwise; it opens no window."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=100, layout="constrained")


def png(figure: Figure) -> bytes:
    """The figure as a PNG file's bytes; they depend on the figure alone."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})
    return buffer.getvalue()


def ellipse(mean: Any, cov: Any, radius: float, points: int = 100) -> np.ndarray:
    """The curve (points, 2) of all z that are `radius` standard deviations of `cov` (2, 2) from `mean`.

    >>> np.round(ellipse([0.0, 0.0], np.eye(2), 2.0, points=2), 6).tolist()
    [[2.0, 0.0], [2.0, -0.0]]
    """
    angle = np.linspace(0.0, 2.0 * math.pi, points)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.asarray(mean) + radius * circle @ np.linalg.cholesky(np.asarray(cov)).T
