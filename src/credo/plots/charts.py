"""Charts of the reports as SVG, which are drawn at once and need no other package.

A `Chart` has panels, stacked from top to bottom, that share their horizontal axis. What is drawn in a panel
is kept as functions from the scales to text; the scales are known once all is drawn. Lengths are in points.
"""

from __future__ import annotations

import base64
import html
import math
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from credo.core.errors import CredoError
from credo.plots.marks import Mark, Times, number_marks, symlog_marks, time_marks

__all__ = ["RAMPS", "Chart", "Legend", "Panel", "Pen", "shade", "shortened", "stepped"]

RAMPS = {
    "blue": ("#f7fbff", "#c6dbef", "#6baed6", "#2171b5", "#08306b"),
    "orange": ("#fff5eb", "#fdd0a2", "#fd8d3c", "#d94801", "#7f2704"),
    "green": ("#f7fcf5", "#c7e9c0", "#74c476", "#238b45", "#00441b"),
    "purple": ("#fcfbfd", "#dadaeb", "#9e9ac8", "#6a51a3", "#3f007d"),
    "pink": ("#f7f4f9", "#d4b9da", "#df65b0", "#ce1256", "#67001f"),
}
"""Colours from light to dark, of ColorBrewer (Brewer and Harrower, 2003)."""

Shape = Literal["circle", "square", "cross", "triangle"]
_INK = "#222222"
_AXIS = "#888888"
_GRID = "#e4e4e4"
_SIZE = 10.5
_SMALL = 9.0
_LINE = 13.0
_GAP = 8.0
"""The sizes of text, the height of a line of the small one, and the room between panels."""


