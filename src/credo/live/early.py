"""The first rows of a regression, kept until it is known in which units their targets are."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

__all__ = ["Early"]


class Early:
    """Rows that wait: inputs `x` (n, ...), float32, targets `y` (n,) in their own units, and weights (n,)."""

    def __init__(self) -> None:
        self.x, self.y, self.weights = np.zeros((0,), np.float32), np.zeros(0), np.zeros(0)

    def keep(self, x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> None:
        """Keep rows, in their order."""
        self.x = np.concatenate([self.x, x]) if len(self.y) else np.array(x)
        self.y = np.concatenate([self.y, y])
        self.weights = np.concatenate([self.weights, weights])

    def take(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows, which are no longer kept."""
        rows = self.x, self.y, self.weights
        self.__init__()  # type: ignore[misc]
        return rows

    def copy(self) -> Early:
        """The same rows, of which this one sees nothing more."""
        other = Early()
        other.x, other.y, other.weights = self.x, self.y, self.weights
        return other

    def arrays(self) -> dict[str, np.ndarray]:
        """The state as arrays."""
        return {"x": self.x, "y": self.y, "w": self.weights} if len(self.y) else {}

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray]) -> Early:
        """Restore what `arrays` gave; files of earlier versions have no weights, or no rows at all."""
        early = Early()
        if len(arrays.get("y", ())):
            y = np.array(arrays["y"], float)
            weights = np.array(arrays["w"], float) if "w" in arrays else np.ones(len(y))
            early.keep(np.array(arrays["x"], np.float32), y, weights)
        return early
