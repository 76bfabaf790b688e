"""The plan of `bong-linreg` and `bong-logreg`: cells, sizes and learning rates."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TypeAlias

from credo.core.names import CURVATURES, RULES, CurvatureName, RuleName
from credo_papers.bong.bong_grid import FAMILIES, FamilyName
from credo_papers.engine.experiment import Size

__all__ = [
    "CELLS",
    "ITERATIONS",
    "PLANS",
    "RANK",
    "RATES",
    "SAMPLES",
    "TIMES",
    "VERSION",
    "Cell",
    "ExactPlan",
]

Cell: TypeAlias = tuple[FamilyName, CurvatureName, RuleName]
"""A cell of the grid."""

RANK = 3
SAMPLES = 100
ITERATIONS = 10
TIMES = (10, 30, 100, 200, 300, 400, 500)
"""The times at which the divergence is measured."""

RATES: dict[RuleName, tuple[float, ...]] = {
    "bong": (1.0,),
    "blr": (0.1, 0.3, 1.0),
    "bog": (1e-3, 1e-2, 1e-1, 1.0, 10.0),
    "bbb": (1e-3, 1e-2, 1e-1, 1.0, 10.0),
}
"""The learning rates to choose from."""

CELLS: tuple[Cell, ...] = tuple(itertools.product(FAMILIES, CURVATURES, RULES))
"""All 48 cells."""

VERSION = 1
"""Of the code behind finished cells."""


@dataclass(frozen=True)
class ExactPlan:
    """The plan of a run.

    Arguments:
        cells: the cells of the grid.
        length: rows of a stream.
        streams: how many streams are scored.
        tuning_streams: on how many other streams the learning rates are tuned.
    """

    cells: tuple[Cell, ...]
    length: int
    streams: int
    tuning_streams: int


_FEW: tuple[Cell, ...] = (
    *(cell for cell in CELLS if cell[:2] == ("full", "lin-hess")),
    ("full", "mc-ef", "bong"),
)
PLANS: dict[Size, ExactPlan] = {"quick": ExactPlan(_FEW, 100, 3, 2), "full": ExactPlan(CELLS, 500, 10, 3)}
