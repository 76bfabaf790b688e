"""The plan of `moons`: how many streams, the grid, and the published numbers."""

from __future__ import annotations

from credo_papers.engine.experiment import Size

__all__ = [
    "EVERY",
    "FRAMES",
    "GRID",
    "PANELS",
    "PUBLISHED",
    "REFERENCE",
    "SEEDS",
    "TEST_POINTS",
    "TUNING_SEEDS",
]

# How many labels lie between two tests, and the points of a test.
EVERY = 5
TEST_POINTS = 1000

SEEDS: dict[Size, int] = {"quick": 20, "full": 100}
"""The number of streams that are scored."""

TUNING_SEEDS = 20
PANELS = (10, 50, 100, 200)
"""After how many labels the decision surface is drawn; multiples of `EVERY`."""

FRAMES = (*range(5, 50, 5), *range(60, 201, 20))
"""After how many labels there is a frame of the animation; multiples of `EVERY`."""

GRID = [(var, scale) for var in (0.3, 1.0, 3.0) for scale in (1.0, 1.5, 2.0, 2.5)]
"""Prior variances, and factors on the initial weights."""

PUBLISHED = (1.0, 1.0)
REFERENCE = (0.877, 0.007)
"""The accuracy of a correct filter at the setting `PUBLISHED` on 20 streams, and its standard error."""