def shade(ramp: Sequence[str], share: float) -> str:
    """The colour at a share of the way through others.

    Arguments:
        ramp: the colours, at equal distances.
        share: from 0 to 1.

    Example:
        >>> shade(("#000000", "#ffffff"), 0.2)
        '#333333'
    """
    stops = np.array([[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in ramp])
    at = np.linspace(0.0, 1.0, len(ramp))
    return "#" + "".join(f"{round(float(np.interp(share, at, part))):02x}" for part in stops.T)


def shortened(name: str, length: int) -> str:
    """A name that fits into a chart: if it is longer, its middle is left out.

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


def stepped(edges: ArrayLike, values: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The corners of a curve that is constant between edges.

    Arguments:
        edges: where the values change (n + 1,).
        values: one for each interval (n,).

    Example:
        >>> x, y = stepped([0, 1, 2], [5, 7])
        >>> x.tolist(), y.tolist()
        ([0, 1, 1, 2], [5, 5, 7, 7])
    """
    return np.repeat(np.asarray(edges), 2)[1:-1], np.repeat(np.asarray(values), 2)


class Pen(NamedTuple):
    """A way to draw lines.

    Attributes:
        color: the colour.
        width: the width in points.
        dash: the lengths of dashes and gaps; empty for a solid line.
        opacity: from 0 to 1.

    Example:
        >>> Pen("#0072B2").width
        1.8
    """

    color: str
    width: float = 1.8
    dash: str = ""
    opacity: float = 1.0

    def style(self) -> str:
        """The attributes of SVG."""
        dash = f' stroke-dasharray="{self.dash}"' if self.dash else ""
        clear = f' stroke-opacity="{self.opacity:g}"' if self.opacity < 1 else ""
        return f'fill="none" stroke="{self.color}" stroke-width="{self.width:g}"{dash}{clear}'


class Legend(NamedTuple):
    """A place for the names of what a panel shows.

    Attributes:
        place: above the panel, below the chart, or to the right of it.
        columns: the number of entries side by side.
        title: a line above the entries.
        backwards: whether the last that was drawn comes first.

    Example:
        >>> Legend(columns=2).place
        'above'
    """

    place: Literal["above", "below", "right"] = "above"
    columns: int = 1
    title: str = ""
    backwards: bool = False


class _Scale(NamedTuple):
    """A map from numbers to points along an axis, through a monotone function."""

    low: float
    high: float
    start: float
    end: float
    bend: Callable[[np.ndarray], np.ndarray] | None = None

    def __call__(self, values: ArrayLike) -> np.ndarray:
        given = np.asarray(values, float)
        ends = np.array([self.low, self.high])
        if self.bend is not None:
            given = self.bend(given)
            ends = self.bend(ends)
        wide = ends[1] - ends[0] or 1.0
        share = (given - ends[0]) / wide
        # far outside of the panel is outside, and a number that readers of SVG can keep
        return np.asarray(self.start + np.clip(share, -9.0, 9.0) * (self.end - self.start))


class _Frame(NamedTuple):
    """The scales of a panel, and its edges."""

    x: _Scale
    y: _Scale

    @property
    def left(self) -> float:
        """The left edge."""
        return self.x.start

    @property
    def right(self) -> float:
        """The right edge."""
        return self.x.end

    @property
    def top(self) -> float:
        """The upper edge."""
        return self.y.end

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.y.start

    def edges(self) -> tuple[str, str, str, str]:
        """The left, right, upper and lower edge as text."""
        return _at(self.left), _at(self.right), _at(self.top), _at(self.bottom)


_Drawn = Callable[[_Frame], str]


@dataclass
class Panel:
    """A panel of a chart: what is drawn comes above what was drawn before.

    Attributes:
        label: the words beside the vertical axis.
        title: a line above it.
        low, high: the ends of the vertical axis; None for those of the data, and a little more.
        marks: the marks along the vertical axis; None for numbers that are easy to read.
        grid: whether there are lines at the marks along both axes.
        linear: a size up to which the vertical axis is linear, and logarithmic above; None for a linear one.
        legend: where names stand; None for nowhere.

    Example:
        >>> chart = Chart()
        >>> panel = chart.panels[0]
        >>> panel.line([1, 2, 3], [1, 4, 9], Pen("#0072B2"), name="squares")
        >>> panel.legend = Legend()
        >>> b"squares" in chart.svg()
        True
    """

    label: str = ""
    title: str = ""
    low: float | None = None
    high: float | None = None
    marks: Sequence[Mark] | None = None
    grid: bool = True
    linear: float | None = None
    legend: Legend | None = None
    _drawn: list[_Drawn] = field(default_factory=list, init=False, repr=False)
    _free: list[_Drawn] = field(default_factory=list, init=False, repr=False)
    _names: list[tuple[str, str]] = field(default_factory=list, init=False, repr=False)
    _x: list[float] = field(default_factory=list, init=False, repr=False)
    _y: list[float] = field(default_factory=list, init=False, repr=False)

    def _cover(self, x: ArrayLike, y: ArrayLike) -> None:
        """Have the axes reach to these places."""
        for kept, values in ((self._x, x), (self._y, y)):
            given = np.asarray(values, float).ravel()
            finite = given[np.isfinite(given)]
            if finite.size:
                kept += [float(finite.min()), float(finite.max())]

    def _name(self, name: str, sample: str) -> None:
        if name:
            self._names.append((name, sample))

    def line(self, x: ArrayLike, y: ArrayLike, pen: Pen, *, name: str = "") -> None:
        """Draw a line through points, with gaps where a number is missing.

        Arguments:
            x, y: the points (n,).
            pen: the way to draw it.
            name: its name in the legend.
        """
        self._cover(x, y)
        self._drawn.append(lambda frame: f'<path d="{_path(frame.x(x), frame.y(y))}" {pen.style()}/>')
        self._name(name, f'<path d="M0 0H20" {pen.style()}/>')

    def dots(
        self,
        x: ArrayLike,
        y: ArrayLike,
        color: str,
        *,
        size: ArrayLike = 4.5,
        shape: Shape = "circle",
        opacity: float = 1.0,
        name: str = "",
    ) -> None:
        """Draw a dot at each point.

        Arguments:
            x, y: the points (n,).
            color: the colour.
            size: the diameter in points, of all or of each (n,).
            shape: the shape.
            opacity: from 0 to 1.
            name: their name in the legend.
        """
        self._cover(x, y)
        sizes = np.broadcast_to(np.asarray(size, float), np.shape(np.asarray(x)))

        def drawn(frame: _Frame) -> str:
            points = zip(frame.x(x).tolist(), frame.y(y).tolist(), sizes.tolist(), strict=True)
            return _dots(points, shape, _paint(color, opacity))

        self._drawn.append(drawn)
        usual = float(min(np.median(sizes), 9.0)) if sizes.size else 4.5
        self._name(name, _dots([(10.0, 0.0, usual)], shape, _paint(color, opacity)))

    def band(
        self,
        x: ArrayLike,
        low: ArrayLike,
        high: ArrayLike,
        color: str,
        *,
        opacity: float = 1.0,
        name: str = "",
    ) -> None:
        """Fill what lies between two curves.

        Arguments:
            x: the places (n,).
            low, high: the curves (n,), or numbers.
            color: the colour.
            opacity: from 0 to 1.
            name: its name in the legend.
        """
        places = np.asarray(x, float)
        lower = np.broadcast_to(np.asarray(low, float), places.shape)
        upper = np.broadcast_to(np.asarray(high, float), places.shape)
        self._cover(places, [lower, upper])
        there = np.isfinite(places) & np.isfinite(lower) & np.isfinite(upper)
        around = np.concatenate([places[there], places[there][::-1]])
        edge = np.concatenate([upper[there], lower[there][::-1]])
        paint = _paint(color, opacity)
        self._drawn.append(lambda frame: f'<path d="{_path(frame.x(around), frame.y(edge))}Z" {paint}/>')
        self._name(name, f'<path d="M0 -4H20V4H0Z" {paint}/>')

    def bars(
        self, places: ArrayLike, sizes: ArrayLike, width: ArrayLike, color: str, *, name: str = ""
    ) -> None:
        """Draw bars that stand on zero.

        Arguments:
            places: their middles (n,).
            sizes: their heights (n,).
            width: their width, of all or of each (n,).
            color: the colour.
            name: their name in the legend.
        """
        middle = np.asarray(places, float)
        half = np.broadcast_to(np.asarray(width, float), middle.shape) / 2.0
        high = np.asarray(sizes, float)
        self._rectangles((middle - half, middle + half), (np.zeros_like(high), high), _paint(color, 1.0))
        self._name(name, f'<path d="M0 -4H20V4H0Z" {_paint(color, 1.0)}/>')

    def lying_bar(self, place: float, size: float, width: float, color: str) -> None:
        """Draw a bar from zero to the side.

        Arguments:
            place: its middle along the vertical axis.
            size: its length.
            width: its width.
            color: the colour.
        """
        around = (np.array([place - width / 2]), np.array([place + width / 2]))
        self._rectangles((np.array([0.0]), np.array([size])), around, _paint(color, 1.0))

    def _rectangles(
        self, x: tuple[np.ndarray, np.ndarray], y: tuple[np.ndarray, np.ndarray], paint: str
    ) -> None:
        self._cover(x, y)

        def drawn(frame: _Frame) -> str:
            corners = zip(*(frame.x(edge) for edge in x), *(frame.y(edge) for edge in y), strict=True)
            path = "".join(f"M{_at(a)} {_at(c)}H{_at(b)}V{_at(d)}H{_at(a)}Z" for a, b, c, d in corners)
            return f'<path d="{path}" {paint}/>'

        self._drawn.append(drawn)

    def whiskers(self, x: ArrayLike, y: ArrayLike, reach: ArrayLike, pen: Pen, *, upright: bool) -> None:
        """Draw intervals around points, with caps.

        Arguments:
            x, y: the points (n,).
            reach: how far they reach to both sides (n,), or below and above (2, n).
            pen: the way to draw them.
            upright: whether they are vertical.
        """
        places = np.asarray(x, float)
        values = np.asarray(y, float)
        below, above = np.broadcast_to(np.asarray(reach, float), (2, len(places)))
        along = values if upright else places
        low = along - below
        high = along + above
        self._cover(*((places, [low, high]) if upright else ([low, high], values)))

        def drawn(frame: _Frame) -> str:
            path = ""
            if upright:
                for at, start, end in zip(frame.x(places), frame.y(low), frame.y(high), strict=True):
                    path += f"M{_at(at)} {_at(start)}V{_at(end)}"
                    path += "".join(f"M{_at(at - 3)} {_at(edge)}h6" for edge in (start, end))
            else:
                for at, start, end in zip(frame.y(values), frame.x(low), frame.x(high), strict=True):
                    path += f"M{_at(start)} {_at(at)}H{_at(end)}"
                    path += "".join(f"M{_at(edge)} {_at(at - 3)}v6" for edge in (start, end))
            return f'<path d="{path}" {pen.style()}/>'

        self._drawn.append(drawn)

    def across(self, height: float, pen: Pen, *, name: str = "") -> None:
        """Draw a horizontal line from edge to edge.

        Arguments:
            height: where it is.
            pen: the way to draw it.
            name: its name in the legend.
        """
        self._cover([], [height])
        self._drawn.append(
            lambda frame: (
                f'<path d="M{_at(frame.left)} {_at(frame.y(height))}H{_at(frame.right)}" {pen.style()}/>'
            )
        )
        self._name(name, f'<path d="M0 0H20" {pen.style()}/>')

    def upright(self, places: ArrayLike, pen: Pen) -> None:
        """Draw vertical lines from edge to edge.

        Arguments:
            places: where they are (n,).
            pen: the way to draw them.
        """

        def drawn(frame: _Frame) -> str:
            ends = (_at(frame.bottom), _at(frame.top))
            path = "".join(f"M{_at(at)} {ends[0]}V{ends[1]}" for at in frame.x(places).ravel())
            return f'<path d="{path}" {pen.style()}/>'

        self._drawn.append(drawn)

    def strip(self, low: float, high: float, color: str, opacity: float) -> None:
        """Fill the panel between two heights.

        Arguments:
            low, high: the heights.
            color: the colour.
            opacity: from 0 to 1.
        """
        self._cover([], [low, high])
        paint = _paint(color, opacity)

        def drawn(frame: _Frame) -> str:
            top, bottom = (_at(frame.y(edge)) for edge in (high, low))
            return (
                f'<path d="M{_at(frame.left)} {top}H{_at(frame.right)}V{bottom}H{_at(frame.left)}Z" {paint}/>'
            )

        self._drawn.append(drawn)

    def flags(self, places: ArrayLike, color: str, name: str) -> None:
        """Draw triangles on the upper edge.

        Arguments:
            places: where they are (n,).
            color: the colour.
            name: their name in the legend.
        """
        paint = _paint(color, 1.0)
        self._free.append(
            lambda frame: _dots(
                ((at, frame.top - 3.0, 6.0) for at in frame.x(places).ravel().tolist()), "triangle", paint
            )
        )
        self._name(name, _dots([(10.0, 0.0, 6.0)], "triangle", paint))

    def words(self, x: float, y: float, text: str) -> None:
        """Write a few words above a point.

        Arguments:
            x, y: the point.
            text: the words.
        """
        self._free.append(
            lambda frame: _text(text, float(frame.x(x)), float(frame.y(y)) - 2.5, size=8.0, anchor="middle")
        )

    def heat(self, x: tuple[float, float], y: tuple[float, float], shares: np.ndarray, ramp: str) -> None:
        """Draw a grid of equal cells that are darker for larger shares, and clear where a share is missing.

        Arguments:
            x, y: the ends of the grid.
            shares: from 0 to 1 (rows from bottom to top, columns).
            ramp: the name of the colours in `RAMPS`.
        """
        self._cover(x, y)
        picture = base64.b64encode(_png(shares[::-1], RAMPS[ramp])).decode()

        def drawn(frame: _Frame) -> str:
            left, right = frame.x(x).tolist()
            bottom, top = frame.y(y).tolist()
            return (
                f'<image x="{_at(left)}" y="{_at(top)}" width="{_at(right - left)}" '
                f'height="{_at(bottom - top)}" preserveAspectRatio="none" style="image-rendering:pixelated" '
                f'href="data:image/png;base64,{picture}"/>'
            )

        self._drawn.append(drawn)

    def y_scale(self, top: float, bottom: float) -> _Scale:
        """The vertical scale between two heights in points."""
        low, high = _ends(self._y, self.low, self.high, 0.05)
        if self.linear is None:
            return _Scale(low, high, bottom, top)
        linear = self.linear

        def bend(values: np.ndarray) -> np.ndarray:
            size = np.abs(values) / linear
            bent = np.where(size > 1, 1 + np.log10(np.maximum(size, 1)), size)
            return np.asarray(np.sign(values) * bent)

        return _Scale(low, high, bottom, top, bend)

    def y_marks(self, height: float) -> list[Mark]:
        """The marks along the vertical axis of a panel that is so high in points."""
        if self.marks is not None:
            return list(self.marks)
        scale = self.y_scale(0.0, height)
        if self.linear is not None:
            return symlog_marks(scale.low, scale.high, self.linear)
        return number_marks(scale.low, scale.high, max(3, int(height / 23)))

    def x_reach(self) -> list[float]:
        """The least and largest places that are drawn, of each part."""
        return self._x

    def entries(self) -> list[tuple[str, str]]:
        """The names of the legend with their samples, in its order."""
        backwards = self.legend is not None and self.legend.backwards
        return self._names[::-1] if backwards else self._names

    def inside(self, frame: _Frame) -> str:
        """The SVG of all that lies inside of the panel."""
        return "\n".join(drawn(frame) for drawn in self._drawn)

    def beyond(self, frame: _Frame) -> str:
        """The SVG of all that may reach beyond its edges."""
        return "\n".join(drawn(frame) for drawn in self._free)


@dataclass
class Chart:
    """A chart of panels that are stacked and share their horizontal axis.

    Attributes:
        heights: the relative heights of the panels, from top to bottom.
        size: the width and the height in points.
        label: the words below the horizontal axis.
        low, high: the ends of the horizontal axis; None for those of the data, and a little more.
        marks: the marks along the horizontal axis; None for numbers that are easy to read.
        whole: whether only whole numbers are marked.
        scale: the words beside a scale of probabilities from 0.001 to 1 in the blues; empty for none.
        panels: the panels.

    Example:
        >>> chart = Chart((3, 1), label="rows")
        >>> upper, lower = chart.panels
        >>> upper.line([1, 2, 3], [1, 4, 9], Pen("#0072B2"))
        >>> chart.svg()[:4]
        b'<svg'
    """

    heights: Sequence[float] = (1.0,)
    size: tuple[float, float] = (518.0, 288.0)
    label: str = ""
    low: float | None = None
    high: float | None = None
    marks: Sequence[Mark] | None = None
    whole: bool = False
    scale: str = ""
    panels: list[Panel] = field(init=False)

    def __post_init__(self) -> None:
        self.panels = [Panel() for _ in self.heights]

    def count_rows(self, times: Times = None) -> None:
        """Mark whole numbers of rows; or times, and the rows below them.

        Arguments:
            times: see `Times`. If there are none, or the chart spans no time, rows are marked.

        Example:
            >>> chart = Chart(label="rows")
            >>> chart.panels[0].line([1, 6], [0, 1], Pen("#0072B2"))
            >>> chart.count_rows((np.array([1.0, 6.0]), np.array([0.0, 5 * 86400.0])))
            >>> [mark.label for mark in chart.marks or ()][:3], chart.label
            (['1970\\n1', '2\\n2', '3\\n3'], 'time (1970-Jan), and rows')
        """
        self.whole = True
        if times is None:
            return
        rows, seconds = times
        first, last = (float(np.interp(end, rows, seconds)) for end in self._x_ends())
        if not last > first:
            return
        marks, shared = time_marks(first, last)
        at = [float(np.interp(mark.place, seconds, rows)) for mark in marks]
        self.marks = [
            Mark(place, f"{mark.label}\n{place:,.0f}") for place, mark in zip(at, marks, strict=True)
        ]
        self.label = f"time{f' ({shared})' if shared else ''}, and rows"

    def _x_ends(self) -> tuple[float, float]:
        reach = [place for panel in self.panels for place in panel.x_reach()]
        return _ends(reach, self.low, self.high, 0.04)

    def svg(self) -> bytes:
        """The chart as SVG, which depends only on what was drawn."""
        width, height = self.size
        body = ['<rect width="100%" height="100%" fill="#ffffff"/>']
        tops = [_above(panel) for panel in self.panels]
        bottom = height - self._under()
        free = bottom - sum(tops) - _GAP * (len(tops) - 1)
        tall = [free * share / sum(self.heights) for share in self.heights]
        low, high = self._x_ends()
        x = _Scale(low, high, self._left(tall), width - self._right())
        x_marks = self._x_marks(x)
        frame = _Frame(x, _Scale(0.0, 1.0, bottom, 0.0))
        start = 0.0
        for number, panel in enumerate(self.panels):
            start += tops[number]
            frame = _Frame(x, panel.y_scale(start, start + tall[number]))
            body += _panel(panel, frame, x_marks, number)
            start += tall[number] + _GAP
        body += self._below(frame, x_marks)
        if self.scale:
            body += _color_scale(self.scale, x.end + 14.0, tops[0], bottom - tops[0])
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_at(width)} {_at(height)}" '
            f'width="{_at(width)}" height="{_at(height)}" fill="{_INK}" '
            'font-family="system-ui, -apple-system, Segoe UI, Roboto, DejaVu Sans, sans-serif">'
        )
        return "\n".join([head, *body, "</svg>", ""]).encode()

    def save(self, path: str | Path) -> Path:
        """Write the chart to a file.

        Arguments:
            path: where the SVG is written; its name ends with `.svg`.

        Returns:
            The path.

        Raises:
            CredoError: if the name ends otherwise.

        Example:
            >>> try:
            ...     Chart().save("chart.png")
            ... except CredoError as error:
            ...     print(error)
            path must be a name that ends with .svg; got 'chart.png'.
        """
        target = Path(path)
        if target.suffix.lower() != ".svg":
            raise CredoError.must_be("path", "a name that ends with .svg", path)
        target.write_bytes(self.svg())
        return target

    def _left(self, tall: Sequence[float]) -> float:
        """The room to the left of panels of these heights, in points."""
        marks = [panel.y_marks(height) for panel, height in zip(self.panels, tall, strict=True)]
        widest = max((_width(mark.label, _SMALL) for some in marks for mark in some), default=0.0)
        return 12.0 + widest + (_SIZE + 6.0 if any(panel.label for panel in self.panels) else 0.0)

    def _right(self) -> float:
        """The room to the right of the panels, in points."""
        room = 16.0 + (56.0 if self.scale else 0.0)
        for panel in self.panels:
            if panel.legend is not None and panel.legend.place == "right":
                names = [panel.legend.title, *(name for name, _ in panel.entries())]
                room += 40.0 + max(_width(name, _SMALL) for name in names)
        return room

    def _under(self) -> float:
        """The room below the panels, in points."""
        room = 22.0 + (_LINE if self.label else 0.0)
        room += _LINE * any("\n" in mark.label for mark in self.marks or ())
        for panel in self.panels:
            if panel.legend is not None and panel.legend.place == "below":
                room += 10.0 + _LINE * math.ceil(len(panel.entries()) / panel.legend.columns)
        return room

    def _x_marks(self, x: _Scale) -> list[Mark]:
        if self.marks is not None:
            return [mark for mark in self.marks if x.low <= mark.place <= x.high]
        return number_marks(x.low, x.high, max(3, min(9, int((x.end - x.start) / 52))), self.whole)

    def _below(self, frame: _Frame, marks: Iterable[Mark]) -> list[str]:
        """The labels below the last panel, and a legend there."""
        body = []
        lines = 1
        for mark in marks:
            at = float(frame.x(mark.place))
            for number, line in enumerate(mark.label.split("\n")):
                lines = max(lines, number + 1)
                place = frame.bottom + 13.0 + _LINE * number
                body.append(_text(line, at, place, size=_SMALL, anchor="middle"))
        under = frame.bottom + 13.0 + _LINE * (lines - 1)
        if self.label:
            under += _LINE + 3.0
            body.append(_text(self.label, (frame.left + frame.right) / 2, under, anchor="middle"))
        for panel in self.panels:
            if panel.legend is not None and panel.legend.place == "below":
                body += _legend(panel, 20.0, under + 18.0, self.size[0] - 40.0)
        return body


