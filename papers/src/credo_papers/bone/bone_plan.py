"""The parts of the plans of the BONE experiments: methods with their grids, and an experiment.

Every method takes the values of its grid that do best on the tuning streams. For labels that is once by
accuracy (and the method is scored by it) and once by log score (and the method is scored by that). Only the
values that were chosen see the scored streams.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Literal, TypedDict

import numpy as np

from credo_papers.bone.bone_peers import Peer
from credo_papers.bone.bone_world import Draw, Streams
from credo_papers.engine.experiment import Size
from credo_papers.engine.plain_data import Arrays, Json, Values
from credo_papers.engine.sweep import One

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SEEDS", "VERSION", "BoneProgram", "Method", "Plan", "grid"]

SEEDS: dict[Size, tuple[int, int]] = {"quick": (5, 10), "full": (20, 60)}
"""The number of streams for tuning, and the number that are scored."""

VERSION = 2
"""Of the code behind finished cells."""


class BoneProgram(TypedDict, total=False):
    """The settings that the compiled program of a method depends on; an experiment uses some of these.

    Attributes:
        method: the code of the method; see `bone_learner.METHODS`.
        capacity: how many hypotheses it keeps.
        lengths: of how many run lengths the probabilities are kept.
        robust: which robust learner stands inside.
        iterations, evidence: of Student-t noise; see `credo.adapt.StudentTNoise`.
        pieces: what carries over a change of a curve in pieces.
        features: whether those are of the piece or of the whole curve.
    """

    method: str
    capacity: int
    lengths: int
    robust: Literal["wolf", "student"]
    iterations: int
    evidence: Literal["predictive", "bound"]
    pieces: Literal["one", "reset", "joined", "each"]
    features: Literal["local", "global"]


@dataclass(frozen=True)
class Method:
    """A line of the table.

    Arguments:
        label: its name, with the code of BONE.
        program: see `BoneProgram`.
        grid: the values to choose from, at least one.
        published: the published number of the first measure.
        note: what a reader must know, such as what was measured before.
        quick: whether it is part of the quick size, where compilation counts.
        adaptive: whether it may be chosen as the best adaptive method.
    """

    label: str
    program: BoneProgram
    grid: Sequence[Values] = ({},)
    published: float | str | None = None
    note: str = ""
    quick: bool = False
    adaptive: bool = True


@dataclass(frozen=True)
class Plan:
    """An experiment of this kind.

    Arguments:
        name: the name of the experiment.
        title: the title of its figure.
        draw: draws one stream.
        build: makes the function of one stream; see `bone_learner.online`.
        methods: the lines of the table.
        world: the world in words and numbers, for the settings.
        binary: whether y is 0 or 1. Then accuracy is measured, otherwise the RMSE to the true mean.
        criterion: what tuning minimises where y is a number: "nll", or "mae" (the mean absolute error to y).
        to_observation: whether the RMSE is to y instead of to its true mean.
        within: within how many steps a change must be reported to count.
        peers: methods of other packages.
        target: what was measured before with the best adaptive method, in words.
        seeds: how many streams are for tuning, and how many are scored, at each size.
        figure: draws `(plan, series, arrays)`; None for the common figure.
    """

    name: str
    title: str
    draw: Draw
    build: Callable[[BoneProgram], One[Streams, None]]
    methods: Sequence[Method]
    world: Mapping[str, Json]
    binary: bool = False
    criterion: Literal["nll", "mae"] = "nll"
    to_observation: bool = False
    within: int = 20
    peers: Sequence[Peer] = ()
    target: str = ""
    seeds: Mapping[Size, tuple[int, int]] = field(default_factory=lambda: SEEDS)
    figure: Callable[[Plan, Arrays, Arrays], Figure] | None = None

    @property
    def criteria(self) -> dict[str, str]:
        """Each measure, the main one first, and the cost by which values are chosen for it."""
        if self.binary:
            return {"accuracy": "error", "NLL": "nll"}
        return {"RMSE": self.criterion, "NLL": self.criterion}

    @property
    def main(self) -> str:
        """The measure that is published."""
        return next(iter(self.criteria))


def grid(**values: Sequence[float] | float) -> list[Values]:
    """Return all combinations of values.

    Arguments:
        values: a number, or several, for each name.

    Example:
        >>> grid(hazard=(0.1, 0.2), var=1.0)
        [{'hazard': 0.1, 'var': 1.0}, {'hazard': 0.2, 'var': 1.0}]
    """
    columns = [np.atleast_1d(np.asarray(value, float)).tolist() for value in values.values()]
    return [dict(zip(values, row, strict=True)) for row in product(*columns)]
