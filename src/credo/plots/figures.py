"""The look of figures: a style, a palette that colour-blind readers can tell apart, and PNG bytes.

Nothing here imports matplotlib until a figure is drawn; it is in the extra `plot`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from credo.core.extensions import extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "COMPACT_PALETTE",
    "MISSING",
    "PALETTE",
    "available",
    "new_figure",
    "png",
    "style",
]

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

MISSING = f"No figure was drawn because matplotlib is not installed; run: {extra('plot')}"
"""The message where matplotlib is missing."""

_STYLE: dict[str, object] = {
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
    """Whether matplotlib is installed.

    >>> available()
    True
    """
    return find_spec("matplotlib") is not None


@contextmanager
def style() -> Iterator[dict[str, str]]:
    """Draw in the style of the experiments. The user's own settings are restored at the end.

    Returns:
        A context manager that gives the palette.

    Example:
        >>> with style() as palette:
        ...     palette["blue"]
        '#0072B2'
    """
    import matplotlib as mpl
    from cycler import cycler

    with mpl.rc_context():
        mpl.rcdefaults()
        cycle = cycler(color=list(PALETTE.values())[1:])
        mpl.rcParams.update({**_STYLE, "axes.prop_cycle": cycle})  # type: ignore[dict-item]
        yield PALETTE


def new_figure(width: float = 12.0, height: float = 8.0) -> Figure:
    """Return an empty figure that opens no window.

    Arguments:
        width, height: the size in inches of 100 pixels.

    Example:
        >>> new_figure(6.0, 4.0).get_size_inches().tolist()
        [6.0, 4.0]
    """
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=100, layout="constrained")


def png(figure: Figure) -> bytes:
    """Return the bytes of a PNG file, which depend only on the figure.

    Arguments:
        figure: the figure to write, such as one from `new_figure`.

    Example:
        >>> png(new_figure(1.0, 1.0))[:4]
        b'\\x89PNG'
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})  # type: ignore[no-untyped-call]
    return buffer.getvalue()


COMPACT_PALETTE = {**PALETTE, "grey": "#666666"}
"""The colours of `PALETTE`, with a darker grey for the thinner lines of charts."""