def _ends(reach: Sequence[float], low: float | None, high: float | None, room: float) -> tuple[float, float]:
    """The ends of an axis: those that were given, or those of the data and a little more."""
    least = min(reach, default=0.0)
    largest = max(reach, default=1.0)
    margin = room * (largest - least) or 0.05 * max(abs(least), 1.0)
    first = least - margin if low is None else low
    last = largest + margin if high is None else high
    return (first, last) if last > first else (first, first + max(abs(first), 1.0))


def _panel(panel: Panel, frame: _Frame, x_marks: Sequence[Mark], number: int) -> list[str]:
    """A panel with its grid, its vertical axis, its title and its legend."""
    left, right, top, bottom = frame.edges()
    marks = panel.y_marks(frame.bottom - frame.top)
    rows = [(mark, float(frame.y(mark.place))) for mark in marks]
    rows = [(mark, at) for mark, at in rows if frame.top - 0.5 <= at <= frame.bottom + 0.5]
    body = []
    if panel.grid:
        path = "".join(f"M{_at(frame.x(mark.place))} {top}V{bottom}" for mark in x_marks)
        if panel.marks is None:
            path += "".join(f"M{left} {_at(at)}H{right}" for _, at in rows)
        body.append(f'<path d="{path}" {Pen(_GRID, 0.7).style()}/>')
    body += [
        f'<clipPath id="panel{number}"><path d="M{left} {top}H{right}V{bottom}H{left}Z"/></clipPath>',
        f'<g clip-path="url(#panel{number})" stroke-linejoin="round">',
        panel.inside(frame),
        "</g>",
    ]
    ticks = "".join(f"M{left} {_at(at)}h-3" for _, at in rows)
    ticks += "".join(f"M{_at(frame.x(mark.place))} {bottom}v3" for mark in x_marks)
    body.append(f'<path d="M{left} {top}V{bottom}H{right}{ticks}" {Pen(_AXIS, 0.8).style()}/>')
    body.append(panel.beyond(frame))
    for mark, at in rows:
        body.append(_text(mark.label, frame.left - 6.0, at + 3.2, size=_SMALL, anchor="end"))
    if panel.label:
        body.append(
            _text(panel.label, 4.0 + _SIZE, (frame.top + frame.bottom) / 2, anchor="middle", turned=True)
        )
    if panel.title:
        body.append(_text(panel.title, frame.left, frame.top - 6.0))
    if panel.legend is not None and panel.legend.place == "above":
        rows_above = math.ceil(len(panel.entries()) / panel.legend.columns)
        body += _legend(
            panel, frame.left, frame.top - 8.0 - _LINE * (rows_above - 1), frame.right - frame.left
        )
    if panel.legend is not None and panel.legend.place == "right":
        body += _legend(panel, frame.right + 14.0, frame.top + 8.0, 100.0)
    return body


