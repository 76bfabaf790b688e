"""The grid of Jones, Chang & Murphy 2024 (BONG, arXiv 2405.19681) as data: four rules, three curvatures.

A cell of the grid is a rule (bong, blr, bog, bbb) and a curvature (lin-hess, lin-ef, mc-ef).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import credo
from credo.plots import PALETTE

__all__ = ["CELLS", "COLOURS", "CURVATURES", "LINES", "RULES", "GridCell", "make_learner"]

RULES = ("bong", "blr", "bog", "bbb")
CURVATURES = ("lin-hess", "lin-ef", "mc-ef")
COLOURS = dict(
    zip(RULES, (PALETTE["blue"], PALETTE["green"], PALETTE["orange"], PALETTE["pink"]), strict=True)
)
LINES = dict(zip(CURVATURES, ("-", "--", ":"), strict=True))


@dataclass(frozen=True)
class GridCell:
    """A rule and a curvature.

    Args:
        rule: bong, blr, bog or bbb.
        curvature: lin-hess, lin-ef or mc-ef.
        start: of the low-rank factor W of BOG and BBB: "random", or "zero", at which its gradient is zero for
            ever, as published.
    """

    rule: str
    curvature: str
    start: str = "random"

    @property
    def name(self) -> str:
        """As tables and the command line say it.

        >>> GridCell("bong", "lin-hess").name
        'bong lin-hess'
        """
        return f"{self.rule} {self.curvature}" + ("" if self.start == "random" else ", W = 0")

    @property
    def tuned_rate(self) -> bool:
        """Whether there is a learning rate to tune; BONG has none."""
        return self.rule != "bong"

    @property
    def iterated(self) -> bool:
        """Whether the rule repeats its step on the same observation."""
        return self.rule in ("blr", "bbb")

    @property
    def plain(self) -> bool:
        """Whether its gradients are plain, in the belief's own parameters, not natural ones."""
        return self.rule in ("bog", "bbb")

    @property
    def sampled(self) -> bool:
        """Whether the curvature draws parameters."""
        return self.curvature == "mc-ef"


CELLS = tuple(GridCell(rule, curvature) for curvature in CURVATURES for rule in RULES)
"""All twelve."""


def make_learner(
    cell: GridCell, model: Any, family: Any, *, learning_rate: Any, iterations: int, samples: int
) -> credo.RecursiveLearner:
    """The learner of a cell.

    Args:
        cell: The rule and the curvature.
        model, family: As for `credo.bong`.
        learning_rate: Not used by BONG.
        iterations: Of BLR and BBB.
        samples: Draws of MC-EF.
    """
    curvature: Any = credo.MonteCarloEmpiricalFisher(samples) if cell.sampled else cell.curvature
    if cell.rule == "bong":
        return credo.bong(model, family, curvature)
    if cell.rule == "bog":
        return credo.bog(model, family, curvature, learning_rate=learning_rate)
    iterated = credo.blr if cell.rule == "blr" else credo.bbb
    return iterated(model, family, curvature, learning_rate=learning_rate, iterations=iterations)
