"""An experiment that can be run by name, and its outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import numpy as np

from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.plain_data import Json
from credo_papers.engine.portions import Progress
from credo_papers.engine.quantities import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Experiment", "Outcome", "Run", "Size"]

Size: TypeAlias = Literal["quick", "full"]
"""The size of a run: "quick" is the same experiment with fewer seeds."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of an experiment.

    Arguments:
        rows: the table.
        settings: what the experiment ran with, in plain JSON values.
        seeds: which random streams were used for what, in words or numbers.
        series: columns of equal length with one number for each time step; they become `data.csv`.
        arrays: everything behind the figure; together with `series` they become `data.npz`.
        figure: draws the figure; it is called only where matplotlib is installed.
        animation: draws an animated GIF and gives its bytes, where the experiment has one.
        figures: draw more figures, by the word that is added to the name of the file.

    Example:
        >>> from credo_papers import find
        >>> outcome = find("kf-tracking").run("quick", 0, lambda share, text: None)
        >>> outcome.rows[0].quantity
        'position rms, filtered'
    """

    rows: tuple[Row, ...]
    settings: Mapping[str, Json]
    seeds: Mapping[str, Json]
    series: Mapping[str, np.ndarray]
    arrays: Mapping[str, np.ndarray]
    figure: Callable[[], Figure]
    animation: Callable[[], bytes] | None = None
    figures: Mapping[str, Callable[[], Figure]] = field(default_factory=dict)


class Run(Protocol):
    """The function `run` of an experiment's module."""

    def __call__(self, size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
        """Run the experiment. The same size and seed give the same numbers.

        Arguments:
            size: "quick" or "full".
            seed: the seed, at least 0.
            progress: a function that is called with the share that is done and what comes next.
            cells: the folder in which a long experiment keeps its finished pieces; None keeps none.
        """
        ...


@dataclass(frozen=True)
class Experiment:
    """An experiment that can be run by name.

    Arguments:
        name: the name as typed on the command line.
        title: one line about the experiment.
        source: where the result was published.
        run: the function that runs the experiment; see `Run`.

    Example:
        >>> from credo_papers import find
        >>> find("moons").source
        'background experiments: extended Kalman filter classification'
    """

    name: str
    title: str
    source: str
    run: Run
