"""The first rows of a regression, kept until it is known in which units their targets are."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

__all__ = ["Early"]


class Early:
    """Rows that wait to be learned from.

    Attributes:
        x: the encoded rows (n, ...), float32.
        y: their targets (n,), in their own units.

    Example:
        >>> early = Early()
        >>> early.keep(np.zeros((2, 3), np.float32), np.array([1.0, 2.0]))
        >>> x, y = early.take()
        >>> x.shape, y.tolist(), len(early.y)
        ((2, 3), [1.0, 2.0], 0)
    """

    def __init__(self) -> None:
        self.x, self.y = np.zeros((0,), np.float32), np.zeros(0)

    def keep(self, x: np.ndarray, y: np.ndarray) -> None:
        """Keep rows, in their order."""
        self.x = np.concatenate([self.x, x]) if len(self.y) else np.array(x)
        self.y = np.concatenate([self.y, y])

    def take(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows, which are no longer kept."""
        x, y = self.x, self.y
        self.x, self.y = np.zeros((0,), np.float32), np.zeros(0)
        return x, y

    def arrays(self) -> dict[str, np.ndarray]:
        """The state as arrays."""
        return {"x": self.x, "y": self.y} if len(self.y) else {}

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray]) -> Early:
        """Restore what `arrays` gave; nothing is kept in files of earlier versions."""
        early = Early()
        if arrays:
            early.keep(np.array(arrays["x"], np.float32), np.array(arrays["y"], float))
        return early
