"""The points that an optimiser gave out, and whose values it waits for."""

from __future__ import annotations

import numpy as np

from credo.bandits.optimize.space import Candidate, Space

__all__ = ["Pending"]

SAME = 1e-6
"""How far the numbers of a point, which lie between -1 and 1, may be from those that were asked for."""


class Pending:
    """Points of a space that were asked for and not told yet, and their `rows`, in order."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._points: list[Candidate] = []
        self.rows: list[np.ndarray] = []

    @property
    def points(self) -> list[Candidate]:
        """Copies of the points."""
        return [point.copy() for point in self._points]

    def add(self, point: object) -> None:
        """Wait for a point."""
        self.rows.append(self._space.encode(point))
        self._points.append(self._space.plain(point))

    def settle(self, row: np.ndarray) -> bool:
        """Wait no more for the oldest point with this row; whether there was one."""
        for place, other in enumerate(self.rows):
            if np.allclose(row, other, rtol=0.0, atol=SAME):
                del self.rows[place], self._points[place]
                return True
        return False