def _above(panel: Panel) -> float:
    """The room above a panel, in points."""
    room = 10.0 + (_LINE if panel.title else 0.0)
    if panel.legend is not None and panel.legend.place == "above" and panel.entries():
        room += 4.0 + _LINE * math.ceil(len(panel.entries()) / panel.legend.columns)
    return room


def _legend(panel: Panel, left: float, top: float, width: float) -> list[str]:
    """The names of what a panel shows, each beside its sample, column by column."""
    assert panel.legend is not None
    body = []
    if panel.legend.title:
        body.append(_text(panel.legend.title, left, top + 3.0, size=_SMALL))
        top += _LINE + 2.0
    entries = panel.entries()
    each = math.ceil(len(entries) / panel.legend.columns)
    for first in range(0, len(entries), each):
        column = entries[first : first + each]
        for row, (name, sample) in enumerate(column):
            line = top + _LINE * row
            body.append(f'<g transform="translate({_at(left)} {_at(line)})">{sample}</g>')
            body.append(_text(name, left + 25.0, line + 3.0, size=_SMALL))
        own = max(_width(name, _SMALL) for name, _ in column) + 40.0
        left += own if panel.legend.place == "above" else width / panel.legend.columns
    return body


def _color_scale(words: str, left: float, top: float, height: float) -> list[str]:
    """A scale of the blues, logarithmic from 0.001 below to 1 above."""
    stops = "".join(
        f'<stop offset="{share:g}" stop-color="{colour}"/>'
        for share, colour in zip(np.linspace(0, 1, 5).tolist(), RAMPS["blue"], strict=True)
    )
    body = [
        f'<linearGradient id="scale" x1="0" y1="1" x2="0" y2="0">{stops}</linearGradient>',
        f'<rect x="{_at(left)}" y="{_at(top)}" width="9" height="{_at(height)}" fill="url(#scale)"/>',
        _text(words, left + 50.0, top + height / 2, anchor="middle", turned=True),
    ]
    for number, label in enumerate(("0.001", "0.01", "0.1", "1")):
        body.append(_text(label, left + 13.0, top + height * (1 - number / 3) + 3.0, size=_SMALL))
    return body


