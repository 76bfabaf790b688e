"""How much wider than computed the forecasts of several steps must be, by how wrong they were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from credo.core.errors import FormatError

__all__ = ["Widths"]

PRIOR, FARTHEST, NEAR = 5.0, 5.0, 2
"""How many forecasts the width 1 counts for, the largest error in standard deviations that counts, and how
many steps to either side share their errors with a step."""


@dataclass(frozen=True)
class Widths:
    """Running sums of the squared errors of forecasts in units of their computed variance, by step.

    With errors z in computed standard deviations, of which each counts as 5 at most, the width of a step is
    w^2 = (5 + sum z^2) / (5 + n), where both the sum and the number n of forecasts are means over the step
    and the two steps to either side.

    Arguments:
        squares: sums of z^2 (H,).
        counts: how many there are (H,).

    Example:
        >>> widths = Widths.empty(1).add(np.array([2.0]))
        >>> round(float(widths.factors(1)[0] ** 2), 6)
        1.5
    """

    squares: np.ndarray
    counts: np.ndarray

    @staticmethod
    def empty(horizon: int) -> Widths:
        """The state before any forecast."""
        return Widths(np.zeros(horizon), np.zeros(horizon))

    def add(self, errors: np.ndarray) -> Widths:
        """Take in the errors z (H,) of a forecast, NaN if nothing was observed."""
        before = self._of(len(errors))
        known = np.isfinite(errors)
        squares = np.minimum(np.where(known, errors, 0.0) ** 2, FARTHEST**2)
        return Widths(before.squares + squares, before.counts + known)

    def factors(self, horizon: int) -> np.ndarray:
        """The widths w (H,)."""
        whole = self._of(horizon)
        sums = np.array([_around(whole.squares), _around(whole.counts)])
        return np.asarray(np.sqrt((PRIOR + sums[0]) / (PRIOR + sums[1])))

    def _of(self, horizon: int) -> Widths:
        """The sums of so many steps, of which later ones begin again."""
        more = max(0, horizon - len(self.squares))
        return Widths(*(np.pad(part[:horizon], (0, more)) for part in (self.squares, self.counts)))

    def arrays(self) -> dict[str, np.ndarray]:
        """The state as arrays."""
        return {"width_squares": self.squares, "width_counts": self.counts}

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray]) -> Widths:
        """Restore what `arrays` gave; a FormatError says where it is malformed."""
        squares, counts = (np.asarray(arrays[f"width_{name}"], float) for name in ("squares", "counts"))
        fit = squares.ndim == 1 and squares.shape == counts.shape
        if not fit or not (np.isfinite(squares) & np.isfinite(counts) & (counts >= 0)).all():
            raise FormatError("widths must be finite, and as many as their counts.", field="widths")
        return Widths(squares, counts)


def _around(sums: np.ndarray) -> np.ndarray:
    """The means of each number and of those of the steps near it, (H,)."""
    total = np.concatenate([[0.0], np.cumsum(sums)])
    places = np.arange(len(sums))
    stop = np.minimum(places + NEAR + 1, len(sums))
    start = np.maximum(places - NEAR, 0)
    return np.asarray((total[stop] - total[start]) / (stop - start))
