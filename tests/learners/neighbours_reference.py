"""A memory whose nearest rows vote, row by row in NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.stats

st: Any = scipy.stats  # its annotations are those of another distribution in places

__all__ = ["FORGETTING", "SCALE", "SHAPE", "NaiveMemory"]

SHAPE, SCALE, FORGETTING = 1.5, 0.9, 0.95
"""The prior of the noise of numbers."""


class NaiveMemory:
    """The latest rows in a list of places, and one distribution for each number of neighbours."""

    def __init__(
        self, kind: str, classes: int, size: int, neighbours: tuple[int, ...], decay: float, switching: float
    ) -> None:
        self.kind, self.classes, self.size, self.neighbours = kind, classes, size, neighbours
        self.decay, self.switching = decay, switching
        self.places: list[tuple[np.ndarray, float, float]] = []
        self.written = 0
        self.weights = np.full(len(neighbours), 1.0 / len(neighbours))
        self.rates = np.ones(classes if kind == "classes" else 2)
        self.mean, self.count = 0.0, 0.0
        self.noise = np.full(len(neighbours), SCALE / SHAPE)

    def predict(self) -> None:
        """Another number of neighbours takes over now and then."""
        if (others := len(self.weights) - 1) > 0:
            enter = self.switching * (1 - self.weights) / others
            self.weights = (1 - self.switching) * self.weights + enter

    def votes(self, x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The targets of the k nearest rows, and their shares."""
        squares = np.array([((row - x) ** 2).sum() for row, _, _ in self.places])
        order = np.argsort(squares, kind="stable")[:k]
        reach = squares[order[-1]] if len(order) else 0.0
        fall = np.exp(-self.decay * squares[order] / reach) if reach > 0 else np.ones(len(order))
        targets = np.array([self.places[i][1] for i in order])
        return targets, fall * np.array([self.places[i][2] for i in order])

    def distribution(self, x: np.ndarray, place: int) -> Any:
        """The distribution of the target under one number of neighbours; of classes, their probabilities."""
        y, u = self.votes(x, self.neighbours[place])
        if self.kind == "classes":
            counts = np.array([u[y == c].sum() for c in range(self.classes)])
            counts = counts + 0.03 * self.rates / self.rates.sum()
            return counts / counts.sum()
        if self.kind == "counts":
            events, rows = u @ y + 0.3 * self.rates[0] / self.rates[1], u.sum() + 0.3
            return st.nbinom(events, rows / (rows + 1))
        rows = u.sum() + 0.1
        mean = (u @ y + 0.1 * self.mean) / rows
        squares = u @ (y - mean) ** 2 + 0.1 * (self.mean - mean) ** 2
        a, b = SHAPE + u.sum() / 2, SHAPE * self.noise[place] + squares / 2
        return st.t(2 * a, mean, np.sqrt(b / a * (1 + 1 / rows)))

    def log_probs(self, x: np.ndarray, y: float) -> np.ndarray:
        """log p(y | x) under each number of neighbours."""
        distributions = [self.distribution(x, place) for place in range(len(self.neighbours))]
        if self.kind == "classes":
            return np.log([distribution[int(y)] for distribution in distributions])
        return np.array(
            [
                distribution.logpmf(y) if self.kind == "counts" else distribution.logpdf(y)
                for distribution in distributions
            ]
        )

    def update(self, x: np.ndarray, y: float, weight: float) -> float:
        """Take a row in; its log evidence."""
        logs = self.log_probs(x, y)
        evidence = float(np.log(self.weights @ np.exp(logs)))
        self.weights = self.weights * np.exp(weight * logs)
        self.weights = self.weights / self.weights.sum()
        keep = 1 - 1 / self.size
        if self.kind == "numbers":
            self._level(x, y, weight, keep)
        else:
            own = np.arange(self.classes) == y if self.kind == "classes" else np.array([y, 1.0])
            self.rates = keep * self.rates + (1 - keep) + weight * own
        one = (x, y, weight)
        if len(self.places) < self.size:
            self.places.append(one)
        else:
            self.places[self.written % self.size] = one
        self.written += 1
        return evidence

    def _level(self, x: np.ndarray, y: float, weight: float, keep: float) -> None:
        for place in range(len(self.neighbours)):
            df, loc, scale = self.distribution(x, place).args
            square = (y - loc) ** 2
            square = square * (df + 1) / (df + square / scale**2)
            rate = min(weight * max(1 - FORGETTING, 1 / (keep * self.count + weight + 2)), 1.0)
            self.noise[place] += rate * (square - self.noise[place])
        self.count = keep * self.count + weight
        self.mean += weight / self.count * (y - self.mean)
