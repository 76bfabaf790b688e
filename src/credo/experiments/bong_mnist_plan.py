"""What `bong-mnist` runs at each size, and the numbers that were published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from credo.experiments.bong_grid import CELLS, GridCell

__all__ = ["PLANS", "PUBLISHED_ECE", "PUBLISHED_ERROR", "PUBLISHED_SECONDS", "Plan"]

# Misclassification of the linearised Monte Carlo forecast, read from the published figure (+- .01).
PUBLISHED_ERROR: dict[str, dict[int, float]] = {
    name: dict(zip((200, 600, 1000, 1800), values, strict=True))
    for name, values in {
        "bong lin-hess": (0.49, 0.335, 0.315, 0.263),
        "bong lin-ef": (0.577, 0.362, 0.325, 0.291),
        "bog mc-ef": (0.59, 0.398, 0.387, 0.316),
        "bog lin-ef": (0.648, 0.47, 0.405, 0.339),
        "blr mc-ef": (0.84, 0.67, 0.51, 0.358),
        "bong mc-ef": (0.848, 0.70, 0.515, 0.373),
        "blr lin-ef": (0.697, 0.454, 0.423, 0.387),
        "bbb mc-ef": (0.852, 0.74, 0.57, 0.437),
        "bbb lin-ef": (0.72, 0.58, 0.53, 0.46),
        "blr lin-hess": (0.83, 0.625, 0.586, 0.545),
        "bbb lin-hess": (0.758, 0.67, 0.67, 0.602),
        "bog lin-hess": (0.80, 0.757, 0.705, 0.637),
    }.items()
}
# Seconds for 2,000 steps on a GPU, compilation included.
PUBLISHED_SECONDS = {
    "bong lin-hess": 5.2,
    "bong lin-ef": 3.8,
    "bog mc-ef": 5.6,
    "bog lin-ef": 2.7,
    "blr mc-ef": 141.9,
    "bong mc-ef": 13.0,
    "blr lin-ef": 28.6,
    "bbb mc-ef": 49.2,
    "bbb lin-ef": 31.3,
    "blr lin-hess": 37.1,
    "bbb lin-hess": 44.4,
    "bog lin-hess": 2.7,
}
# Medians over shuffles, read from the published boxes.
PUBLISHED_ECE: dict[str, dict[int, float]] = {
    name: dict(zip((250, 500, 1000, 2000), values, strict=True))
    for name, values in {
        "bbb lin-hess": (0.31, 0.18, 0.18, 0.165),
        "blr lin-hess": (0.25, 0.135, 0.055, 0.043),
        "bog lin-hess": (0.105, 0.07, 0.06, 0.083),
        "bong lin-hess": (0.07, 0.07, 0.05, 0.04),
        "bbb mc-ef": (0.072, 0.134, 0.113, 0.056),
        "blr mc-ef": (0.085, 0.19, 0.147, 0.043),
        "bog mc-ef": (0.14, 0.09, 0.055, 0.053),
        "bong mc-ef": (0.032, 0.08, 0.127, 0.08),
    }.items()
}


@dataclass(frozen=True)
class Plan:
    """What to run.

    Args:
        network: For `bong_mnist_stream.network`.
        cells: Which cells of the grid.
        steps: Digits of one pass.
        every, marks: Beliefs are scored at `marks`, multiples of `every`; the last is `steps`.
        seeds: Scored streams, each with digits, an order and initial parameters of its own.
        tuning_steps, tuning_seeds: Of the streams on which settings are tuned.
        test_rows, validation_rows: Digits to score; the latter for tuning only.
        samples, iterations, rank: Of MC-EF, of BLR and BBB, and of the belief.
        draws: Of the Monte Carlo forecasts; 0 leaves those out.
        pool: Images are averaged over squares of this many pixels; 1 leaves them.
        chunk: How many seeds run side by side.
        timed: Whether to measure what 2,000 steps cost, which compiles every cell once more.
        reaches, rates: Prior variances that move the mean, and learning rates, to choose from, by rule.
        weights: How often a digit may be counted; see `tune`.
        changes: Other values of `samples`, `iterations`, `seeds`, `steps` or `tuning_steps` for some cells,
            by their names.
    """

    network: Mapping[str, Any]
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
    reaches: Mapping[str, tuple[float, ...]] = field(
        default_factory=lambda: {
            "bong": (0.01, 0.03, 0.06, 0.1),
            "blr": (0.01, 0.03, 0.06, 0.1),
            "bog": (0.03,),
            "bbb": (0.03, 0.1, 0.3),
        }
    )
    rates: Mapping[str, tuple[float, ...]] = field(
        default_factory=lambda: {
            "bong": (1.0,),
            "blr": (0.03, 0.1, 0.3),
            "bog": (0.003, 0.01, 0.03, 0.1),
            "bbb": (0.003, 0.01, 0.03),
        }
    )
    changes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def of(self, cell: GridCell, name: str) -> int:
        """`samples`, `iterations`, `seeds`, `steps` or `tuning_steps` of a cell."""
        return int(self.changes.get(cell.name, {}).get(name, getattr(self, name)))


_SMALL = {"kind": "mlp", "outputs": 10, "hidden": [16], "activation": "relu"}
_CNN = {"kind": "cnn", "outputs": 10, "channels": [16, 16], "dense": 64, "activation": "relu"}
_MARKS = (200, 250, 500, 600, 1000, 1800, 2000)
_BY_NAME = {cell.name: cell for cell in CELLS}

PLANS = {
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
"""By name: "quick" and "full" are the sizes of the command line. "cnn" is the part of "full" that fits two
cores, with three seeds; "mlp" is the whole grid with a small network (3,322 parameters) on images of 14 x 14
pixels."""