def _paint(color: str, opacity: float) -> str:
    clear = f' fill-opacity="{opacity:g}"' if opacity < 1 else ""
    return f'fill="{color}"{clear}'


def _at(place: float | np.ndarray) -> str:
    """A place in points, to a tenth."""
    return f"{float(place):.1f}".removesuffix(".0")


def _path(x: np.ndarray, y: np.ndarray) -> str:
    """The path through points, which begins anew behind a missing one."""
    parts = []
    joined = False
    for across, down in zip(x.ravel().tolist(), y.ravel().tolist(), strict=True):
        if not (math.isfinite(across) and math.isfinite(down)):
            joined = False
            continue
        parts.append(f"{'L' if joined else 'M'}{across:.1f} {down:.1f}")
        joined = True
    return "".join(parts)


def _dots(points: Iterable[tuple[float, float, float]], shape: Shape, paint: str) -> str:
    """Dots of a shape: places and diameters."""
    path = ""
    for x, y, size in points:
        if not (math.isfinite(x) and math.isfinite(y)):
            continue
        half = size / 2
        if shape == "circle":
            arc = f"a{_at(half)} {_at(half)} 0 1 0"
            path += f"M{_at(x - half)} {_at(y)}{arc} {_at(size)} 0{arc} {_at(-size)} 0Z"
        elif shape == "square":
            path += f"M{_at(x - half)} {_at(y - half)}h{_at(size)}v{_at(size)}h{_at(-size)}Z"
        elif shape == "triangle":
            path += f"M{_at(x - half)} {_at(y - half)}h{_at(size)}l{_at(-half)} {_at(size)}Z"
        else:
            path += f"M{_at(x - half)} {_at(y - half)}L{_at(x + half)} {_at(y + half)}"
            path += f"M{_at(x - half)} {_at(y + half)}L{_at(x + half)} {_at(y - half)}"
    if shape == "cross":
        return f'<path d="{path}" {paint.replace("fill", "stroke")} fill="none"/>'
    return f'<path d="{path}" {paint}/>'


