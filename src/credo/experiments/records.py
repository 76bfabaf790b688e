"""What experiments are made of, what they give, and how a number is shown beside the published one."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from credo.experiments.cells import Cells

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

__all__ = ["Experiment", "Outcome", "Progress", "Result", "Row", "Size", "mean_se", "rms_se"]

Size = Literal["quick", "full"]
"""How large to run: "quick" is the same experiment with fewer seeds."""

Progress = Callable[[float, str], None]
"""Told how much is done, from 0 to 1, and what comes next."""


def mean_se(values: Any) -> tuple[float, float]:
    """The mean of one number a seed, and its standard error.

    >>> mean_se([1.0, 2.0, 3.0, 2.0])
    (2.0, 0.408248290463863)
    """
    array = np.asarray(values, dtype=np.float64)
    return float(array.mean()), float(array.std(ddof=1) / math.sqrt(array.size))


def rms_se(squares: Any) -> tuple[float, float]:
    """The root of the mean of one mean square a seed, and its standard error to first order.

    >>> rms_se([4.0, 4.0, 4.0])
    (2.0, 0.0)
    """
    mean, se = mean_se(squares)
    return math.sqrt(mean), se / (2.0 * math.sqrt(mean))


@dataclass(frozen=True)
class Row:
    """One quantity: ours beside the published one.

    Args:
        quantity: What was measured, with its unit.
        ours: Our number, a mean over seeds where `se` is given.
        se: Its standard error.
        published: The published number, or words such as "~1e-16".
        published_se: Its standard error, where known.
        note: What a reader must know to compare them.

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

    def texts(self) -> tuple[str, str, str, str]:
        """The row as a table shows it: the quantity, ours, published, note."""
        if self.published is None:
            published = "–"
        elif isinstance(self.published, str):
            published = self.published
        else:
            error = "" if self.published_se is None else f" ± {self.published_se:g}"
            published = f"{self.published:g}{error}"
        return self.quantity, _rounded(self.ours, self.se), published, self.note


def _rounded(value: float, se: float | None) -> str:
    """A number to two digits of its standard error, or to four digits."""
    if se is None or not math.isfinite(se) or se <= 0:
        return f"{value:.2g}" if 0 < abs(value) < 1e-3 else f"{value:.4g}"
    if abs(value) < 1e-3 or se < 1e-5:
        return f"{value:.2g} ± {se:.1g}"
    digits = max(0, 1 - math.floor(math.log10(se)))
    return f"{value:.{digits}f} ± {se:.{digits}f}"


@dataclass(frozen=True)
class Outcome:
    """What an experiment gives back.

    Args:
        rows: The table.
        settings: What it ran with, in plain JSON values.
        seeds: Which random streams were used for what, in words or numbers.
        series: Columns of equal length, one number a time step: they become `data.csv`.
        arrays: Everything behind the figure: they become `data.npz`.
        figure: Draws the figure; called only where matplotlib is installed.
    """

    rows: tuple[Row, ...]
    settings: Mapping[str, Any]
    seeds: Mapping[str, Any]
    series: Mapping[str, np.ndarray]
    arrays: Mapping[str, np.ndarray]
    figure: Callable[[], Figure]


@dataclass(frozen=True)
class Experiment:
    """An experiment that can be run by name.

    Args:
        name: As typed on the command line.
        title: One line about it.
        source: Where the result was published.
        run: `run(size, seed, progress)` runs it; the same size and seed give the same numbers. A long one
            takes `cells` too, in which it keeps its finished parts.
    """

    name: str
    title: str
    source: str
    run: Callable[..., Outcome]

    def start(self, size: Size, seed: int, progress: Progress, cells: Cells) -> Outcome:
        """Run it, with a place for finished parts where it takes one."""
        if "cells" in inspect.signature(self.run).parameters:
            return self.run(size, seed, progress, cells=cells)
        return self.run(size, seed, progress)


@dataclass(frozen=True)
class Result:
    """A finished experiment: its table and where its files lie.

    Args:
        name, title, source: Of the experiment.
        size, seed: What it was asked for.
        rows: The table.
        settings, seeds: See `Outcome`.
        versions: Of credo, JAX, NumPy and Python.
        device: What JAX computed on.
        seconds: Wall time of the computation, compilation included, without drawing; of parts that were
            finished by an earlier run, the time they took then.
        folder: Where the files lie.
        files: Their names, `results.json` last.
        messages: Sentences for the reader, such as why there is no figure.
    """

    name: str
    title: str
    source: str
    size: Size
    seed: int
    rows: tuple[Row, ...]
    settings: Mapping[str, Any]
    seeds: Mapping[str, Any]
    versions: Mapping[str, str]
    device: str
    seconds: float
    folder: Path
    files: tuple[str, ...]
    messages: tuple[str, ...] = field(default=())

    def show(self, console: Console | None = None) -> None:
        """Print the table, where the files lie, and any message.

        Args:
            console: A rich console; None means standard output.
        """
        from credo.experiments.printing import show

        show(self, console)
