"""The plan of `bong-timing`: cells, sizes, and the exponents of the theory."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from credo.core.names import CURVATURES, RULES, CurvatureName, RuleName
from credo_papers.bong.bong_grid import FAMILIES, FamilyName
from credo_papers.engine.experiment import Size

__all__ = ["AXES", "BASE", "HIDDEN", "RATES", "ROUNDS", "AxisName", "Point", "expected", "sweeps"]

AxisName: TypeAlias = Literal["P", "R", "M", "I", "C"]
"""Against what the time of a step is measured."""

AXES: tuple[AxisName, ...] = get_args(AxisName)
"""All axes."""

# The hidden units of the network, and how often every time is measured.
HIDDEN = 8
ROUNDS = 5

RATES: dict[RuleName, float] = {"bong": 1.0, "blr": 0.5, "bog": 0.01, "bbb": 0.01}
"""The learning rates, which do not matter to the time."""


@dataclass(frozen=True)
class Point:
    """A cell and its sizes.

    Arguments:
        rule, curvature, family: the cell.
        P: parameters (the network has the nearest number at or below).
        R: rank of a low-rank family.
        M: draws of a Monte Carlo curvature.
        I: inner iterations of BLR and BBB.
        C: outputs.
    """

    rule: RuleName
    curvature: CurvatureName
    family: FamilyName
    P: int = 4096
    R: int = 10
    M: int = 16
    I: int = 4
    C: int = 4

    @property
    def cell(self) -> str:
        """The name of the cell."""
        return f"{self.rule} {self.curvature} {self.family}"


BASE: dict[str, str | int] = {
    **dict.fromkeys(("rule", "curvature", "family"), ""),
    **{name: int(getattr(Point, name)) for name in AXES},
}
"""The sizes of a point unless it says otherwise, for the settings."""


def expected(point: Point, axis: AxisName) -> int:
    """Return the exponent that theory gives the most expensive term, an upper bound for what is measured.

    Arguments:
        point: the cell.
        axis: one of `AXES`.
    """
    full = point.family == "full"
    hessian = point.curvature == "mc-hess"
    if axis == "P":
        # a P x P Hessian is decomposed, and BBB's precision leaves its prior by a matrix of full rank
        if not full:
            return 1
        if hessian or point.rule == "bbb":
            return 3
        return 2
    if axis == "R":
        return 2
    stacked = full and point.rule == "blr" and not hessian  # its rows gather: I k P^2 + I^2 k^2 P
    if axis == "I":
        if stacked:
            return 2
        return 1
    if axis == "C" and point.curvature == "lin-ef":
        return 0  # one row, however many outputs
    if axis == "M" and hessian:
        return 1
    # BOG and BBB on a diagonal square M rows elementwise; C rows meet in J S J', for the log evidence
    apart = point.family == "diagonal" and point.rule in ("bog", "bbb") and axis == "M"
    if stacked or not (full or apart):
        return 2
    return 1


def _cells(size: Size) -> Iterator[Point]:
    curvatures = CURVATURES if size == "full" else CURVATURES[:1]
    for family, curvature, rule in itertools.product(FAMILIES, curvatures, RULES):
        yield Point(rule, curvature, family)


def sweeps(size: Size) -> Iterator[tuple[AxisName, list[Point]]]:
    """Return axes and the points along them.

    Other sizes are small, so that the axis decides what a step costs.

    Arguments:
        size: "quick" takes LIN-HESS and two values of P; "full" all 48 cells and P (to 10^6; MC-HESS to 10^5,
            full covariances to 1,024), R, M, I and C, as far as the cell has them.
    """
    for point in _cells(size):
        full = point.family == "full"
        sampled = point.curvature.startswith("mc")
        if size == "quick":
            yield "P", [replace(point, P=n) for n in ((128, 512) if full else (4096, 32768))]
            continue
        heavy = point.curvature == "mc-hess"
        cubic = full and (heavy or point.rule == "bbb")
        wide = (10_000, 30_000, 100_000) if heavy else (10_000, 100_000, 1_000_000)
        yield "P", [replace(point, P=n, I=2) for n in ((256, 512, 1024) if full else wide)]
        parameters = 10_000 if heavy else 30_000
        if full:
            parameters = 256 if cubic else 1024
        base = replace(point, P=parameters, R=4, M=4)
        small = replace(base, P=4096, I=2) if point.family == "diagonal" else replace(base, I=2)
        if point.family == "low-rank":
            yield "R", [replace(base, R=n, I=2) for n in (24, 96)]
        if sampled:
            yield "M", [replace(small, M=n) for n in (32, 128)]
        if point.rule in ("blr", "bbb"):
            yield "I", [replace(base, I=n) for n in (4, 16)]
        if not sampled:
            yield "C", [replace(small, P=max(small.P, 1024), C=n) for n in (16, 64)]