def _text(
    words: str, x: float, y: float, *, size: float = _SIZE, anchor: str = "start", turned: bool = False
) -> str:
    """A line of text; turned, it reads from bottom to top."""
    place = (
        f'transform="translate({_at(x)} {_at(y)}) rotate(-90)"' if turned else f'x="{_at(x)}" y="{_at(y)}"'
    )
    return f'<text {place} font-size="{size:g}" text-anchor="{anchor}">{html.escape(words)}</text>'


_WIDTHS = dict.fromkeys("iljtfrI.,:;'|!()[] ", 0.36) | dict.fromkeys("mwMWODQG%@", 0.85)
"""The widths of letters that are not about as wide as most, as shares of the size."""


def _width(words: str, size: float) -> float:
    """About how wide words are, in points: fonts differ from device to device."""
    return size * sum(_WIDTHS.get(one, 0.6) for one in words)


def _png(shares: np.ndarray, ramp: Sequence[str]) -> bytes:
    """A picture with a cell for each share, clear where it is missing, in a palette of 255 colours."""
    indices = np.where(np.isfinite(shares), 1 + np.clip(np.nan_to_num(shares), 0, 1) * 254, 0).astype(
        np.uint8
    )
    colours = ["#ffffff", *(shade(ramp, share) for share in np.linspace(0, 1, 255).tolist())]
    palette = b"".join(bytes.fromhex(colour[1:]) for colour in colours)
    high, wide = indices.shape
    rows = b"".join(b"\0" + row.tobytes() for row in indices)

    def part(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            part(b"IHDR", struct.pack(">IIBBBBB", wide, high, 8, 3, 0, 0, 0)),
            part(b"PLTE", palette),
            part(b"tRNS", b"\0"),
            part(b"IDAT", zlib.compress(rows)),
            part(b"IEND", b""),
        ]
    )
