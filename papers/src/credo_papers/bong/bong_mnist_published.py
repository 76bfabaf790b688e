"""The numbers that were published for `bong-mnist`, by cell and by the number of digits."""

from __future__ import annotations

__all__ = ["PUBLISHED_ECE", "PUBLISHED_ERROR", "PUBLISHED_SECONDS"]

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
"""Misclassification of the linearised Monte Carlo forecast, read from the published figure (± .01)."""

PUBLISHED_SECONDS: dict[str, float] = {
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
"""Seconds for 2,000 steps on a GPU, compilation included."""

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
"""Calibration errors: medians over shuffles, read from the published boxes."""
