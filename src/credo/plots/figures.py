"""The look of figures: two styles, a palette that colour-blind readers can tell apart, and PNG bytes.

The large style is for experiments, and the compact one for the reports: small figures between paragraphs of
text. Nothing here imports matplotlib until a figure is drawn; it is in the extra `plot`.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from credo.core.extensions import extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter
if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    """Draw in the large style of the experiments. The user's own settings are restored at the end.

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


Times: TypeAlias = tuple[np.ndarray, np.ndarray] | None
"""The numbers of some rows (n,), and when they were observed (n,), in seconds since 1970 that do not fall."""

COMPACT_PALETTE = {**PALETTE, "grey": "#666666"}
"""The colours of `PALETTE`, with a darker grey for thinner lines."""

_COMPACT_STYLE: dict[str, object] = {
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

    with rc_context(_COMPACT_STYLE):  # type: ignore[arg-type]  # the stubs list every setting by its name
        figure = Figure()
        buffer = io.BytesIO()
        FigureCanvasAgg(figure)
        count = len(height_ratios)
        panels = figure.subplots(count, sharex=True, squeeze=False, height_ratios=height_ratios)[:, 0]
        drawing = CompactFigure(figure, list(panels))
        yield drawing
        figure.savefig(buffer, format="png")
    drawing.png = buffer.getvalue()


def legend_above(axes: Axes, columns: int) -> None:
    """Put the legend above the panel, where it covers no curve.

    Arguments:
        axes: the panel.
        columns: how many entries stand side by side.

    Example:
        >>> with compact_figure() as drawing:
        ...     _ = drawing.panels[0].plot([1, 2], label="credo")
        ...     legend_above(drawing.panels[0], 1)
        >>> drawing.panels[0].get_legend().get_texts()[0].get_text()
        'credo'
    """
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, borderaxespad=0.3, fontsize=9)


def count_rows(axes: Axes, times: Times = None) -> None:
    """Label the horizontal axis by whole numbers of rows, with commas between the thousands; or by times, and
    the rows below them.

    Arguments:
        axes: the panel, with its limits.
        times: see `Times`. If there are none, or the panel spans no time, it is labelled by rows.

    Example:
        >>> with compact_figure() as drawing:
        ...     _ = drawing.panels[0].plot([0, 5], [0, 1])
        ...     count_rows(drawing.panels[0])
        >>> [float(place) % 1.0 for place in drawing.panels[0].get_xticks()][:3]
        [0.0, 0.0, 0.0]
    """
    from matplotlib.ticker import MaxNLocator

    if times is None or not _label_times(axes, *times):
        axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter(thousands())


def _label_times(axes: Axes, rows: np.ndarray, seconds: np.ndarray) -> bool:
    """Label the axis of rows at times that are easy to read; whether that was possible."""
    dates: Any = importlib.import_module("matplotlib.dates")  # which has no types
    low, high = (float(np.interp(edge, rows, seconds)) for edge in sorted(axes.get_xlim()))
    if not high > low:
        return False
    days = dates.date2num(np.array([low, high]).astype("datetime64[s]"))
    locator = dates.AutoDateLocator(minticks=4, maxticks=8)
    places = np.asarray(locator.tick_values(*dates.num2date(days)))
    places = places[(places >= days[0]) & (places <= days[1])]
    formatter = dates.ConciseDateFormatter(locator)
    labels = formatter.format_ticks(places)
    at: list[float] = np.interp(places, dates.date2num(seconds.astype("datetime64[s]")), rows).tolist()
    axes.set_xticks(at, [f"{label}\n{row:,.0f}" for label, row in zip(labels, at, strict=True)])
    year = formatter.get_offset()
    axes.set_xlabel(f"time{f' ({year})' if year else ''}, and rows")
    return True


def shortened(name: str, length: int) -> str:
    """A name that fits into a figure: if it is longer, its middle is left out.

    Arguments:
        name: the name.
        length: the most characters, at least 3.

    Example:
        >>> shortened("annual income of the household", 15)
        'annual …usehold'
    """
    if len(name) <= length:
        return name
    ahead = (length - 1) // 2
    return f"{name[:ahead]}…{name[len(name) - (length - 1 - ahead) :]}"


def thousands() -> FuncFormatter:
    """A formatter that writes the numbers along an axis as whole numbers with commas between the thousands.

    Example:
        >>> thousands()(45312.0)
        '45,312'
    """
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: f"{value:,.0f}")
