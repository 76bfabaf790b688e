"""Figures of experiments beside `credo.plots`: animations and ellipses."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["animation", "ellipse"]


def animation(figure: Figure, draw: Callable[[int], None], frames: int, milliseconds: int = 150) -> bytes:
    """Return the bytes of an animated GIF, which runs forever and rests on its last frame for 2 seconds.

    All frames share the layout of the first and the 48 colours of the last, which keeps the file small.

    Arguments:
        figure: the figure, such as one from `credo.plots.new_figure`.
        draw: changes the figure into frame i, from 0.
        frames: how many frames there are.
        milliseconds: how long a frame is shown.

    Example:
        >>> from credo.plots import new_figure
        >>> figure = new_figure(1.0, 1.0)
        >>> animation(figure, lambda i: figure.set_facecolor(("white", "black")[i]), 2)[:6]
        b'GIF89a'
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    canvas = FigureCanvasAgg(figure)
    full: list[Image.Image] = []
    for i in range(frames):
        draw(i)
        canvas.draw()  # type: ignore[no-untyped-call]
        figure.set_layout_engine("none")
        picture = canvas.buffer_rgba()  # type: ignore[no-untyped-call]
        full.append(Image.fromarray(np.asarray(picture)).convert("RGB"))
    colours = full[-1].quantize(48, method=Image.Quantize.MEDIANCUT)
    pictures = [picture.quantize(palette=colours, dither=Image.Dither.NONE) for picture in full]
    buffer = io.BytesIO()
    pictures[0].save(
        buffer,
        format="GIF",
        save_all=True,
        append_images=pictures[1:],
        duration=[milliseconds] * (frames - 1) + [2000],
        loop=0,
        optimize=True,
    )
    return buffer.getvalue()


def ellipse(mean: ArrayLike, cov: ArrayLike, radius: float, points: int = 100) -> np.ndarray:
    """Return the ellipse of all z in the plane that are `radius` standard deviations from `mean`.

        (z - mean)' inv(cov) (z - mean) = radius^2

    Arguments:
        mean: the centre (2,).
        cov: the covariance (2, 2), positive definite.
        radius: the radius in standard deviations.
        points: the number of points of the curve, whose first and last points are the same.

    Returns:
        The curve (points, 2).

    Raises:
        LinAlgError: `cov` is not positive definite.

    Example:
        >>> np.round(ellipse([0.0, 0.0], np.eye(2), 2.0, points=2), 6).tolist()
        [[2.0, 0.0], [2.0, -0.0]]
    """
    angle = np.linspace(0.0, 2.0 * math.pi, points)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.asarray(mean) + radius * circle @ np.linalg.cholesky(np.asarray(cov)).T
