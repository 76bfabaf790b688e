"""A row of the table, with our number beside the published one, and means with their standard errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["Row", "mean_se", "rms_se"]


def mean_se(values: ArrayLike) -> tuple[float, float]:
    """Return the mean over seeds and its standard error, s / sqrt(n).

    Arguments:
        values: one number for each seed (n,), n at least 2.

    Example:
        >>> mean_se([1.0, 2.0, 3.0, 2.0])
        (2.0, 0.408248290463863)
    """
    array = np.asarray(values, dtype=np.float64)
    return float(array.mean()), float(array.std(ddof=1) / math.sqrt(array.size))


def rms_se(squares: ArrayLike) -> tuple[float, float]:
    """Return the root of the mean over seeds, and its standard error to first order.

    Arguments:
        squares: one mean square for each seed (n,), n at least 2.

    Example:
        >>> rms_se([4.0, 4.0, 4.0])
        (2.0, 0.0)
    """
    mean, se = mean_se(squares)
    return math.sqrt(mean), se / (2.0 * math.sqrt(mean))


@dataclass(frozen=True)
class Row:
    """One quantity, with our number beside the published one.

    Arguments:
        quantity: what was measured, with its unit.
        ours: our number, which is a mean over seeds if there is an `se`.
        se: its standard error.
        published: the published number, or words such as "~1e-16".
        published_se: its standard error, if it is known.
        note: what a reader must know to compare the two.
        method: the method whose number it is, with whose name `quantity` then ends after a comma.

    Example:
        >>> Row("accuracy", 0.87712, 0.0069, 0.877, 0.007).texts()[1:3]
        ('0.8771 ± 0.0069', '0.877 ± 0.007')
    """

    quantity: str
    ours: float
    se: float | None = None
    published: float | str | None = None
    published_se: float | None = None
    note: str = ""
    method: str = ""

    @property
    def score(self) -> str:
        """The quantity without the method's name."""
        return self.quantity.removesuffix(f", {self.method}")

    def texts(self) -> tuple[str, str, str, str]:
        """Return the row as a table shows it: the quantity, our number, the published one, the note."""
        if self.published is None:
            published = "\N{EN DASH}"
        elif isinstance(self.published, str):
            published = self.published
        else:
            error = "" if self.published_se is None else f" ± {self.published_se:g}"
            published = f"{self.published:g}{error}"
        return self.quantity, _rounded(self.ours, self.se), published, self.note


def _rounded(value: float, se: float | None) -> str:
    """A number to two digits of its standard error, or to four digits."""
    if se is None or not math.isfinite(se) or se <= 0:
        if 0 < abs(value) < 1e-3:
            return f"{value:.2g}"
        return f"{value:.4g}"
    if abs(value) < 1e-3 or se < 1e-5:
        return f"{value:.2g} ± {se:.1g}"
    digits = max(0, 1 - math.floor(math.log10(se)))
    return f"{value:.{digits}f} ± {se:.{digits}f}"
