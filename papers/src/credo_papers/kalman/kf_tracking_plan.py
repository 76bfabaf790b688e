"""The plan of `kf-tracking`: how many tracks, and the published numbers."""

from __future__ import annotations

import math

from credo_papers.engine.experiment import Size

__all__ = ["LEVEL", "PUBLISHED", "RADIUS_90", "RUNS"]

RUNS: dict[Size, int] = {"quick": 500, "full": 10_000}
"""The number of tracks."""

LEVEL = 0.9
RADIUS_90 = math.sqrt(-2.0 * math.log(1.0 - LEVEL))
"""The radius, in standard deviations, of the disc that holds 90% of a standard normal in the plane."""

PUBLISHED = {"filtered": 0.767, "raw": 1.413, "first sd": 0.30, "last sd": 0.49}
"""From 500 tracks: the root mean squares of both errors, and the standard deviations of a coordinate."""
