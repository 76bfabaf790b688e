"""The plan of `bong-mnist`: what runs at each size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, TypedDict

from credo.core.names import RULES, RuleName
from credo_papers.bong.bong_grid import CELLS, FAMILIES, MNIST_CURVATURES, GridCell

__all__ = ["FAMILY_PLANS", "PLANS", "CNNPlan", "MLPPlan", "NetworkPlan", "Plan"]


class MLPPlan(TypedDict):
    """The arguments of `credo.MLP`, in plain JSON values."""

    kind: Literal["mlp"]
    outputs: int
    hidden: list[int]
    activation: Literal["relu"]


class CNNPlan(TypedDict):
    """The arguments of `credo.CNN`, in plain JSON values."""

    kind: Literal["cnn"]
    outputs: int
    channels: list[int]
    dense: int
    activation: Literal["relu"]


NetworkPlan: TypeAlias = MLPPlan | CNNPlan
"""A network, in plain JSON values."""


@dataclass(frozen=True)
class Plan:
    """The plan of a run.

    Arguments:
        network: see `NetworkPlan`.
        cells: which cells of the grid.
        steps: digits of one pass.
        every, marks: beliefs are scored at `marks`, multiples of `every`; the last is `steps`.
        seeds: scored streams, each with digits, an order and initial parameters of its own.
        tuning_steps, tuning_seeds: the length and the number of the streams on which settings are tuned.
        test_rows, validation_rows: digits to score; the latter for tuning only.
        samples, iterations, rank: of MC-EF, of BLR and BBB, and of the belief.
        draws: how many draws a Monte Carlo forecast takes; 0 leaves those out.
        pool: images are averaged over squares of this many pixels; 1 leaves them as they are.
        chunk: how many streams run side by side.
        timed: whether to measure what 2,000 steps cost, which compiles every cell once more.
        weights: how often a digit may be counted; see `bong_mnist`.
        reaches, rates: prior variances that move the mean, and learning rates, to choose from, by rule.
        changes: other values of `samples`, `iterations`, `seeds`, `steps` or `tuning_steps` for some cells,
            by their names.
    """

    network: NetworkPlan
    cells: tuple[GridCell, ...] = CELLS
    steps: int = 2000
    every: int = 50
    marks: tuple[int, ...] = (100, 200, 250, 400, 500, 600, 800, 1000, 1400, 1800, 2000)
    seeds: int = 10
    tuning_steps: int = 1000
    tuning_seeds: int = 2
    test_rows: int = 1000
    validation_rows: int = 500
    samples: int = 100
    iterations: int = 10
    rank: int = 10
    draws: int = 100
    pool: int = 1
    chunk: int = 5
    timed: bool = True
    weights: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0, 100.0)
    reaches: Mapping[RuleName, tuple[float, ...]] = field(
        default_factory=lambda: {
            "bong": (0.01, 0.03, 0.06, 0.1),
            "blr": (0.01, 0.03, 0.06, 0.1),
            "bog": (0.03,),
            "bbb": (0.03, 0.1, 0.3),
        }
    )
    rates: Mapping[RuleName, tuple[float, ...]] = field(
        default_factory=lambda: {
            "bong": (1.0,),
            "blr": (0.03, 0.1, 0.3),
            "bog": (0.003, 0.01, 0.03, 0.1),
            "bbb": (0.003, 0.01, 0.03),
        }
    )
    changes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def of(self, cell: GridCell, name: str) -> int:
        """Return what a cell has of "samples", "iterations", "seeds", "steps" or "tuning_steps"."""
        return int(self.changes.get(cell.name, {}).get(name, getattr(self, name)))

    def marks_of(self, cell: GridCell) -> tuple[int, ...]:
        """Return the marks that a cell reaches."""
        return tuple(mark for mark in self.marks if mark <= self.of(cell, "steps"))


_SMALL: MLPPlan = {"kind": "mlp", "outputs": 10, "hidden": [16], "activation": "relu"}
_CNN: CNNPlan = {"kind": "cnn", "outputs": 10, "channels": [16, 16], "dense": 64, "activation": "relu"}
_MARKS = (200, 250, 500, 600, 1000, 1800, 2000)
_TINY: MLPPlan = {"kind": "mlp", "outputs": 10, "hidden": [10], "activation": "relu"}
_BY_NAME = {cell.name: cell for cell in CELLS}

PLANS: dict[str, Plan] = {
    "quick": Plan(
        _SMALL,
        tuple(cell for cell in CELLS if cell.curvature == "lin-hess"),
        steps=200,
        marks=(100, 200),
        seeds=2,
        tuning_steps=200,
        tuning_seeds=2,
        test_rows=150,
        validation_rows=150,
        iterations=3,
        draws=0,
        pool=2,
        timed=False,
        weights=(3.0, 30.0),
        reaches={"bong": (0.03, 0.1), "blr": (0.1,), "bog": (0.03,), "bbb": (0.1,)},
        rates={"bong": (1.0,), "blr": (0.1, 0.3), "bog": (0.01, 0.03), "bbb": (0.003, 0.01)},
    ),
    "full": Plan(_CNN),
    "cnn": Plan(
        _CNN,
        tuple(_BY_NAME[name] for name in ("bong lin-hess", "bong lin-ef", "bog lin-hess")),
        marks=_MARKS,
        seeds=3,
        tuning_seeds=1,
        chunk=1,
        weights=(1.0, 30.0, 100.0),
    ),
    "mlp": Plan(
        _SMALL,
        (*CELLS, GridCell("bog", "lin-hess", "zero"), GridCell("bbb", "lin-hess", "zero")),
        marks=_MARKS,
        seeds=3,
        tuning_steps=500,
        tuning_seeds=1,
        draws=0,
        pool=2,
        chunk=3,
        timed=False,
        weights=(3.0, 30.0, 100.0),
        reaches={"bong": (0.03, 0.1, 0.3), "blr": (0.1,), "bog": (0.03,), "bbb": (0.1, 0.3)},
        rates={"bong": (1.0,), "blr": (0.1, 0.3, 1.0), "bog": (0.01, 0.03, 0.1), "bbb": (0.003, 0.01, 0.03)},
        changes={"blr mc-ef": {"samples": 10}, "bbb mc-ef": {"samples": 10}},
    ),
}
"""By name: "quick" and "full" are the sizes of the command line; "cnn" is the part of "full" that fits two
cores, with three streams; "mlp" is the whole grid with a small network (3,322 parameters) on images of 14 x
14 pixels."""

# BBB with a full covariance takes P^3 in an iteration
_BY_FAMILY = tuple(
    GridCell(rule, curvature, family=family)
    for curvature in MNIST_CURVATURES
    for rule in RULES
    for family in FAMILIES
    if (rule, family) != ("bbb", "full")
)

FAMILY_PLANS: dict[str, Plan] = {
    "quick": replace(
        PLANS["quick"],
        network=_TINY,
        pool=4,
        cells=tuple(GridCell("bong", "lin-hess", family=family) for family in FAMILIES),
        weights=(30.0,),
        reaches={"bong": (0.1,)},
        rates={"bong": (1.0,)},
    ),
    "full": replace(
        PLANS["mlp"],
        network=_TINY,
        pool=4,
        cells=_BY_FAMILY,
        samples=10,
        changes={},
    ),
}
"""The plans of `bong-mnist-families`: a network of 610 parameters on images of 7 x 7 pixels, for which the
full covariance is small enough, with M = 10."""
