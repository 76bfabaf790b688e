"""The grid of Jones, Chang & Murphy 2024 (BONG, arXiv 2405.19681): rules times curvatures times families.

The rules are BONG, BLR, BOG and BBB; the names of rules and curvatures are those of `credo.core.names`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import credo
from credo.core.names import CURVATURES, RULES, CurvatureName, RuleName
from credo.core.types import ArrayLike
from credo.covariances import Diagonal, Family, Full, LowRank
from credo.learners import MonteCarloEmpiricalFisher, MonteCarloHessian, RecursiveLearner
from credo.models import Model
from credo.plots import PALETTE

__all__ = [
    "CELLS",
    "COLOURS",
    "FAMILIES",
    "ITERATED",
    "LINES",
    "MNIST_CURVATURES",
    "FamilyName",
    "GridCell",
    "StartName",
    "make_curvature",
    "make_family",
    "make_learner",
]

FamilyName: TypeAlias = Literal["full", "diagonal", "low-rank"]
"""The families of the grid."""

FAMILIES: tuple[FamilyName, ...] = get_args(FamilyName)
"""All families of the grid."""

StartName: TypeAlias = Literal["random", "zero"]
"""The start of the low-rank factor W of BOG and BBB."""

MNIST_CURVATURES: tuple[CurvatureName, ...] = tuple(name for name in CURVATURES if name != "mc-hess")
"""The curvatures of the experiments on MNIST."""

ITERATED: tuple[RuleName, ...] = ("blr", "bbb")
"""The rules that repeat their step on the same observation."""

COLOURS: dict[str, str] = dict(
    zip(RULES, (PALETTE[name] for name in ("blue", "green", "orange", "pink")), strict=True)
)
"""The colour of each rule."""

LINES: dict[str, str] = {"lin-hess": "-", "lin-ef": "--", "mc-ef": ":", "mc-hess": "-."}
"""The line of each curvature."""


@dataclass(frozen=True)
class GridCell:
    """A rule, a curvature and a family.

    Arguments:
        rule: "bong", "blr", "bog" or "bbb".
        curvature: "lin-hess", "lin-ef" or "mc-ef".
        start: where the low-rank factor W of BOG and BBB starts: "random", or "zero" as published,
            and then its gradient is zero forever.
        family: what is kept of the covariance.
    """

    rule: RuleName
    curvature: CurvatureName
    start: StartName = "random"
    family: FamilyName = "low-rank"

    @property
    def name(self) -> str:
        """The name of the cell in tables.

        >>> GridCell("bong", "lin-hess").name
        'bong lin-hess'
        """
        start = "" if self.start == "random" else ", W = 0"
        family = "" if self.family == "low-rank" else f", {self.family}"
        return f"{self.rule} {self.curvature}{start}{family}"

    @property
    def tuned_rate(self) -> bool:
        """Whether there is a learning rate to tune; BONG has none."""
        return self.rule != "bong"

    @property
    def iterated(self) -> bool:
        """Whether the rule repeats its step on the same observation."""
        return self.rule in ITERATED

    @property
    def plain(self) -> bool:
        """Whether its gradients are plain, in the parameters of the belief, instead of natural."""
        return self.rule in ("bog", "bbb")

    @property
    def sampled(self) -> bool:
        """Whether the curvature draws parameters."""
        return self.curvature == "mc-ef"


CELLS = tuple(GridCell(rule, curvature) for curvature in MNIST_CURVATURES for rule in RULES)
"""The twelve cells of the experiments on MNIST."""


def make_family(name: FamilyName, rank: int) -> Family:
    """Return a family of the grid.

    Arguments:
        name: "full", "diagonal" or "low-rank".
        rank: of a low-rank family.
    """
    if name == "low-rank":
        return LowRank(rank)
    if name == "full":
        return Full()
    return Diagonal()


def make_curvature(
    name: CurvatureName, samples: int, rank: int = 10
) -> CurvatureName | MonteCarloEmpiricalFisher | MonteCarloHessian:
    """Return a curvature of the grid, as the named methods of `credo.learners` take it.

    Arguments:
        name: the name of the curvature.
        samples: draws of a Monte Carlo curvature.
        rank: directions that MC-HESS measures for a low-rank family.
    """
    if name == "mc-ef":
        return MonteCarloEmpiricalFisher(samples)
    if name == "mc-hess":
        return MonteCarloHessian(samples, rank=rank, step_control=False)
    return name


def make_learner(
    rule: RuleName,
    model: Model,
    family: Family,
    curvature: CurvatureName | MonteCarloEmpiricalFisher | MonteCarloHessian,
    *,
    learning_rate: ArrayLike,
    iterations: int,
) -> RecursiveLearner:
    """Return the learner of a cell.

    Arguments:
        rule: its rule.
        model, family, curvature: as for `credo.bong`.
        learning_rate: of BLR, BOG and BBB.
        iterations: of BLR and BBB.
    """
    learner: RecursiveLearner
    if rule == "bong":
        learner = credo.bong(model, family, curvature)
    elif rule == "bog":
        learner = credo.bog(model, family, curvature, learning_rate=learning_rate)
    elif rule == "blr":
        learner = credo.blr(model, family, curvature, learning_rate=learning_rate, iterations=iterations)
    else:
        learner = credo.bbb(model, family, curvature, learning_rate=learning_rate, iterations=iterations)
    return learner
